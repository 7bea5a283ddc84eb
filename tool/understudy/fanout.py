"""`understudy fanout`: what a message to all nodes takes down trees of sockets.

Place: a sub-command of `understudy`; the words around understudy.tool.fan_out.measure.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.tool.understudy.cluster import fail
from understudy.tool.understudy.hop_options import Transport

if TYPE_CHECKING:
    from understudy.experiments.fan_out_page import FanOutRow
    from understudy.model.cluster import Hops


def fanout(
    nodes: Annotated[
        str, typer.Option("--nodes", metavar="N,...", help="How many nodes, each a hop.")
    ] = "256,1024,4096,16384",
    widths: Annotated[
        str, typer.Option("--widths", metavar="N|flat,...", help="How many heads a message has.")
    ] = "2,8,32,128,flat",
    processes: Annotated[
        int | None,
        typer.Option("--hop-processes", min=1, help="How many share the nodes; else one a CPU."),
    ] = None,
    repeat: Annotated[
        int, typer.Option("--repeat", min=1, help="Messages of each kind; medians are shown.")
    ] = 3,
    transport: Annotated[
        Transport,
        typer.Option(
            "--hop-transport", help="Over Unix sockets, or TCP on the loopback interface."
        ),
    ] = Transport.UNIX,
    latency_ms: Annotated[
        float, typer.Option("--link-latency-ms", min=0, help="As of `understudy up`.")
    ] = 0.0,
    loss: Annotated[
        float, typer.Option("--link-loss", min=0, max=1, help="As of `understudy up`.")
    ] = 0.0,
    deaths: Annotated[
        float, typer.Option("--head-deaths", min=0, max=1, help="As of `understudy up`.")
    ] = 0.0,
    seed: Annotated[int, typer.Option("--hop-seed", help="As of `understudy up`.")] = 0,
    timeout_s: Annotated[
        float,
        typer.Option(
            "--message-timeout", min=0.01, help="Seconds, as MessageTimeout; more above deep trees."
        ),
    ] = 30.0,
    out: Annotated[
        Path | None, typer.Option("--out", help="A folder for fan-out.html and fan-out.json.")
    ] = None,
) -> None:
    """Measure the time to reach all nodes and the load at the sender, over width and N."""
    from understudy.model.cluster import Hops
    from understudy.tool.cluster.processes import heed_termination
    from understudy.tool.cluster.run_dir import LaunchError

    heed_termination()
    hops = Hops(0, latency_ms, loss, deaths, seed, transport is Transport.TCP)
    try:
        _run(nodes, widths, processes or os.cpu_count() or 1, repeat, hops, timeout_s, out)
    except (LaunchError, OSError) as error:
        fail("fanout", str(error))
    except KeyboardInterrupt:
        fail("fanout", "interrupted; what had been started has been ended")


def _run(
    nodes: str,
    widths: str,
    processes: int,
    repeat: int,
    hops: Hops,
    timeout_s: float,
    out: Path | None,
) -> None:
    import json
    import tempfile

    from understudy.experiments.fan_out_page import fan_out_page
    from understudy.model.cluster import FLAT
    from understudy.tool.fan_out.measure import Asked, measure

    sizes = [_number(word, "--nodes") for word in nodes.split(",")]
    wanted = [0 if word == "flat" else _number(word, "--widths") for word in widths.split(",")]
    hops.width = FLAT if 0 in wanted else 0
    asked = Asked(wanted, processes, repeat, hops, timeout_s)
    facts = _facts(processes, hops)
    rows: list[FanOutRow] = []
    typer.echo(_HEAD)
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="understudy-fanout-") as folder:
            rows += measure(Path(folder) / "run", size, asked, lambda row: typer.echo(line(row)))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "fan-out.html").write_text(fan_out_page(rows, facts))
        content = {"facts": dict(facts), "rows": [asdict(row) for row in rows]}
        (out / "fan-out.json").write_text(json.dumps(content, indent=1) + "\n")
        typer.echo(f"{out / 'fan-out.html'}")


_HEAD = (
    f"{'nodes':>7} {'width':>5} {'levels':>6} {'s until all':>11} {'longest':>8} {'model':>8} "
    f"{'sender CPU':>10} {'messages':>8} {'CPU a hop':>9} {'again':>6}"
)


def line(row: FanOutRow) -> str:
    """What is printed of a measurement, below the head."""
    return (
        f"{row.nodes:7} {row.width_shown:>5} {row.levels:6} {row.seconds:11.3f} "
        f"{row.slowest_s:8.3f} {row.model_s:8.3f} {row.sender_cpu_s:10.3f} "
        f"{row.sender_messages:8.0f} {1e6 * row.cpu_s / row.nodes:6.0f} us {row.repeated:6.0f}"
    )


def _number(word: str, option: str) -> int:
    from understudy.tool.cluster.run_dir import LaunchError

    if not word.isdigit() or int(word) < 1:
        raise LaunchError(f"{option} {word}: expected numbers from 1, at commas")
    return int(word)


def _facts(processes: int, hops: object) -> list[tuple[str, str]]:
    import platform

    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return [
        ("CPUs", f"{os.cpu_count()} x {cpu}"),
        ("processes of nodes", str(processes)),
        ("load before", f"{os.getloadavg()[0]:.1f}"),
        ("hops", str(hops)),
        ("kernel", platform.release()),
        ("Python", platform.python_version()),
    ]
