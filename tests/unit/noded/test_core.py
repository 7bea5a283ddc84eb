"""The node daemon's core: what each message and event makes it do.

Covers: noded/executor.
"""

import pytest

from understudy.auth.credential import Credential
from understudy.noded.core import (
    Forget,
    KillScript,
    NodeCore,
    OwnNodes,
    Report,
    RunEpilog,
    SignalScript,
    StartScript,
)
from understudy.noded.faults import Fault
from understudy.protocol.messages import (
    BatchComplete,
    EpilogComplete,
    Failure,
    LaunchBatch,
    Ok,
    SignalJob,
    TerminateJob,
)


def launch(job_id=7, restart=0, nodes="n[0-3]"):
    return LaunchBatch(job_id, restart, nodes, 100, b"", 1000, 1000)


def credential(message, **changes):
    fields = {
        "job_id": message.job_id,
        "restart": message.restart,
        "nodes": message.nodes,
        "user_id": message.user_id,
        "start_time": 100,
        "expires": 220,
    }
    return Credential(**fields | changes)


@pytest.fixture
def core():
    return NodeCore(OwnNodes("n[0-3]", is_all=True))


def started(core, **fields):
    message = launch(**fields)
    answer, _ = core.launch(message, credential(message))
    assert answer == Ok()
    return core.jobs[(message.job_id, message.restart)]


def test_a_launch_starts_the_script(core):
    message = launch()
    assert core.launch(message, credential(message)) == (Ok(), [StartScript(message)])
    assert core.running_jobs == [(7, 0)]


def test_a_repeated_launch_is_acknowledged_without_a_second_start(core):
    started(core)
    message = launch()
    assert core.launch(message, credential(message)) == (Ok(), [])


@pytest.mark.parametrize(
    "changes", [{"job_id": 8}, {"restart": 1}, {"nodes": "n[0-2]"}, {"user_id": 0}]
)
def test_a_credential_for_something_else_is_refused(core, changes):
    message = launch()
    answer, effects = core.launch(message, credential(message, **changes))
    assert isinstance(answer, Failure)
    assert answer.code == 2026
    assert effects == []
    assert core.running_jobs == []


def test_a_launch_on_nodes_of_another_daemon_is_refused():
    core = NodeCore(OwnNodes("n[4-7]", is_all=False))
    message = launch()
    assert core.launch(message, credential(message))[0].code == 2026


def test_a_script_that_ends_is_reported_and_its_nodes_wait_for_the_controller(core):
    started(core)
    assert core.script_ended((7, 0), 3, 0) == [Report(BatchComplete(7, 0, 3, 0, False, "n0"), "n0")]
    assert core.running_jobs == [(7, 0)]


def test_termination_after_the_end_runs_the_epilog_and_frees_the_nodes(core):
    job = started(core)
    core.script_ended((7, 0), 0, 0)
    assert core.terminate(TerminateJob(7, 0)) == (Ok(), [RunEpilog(job, "n[0-3]", 0.0)])
    assert core.epilog_done(job, "n[0-3]") == [
        Report(EpilogComplete(7, 0, "n[0-3]"), ""),
        Forget((7, 0)),
    ]
    assert core.running_jobs == []


def test_termination_of_a_running_script_kills_it_and_its_end_starts_the_epilog(core):
    job = started(core)
    assert core.terminate(TerminateJob(7, 0, why="PREEMPTION")) == (
        Ok(),
        [KillScript((7, 0), "PREEMPTION")],
    )
    assert core.terminate(TerminateJob(7, 0)) == (Ok(), [])
    assert core.script_ended((7, 0), 0, 15) == [RunEpilog(job, "n[0-3]", 0.0)]
    assert core.terminate(TerminateJob(7, 0)) == (Ok(), [])


