"""strigger: what it says, what it refuses, and when its programs run. Texts and tables are those of
22.05.8.

Covers: commands/strigger, controller/requests/triggers, controller/saved/documents,
controller/tables/triggers.
"""

from __future__ import annotations

import pytest
from controller_harness import OTHER, ROOT, START, FakeSender, Harness
from fake_controller import FakeClient, record, run_command

from understudy.commands.shared.client import RefusedError
from understudy.commands.strigger import strigger
from understudy.controller.notices.event_triggers import CHECK_S, SAVED_AS
from understudy.controller.saved import documents
from understudy.controller.tables.settings import Settings
from understudy.controller.views.triggers import trigger_rows
from understudy.protocol.messages import ClearTriggers, Failure, Ok, SetTrigger, UpdateNodes


class Watched:
    """A controller, and the programs that it has run."""

    def __init__(self, **settings) -> None:
        self.h = Harness(settings=Settings(min_job_age_s=0, **settings))
        self.ran: list[tuple[float, str, str]] = []
        self.h.core.run_program = lambda _user, _group, program, argument: self.ran.append(
            (self.h.time.now() - START, program, argument)
        )

    def set(
        self, *events, resource="node", about="*", offset_s=0, program="/p", perm=False, sender=ROOT
    ):
        return self.h.ask(
            SetTrigger(resource, about, list(events), offset_s, program, perm), sender
        )

    def state(self, nodes, state):
        assert self.h.ask(UpdateNodes(nodes, {"state": state, "reason": "r"}), ROOT) == Ok()

    def fired(self):
        ran, self.ran = self.ran, []
        return [(program, argument) for _, program, argument in ran]

    @property
    def ids(self):
        return [row["trigger_id"] for row in trigger_rows(self.h.core)]


@pytest.fixture
def watched():
    return Watched()


def test_a_node_that_goes_down_fires_once_at_the_next_look(watched):
    watched.set("down")
    watched.state("n[2-3]", "DOWN")
    assert watched.ran == []
    watched.h.run(CHECK_S)
    assert watched.ran == [(CHECK_S, "/p", "n[2-3]")]
    watched.state("n1", "DOWN")
    watched.h.run(CHECK_S)
    assert len(watched.ran) == 1


def test_only_the_nodes_that_it_names_count(watched):
    watched.set("down", about="n1")
    watched.state("n2", "DOWN")
    watched.h.run(CHECK_S)
    assert watched.ran == []


def test_a_trigger_for_several_events_fires_at_any(watched):
    watched.set("down", "up", "drained")
    watched.state("n2", "DRAIN")
    watched.h.run(CHECK_S)
    assert watched.fired() == [("/p", "n2")]


def test_up_means_back_from_down_not_from_drained(watched):
    watched.set("up", perm=True)
    watched.state("n2", "DRAIN")
    watched.state("n2", "RESUME")
    watched.h.run(CHECK_S)
    assert watched.ran == []
    watched.state("n2", "DOWN")
    watched.state("n2", "RESUME")
    watched.h.run(CHECK_S)
    assert watched.fired() == [("/p", "n2")]


def test_a_draining_node_is_drained_when_its_last_job_has_ended(watched):
    job = watched.h.submit(num_tasks=4, cpus_per_task=1)
    watched.set("drained")
    watched.state(job.node_list, "DRAIN")
    watched.h.run(CHECK_S)
    assert watched.ran == []
    watched.h.complete(job)
    watched.h.run(CHECK_S)
    assert watched.fired() == [("/p", "n1")]


def test_an_offset_delays_and_a_negative_one_does_not(watched):
    watched.set("down", offset_s=20, program="/late")
    watched.set("down", offset_s=-20, program="/now")
    watched.state("n1", "DOWN")
    watched.h.run(CHECK_S)
    assert watched.fired() == [("/now", "n1")]
    assert watched.ids == []  # what waits for its offset is not listed
    watched.h.run(CHECK_S)
    assert watched.fired() == []
    watched.h.run(CHECK_S)
    assert watched.fired() == [("/late", "n1")]


def test_idle_wants_that_for_as_long_as_the_offset(watched):
    watched.set("idle", offset_s=1000, about="n[1-2]")
    watched.h.register("noded0", started=START)
    watched.h.run(990)
    assert watched.ran == []
    watched.h.run(30)
    assert watched.fired() == [("/p", "n[1-2]")]


def test_a_changed_node_is_a_changed_configuration(watched):
    watched.set("reconfig")
    watched.state("n1", "DRAIN")
    watched.h.run(CHECK_S)
    assert watched.fired() == [("/p", "reconfig")]


def test_the_end_of_a_job_fires_with_its_id_and_again_as_long_as_it_is_known_if_permanent(watched):
    job = watched.h.submit()
    watched.set("fini", resource="job", about=str(job.job_id), program="/once")
    watched.set("fini", resource="job", about=str(job.job_id), program="/perm", perm=True)
    watched.h.complete(job)
    watched.h.core.tables.jobs[job.job_id] = job
    watched.h.run(CHECK_S)
    assert watched.fired() == [("/once", "1"), ("/perm", "1")]
    watched.h.run(CHECK_S)
    assert watched.fired() == [("/perm", "1")]
    del watched.h.core.tables.jobs[job.job_id]
    watched.h.run(CHECK_S)
    assert watched.fired() == []
    assert watched.ids == []


