"""scontrol update: jobs, nodes, partitions.

Covers: controller/jobs/hold, controller/jobs/resize, controller/nodes/drain,
controller/requests/job_change, controller/requests/select, controller/requests/update_job_layout,
controller/requests/update_jobs, controller/requests/update_nodes,
controller/requests/update_partitions, controller/requests/job_change_order.
"""

from __future__ import annotations

import dataclasses

import pytest
from controller_harness import OTHER, ROOT, START, USER, Harness, make_tables

from understudy.controller.saved.records import decode_job, encode_job
from understudy.model.associations import AccountingUser, AssociationState
from understudy.model.errors import ErrorCode
from understudy.model.states import JobState, NodeFlag, NodeState
from understudy.protocol.messages import Failure, Ok, UpdateJobs, UpdatePartition


@pytest.fixture
def h() -> Harness:
    return Harness()


# --- jobs -----------------------------------------------------------------------------------------


def test_a_pending_jobs_request_is_changed(h: Harness) -> None:
    job = h.submit(hold=True, begin_time=START + 1000)
    changes = {
        "name": "new", "timelimit": "2:00:00", "comment": "c", "numnodes": "2-3", "numtasks": "6",
        "minmemorynode": "200",
        "features": "fast", "reqnodelist": "n2", "excnodelist": "n4", "requeue": "0",
        "account": "a", "qos": "q",
        "starttime": "2035-05-05", "mailuser": "bob", "partition": "main", "cpuspertask": "2",
        "mincpusnode": "3", "tasksnode": "2", "reqcores": "2", "reqsockets": "1", "reqthreads": "1",
        "delayboot": "10", "switches": "2@1:00",
        "wait-for-switch": "90", "resetaccruetime": "",
    }  # fmt: skip
    for key, value in changes.items():
        assert h.update(job, **{key: value}) == 0, key
    assert (job.spec.name, job.time_limit_s, job.spec.comment, job.min_nodes, job.max_nodes) == (
        "new",
        7200,
        "c",
        2,
        3,
    )
    assert (job.num_tasks, job.cpus_per_task, job.min_cpus, job.memory_per_node_mb) == (
        6,
        2,
        6,
        200,
    )
    assert (job.required_nodes, job.excluded_nodes, job.requeue) == (0b10, 0b1000, False)
    assert (
        job.spec.min_cpus_node,
        job.spec.ntasks_per_node,
        job.spec.threads_per_core,
        job.accrue_time,
    ) == (3, 2, 1, int(START))
    assert (job.spec.cores_per_socket, job.spec.sockets_per_node) == (2, 1)
    assert (job.spec.switches, job.spec.switches_wait_s) == (2, 90)
    assert job.spec.extra == {
        "delay_boot": "10", "min_cpus_node": "3", "required_nodes": "n2", "excluded_nodes": "n4"
    }  # fmt: skip
    assert job.eligible_time == job.begin_time


def test_a_job_that_is_moved_keeps_its_memory_and_bills_as_the_partition_says(h: Harness) -> None:
    small, main = h.core.tables.partitions["small"], h.core.tables.partitions["main"]
    small.default_memory_per_node_mb, main.default_memory_per_node_mb = 500, 700
    small.tres_billing_weights = "CPU=1.7,Mem=1.0G"
    h.submit(min_nodes=4, exclusive=True)
    job = h.submit(partition="small", num_tasks=3)
    shown = lambda: h.query("jobs", "tres_requested", job_id=[job.job_id])[0][0]  # noqa: E731
    assert shown() == "cpu=3,mem=500M,node=1,billing=5"
    assert h.update(job, partition="main") == 0
    assert shown() == "cpu=3,mem=500M,node=1,billing=3"


def test_a_number_of_switches_alone_leaves_the_wait_for_them(h: Harness) -> None:
    job = h.submit(hold=True)
    wait = lambda: (job.spec.switches, job.spec.switches_wait_s)  # noqa: E731
    assert h.update(job, switches="2") == 0
    assert wait() == (2, 0)
    assert h.update(job, switches="0", **{"wait-for-switch": "7"}) == 0
    assert h.update(job, switches="1") == 0
    assert wait() == (1, 7)
    other = h.submit(hold=True, switches=2)
    assert h.update(other, switches="1") == 0
    assert (other.spec.switches, other.spec.switches_wait_s) == (1, None)


def test_a_wait_for_switches_that_is_not_understood_is_as_long_as_the_site_lets_it_be(
    h: Harness,
) -> None:
    h.submit(min_nodes=4, exclusive=True)
    job = h.submit(min_nodes=2)
    assert h.update(job, switches="1@soon") == 0
    h.run(61)
    assert h.query("jobs", "switches", "switches_wait_s", job_id=[job.job_id]) == [[1, 300]]
    assert h.update(job, switches="0") == 0
    assert job.spec.switches is None


