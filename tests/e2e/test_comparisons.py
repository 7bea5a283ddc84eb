"""The comparisons that are shipped, each in its short form, on small traces under the names of the
real ones.
"""

import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy.experiments.comparison.comparison import read_comparison
from understudy.experiments.comparison.figures import FIGURES
from understudy.experiments.swf import write_swf
from understudy.experiments.trace import TraceJob
from understudy.tool.understudy.app import app_with

SHIPPED = sorted((Path(__file__).parents[2] / "examples" / "experiments").glob("*.toml"))
# parts of KTH-SP2 that short forms have, and where they begin (examples/experiments)
PARTS = {part: 599_850 + (part - 1) * 1_797_736 for part in (2, 7)}


def jobs(begin, count, most, chance):
    """More than the machine can take at once, within some hours."""
    for _ in range(count):
        run = chance.randint(1, 4_000)
        limit = run + chance.randint(0, 4_000)
        yield begin + chance.randint(0, 9_000), chance.randint(1, most), run, limit


def write(path, found, nodes):
    ordered = sorted([(0, 1, 60, 100), *found])
    trace = [
        TraceJob(number, submit, run, procs, limit, run)
        for number, (submit, procs, run, limit) in enumerate(ordered, 1)
    ]
    write_swf(path, trace, {"MaxNodes": str(nodes), "MaxProcs": str(nodes)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Traces, and what is kept of all comparisons, which share cells."""
    found, chance = tmp_path_factory.mktemp("comparisons"), random.Random(1)
    kth = [job for begin in PARTS.values() for job in jobs(begin, 25, 60, chance)]
    write(found / "KTH-SP2-1996.swf.gz", kth, 100)
    write(found / "ALCF-Theta-2022.swf.gz", jobs(0, 40, 2_000, chance), 4_360)
    return found


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_short_form_makes_a_page(path, folder):
    comparison = read_comparison(path, FIGURES)
    result = CliRunner().invoke(
        app_with("compare"),
        [
            *("compare", str(path), "--traces", str(folder), "--workers", "2"),
            *("--kept", str(folder / "kept"), "--pages", str(folder / "pages")),
        ],
    )
    assert result.exit_code == 0, result.output
    page = (folder / "pages" / f"{path.stem}.md").read_text()
    assert "Not run" not in page
    assert "Failed" not in page
    for policy in comparison.policies:
        assert f"\n| `{policy.name}` | " in page
    assert list((folder / "pages").glob(f"{path.stem}-*.svg"))