def test_time_fires_so_long_before_the_limit(watched):
    job = watched.h.submit(time_limit_s=600)
    watched.set("time", resource="job", about=str(job.job_id), offset_s=-100)
    watched.h.run(496 - CHECK_S)
    assert watched.ran == []
    watched.h.run(CHECK_S * 2)
    assert watched.fired() == [("/p", "1")]


def test_a_permanent_trigger_stays_and_is_listed_first(watched):
    watched.set("up", program="/a")
    watched.set("down", program="/b", perm=True)
    watched.state("n1", "DOWN")
    watched.h.run(CHECK_S)
    assert watched.ids == [2, 1]
    watched.state("n2", "DOWN")
    watched.h.run(CHECK_S)
    assert [argument for _, argument in watched.fired()] == ["n1", "n2"]


def test_nobody_looks_as_long_as_there_are_no_triggers(watched):
    waiting = watched.h.time.waiting
    watched.set("down")
    assert watched.h.time.waiting == waiting + 1
    watched.state("n1", "DOWN")
    watched.h.run(CHECK_S)
    assert watched.h.time.waiting == waiting
    assert watched.h.core.tables.nodes.watcher is None


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"sender": OTHER}, 2002),
        ({"about": "n99"}, 2018),
        ({"resource": "job", "about": "77"}, 2017),
        ({"program": "/same"}, 2089),
    ],
)
def test_what_is_refused(watched, wanted, code):
    watched.set("down", program="/same")
    answer = watched.set("down", **wanted)
    assert isinstance(answer, Failure)
    assert answer.code == code
    assert watched.ids == [1]


def test_a_program_that_cannot_run_is_refused_and_uses_up_a_number(watched):
    watched.h.core.is_executable = lambda program: program != "/no"
    assert watched.set("down", program="/no").code == 2002
    watched.set("down")
    assert watched.ids == [2]


def test_clearing_by_number_job_and_user(watched):
    job = watched.h.submit()
    watched.set("down")
    watched.set("fini", resource="job", about=str(job.job_id))
    watched.set("up")
    assert watched.h.ask(ClearTriggers(trigger_id=9), ROOT).code == 3
    assert watched.h.ask(ClearTriggers(trigger_id=1), OTHER).code == 2002
    assert watched.h.ask(ClearTriggers(user_id=0), OTHER).code == 2002
    assert watched.h.ask(ClearTriggers(trigger_id=1, job_id=job.job_id), ROOT).code == 3
    assert watched.h.ask(ClearTriggers(job_id=job.job_id), ROOT) == Ok()
    assert watched.ids == [1, 3]
    assert watched.h.ask(ClearTriggers(user_id=0), ROOT) == Ok()
    assert watched.ids == []


def test_they_survive_a_restart_and_go_on_watching(watched):
    watched.set("down", program="/p", perm=True)
    saved = documents.encode(watched.h.core, SAVED_AS)
    later = Watched()
    documents.decode(later.h.core, SAVED_AS, saved)
    later.set("up")
    assert later.ids == [1, 2]
    later.state("n1", "DOWN")
    later.h.run(CHECK_S)
    assert later.fired() == [("/p", "n1")]


def test_the_program_runs_as_who_set_it():
    ids = []
    watched = Watched(admin_ids=frozenset({42}))
    watched.h.core.run_program = lambda user, group, _program, _argument: ids.append((user, group))
    watched.set("down", sender=FakeSender(user_id=42, group_id=43))
    watched.state("n1", "DOWN")
    watched.h.run(CHECK_S)
    assert ids == [(42, 43)]


# --- the command ----------------------------------------------------------------------------------

LISTED = [
    record(
        "triggers",
        trigger_id=1,
        resource="node",
        resource_id="*",
        events=["down"],
        user_name="root",
        program="/tmp/p.sh",
    ),
    record(
        "triggers",
        trigger_id=3,
        resource="node",
        resource_id="*",
        events=["up", "idle"],
        offset_s=20,
        user_name="root",
        program="/tmp/p.sh a b",
    ),
    record(
        "triggers",
        trigger_id=5,
        resource="job",
        resource_id="1",
        events=["time"],
        offset_s=-600,
        user_name="root",
        program="/tmp/p.sh",
    ),
    record(
        "triggers",
        trigger_id=7,
        resource="job",
        resource_id="1",
        events=["fini"],
        user_name="root",
        is_permanent=True,
        program="/tmp/p.sh",
    ),
    record(
        "triggers",
        trigger_id=21,
        resource="other",
        resource_id="",
        events=["burst_buffer"],
        user_name="root",
        program="/tmp/p.sh",
    ),
    record(
        "triggers",
        trigger_id=51,
        resource="node",
        resource_id="n[2-3]",
        events=["idle"],
        offset_s=20,
        user_name="root",
        program="/tmp/p.sh",
    ),
]
TABLE = """\
TRIG_ID RES_TYPE   RES_ID TYPE                                OFFSET USER     FLAGS PROGRAM
      1 node            * down                                     0 root           /tmp/p.sh
      3 node            * unknown                                 20 root           /tmp/p.sh a b
      5 job             1 time                                  -600 root           /tmp/p.sh
      7 job             1 fini                                     0 root     PERM  /tmp/p.sh
     21 other      (null) burst_buffer                             0 root           /tmp/p.sh
     51 node       n[2-3] idle                                    20 root           /tmp/p.sh
"""