def test_another_nice_value_ends_a_hold_which_a_pass_of_the_scheduler_finds(h: Harness) -> None:
    job = h.submit(hold=True, begin_time=START + 1000)
    assert h.update(job, nice="20") == 0
    assert (job.priority, job.nice, job.held_by, job.reason) == (2, 20, "", "JobHeldUser")
    assert h.update(job, ROOT, priority="500") == 0
    assert (job.priority, job.nice, job.reason) == (500, 0, "JobHeldUser")
    h.run(31)
    assert job.reason == "BeginTime"


def test_cpus_a_node_stay_as_they_were_asked_for(h: Harness) -> None:
    job = h.submit(hold=True, num_tasks=4)
    assert h.update(job, cpuspertask="2") == h.update(job, tasksnode="2") == 0
    assert h.query("jobs", "min_cpus_node") == [[1]]
    assert h.update(job, mincpusnode="3") == 0
    assert h.query("jobs", "min_cpus_node") == [[3]]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("contiguous", "yes"),
        ("deadline", "2035-06-06"),
        ("oversubscribe", "yes"),
        ("reboot", "yes"),
        ("sitefactor", "7"),
    ],
)
def test_some_keys_are_for_operators(h: Harness, key: str, value: str) -> None:
    job = h.submit(hold=True)
    assert h.update(job, USER, **{key: value}) == 2002
    assert h.update(job, ROOT, **{key: value}) == 0
    h.core.associations = AssociationState(users=[AccountingUser("ann", "Operator")])
    assert h.update(job, USER, **{key: value}) == 0


def test_a_running_jobs_end_is_moved(h: Harness) -> None:
    job = h.submit(time_limit_s=3600)
    assert h.update(h.submit(hold=True), endtime="now+10minutes") == 2085
    assert h.update(job, endtime=f"uts{int(START) + 600}") == 0
    assert job.time_limit_s == 600
    assert h.update(job, endtime=f"uts{int(START) + 6000}") == 2002


def test_time_limits_are_raised_and_lowered_by_steps(h: Harness) -> None:
    job = h.submit(hold=True, time_limit_s=600)
    assert h.update(job, **{"timelimit+": "10"}) == 0
    assert job.time_limit_s == 1200
    assert h.update(job, timelimit="-5") == 0
    assert job.time_limit_s == 900
    assert h.update(job, timelimit="abc") == -1


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"partition": "nosuch"}, 2000), ({"features": "nosuch"}, 2029),
        ({"licenses": "nosuch"}, 2048), ({"gres": "gpu:1"}, 2072),
        ({"reqnodelist": "n99"}, 2018), ({"burstbuffer": "x"}, 2036), ({"nosuch": "1"}, -1),
        ({"numnodes": "3-2"}, 2006), ({"timemin": "999"}, 2124),
        ({"partition": ""}, 2000), ({"gres": ""}, 2115), ({"tresperjob": "gpu:1"}, 2115),
        ({"mincpusnode": "99"}, 2015), ({"corespec": "1"}, 2002),
        ({"clusters": "x"}, -1), ({"reservationname": "nosuch"}, 2053),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(h: Harness, changes: dict[str, str], code: int) -> None:
    assert h.update(h.submit(hold=True, time_limit_s=3600), ROOT, **changes) == code


def test_a_least_time_is_measured_by_a_limit_that_somebody_gave(h: Harness) -> None:
    job = h.submit(hold=True)
    assert h.update(job, timemin="999") == 0
    assert h.update(job, timelimit="10") == 2124
    assert h.update(job, timemin="5") == 0
    assert h.update(job, timelimit="10") == 0
    assert [h.update(job, timemin=text) for text in ("11", "UNLIMITED", "0")] == [2124, 2124, 0]
    assert job.spec.time_min_s is None


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"partition": "small"}, 2073),
        ({"numnodes": "2"}, 2036),
        ({"numnodes": "0"}, 2006),
        ({"numnodes": "1-2"}, 2073),
        ({"features": "fast"}, 2073),
        ({"tresperjob": "gpu:1"}, 2073),
        ({"cpuspertres": "nosuch:1"}, 2073),
        ({"tresbind": "gpu:closest"}, 0),
        ({"starttime": "now"}, 2073),
        ({"comment": "c"}, 0),
    ],
)
def test_a_running_jobs_request_is_fixed(h: Harness, changes: dict[str, str], code: int) -> None:
    assert h.update(h.submit(), **changes) == code


def test_a_running_jobs_limit_is_lowered_by_its_owner_and_raised_by_administrators(
    h: Harness,
) -> None:
    job = h.submit(time_limit_s=600)
    h.acknowledge()
    assert h.update(job, timelimit="20") == 2002
    assert h.update(job, ROOT, timelimit="20") == 0
    assert job.end_time == int(START) + 1200
    assert h.update(job, timelimit="1") == 0
    h.run(91)
    assert job.state is JobState.TIMEOUT


def test_who_may_change_what(h: Harness) -> None:
    job = h.submit(hold=True)
    assert h.update(job, OTHER, name="x") == 2010
    assert h.update(job, USER, priority="1000") == 2042
    assert h.update(job, USER, nice="-10") == 2002
    assert h.update(job, USER, admincomment="x") == 2002
    waiting = h.submit(begin_time=START + 1000)
    assert h.update(waiting, USER, priority=str(waiting.priority + 1)) == 2002
    assert h.update(waiting, ROOT, priority="500") == 0
    assert (waiting.priority, waiting.admin_priority) == (500, 500)