def test_a_killed_script_is_reported_where_only_its_end_tells_how_it_ended():
    core = NodeCore(OwnNodes("n[0-3]", is_all=True), reports_killed=True)
    job = started(core)
    core.terminate(TerminateJob(7, 0))
    assert core.script_ended((7, 0), 7, 0) == [
        Report(BatchComplete(7, 0, 7, 0, False, "n0"), "n0"),
        RunEpilog(job, "n[0-3]", 0.0),
    ]


def test_termination_of_an_unknown_job_frees_the_nodes_that_it_names(core):
    answer, [effect] = core.terminate(TerminateJob(9, 1, "n[1-2]"))
    assert answer == Ok()
    assert (effect.job.key, effect.nodes) == ((9, 1), "n[1-2]")
    assert core.epilog_done(effect.job, effect.nodes)[0].message == EpilogComplete(9, 1, "n[1-2]")


def test_termination_of_an_unknown_job_without_nodes_frees_all_of_the_daemons():
    core = NodeCore(OwnNodes("n[4-7]", is_all=False))
    assert core.terminate(TerminateJob(9, 0))[1][0].nodes == "n[4-7]"
    assert core.terminate(TerminateJob(8, 0, "n[2-5]"))[1][0].nodes == "n[4-5]"


def test_the_nodes_of_an_unknown_job_may_come_in_several_parts(core):
    _, [first] = core.terminate(TerminateJob(9, 0, "n0"))
    assert core.terminate(TerminateJob(9, 0, "n0")) == (Ok(), [])
    _, [second] = core.terminate(TerminateJob(9, 0, "n[0-2]"))
    assert (first.nodes, second.nodes) == ("n0", "n[1-2]")
    assert core.epilog_done(first.job, "n0") == [Report(EpilogComplete(9, 0, "n0"), "")]
    assert core.epilog_done(second.job, "n[1-2]") == [
        Report(EpilogComplete(9, 0, "n[1-2]"), ""),
        Forget((9, 0)),
    ]


def test_each_part_lingers_as_its_own_order_says(core):
    """A node that fails is to be clean at once; the others of the job, whose script is being killed
    elsewhere, are not, in whichever part they come.
    """
    _, effects = core.terminate(TerminateJob(9, 0, "n3"))
    assert [effect.job.lingers for effect in effects] == [False]
    _, effects = core.terminate(TerminateJob(9, 0, "n[1-2]", lingers=True))
    assert [(effect.nodes, effect.job.lingers) for effect in effects] == [("n[1-2]", True)]


def test_a_launch_that_arrives_after_its_termination_does_not_start(core):
    _, [effect] = core.terminate(TerminateJob(7, 0, "n[0-3]"))
    core.epilog_done(effect.job, effect.nodes)
    message = launch()
    answer, effects = core.launch(message, credential(message))
    assert (answer.code, effects) == (2021, [])


def test_a_copy_of_a_launch_that_arrives_after_the_jobs_end_is_acknowledged_and_does_nothing(core):
    job = started(core)
    core.script_ended((7, 0), 0, 0)
    core.terminate(TerminateJob(7, 0))
    core.epilog_done(job, job.nodes)
    message = launch()
    assert core.launch(message, credential(message)) == (Ok(), [])
    # the same after a copy of the termination
    _, [effect] = core.terminate(TerminateJob(7, 0, "n[0-3]"))
    core.epilog_done(effect.job, effect.nodes)
    assert core.launch(message, credential(message)) == (Ok(), [])


def test_runs_of_a_requeued_job_do_not_touch_each_other(core):
    first = started(core, restart=0)
    core.terminate(TerminateJob(7, 0))
    second = started(core, restart=1)
    core.script_ended((7, 0), 0, 15)
    core.epilog_done(first, first.nodes)
    assert core.jobs == {(7, 1): second}
    assert core.signal(SignalJob(7, 0, 10))[0].code == 2017
    assert core.signal(SignalJob(7, 1, 10, True)) == (Ok(), [SignalScript((7, 1), 10, True)])


