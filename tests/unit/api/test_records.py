"""Jobs and nodes as the API tells them, from rows as the controller gives them.

The columns are those of understudy.model.records, where the controller's own are held to them.
"""

from understudy import Job, Node
from understudy.api.records import JOB_COLUMNS, NODE_COLUMNS
from understudy.model.records import JOBS, NODES
from understudy.model.states import JobFlag, JobState, NodeFlag, NodeState


def row(columns, names, **values):
    empty = {name: None if columns[name].optional else columns[name].kind() for name in names}
    return {**empty, **values}


def job(**values):
    return Job.of(row(JOBS, JOB_COLUMNS, **values))


def test_a_job_is_over_when_its_nodes_are_free():
    waits = job(state=JobState.PENDING, reason="Resources")
    assert (waits.state, waits.reason, waits.is_over) == ("PENDING", "Resources", False)
    assert (waits.start_time, waits.array_id, waits.array_task) == (None, None, None)
    ends = job(state=JobState.FAILED, flags=JobFlag.COMPLETING, exit_code=3, end_time=7)
    assert (ends.state, ends.is_over, ends.exit_code, ends.end_time) == (
        "COMPLETING",
        False,
        3,
        7.0,
    )
    ended = job(state=JobState.COMPLETED, reason="None", array_job_id=4, array_task_id=0)
    assert (ended.state, ended.reason, ended.is_over) == ("COMPLETED", "", True)
    assert (ended.array_id, ended.array_task) == (4, 0)


def test_each_state_in_which_a_job_stays_is_over_and_no_other():
    over = {state for state in JobState if job(state=state).is_over}
    assert over == set(JobState) - {JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED}


def test_a_nodes_state_is_what_sinfo_shows():
    def state(**values):
        return Node.of(row(NODES, NODE_COLUMNS, **values)).state

    assert state(state=NodeState.IDLE) == "idle"
    assert state(state=NodeState.MIXED, flags=NodeFlag.DRAIN) == "draining"
    assert state(state=NodeState.DOWN, flags=NodeFlag.NO_RESPOND) == "down*"
    node = Node.of(row(NODES, NODE_COLUMNS, name="n1", partitions=["a", "b"], features=["x"]))
    assert (node.partitions, node.features) == (("a", "b"), ("x",))