@pytest.mark.parametrize(
    ("changes", "code", "left"),
    [
        # looked at together: nothing is changed
        ({"comment": "c", "excnodelist": "n99", "partition": "small"}, 2018, ("", "main", 1, "")),
        ({"licenses": "nosuch", "gres": "nosuch:1"}, 2072, ("", "main", 1, "")),
        # behind them what comes before the wrong one is left, wherever it stands in the line
        ({"numnodes": "0", "comment": "c"}, 2006, ("c", "main", 1, "")),
        (
            {"features": "nosuch", "timelimit": "7", "partition": "small"},
            2029,
            ("", "small", 7, ""),
        ),
        ({"starttime": "now+1hour", "name": "x", "features": "nosuch"}, 2029, ("", "main", 1, "")),
        ({"clusterfeatures": "x", "features": "fast"}, -1, ("", "main", 1, "fast")),
    ],
)
def test_changes_are_made_in_an_order_of_their_own_up_to_the_wrong_one(
    h: Harness, changes: dict[str, str], code: int, left: tuple[object, ...]
) -> None:
    job = h.submit(hold=True, partition="main", time_limit_s=60, name="n", features="")
    assert h.update(job, ROOT, **changes) == code
    limit = (job.time_limit_s or 0) // 60
    assert (job.spec.comment, job.partition, limit, job.spec.features) == left
    assert (job.spec.name, job.begin_time) == ("n", None)


def test_what_is_said_before_whose_the_job_is(h: Harness) -> None:
    job = h.submit(hold=True)
    assert h.update(job, OTHER, burstbuffer="x") == 2036
    assert h.update(job, OTHER, admincomment="x") == 2002
    h.control("release", job, ROOT)
    h.complete(job)
    assert h.update(job, OTHER, burstbuffer="x") == 2036
    assert h.update(job, ROOT, burstbuffer="x") == 2036
    assert h.update(job, ROOT, burstbuffer="") == 2084, "an operator takes it away"
    assert h.update(job, OTHER, admincomment="x") == 2084


def test_who_has_no_limit_of_its_own_is_given_any_by_its_owner(h: Harness) -> None:
    h.core.tables.partitions["main"].max_time_s = 3600
    job = h.submit(hold=True, partition="main")
    assert h.update(job, timelimit="unlimited") == 2002
    assert h.update(job, timelimit="100") == 0
    assert h.update(job, timelimit="101") == 2002


def test_how_many_tasks_of_an_array_run_is_changed_by_everybody(h: Harness) -> None:
    job = h.submit(hold=True, array="1-3")
    h.update(job, OTHER, arraytaskthrottle="2")
    assert job.array is not None
    assert job.array.limit == 2


def test_finished_and_unknown_jobs_are_not_changed(h: Harness) -> None:
    job = h.submit()
    h.complete(job)
    assert h.update(job, name="x") == 2084
    assert h.result(h.ask(UpdateJobs(["99"], {"name": "x"}))) == 2017
    assert h.result(h.ask(UpdateJobs(["x"], {"name": "x"}))) == 2017


def test_priority_zero_holds_and_only_a_release_ends_it_whoever_asks(h: Harness) -> None:
    job = h.submit(begin_time=START + 1000)
    assert h.update(job, priority="0") == 0
    assert job.reason == "JobHeldUser"
    assert h.update(job, ROOT, priority="0") == 0
    assert job.reason == "JobHeldAdmin"
    h.run(2000)
    assert h.update(job, ROOT, priority="9") == 2042
    assert h.control("release", job, ROOT) == 0
    h.run(10)
    assert job.is_running


def test_the_start_time_is_moved(h: Harness) -> None:
    job = h.submit(begin_time=START + 10_000)
    assert h.update(job, starttime="now") == 0
    assert job.is_running


def test_jobs_go_to_the_alternate_of_a_partition_that_takes_none(h: Harness) -> None:
    for name, changes in (
        ("main", {"state": "inactive", "alternate": "small"}),
        ("small", {"alternate": "main"}),
    ):
        assert h.ask(UpdatePartition("update", name, changes), ROOT) == Ok()
    assert h.submit(partition="main", num_tasks=1).partition == "small"
    assert h.ask(UpdatePartition("update", "main", {"alternate": "none"}), ROOT) == Ok()
    assert h.core.tables.partitions["main"].alternate == ""


# --- nodes ----------------------------------------------------------------------------------------


def states(h: Harness) -> list[tuple[NodeState, int]]:
    return [
        (NodeState(state), flags & ~int(NodeFlag.COMPLETING))
        for state, flags in h.query("nodes", "state", "flags")
    ]