def test_a_signal_for_an_unknown_or_ended_job_is_refused(core):
    assert core.signal(SignalJob(7, 0, 15))[0].code == 2017
    started(core)
    core.script_ended((7, 0), 0, 0)
    assert core.signal(SignalJob(7, 0, 15)) == (Failure(2017, "Invalid job id specified"), [])


def test_only_own_nodes_are_freed_when_a_job_spans_daemons():
    core = NodeCore(OwnNodes("n[0-1]", is_all=False))
    job = started(core, nodes="n[0-3]")
    core.script_ended((7, 0), 0, 0)
    assert core.terminate(TerminateJob(7, 0, "n[0-1]")) == (Ok(), [RunEpilog(job, "n[0-1]", 0.0)])


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("n[0-3]", "n0"),
        ("n[3,7-9]", "n3"),
        ("x1,n[0-3]", "x1"),
        ("n[08-10]", "n08"),
        ("n5", "n5"),
        ("r[1-2]n[3-4]", "r1n3"),
    ],
)
def test_the_first_node_is_where_the_script_runs(expression, first):
    assert OwnNodes("x1", is_all=True).part(expression)[1] == first


def test_jobs_that_the_controller_does_not_know_are_ended(core):
    started(core)
    core.terminate(TerminateJob(8, 0, "n2"))  # in its epilog: it ends by itself
    assert core.end_unknown([(7, 0), (8, 0), (99, 0)]) == [KillScript((7, 0))]


def test_a_silent_node_neither_launches_nor_terminates(core):
    core.faults.put(["n0"], Fault(silent=True))
    message = launch(nodes="n0")
    assert core.launch(message, credential(message)) == (None, [])
    assert core.terminate(TerminateJob(7, 0, "n0")) == (None, [])


def test_a_launch_failure_is_answered_as_the_fault_says(core):
    core.faults.put(["n0"], Fault(launch_code=4010, launch_text="Prolog failed"))
    message = launch()
    assert core.launch(message, credential(message)) == (Failure(4010, "Prolog failed"), [])


def test_slow_and_silent_nodes_are_apart_in_the_epilog(core):
    job = started(core)
    core.script_ended((7, 0), 0, 0)
    core.faults.put(["n1"], Fault(epilog_s=30.0))
    core.faults.put(["n2"], Fault(silent=True))
    assert core.terminate(TerminateJob(7, 0))[1] == [
        RunEpilog(job, "n[0,3]", 0.0),
        RunEpilog(job, "n2", 0.0),
        RunEpilog(job, "n1", 30.0),
    ]
    assert core.epilog_done(job, "n[0,3]") == [Report(EpilogComplete(7, 0, "n[0,3]"), "n0")]
    # which leaves when n2 speaks again
    assert core.epilog_done(job, "n2") == [Report(EpilogComplete(7, 0, "n2"), "n2")]
    assert core.epilog_done(job, "n1") == [Report(EpilogComplete(7, 0, "n1"), "n1"), Forget((7, 0))]


def test_an_event_that_cannot_happen_is_a_bug_with_the_jobs_state_in_its_text(core):
    started(core)
    core.script_ended((7, 0), 0, 0)
    with pytest.raises(AssertionError, match="script ended while ended"):
        core.script_ended((7, 0), 0, 0)


def test_as_many_ended_runs_are_remembered_as_it_is_told_to():
    core = NodeCore(OwnNodes("n[0-3]", is_all=True), past_runs=2)
    for job_id in (1, 2, 3):
        [epilog] = core.terminate(TerminateJob(job_id, 0), "n0")[1]
        core.epilog_done(epilog.job, "n0")
    late = {job_id: core.launch(launch(job_id), None)[0] for job_id in (1, 2, 3)}
    assert late[1] == Ok()
    assert [late[job_id].code for job_id in (2, 3)] == [2021, 2021]