def test_the_table_is_slurms():
    assert run_command(strigger, "--get", client=FakeClient(triggers=LISTED)).out == TABLE


def test_nothing_is_printed_where_there_is_nothing():
    assert run_command(strigger, "--get", client=FakeClient(triggers=[])).out == ""


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--id=3"], ["3"]),
        (["--jobid=1"], ["5", "7"]),
        (["--jobid=1", "--fini"], ["7"]),
        (["--down", "--up"], []),
        (["-n"], ["1", "3", "51"]),
        (["-nn2"], ["1", "3", "51"]),
        (["-nn1"], ["1", "3", "51"]),
        (["-r"], ["1", "3", "5", "7", "21", "51"]),
        (["--burst_buffer"], ["21"]),
        (["--user=root", "-d"], ["1"]),
    ],
)
def test_what_get_chooses(options, ids):
    said = run_command(strigger, "--get", "-N", *options, client=FakeClient(triggers=LISTED))
    assert [line.split()[0] for line in said.lines] == ids


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "You must use exactly one of the following options: --set, --get or --clear"),
        (
            ["--set", "--get"],
            "You must use exactly one of the following options: --set, --get or --clear",
        ),
        (["--clear", "--node"], "You must specify a --id, --jobid, or --user to clear"),
        (["--set", "--down"], "You must specify a --program value"),
        (["--set", "--down", "--program=bin/x"], 'The --program value must start with "/"'),
        (["--set", "--down", "--program=/no/where x"], "Invalid --program value, file not found"),
        (["--set", "--fini", "--program=/bin/sh"], "You must specify a --jobid value"),
        (["--get", "--fini"], "You must specify a --jobid value"),
        (["--set", "--jobid=x", "--fini", "--program=/bin/sh"], "Invalid jobid x"),
        (["--set", "--jobid=0", "--fini", "--program=/bin/sh"], "Invalid jobid 0"),
        (["--get", "--user=no-such-user"], "Invalid user no-such-user"),
        (["--set", "--flags=x", "--down", "--program=/bin/sh"], "Invalid flags x"),
        (
            ["--set", "--down", "--program=/bin/sh", "--offset=-70000"],
            "The --offset parameter must be between +/-32000",
        ),
    ],
)
def test_what_the_command_refuses_itself(arguments, text):
    said = run_command(strigger, *arguments, client=FakeClient())
    assert (said.code, said.err) == (1, f"strigger: error: {text}\n")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-d"], ("node", "*", ["down"], 0)),
        (
            ["--node=n1", "-u", "-D", "-I", "--offset=20"],
            ("node", "n1", ["drained", "idle", "up"], 20),
        ),
        (["-j", "1_2", "-t", "--offset=-600s"], ("job", "1", ["time"], -600)),
        (["-j1", "--node=n1", "-d"], ("job", "1", ["down"], 0)),
        (["--front_end", "-d"], ("front_end", "", ["down"], 0)),
        (
            ["-a", "-H"],
            (
                "database",
                "*",
                ["primary_slurmctld_failure", "primary_database_resumed_operation"],
                0,
            ),
        ),
        (["--burst_buffer"], ("other", "", ["burst_buffer"], 0)),
    ],
)
def test_what_set_asks_for(options, expected):
    client = FakeClient()
    assert run_command(strigger, "--set", *options, "-p", "/bin/sh x", client=client).code == 0
    asked = client.asked[0][1]
    assert (asked["resource"], asked["resource_id"], asked["events"], asked["offset_s"]) == expected
    assert asked["program"] == "/bin/sh x"


def test_a_refusal_names_the_call():
    client = FakeClient()
    client.answers = {
        "SetTrigger": RefusedError(2089, "Duplicate event trigger"),
        "ClearTriggers": RefusedError(3, "No such process"),
    }
    client.answers["Query"] = RefusedError(
        1005, "Unable to contact slurm controller (connect failure)"
    )
    assert (
        run_command(strigger, "--set", "-d", "-p/bin/sh", client=client).err
        == "slurm_set_trigger: Duplicate event "
        "trigger\n"
    )
    assert (
        run_command(strigger, "--clear", "--id=9", client=client).err
        == "slurm_clear_trigger: No such process\n"
    )
    quiet = run_command(strigger, "--clear", "--id=9", "-Q", client=client)
    assert (quiet.code, quiet.err) == (0, "")
    assert (
        run_command(strigger, "--get", client=client).err
        == "slurm_get_triggers: Unable to contact slurm controller (connect "
        "failure)\n"
    )