def test_a_draining_node_finishes_its_jobs_and_takes_no_more(h: Harness) -> None:
    job = h.submit(required_nodes="n1", num_tasks=1)
    assert h.update_nodes("n1", state="drain", reason="disk") == Ok()
    assert job.is_running
    assert states(h)[0] == (NodeState.MIXED, int(NodeFlag.DRAIN))
    h.complete(job)
    assert states(h)[0] == (NodeState.IDLE, int(NodeFlag.DRAIN))
    assert h.submit(num_tasks=1).node_list == "n2"
    assert h.query("nodes", "reason", "reason_user", name=["n1"]) == [["disk", "root"]]
    assert h.update_nodes("n1", state="resume") == Ok()
    assert states(h)[0] == (NodeState.IDLE, int(NodeFlag.NO_RESPOND))
    h.run(1)
    h.acknowledge()
    assert states(h)[0] == (NodeState.IDLE, 0)
    assert h.query("nodes", "reason", name=["n1"]) == [[""]]


def test_taking_a_node_out_needs_a_reason_and_an_administrator(h: Harness) -> None:
    for state in ("down", "drain", "fail"):
        assert h.update_nodes("n1", state=state).text.startswith("You must specify a reason")
    assert h.update_nodes("n1", USER, state="drain", reason="x") == Failure(2010, "Invalid user id")
    assert h.update_nodes("n77", state="drain", reason="x").code == 2018
    assert h.update_nodes("n1", state="nosuch").code == 2028


def test_of_all_nodes_some_keys_are_refused_and_set_but_for_the_weight(h: Harness) -> None:
    nodes = h.core.tables.nodes.nodes
    invalid = Failure(22, "Invalid argument")
    assert h.update_nodes("ALL", weight="7", comment="c") == invalid
    assert (nodes[0].weight, nodes[0].comment) == (1, "c")
    assert h.update_nodes("ALL", gres="x") == invalid
    assert nodes[0].gres == "x"
    assert h.update_nodes("ALL", features="fast").code == 2031  # others are active
    assert h.update_nodes("n1", features="fast", activefeatures="fast") == Ok()
    assert h.update_nodes("n1", features="fast,,slow") == Ok()
    assert nodes[0].active_features == nodes[0].features == ("fast", "", "slow")
    assert h.update_nodes("ALL", nodeaddr="x").code == 2018
    assert h.update_nodes("ALL", comment="c") == Ok()


def test_nodes_are_changed_up_to_the_first_that_there_is_not(h: Harness) -> None:
    nodes = h.core.tables.nodes.nodes
    assert h.update_nodes("n[2,1,77]", comment="c", weight="3").code == 2018
    assert [(node.comment, node.weight) for node in nodes[:3]] == [("c", 1), ("c", 1), ("", 1)]
    assert h.update_nodes("a1,n1", comment="d").code == 2018
    assert nodes[0].comment == "c"


def test_a_state_that_cannot_be_keeps_the_weight_and_sets_the_rest(h: Harness) -> None:
    node = h.core.tables.nodes.nodes[0]
    assert h.update_nodes("n1", state="resume", weight="9", gres="q").code == 2028
    assert (node.weight, node.gres) == (1, "q")


def test_gres_without_gres_types_is_a_text(h: Harness) -> None:
    assert h.update_nodes("n[1-2]", gres="gpu:1,x:2") == Ok()
    assert [node.gres for node in h.core.tables.nodes.nodes[:3]] == ["gpu:1,x:2"] * 2 + [""]


def test_resume_of_an_idle_node_is_an_error_and_the_others_are_resumed(h: Harness) -> None:
    h.update_nodes("n3", state="drain", reason="x")
    assert h.update_nodes("n[1-3]", state="resume").code == 2028
    assert states(h)[2] == (NodeState.IDLE, int(NodeFlag.NO_RESPOND))
    assert h.update_nodes("n1", state="undrain") == Ok()


_SILENT = NodeFlag.NO_RESPOND


@pytest.mark.parametrize(
    ("before", "update", "flags", "reason", "flags_if_busy", "reason_if_busy"),
    [  # as 22.05.8 does; a number: the update is refused
        ("drain", "resume", _SILENT, "", _SILENT, ""),
        ("drain", "undrain", _SILENT, "", _SILENT, ""),
        ("drain", "idle", NodeFlag.NONE, "", 2028, "x"),
        ("fail", "resume", NodeFlag.NONE, "", NodeFlag.NONE, ""),
        ("fail", "undrain", _SILENT, "", NodeFlag.FAIL | _SILENT, "x"),
        ("fail", "idle", NodeFlag.NONE, "", 2028, "x"),
        ("down", "resume", _SILENT, "", None, ""),
        ("down", "undrain", _SILENT, "x", None, ""),
        ("down", "idle", NodeFlag.NONE, "", None, ""),
    ],
)
def test_what_an_update_makes_of_a_node_that_was_out_of_service(
    h: Harness,
    before: str,
    update: str,
    flags: NodeFlag,
    reason: str,
    flags_if_busy: NodeFlag | int | None,
    reason_if_busy: str,
) -> None:
    h.submit(required_nodes="n2", num_tasks=1)
    for name, wanted, text in (("n1", flags, reason), ("n2", flags_if_busy, reason_if_busy)):
        if wanted is None:
            continue
        h.update_nodes(name, state=before, reason="x")
        answer = h.update_nodes(name, state=update)
        node = h.core.tables.nodes.nodes[int(name[1]) - 1]
        if isinstance(wanted, NodeFlag):
            assert answer == Ok()
            assert node.flags == wanted
            assert (node.state is NodeState.DOWN) is (before == "down" and update == "undrain")
        else:
            assert answer.code == wanted
        assert node.reason == text


