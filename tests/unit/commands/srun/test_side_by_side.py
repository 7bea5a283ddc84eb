"""Which nodes each of several programs of a step has, as 22.05.8 gives them."""

import io

import pytest
from fake_controller import FakeClient

from understudy.commands.shared.context import Context
from understudy.commands.srun.side_by_side import nodes_of
from understudy.commands.srun.srun_settings import Settings, StepError

HELD = ["n1", "n2", "n3", "n4"]


def _context() -> Context:
    return Context("srun", client=FakeClient(), environ={}, stderr=io.StringIO())


@pytest.mark.parametrize(
    ("line", "taken", "nodes", "tasks"),
    [
        ("true", [], ["n1"], 1),
        ("-n2 true", ["n1"], ["n2", "n3"], 2),
        ("-n5 -O true", [], HELD, 5),
        ("-N2 true", ["n1", "n1", "n3"], ["n2", "n4"], 2),
        ("-N2 -n4 true", [], ["n1", "n2"], 4),
        ("--ntasks-per-node=2 true", [], ["n1", "n2"], 2),
        ("-w n3 -n2 true", [], ["n3"], 2),
        ("-w n3 -N2 true", [], ["n3", "n1"], 2),
        ("-x n1 -N2 true", [], ["n2", "n3"], 2),
    ],
)
def test_a_part_has_the_nodes_that_it_asks_for_itself(
    line: str, taken: list[str], nodes: list[str], tasks: int
) -> None:
    context = _context()
    settings = Settings(line.split(), context)
    assert nodes_of(settings.job, HELD, taken, context, 7) == (nodes, tasks)


@pytest.mark.parametrize(
    ("line", "taken", "said"),
    [
        ("-N5 true", [], ["Only allocated 4 nodes asked for 5"]),
        (
            "-w n5 true",
            [],
            ["Unable to create step for job 7: Requested node configuration is not available"],
        ),
        (
            "-w n[1 true",
            [],
            ["Unable to create step for job 7: Requested node configuration is not available"],
        ),
        ("-x n[1 true", [], ["Unable to create step for job 7: Invalid node name specified"]),
        (
            "-N3 true",
            ["n1", "n2", "n2"],
            [
                "Allocation failure of 3 nodes: job size of 4, already allocated 2 nodes to "  # noqa: ISC004
                "previous components."
            ],
        ),
        (
            "-w n2,n3 true",
            ["n1", "n2"],
            ["Requested nodelist n[2-3] overlaps with excluded n[1-2].", "Job not submitted."],
        ),
    ],
)
def test_what_a_part_cannot_have_is_said(line: str, taken: list[str], said: list[str]) -> None:
    context = _context()
    settings = Settings(line.split(), context)
    with pytest.raises(StepError):
        nodes_of(settings.job, HELD, taken, context, 7)
    assert context.stderr.getvalue().splitlines() == [f"srun: error: {each}" for each in said]
