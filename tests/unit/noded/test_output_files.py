"""The names of output files, as Slurm 22.05.8 makes them."""

import pytest

from understudy.noded.output_files import Names, expand, output_path

NAMES = Names(12, "zz", "root", "vm")
TASK = Names(16, "wrap", "root", "vm", array_job_id=11, array_task_id=3)


@pytest.mark.parametrize(
    ("pattern", "names", "expected"),
    [
        # seen with Slurm 22.05.8
        (
            "e-%j-%5j-%A-%a-%J-%N-%n-%s-%t-%u-%x-%b-%%.out",
            NAMES,
            "e-12-00012-12-4294967294-12-vm-0-batch-0-root-zz-%b-%.out",
        ),
        (
            "q%q-%10x-%05j-%10N-%3t-%2n-%4s-%3u-%12j-%-%J.lit",
            NAMES,
            "q%q-zz-00012-vm-000-00-batch-root-0000000012-%-12.lit",
        ),
        ("arr-%A-%a-%3a-%b-%j-%J-%5A.out", TASK, "arr-11-3-003-%b-16-16-00011.out"),
        ("%q-\\%j-%10x-%05j.lit", NAMES, "%q-%j-%10x-%05j.lit"),
        ("plain", NAMES, "plain"),
    ],
)
def test_patterns_are_replaced_as_slurm_does(pattern, names, expected):
    assert expand(pattern, names) == expected


def test_the_default_name_differs_for_tasks_of_arrays():
    assert output_path("", NAMES, "/home/a") == "/home/a/slurm-12.out"
    assert output_path("", TASK, "/home/a/") == "/home/a/slurm-11_3.out"


def test_relative_names_are_in_the_working_directory():
    assert output_path("logs/%x", NAMES, "/w") == "/w/logs/zz"
    assert output_path("/dev/null", NAMES, "/w") == "/dev/null"