@pytest.mark.parametrize(
    ("requeue", "state"), [(True, JobState.PENDING), (False, JobState.NODE_FAIL)]
)
def test_a_node_set_down_ends_or_requeues_its_jobs(
    h: Harness, requeue: bool, state: JobState
) -> None:
    job = h.submit(required_nodes="n[1-2]", requeue=requeue)
    h.acknowledge()
    h.update_nodes("n1", state="down", reason="dead")
    assert job.state is state
    assert states(h)[0] == (NodeState.DOWN, 0)
    assert job.completing_nodes == 0b10, "the other node is cleaned up"
    h.epilog(job, "n2")
    assert not job.is_completing
    if requeue:
        assert job.restarts == 1
    else:
        assert (job.reason, job.exit_signal) == ("NodeDown", 15)
    assert h.update_nodes("n1", state="idle") == Ok()
    assert h.core.tables.nodes.up_nodes == 0b1111


def test_a_completing_node_set_down_is_given_back(h: Harness) -> None:
    job = h.submit()
    h.finish(job)
    h.update_nodes("n1", state="down", reason="dead")
    assert not job.is_completing


def test_weight_and_features_of_nodes_change_the_choice(h: Harness) -> None:
    h.update_nodes("n1", weight="10")
    assert h.submit(num_tasks=1, exclusive=True).node_list == "n2"
    h.update_nodes("n4", features="gold", activefeatures="gold")
    assert h.submit(features="gold").node_list == "n4"


def test_active_features_stay_among_those_that_there_are(h: Harness) -> None:
    def features() -> list[list[str]]:
        return h.query("nodes", "features", "active_features", name=["n4"])[0]

    h.update_nodes("n4", features="gold,old", activefeatures="gold,old")
    for wrong in ({"features": "gold"}, {"activefeatures": "new"}, {"availablefeatures": ""}):
        assert h.update_nodes("n4", **wrong).code == 2031
    assert features() == [["gold", "old"], ["gold", "old"]]
    h.update_nodes("n4", availablefeatures="new,old", activefeatures="old")
    assert features() == [["new", "old"], ["old"]]


# --- partitions -----------------------------------------------------------------------------------


def change(h: Harness, action: str, name: str, /, **changes: str) -> int:
    answer = h.ask(UpdatePartition(action, name, changes), ROOT)
    return answer.code if isinstance(answer, Failure) else 0


def test_a_partition_is_created_changed_and_deleted(h: Harness) -> None:
    assert change(h, "create", "new", nodes="n[1-2]", maxtime="30") == 0
    assert h.query("partitions", "nodes", "max_time_s", "total_cpus", "tres", name=["new"]) == [
        ["n[1-2]", 1800, 8, "cpu=8,mem=8000M,node=2,billing=8"]
    ]
    assert change(h, "create", "new", nodes="n1") == 2000
    assert change(h, "update", "new", default="yes", maxnodes="1", nodes="n[2-4]") == 0
    assert not h.core.tables.partitions["main"].is_default
    assert h.submit(num_tasks=1).partition == "new"
    assert change(h, "delete", "new") == 2075
    assert change(h, "delete", "small") == 0
    assert change(h, "delete", "small") == 2000


def test_wrong_partition_changes_change_nothing(h: Harness) -> None:
    assert change(h, "update", "main", maxnodes="2", maxtime="abc") == -1
    assert change(h, "update", "main", nosuch="1") == -1
    assert change(h, "update", "main", state="weird") == -1
    assert h.core.tables.partitions["main"].max_nodes is None
    [[before]] = h.query("partitions", "nodes", name=["main"])
    for wrong, count in (("n1,n99", 1), ("-n1", 0)):  # it has those that there are, as in Slurm
        assert change(h, "update", "main", nodes=wrong) == 2018
        assert h.query("partitions", "nodes", "total_nodes", name=["main"]) == [[before, count]]


def test_how_many_share_a_core_is_read_as_slurm_reads_it(h: Harness) -> None:
    for text, shown in (
        ("yes", "YES:4"), ("force", "FORCE:4"), ("FORCE:2", "FORCE:2"), ("yes:1", "NO"),
        ("force:1", "FORCE:1"), ("yes:x", "EXCLUSIVE"), ("force:0", "EXCLUSIVE"), ("no:2", "NO"),
        ("yes:99999", "FORCE:1695"), ("exclusive", "EXCLUSIVE"),
    ):  # fmt: skip
        change(h, "update", "main", oversubscribe=text)
        assert h.query("partitions", "oversubscribe", name=["main"]) == [[shown]]


