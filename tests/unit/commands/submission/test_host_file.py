"""Host files: one entry for each task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from understudy.commands.submission.host_file import entries, use_host_file
from understudy.commands.submission.job import BadOptionError, Job
from understudy.commands.submission.whole import check_arbitrary

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "hosts").write_text("# nodes\nn3,n1\n\nn1*2 # twice\n")
    return tmp_path / "hosts"


def asked(**spec: object) -> Job:
    job = Job(0.0)
    job.spec.update(spec)
    return job


def test_entries_are_read_in_order(file: Path) -> None:
    assert entries(str(file)) == ["n3", "n1", "n1", "n1"]


def test_the_variable_names_a_node_for_each_task(file: Path) -> None:
    job = asked(distribution="block")
    use_host_file(job, {"SLURM_HOSTFILE": str(file)}, 2)
    assert (job.spec["required_nodes"], job.spec["distribution"]) == ("n3,n1", "arbitrary")


def test_nodelist_wins(file: Path) -> None:
    job = asked(required_nodes="n4")
    use_host_file(job, {"SLURM_HOSTFILE": str(file)}, None)
    assert job.spec == {"required_nodes": "n4"}


@pytest.mark.parametrize(
    ("content", "tasks", "line"),
    [
        ("n1\n", 2, "Too few NodeNames in Slurm Hostfile"),
        ("\n", None, "Hostlist is empty!"),
        (None, None, "No such file or directory"),
    ],
)
def test_one_that_does_not_do_is_refused(
    tmp_path: Path, content: str | None, tasks: int | None, line: str
) -> None:
    if content is not None:
        (tmp_path / "few").write_text(content)
    with pytest.raises(BadOptionError, match="Failure getting NodeNames from hostfile") as refused:
        use_host_file(asked(), {"SLURM_HOSTFILE": str(tmp_path / "few")}, tasks)
    assert refused.value.exit_code == 1
    assert line in refused.value.lines[0]


def test_salloc_wants_a_node_of_its_own_for_each_task() -> None:
    job = asked(distribution="arbitrary", required_nodes="n1,n2,n1")
    check_arbitrary(job)
    assert (job.spec["required_nodes"], job.spec["num_tasks"]) == ("n1,n2", 2)
    with pytest.raises(BadOptionError, match="Asked for 3 tasks have 2 in the nodelist"):
        check_arbitrary(asked(distribution="arbitrary", required_nodes="n1,n2,n1", num_tasks=3))
