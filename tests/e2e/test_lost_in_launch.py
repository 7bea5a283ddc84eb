"""A step some of whose node daemons are not there when it is launched: who is there is told to end
it, and srun says so and ends.

Covers: commands/srun/launch.
"""

import pytest
from real_cluster import RealCluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = RealCluster(tmp_path_factory.mktemp("c"), more="MessageTimeout=5", noded=2)
    cluster.up()
    cluster.kill_daemon("noded1")
    yield cluster
    cluster.down()


def test_the_tasks_that_were_started_are_killed(cluster):
    result = cluster.run("srun", "-N2", "-w", "n[1,4]", "bash", "-c", "sleep 500", timeout_s=20)
    lines = [line for line in result.stderr.splitlines() if "CANCELLED AT" not in line]
    assert lines == [
        (
            "srun: error: Task launch for StepId=1.0 failed on node n4: Communication connection "
            "failure"
        ),
        "srun: error: Application launch failed: Communication connection failure",
        "srun: Job step aborted: Waiting up to 3 seconds for job step to finish.",
        "srun: error: n1: task 0: Killed",
    ]
    assert result.returncode == 137
    cluster.until(lambda: cluster.spool() == [])