def test_no_memory_for_a_cpu_by_default_is_what_jobs_have_and_as_a_limit_none(h: Harness) -> None:
    main = h.core.tables.partitions["main"]
    for changes in ({"defmempercpu": "0"}, {"maxmempercpu": "0"}):
        assert h.ask(UpdatePartition("update", "main", changes), ROOT) == Ok()
    assert h.query(
        "partitions", "default_memory_per_cpu_mb", "max_memory_per_cpu_mb", name=["main"]
    ) == [[0, 0]]
    assert main.memory_limits_mb == (None, None)
    h.submit(partition="main", num_tasks=1)
    assert h.query("jobs", "min_memory_per_cpu", "min_memory_mb") == [[True, 0]]
    assert h.ask(UpdatePartition("update", "main", {"defmempernode": "0"}), ROOT) == Ok()
    assert (main.default_memory_per_cpu_mb, main.default_memory_per_node_mb) == (None, None)


def test_what_a_job_said_of_sharing_is_shown_before_what_its_partition_says(h: Harness) -> None:
    h.submit(hold=True)
    h.submit(hold=True, exclusive=True)
    h.submit(hold=True, oversubscribe=True)
    for text, shown in (
        ("no", ["OK", "NO", "YES"]),
        ("force", ["YES", "NO", "YES"]),
        ("exclusive", ["NO", "NO", "YES"]),
    ):
        change(h, "update", "main", oversubscribe=text)
        assert [row[0] for row in h.query("jobs", "oversubscribe")] == shown


def test_jobs_wait_for_their_partition_and_start_when_it_lets_them() -> None:
    h = Harness(make_tables())
    change(h, "update", "main", state="down")
    job, big = (
        h.submit(mem_per_node_mb=10),
        h.submit(partition="small", time_limit_s=6000, mem_per_node_mb=10),
    )
    assert (job.reason, big.reason) == ("PartitionDown", "PartitionTimeLimit")
    change(h, "update", "main", state="up")
    assert job.is_running
    change(h, "update", "small", maxtime="infinite")
    assert big.is_running


def test_only_administrators_change_partitions(h: Harness) -> None:
    assert h.ask(UpdatePartition("update", "main", {"state": "down"}), USER) == Failure(
        2010, "Invalid user id"
    )


def test_the_other_keys_of_a_partition_are_kept_and_shown(h: Harness) -> None:
    keys = {
        "exclusiveuser": ("yes", "exclusive_user", True),
        "reqresv": ("yes", "requires_reservation", True), "allocnodes": ("n1", "alloc_nodes", "n1"),
        "qos": ("q", "qos", "q"), "jobdefaults": ("DefCpuPerGPU=2", "job_defaults",
        "DefCpuPerGPU=2"), "cpubind": ("core", "cpu_bind", "cores"),
        "tresbillingweights": ("CPU=1.0,Mem=0.5G", "tres_billing_weights", "CPU=1.0,Mem=0.5G"),
        "overtimelimit": ("unlimited", "over_time_limit_is_unlimited", True),
    }  # fmt: skip
    for key, (value, column, shown) in keys.items():
        assert change(h, "update", "main", **{key: value}) == 0, key
        assert h.query("partitions", column, name=["main"]) == [[shown]]
    assert change(h, "update", "main", jobdefaults="x") == 2117
    assert change(h, "update", "main", tresbillingweights="x") == 2116
    assert (
        change(h, "update", "main", defmempercpu="10")
        == change(h, "update", "main", defmempernode="20")
        == 0
    )
    assert h.query(
        "partitions", "default_memory_per_cpu_mb", "default_memory_per_node_mb", name=["main"]
    ) == [[None, 20]]


def test_addresses_and_bindings_of_nodes_are_changed(h: Harness) -> None:
    assert (
        h.update_nodes("n[1-2]", nodeaddr="a[1-2]", nodehostname="host,host", cpubind="thread")
        == Ok()
    )
    assert h.query("nodes", "address", "hostname", "cpu_bind", name=["n1", "n2"]) == [
        ["a1", "host", "threads"],
        ["a2", "host", "threads"],
    ]
    assert h.update_nodes("n[1-2]", nodeaddr="a1").code == 2018
    assert h.update_nodes("", weight="1").code == 2018
    assert h.update_nodes("n[1-4]", weight="7") == Ok()
    assert h.query("nodes", "weight", weight=[7]) == [[7]] * 4


def test_a_number_of_nodes_without_a_most_leaves_the_most_as_it_is(h: Harness) -> None:
    job = h.submit(hold=True, min_nodes=3, max_nodes=3, num_tasks=3)
    assert h.update(job, ROOT, numnodes="2") == 0
    assert (job.min_nodes, job.max_nodes) == (2, 3)
    assert h.update(job, ROOT, numnodes="4") == 2006


def test_a_nice_value_lets_a_held_job_go(h: Harness) -> None:
    job = h.submit(hold=True)
    assert h.update(job, ROOT, nice="100") == 0
    assert job.priority == 2


