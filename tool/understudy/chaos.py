"""`understudy chaos`: its command line. What it does is in tool/replay/chaos.py, which is imported
when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from understudy.tool.replay.chaos import ChaosRequest

_Scenario = Annotated[
    Path | None,
    typer.Argument(help="The folder of a campaign that was drawn before; else one is drawn."),
]
_Seed = Annotated[int, typer.Option(help="From which jobs, faults and their effects are drawn.")]
_Hours = Annotated[float, typer.Option(min=0.1, help="How long, in virtual time.")]
_Conf = Annotated[
    Path | None,
    typer.Option(help="A site's slurm.conf, instead of --nodes and --cpus."),
]
_Nodes = Annotated[int, typer.Option(min=1, help="Nodes of the machine.")]
_Cpus = Annotated[int, typer.Option(min=1, help="CPUs of each node.")]
_Scheduler = Annotated[str, typer.Option(help="SchedulerType, where there is no --conf.")]
_Faults = Annotated[float, typer.Option(min=0.0, help="Faults an hour, in the mean.")]
_Out = Annotated[Path, typer.Option(help="The folder for the campaign, as a scenario folder.")]
_Twice = Annotated[
    bool, typer.Option("--twice", help="Run it twice, and stop at the first difference.")
]
_Shrink = Annotated[
    bool, typer.Option("--shrink", help="If it fails: leave out what is not needed for that.")
]


def chaos(
    scenario: _Scenario = None,
    seed: _Seed = 1,
    hours: _Hours = 24.0,
    conf: _Conf = None,
    nodes: _Nodes = 8,
    cpus: _Cpus = 4,
    scheduler: _Scheduler = "",
    faults: _Faults = 2.0,
    out: _Out = Path("runs/chaos"),
    twice: _Twice = False,
    shrink: _Shrink = False,
) -> None:
    """Have nodes, daemons, links and disks of a busy cluster fail at random, and look after each
    step whether all that must hold does; then heal everything, and see that every job ends, every
    node is back and every queue drains.

    Exit codes: 0 all held; 1 something did not, or the run could not be made; 2 the command line
    is wrong. What failed is in OUT/scenario, and the command that shows it again is printed.
    """
    from understudy.tool.replay.chaos import ChaosRequest

    request = ChaosRequest(
        out=out,
        seed=seed,
        hours=hours,
        conf=conf,
        nodes=nodes,
        cpus=cpus,
        scheduler=scheduler.removeprefix("sched/"),
        faults=faults,
        scenario=scenario,
    )
    raise typer.Exit(_code_of(request, twice=twice, shrink=shrink))


def _code_of(request: ChaosRequest, *, twice: bool, shrink: bool) -> int:
    """Run it: the exit code, with what failed said."""
    from understudy.experiments.scenario import ScenarioError
    from understudy.model.errors import ConfigError
    from understudy.tool.cluster.launch import LaunchError
    from understudy.tool.replay import chaos
    from understudy.tool.replay.results import FAILED

    try:
        scenario = chaos.drawn(request)
        try:
            outcome = chaos.run(scenario, request.seed)
            if twice and (
                where := chaos.first_difference(outcome, chaos.run(scenario, request.seed))
            ):
                raise chaos.CampaignFailedError(f"two runs differ at {where}")
        except chaos.CampaignFailedError as failure:
            problem = chaos.shrink(scenario, request.seed, str(failure)) if shrink else str(failure)
            command = f"understudy chaos {scenario} --seed {request.seed}"
            typer.echo(f"seed {request.seed}: {problem}\nto see it again: {command}", err=True)
            return FAILED
    except (ScenarioError, LaunchError, ConfigError, OSError) as error:
        typer.echo(f"understudy chaos: error: {error}", err=True)
        return FAILED
    for name, count in chaos.figures(outcome).items():
        typer.echo(f"{name:22} {count:,}")
    return 0
