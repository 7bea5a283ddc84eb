"""What the process imports from which all others are forked: each fork pays for what its parent has
in memory.

Covers: noded/groups.
"""

import os
import subprocess
import sys
from pathlib import Path

import understudy
from understudy.noded.groups import groups_of


def test_the_process_that_forks_imports_neither_threads_nor_enumerations():
    house = str(Path(understudy.__file__).parents[1])
    heavy = (
        "threading",
        "enum",
        "re",
        "typing",
        "signal",
        "socket",
        "subprocess",
        "selectors",
        "pathlib",
        "collections",
    )
    program = (
        f"import sys; sys.path.insert(0, {house!r}); import understudy.noded.forking; "
        f"print(*[name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_a_user_whom_the_host_does_not_know_has_the_group_of_the_job_alone():
    assert groups_of(3_999_999_999, 4711) == [4711]
    assert set(os.getgrouplist("root", 17)) == set(groups_of(0, 17))