def test_a_running_jobs_licences_are_changed(h: Harness) -> None:
    pool = h.core.tables.licenses
    pool.totals = {"matlab": 4, "fluent": 1}
    h.core.settings = dataclasses.replace(h.core.settings, licenses=pool.totals)
    job = h.submit(licenses="matlab:2")
    assert h.update(job, licenses="matlab:1") == ErrorCode.ACCESS_DENIED  # to its owner
    assert (h.update(job, ROOT, licenses="matlab:4"), pool.used["matlab"], job.spec.licenses) == (
        0,
        4,
        "matlab:4",
    )
    assert (h.update(job, ROOT, licenses="matlab:5") != 0, pool.used["matlab"]) == (True, 4)
    assert (h.update(job, ROOT, licenses="fluent:1"), pool.used["matlab"], pool.used["fluent"]) == (
        0,
        0,
        1,
    )
    assert (h.update(job, ROOT, licenses=""), pool.used["fluent"]) == (0, 0)
    h.complete(job)
    assert not any(pool.used.values())


def test_numbers_of_tasks_leave_the_number_of_cpus_and_its_bounds(h: Harness) -> None:
    job = h.submit(hold=True, num_tasks=2)
    for key, value in (
        ("numtasks", "3"),
        ("cpuspertask", "2"),
        ("numcpus", "2-9"),
        ("numtasks", "6"),
    ):
        assert h.update(job, **{key: value}) == 0
    assert (job.num_tasks, job.cpus_per_task, job.min_cpus) == (6, 2, 2)
    assert h.query("jobs", "cpus", "max_cpus", job_id=[job.job_id]) == [[2, 9]]


def test_of_no_limit_slurm_counts_on_from_its_greatest_number(h: Harness) -> None:
    job = h.submit(hold=True)
    assert (
        h.update(job, ROOT, timelimit="UNLIMITED"),
        h.update(job, ROOT, timelimit="+5"),
        job.time_limit_s,
    ) == (0, 0, 240)


def test_a_running_job_is_not_asked_for_nodes_that_it_has_not(h: Harness) -> None:
    job = h.submit(min_nodes=2, max_nodes=2)
    assert (
        h.update(job, reqnodelist="n3"),
        h.update(job, reqnodelist="n1,n2"),
        h.update(job, reqnodelist=""),
    ) == (2018, 0, 2018)
    assert (h.update(job, numnodes="2"), h.update(job, numnodes="1"), job.node_list) == (
        0,
        2073,
        "n[1-2]",
    )
    assert h.update(job, partition="nosuch") == h.update(job, partition="")


def test_a_running_job_gives_back_nodes(h: Harness) -> None:
    job = h.submit(min_nodes=4, num_tasks=4)
    other = h.submit(min_nodes=1, exclusive=True)
    assert (other.is_pending, h.update(job, numnodes="3")) == (True, 0)
    h.run(1)
    assert (
        job.node_list,
        job.allocation.node_count,
        job.num_tasks,
        job.resize_time is not None,
    ) == ("n[1-3]", 3, 3, True)
    assert (other.node_list, job.is_running) == ("n4", True)
    assert h.query("jobs", "tres_allocated", job_id=[job.job_id])[0][0].startswith("cpu=3,")
    assert [h.update(job, nodelist=nodes) for nodes in ("n2", "n4", "n1,n3")] == [2018, 2018, 0]
    assert (job.node_list, decode_job(encode_job(job)).resize_time) == ("n[1,3]", job.resize_time)
    h.run(1)
    assert h.core.tables.nodes.idle_nodes == 0b0010


def test_a_running_job_can_be_made_to_end_now(h: Harness) -> None:
    job = h.submit(time_limit_s=3600)
    assert h.update(job, endtime=f"uts{int(START) - 60}") == 2054
    assert h.update(job, endtime="now") == 0
    assert (job.end_time, job.time_limit_s) == (int(START), 60)
    h.run(61)
    assert job.state is JobState.TIMEOUT


def test_an_end_is_taken_to_the_second_and_the_limit_shown_in_minutes(h: Harness) -> None:
    job = h.submit(time_limit_s=3600)
    assert h.update(job, endtime=f"uts{int(START) + 1850}") == 0
    assert (job.end_time, job.time_limit_s) == (int(START) + 1850, 1800)


def test_odd_values_are_refused_in_slurms_words(h: Harness) -> None:
    job = h.submit(hold=True, time_limit_s=600)
    answer = h.ask(UpdateJobs([str(job.job_id)], {"timelimit-": "20"}), ROOT)
    assert answer.results[0][2] == "TimeLimit decrement larger than current time limit (20 > 10)"
    array = h.submit(hold=True, array="0-3%2")
    assert h.update(array, arraytaskthrottle="-1") == -1
    assert array.array.limit == 2
    running = h.submit()
    assert h.update(running, ROOT, nice="-5") == 0
    assert running.nice == -5
    assert h.update(running, ROOT, priority="5") == 0
    assert running.nice == 0


def test_times_of_partitions_are_whole_minutes_and_a_default_above_the_most_is_left() -> None:
    h = Harness()
    main = h.core.tables.partitions["main"]
    for changes, times in (
        ({"maxtime": "00:00:30", "defaulttime": "1"}, (60, 60)),
        ({"defaulttime": "5"}, (60, 60)),
        ({"defaulttime": "50", "maxtime": "60"}, (3600, 3000)),
        ({"maxtime": "30"}, (1800, 3000)),
        ({"defaulttime": "INFINITE"}, (1800, 3000)),
    ):
        assert h.ask(UpdatePartition("update", "main", changes), ROOT) == Ok()
        assert (main.max_time_s, main.default_time_s) == times
    h.ask(UpdatePartition("update", "main", {"maxtime": "-1", "defaulttime": "-1"}), ROOT)
    assert (main.default_time_s, main.default_time_is_unlimited) == (None, True)


def test_pending_jobs_without_a_time_follow_the_most_that_their_partition_allows() -> None:
    h = Harness()
    main = h.core.tables.partitions["main"]
    main.max_time_s, main.default_time_s = 3600, None
    without, own = h.submit(hold=True), h.submit(hold=True, time_limit_s=3600)
    h.ask(UpdatePartition("update", "main", {"maxtime": "120"}), ROOT)
    assert (without.time_limit_s, own.time_limit_s) == (7200, 3600)
    main.default_time_s = 600
    with_default = h.submit(hold=True)
    h.ask(UpdatePartition("update", "main", {"maxtime": "30"}), ROOT)
    assert (without.time_limit_s, with_default.time_limit_s) == (1800, 600)


@pytest.mark.parametrize(("tasks", "each"), [(1, None), (3, None), (2, 2)])
def test_a_job_that_must_have_other_nodes_has_them_when_it_starts(
    tasks: int, each: int | None
) -> None:
    h = Harness()
    job = h.submit(begin_time=START + 10_000, num_tasks=tasks, ntasks_per_node=each)
    assert h.update(job, reqnodelist="n[1-3]") == 0
    assert (job.min_nodes, job.required_nodes) == (1, 0b111)
    columns = ("required_nodes", "required_nodes_said")
    assert h.update(job, reqnodelist="n2,n[1,3]") == 0
    assert h.query("jobs", *columns, job_id=[job.job_id]) == [["n[1-3]", "n2,n[1,3]"]]
    assert h.update(job, starttime="now") == 0
    h.run(5)
    assert job.is_running
    assert job.allocation is not None
    assert job.allocation.nodes == 0b111


@pytest.mark.parametrize(
    ("changes", "cpus", "nodes", "tasks", "code"),
    [
        # nodes make the CPUs that all tasks want, also where they are refused
        ({"numtasks": "5", "numnodes": "2"}, 15, 2, 5, 0),
        ({"numcpus": "1", "numnodes": "2"}, 6, 2, 2, 0),
        ({"numtasks": "5", "numnodes": "0"}, 15, 1, 1, ErrorCode.INVALID_NODE_COUNT),
        ({"numtasks": "0", "numnodes": "2"}, 6, 2, 2, ErrorCode.INVALID_TASK_COUNT),
        ({"numtasks": "1", "numnodes": "3"}, 9, 3, 3, 0),
        # CPUs of a node make those of all nodes, unless these are said, too
        ({"mincpusnode": "2"}, 2, 1, 1, 0),
        ({"mincpusnode": "4", "numnodes": "2"}, 8, 2, 2, 0),
        ({"mincpusnode": "4", "numcpus": "2"}, 2, 1, 1, 0),
        ({"mincpusnode": "2", "numnodes": "0"}, 3, 1, 1, ErrorCode.INVALID_CPU_COUNT),
        ({"mincpusnode": "2", "numtasks": "0"}, 2, 1, 1, ErrorCode.INVALID_TASK_COUNT),
    ],
)
def test_how_many_cpus_follow_from_nodes_tasks_and_cpus_of_a_node(
    changes: dict[str, str], cpus: int, nodes: int, tasks: int, code: int
) -> None:
    h = Harness()
    job = h.submit(hold=True, cpus_per_task=3)
    assert h.update(job, **changes) == code
    assert (job.min_cpus, job.min_nodes, job.num_tasks) == (cpus, nodes, tasks)


def test_nothing_of_any_device_may_be_asked_for_and_is_shown_as_it_was_said(h: Harness) -> None:
    job = h.submit(hold=True)
    for text, shown in (("1:00", "gres:1:00"), ("gres:x:y:0", "gres:x:y:0")):
        assert h.update(job, gres=text) == 0
        assert job.spec.gres == shown
    assert h.update(job, trespernode="gpu:0") == 0
    assert job.spec.gres == "gpu:0"
    assert h.update(job, gres="0") == ErrorCode.INVALID_GRES
    assert h.update(job, gres="x") == ErrorCode.INVALID_GRES


def test_a_least_time_and_a_limit_that_come_together_are_measured_by_each_other(h: Harness) -> None:
    job = h.submit(time_limit_s=1200)
    assert h.update(job, timelimit="5", timemin="9") == ErrorCode.INVALID_TIME_MIN  # running, too
    assert job.time_limit_s == 1200
    job = h.submit(hold=True, time_limit_s=600, time_min_s=300)
    assert h.update(job, timelimit="3", timemin="1:30") == 0
    assert (job.time_limit_s, job.spec.time_min_s) == (180, 120)
    other = h.submit(hold=True)
    assert h.update(other, timemin="UNLIMITED") == ErrorCode.INVALID_TIME_MIN
