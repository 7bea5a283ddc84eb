"""sacct: which jobs are shown, and how. The lines are those that sacct of 22.05.8 printed of like
jobs.

Covers: commands/sacct/choice, commands/sacct/completions, commands/sacct/fields,
commands/sacct/use, commands/sacct/wanted, commands/shared/accounting_client,
commands/shared/past_times, documents/accounting, documents/use.
"""

import json
import time

import pytest
from accounting_harness import NOW, House

from understudy.accounting import schema
from understudy.commands.sacct.fields import FIELDS, cpu_time, fields_of
from understudy.commands.sacct.sacct import sacct
from understudy.commands.shared.past_times import past_time
from understudy.model.dbd_conf import Purge
from understudy.model.states import JobFlag, JobState
from understudy.model.task_usage import summed_up
from understudy.protocol.messages import AccountingRecords, JobRecord, JobText, StepRecord

COMPLETED, CANCELLED, FAILED = (
    int(JobState.COMPLETED),
    int(JobState.CANCELLED),
    int(JobState.FAILED),
)
RUNNING, REQUEUED, RESIZING = int(JobState.RUNNING), int(JobFlag.REQUEUE), int(JobFlag.RESIZING)
TWO_NODES = {"cpu": 3, "mem": 1000, "node": 2, "billing": 3}
ONE_CPU = {"cpu": 1, "mem": 100, "node": 1, "billing": 1}


def job(number, **fields):
    known = {
        "submit_time": NOW,
        "restarts": 0,
        "user": "root",
        "user_id": 0,
        "group_id": 0,
        "group": "root",
        "account": "root",
        "partition": "debug",
    }
    known |= {
        "association_id": 2,
        "qos": "normal",
        "eligible_time": NOW,
        "tres_requested": ONE_CPU,
        "time_limit_min": -1,
        "flags": "StartRecieved",
    }
    return JobRecord(**{"job_id": number, "name": f"job{number}", **known, **fields})


def ran(number, start, end, **fields):
    held = {
        "nodes": "n1",
        "node_count": 1,
        "tres_allocated": ONE_CPU,
        "state": COMPLETED,
        "time_limit_min": 10,
    }
    return job(
        number,
        start_time=NOW + start,
        end_time=None if end is None else NOW + end,
        **{**held, **fields},
    )


def batch(number, start, end, **fields):
    known = {
        "submit_time": NOW,
        "restarts": 0,
        "step": "batch",
        "name": "batch",
        "layout": "Unknown",
        "nodes": "n1",
        "node_count": 1,
        "tasks": 1,
    }
    known |= {"cpus": 1, "tres_allocated": {"cpu": 1, "mem": 100, "node": 1}, "state": COMPLETED}
    return StepRecord(
        **{
            "job_id": number,
            **known,
            "start_time": NOW + start,
            "end_time": None if end is None else NOW + end,
            **fields,
        }
    )


RECORDS = [
    ran(
        1,
        6,
        14,
        state=FAILED,
        exit_code=3,
        nodes="n[1-2]",
        node_count=2,
        tres_requested=TWO_NODES,
        tres_allocated=TWO_NODES,
        name="ok",
    ),
    batch(
        1,
        6,
        14,
        state=FAILED,
        exit_code=3,
        user_cpu_us=6000,
        system_cpu_us=5400,
        usage={"energy": 0},
    ),
    StepRecord(
        1,
        NOW,
        0,
        "0",
        "true",
        COMPLETED,
        NOW + 6,
        NOW + 6,
        nodes="n[1-2]",
        node_count=2,
        tasks=2,
        cpus=3,
        tres_allocated=TWO_NODES,
    ),
    ran(2, 6, None, state=RUNNING, user="daemon", user_id=1, account="phys", suspended_s=2),
    batch(2, 6, None, state=RUNNING),
    job(3, eligible_time=None, reason="JobHeldUser"),
    job(4, end_time=NOW + 4, state=CANCELLED, killed_by=0),
    ran(5, 6, 14, state=REQUEUED),
    ran(5, 30, 50, submit_time=NOW + 14, eligible_time=NOW + 20, restarts=1),
    job(6, array_job_id=6, array_tasks="3-5%2"),
    ran(7, 20, 23, array_job_id=6, array_task_id=2),
    ran(8, 10, 13, array_job_id=6, array_task_id=1, state=FAILED, exit_signal=9),
]


@pytest.fixture
def house():
    house = House()
    house.tell(AccountingRecords("conform", RECORDS))
    house.now = NOW + 100
    yield house
    house.store.close()


def show(house, line, **environ):
    said = house.run("sacct", sacct, line, environ=environ)
    assert said.code == 0, said
    return said.out.splitlines()


def ids(house, line):
    return [row.split("|")[0] for row in show(house, f"-X -n -P -o jobid,state {line}")]


def test_the_default_format_has_steps_behind_their_jobs(house):
    assert show(house, "-j 1") == [
        "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode ",
        "------------ ---------- ---------- ---------- ---------- ---------- -------- ",
        "1                    ok      debug       root          3     FAILED      3:0 ",
        "1.batch           batch                  root          1     FAILED      3:0 ",
        "1.0                true                  root          3  COMPLETED      0:0 ",
    ]


def test_parsable_output_has_full_names_and_texts(house):
    assert show(house, "-p -X -j 4 -o jobid,timelimitr,state,start,nodelist,alloccpus") == [
        "JobID|TimelimitRaw|State|Start|NodeList|AllocCPUS|",
        "4|Partition_Limit|CANCELLED by 0|None|None assigned|1|",
    ]
    assert show(house, "-n -P --delimiter=, -X -j 1 -o alloctres,reqmem") == [
        "billing=3,cpu=3,mem=1000M,node=2,1000M"
    ]


def test_what_is_too_long_is_cut_and_widths_may_be_given(house):
    assert show(house, "-n -X -j 4 -o state,jobname%-6,jobid%3") == ["CANCELLED+ job4     4 "]
    assert show(house, "-n -X -j 4 -o state%20") == ["      CANCELLED by 0 "]
    assert show(house, "-n -X -j 4 -o jobname%-6x,jobid%x,jobid%,jobid%-") == ["job4      "]


def test_times_and_cpu_times(house):
    assert show(house, "-n -P -j 1 -o elapsed,cputime,reserved,resvcpu,totalcpu,usercpu") == [
        "00:00:08|00:00:24|00:00:06|00:00:18|00:00.011|00:00.006",
        "00:00:08|00:00:08|||00:00.011|00:00.006",
        "00:00:00|00:00:00|||00:00:00|00:00:00",
    ]
    assert show(house, "-n -P -X -j 2 -o elapsed,suspended,end") == ["00:01:32|00:00:02|Unknown"]
    assert [cpu_time(us) for us in (0, 14_000, 61_250_000, 3_603_000_001)] == [
        "00:00:00",
        "00:00.014",
        "01:01.250",
        "01:00:03",
    ]


TASKS = [
    (0, 0, (700_000, 118_456_320, 121_827_328, 0, 1_685_838, 1697)),
    (1, 0, (730_000, 223_453_184, 226_684_928, 1, 1_685_838, 1697)),
    (2, 1, (1_460_000, 328_331_264, 331_542_528, 3, 1_685_838, 1697)),
]


def used_step():
    known = {
        "nodes": "c[1-2]",
        "node_count": 2,
        "tasks": 3,
        "cpus": 3,
        "tres_allocated": TWO_NODES,
        "user_cpu_us": 1,
        "usage": summed_up(TASKS),
    }
    return StepRecord(30, NOW, 0, "0", "python3", COMPLETED, NOW + 1, NOW + 12, **known)


def test_what_tasks_used_is_told_of_the_most_the_least_and_all(house):
    house.tell(AccountingRecords("conform", [ran(30, 1, 12), used_step()]))
    lines = show(
        house,
        "-n -P -j 30 -o maxrss,averss,maxvmsize,mincpu,avecpu,maxrssnode,maxrsstask,"
        "mincputask,maxdiskread,avediskwrite,maxpages",
    )
    assert lines == [
        "||||||||||",
        "320636K|223413589|323772K|00:00:00|00:00:00|c2|2|0|1.61M|0.00M|3",
    ]
    assert show(
        house, "-n -P --delimiter=; -j 30.0 -o tresusageintot,tresusageinmax,tresusageoutmin"
    )[0].split(";") == [
        "cpu=00:00:02,energy=0,fs/disk=5057514,mem=654532K,pages=4,vmem=664116K",
        "cpu=00:00:01,energy=0,fs/disk=1685838,mem=320636K,pages=3,vmem=323772K",
        "energy=0,fs/disk=1697",
    ]
    assert show(house, "-n -P -j 30.0 -o tresusageinminn,tresusageinmaxt") == [
        "cpu=c1,energy=c1,fs/disk=c1,mem=c1,pages=c1,vmem=c1|cpu=2,fs/disk=0,mem=2,pages=2,vmem=2"
    ]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (
            "--noconvert",
            (
                "328331264|223413589|1.61M|cpu=00:00:02,energy=0,fs/disk=5057514,"
                "mem=670240768,pages=4,vmem=680054784"
            ),
        ),
        (
            "--units=M",
            (
                "313.12M|213.06M|1.61M|cpu=00:00:02,energy=0,fs/disk=4.82M,mem=639.19M,"
                "pages=0.00M,vmem=648.55M"
            ),
        ),
        (
            "--units=K",
            (
                "320636K|218177.33K|1646.33K|cpu=00:00:02,energy=0,fs/disk=4938.98K,"
                "mem=654532K,pages=0.00K,vmem=664116K"
            ),
        ),
    ],
)
def test_what_tasks_used_is_told_in_the_unit_that_is_asked_for(house, option, expected):
    house.tell(AccountingRecords("conform", [ran(30, 1, 12), used_step()]))
    assert show(house, f"-n -P -j 30.0 {option} -o maxrss,averss,maxdiskread,tresusageintot") == [
        expected
    ]


def test_of_steps_too_short_to_be_looked_at_the_energy_alone_is_known(house):
    assert show(
        house, "-n -P -j 1.batch -o tresusageinave,tresusageintot,tresusageinmax,maxrss,maxdiskread"
    ) == ["energy=0|energy=0|||"]
    assert show(house, "-n -P -j 2.batch -o tresusageinave") == [""]
    assert show(house, "-n -P -j 1,2 -o consumedenergy,consumedenergyraw") == [
        "0|0",
        "0|0",
        "0|0",
        "|",
        "0|0",
    ]


def test_what_tasks_used_is_in_the_json(house):
    house.tell(AccountingRecords("conform", [ran(30, 1, 12), used_step()]))
    (step,) = json.loads("\n".join(show(house, "--json -j 30.0")))["jobs"][0]["steps"]
    used, moved = step["tres"]["requested"], step["tres"]["consumed"]
    assert [
        (each["type"], each["name"], each["count"], each["task"], each["node"])
        for each in used["max"][:3]
    ] == [
        ("cpu", None, 1460, 2, "c2"),
        ("mem", None, 328331264, 2, "c2"),
        ("energy", None, 0, 0, "c1"),
    ]
    assert [each["count"] for each in used["average"]] == [963, 223413589, 0, 1685838, 226684928, 1]
    assert [(each["type"], each["count"]) for each in moved["total"]] == [
        ("energy", 0),
        ("fs", 5091),
    ]


def test_a_failed_nodes_steps_have_no_exit_code(house):
    house.tell(
        AccountingRecords(
            "conform",
            [
                ran(20, 1, 5, state=int(JobState.NODE_FAIL)),
                batch(20, 1, 5, state=CANCELLED, exit_code=None),
            ],
        )
    )
    assert show(house, "-n -P -j 20 -o state,exitcode") == ["NODE_FAIL|0:0", "CANCELLED|"]


def test_without_jobs_and_states_those_are_shown_that_were_eligible_in_the_time(house):
    everything = ["1", "2", "4", "6_1", "6_2", "6_[3-5%2]", "5"]
    assert ids(house, f"-S uts{NOW}") == everything
    assert ids(house, f"-S uts{NOW + 14} -E uts{NOW + 19}") == ["1", "2", "5", "6_2", "6_[3-5%2]"]
    assert ids(house, f"-S uts{NOW + 60}") == ["2", "6_[3-5%2]"]


def test_jobs_that_are_named_are_shown_whenever_they_were_and_held_ones_too(house):
    assert ids(house, "-j 3,4") == ["3", "4"]
    assert ids(house, "-j 6") == ["6_1", "6_2", "6_[3-5%2]"]
    assert ids(house, "-j 6_2") == ["6_2"]
    assert ids(house, "-j 7") == ["6_2"]
    assert ids(house, "-j 999") == []


def test_a_step_that_is_named_is_shown_alone(house):
    assert [row.split("|")[0] for row in show(house, "-n -P -j 1.batch -o jobid")] == ["1.batch"]
    assert [row.split("|")[0] for row in show(house, "-n -P -j 1.0,4 -o jobid")] == ["1.0", "4"]


def test_a_job_that_is_suspended_does_not_run(house):
    suspended = ran(30, 6, None, state=int(JobState.SUSPENDED))
    house.tell(AccountingRecords("conform", [suspended]))
    assert ids(house, "-s S") == ["30"]
    assert "30" not in ids(house, "-s R") + ids(house, f"-s R -S uts{NOW} -E now")


def test_what_never_began_has_used_no_energy(house):
    assert show(house, "-n -P -X -j 4 -o jobid,consumedenergy") == ["4|0"]
    assert show(house, "-n -P -X -j 2 -o jobid,consumedenergy") == ["2|"]


def test_states_are_those_in_the_time(house):
    assert ids(house, "-s R") == ["2"]
    assert ids(house, "-s PD") == ["6_[3-5%2]"]
    assert ids(house, f"-s CA,F -S uts{NOW} -E now") == ["1", "4", "6_1"]
    assert ids(house, f"-s CA,F -S uts{NOW + 10} -E now") == ["1", "6_1"]
    assert ids(house, f"-s R -S uts{NOW + 21} -E uts{NOW + 22}") == ["2", "6_2"]
    assert ids(house, f"-s PD -S uts{NOW + 7} -E uts{NOW + 9}") == ["6_1", "6_2", "6_[3-5%2]"]


def test_the_last_run_is_shown_unless_all_are_asked_for(house):
    assert show(house, "-n -P -X -j 5 -o state,submit") == [
        show(house, "-n -P -X -j 5 -o state,submit -D")[1]
    ]
    assert [row.split("|")[0] for row in show(house, "-n -P -X -D -j 5 -o state")] == [
        "REQUEUED",
        "COMPLETED",
    ]
    assert ids(house, f"-s RQ -S uts{NOW} -E now") == ["5"]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("-u daemon", ["2"]),
        ("-A phys", ["2"]),
        ("-N n2", ["1"]),
        ("-i 2", ["1"]),
        ("-I 2-8", ["1"]),
        ("--name=job2,job4", ["2", "4"]),
        ("-r other", []),
        ("-r DEBUG -j 4", ["4"]),
        ("-A Phys", ["2"]),
        ("--reason=JobHeldUser -j 3,4", ["3"]),
        ("--reason=priority,JOBHELDUSER, -j 3,4", ["3"]),
        ("--reason= -j 3,4", ["3", "4"]),
        ("-k 5 -K 20 -j 1,4", ["1"]),
        ("-x 99", []),
        ("-x abc", []),
        ("--associations= -j 4", []),
        ("-M other", []),
        ("-L -j 1", ["1"]),
    ],
)
def test_filters(house, option, expected):
    assert ids(house, f"-S uts{NOW} {option}") == expected


def test_codes_that_a_shell_makes_of_signals_are_shown_as_those(house):
    house.tell(
        AccountingRecords(
            "conform",
            [
                ran(20, 6, 14, state=FAILED, exit_code=137),
                ran(21, 6, 14, state=FAILED, exit_code=127),
            ],
        )
    )
    assert show(house, "-X -n -P -j 20,21 -o exitcode") == ["9:0", "127:0"]


def test_a_list_that_is_given_again_adds_to_the_first(house):
    assert show(house, "-X -n -P -j 1 -j 7 -o jobid -o state") == ["1|FAILED", "6_2|COMPLETED"]


def test_what_follows_a_jobs_number_and_empty_lists_are_not_looked_at(house):
    assert (
        show(house, "-X -n -P -j 1-7 -o jobid") == show(house, "-X -n -P -j 1x -o jobid") == ["1"]
    )
    assert show(house, "-X -n -P -j , -o jobid") == show(house, "-X -n -P -o jobid")
    assert show(house, "-X -n -P -j 1 -N n[ -o jobid") == []


def test_more_is_said_about_the_window_the_options_and_the_connection(house):
    said = house.run("sacct", sacct, "-vvv -X -j 1 -s r,f -n")
    lines = said.err.splitlines()
    assert lines[0].startswith("sacct: Jobs RUNNING,FAILED in the time window from Epoch 0 to ")
    assert lines[1] == "sacct: debug:  Options selected:"
    assert lines[6:8] == ["\topt_no_steps=yes", "\topt_whole_hetjob=(null)"]
    assert (
        lines[8] == "sacct: accounting_storage/slurmdbd: init: Accounting storage SLURMDBD plugin "
        "loaded"
    )
    assert lines[-2:] == ["sacct: debug2: Jobs requested:", "sacct: debug2: \t: 1"]


def test_times_are_cut_to_the_window(house):
    assert show(house, f"-n -P -X -T -S uts{NOW + 10} -E uts{NOW + 12} -u 1 -o elapsedraw") == ["0"]
    assert show(house, f"-n -P -X -T -S uts{NOW + 10} -E uts{NOW + 12} -j 1 -o elapsedraw") == ["2"]


def test_sizes_in_other_units(house):
    house.tell(
        AccountingRecords("conform", [job(30, tres_requested={"cpu": 1, "mem": 1536, "node": 1})])
    )
    texts = [
        show(house, f"-n -P -X -j 30 -o reqmem {option}")
        for option in ("", "--noconvert", "--units=G", "--units=K")
    ]
    assert texts == [["1.50G"], ["1536M"], ["1.50G"], ["1572864K"]]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("-o foo", 'sacct: error: Invalid field requested: "foo"'),
        ("-s XX", "sacct: fatal: unrecognized job state value 'XX'"),
        ("-u no_such_user", "sacct: error: Invalid user id: no_such_user"),
        ("-S foo", "Invalid time specification (pos=0): foo"),
        ("-S 13:61", "Invalid time specification (pos=3): 13:61"),
        ("-u 99999999", "sacct: error: Invalid user id: 99999999"),
        ("-s completing", "sacct: fatal: job state completing is not supported / accounted"),
        (
            "-B",
            (
                "sacct: fatal: When requesting job scripts you must also request specific jobs "
                "with the '-j' option."
            ),
        ),
        ("-j 7.", "sacct: fatal: Bad step specified: 7\n"),
        ("-K foo", "sacct: fatal: Invalid time limit specification\n"),
        ("--units=", "sacct: error: Invalid unit type '\nsacct: fatal: Invalid unit type\n"),
        ("-j abc", "sacct: fatal: Bad job/step specified: abc"),
        (
            "-q nix",
            (
                "sacct: error: You gave a bad qos 'nix'. Valid QOS's are normal\n"
                "sacct: fatal: problem processing qos list"
            ),
        ),
        ("--usage extra", "sacct: error: Unknown arguments:\nsacct: error:  extra"),
        ("extra", "sacct: error: Unknown arguments:\nsacct: error:  extra"),
        ("-j 7_x", "sacct: fatal: Bad job array element specified: 7\n"),
        ("-j 7.foo", "sacct: fatal: Bad step specified: 7\n"),
        ("-I x", 'sacct: error: Invalid numeric value "x" for requested cpu range.\n'),
        ("-K 0 -k 5", "sacct: fatal: Invalid time limit specification\n"),
        ("-k foo", "sacct: fatal: Invalid time limit specification\n"),
        (
            "--units=X",
            (
                "sacct: error: Invalid unit type 'X'. Possible options are 'KMGTP'\n"
                "sacct: fatal: Invalid unit type\n"
            ),
        ),
        ("--reason=f1", "sacct: fatal: unrecognized job reason value 'f1'\n"),
        # of two wrong values the first one; fields and qualities of service come last
        ("-s all -F foo", "sacct: fatal: unrecognized job state value 'all'\n"),
        ("-F foo -s all", "sacct: error: str_2_job_flags: Invalid job flag foo\n"),
        ("-q nix -o nix extra -S foo", "Invalid time specification (pos=0): foo\n"),
        ("--units=x -j 1", "sacct: error: Invalid unit type 'x'. Possible"),
        ("-F foo", "sacct: error: str_2_job_flags: Invalid job flag foo\n"),
        ("-f /no/such/file", "/no/such/file is not a valid file\n"),
        ("--foo", "sacct: unrecognized option '--foo'"),
        (f"-S uts{NOW} -E uts{NOW - 1}", "sacct: error: Start time ("),
    ],
)
def test_wrong_requests_are_refused_in_slurms_words(house, line, complaint):
    said = house.run("sacct", sacct, line)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(complaint)


def test_the_format_may_come_from_the_environment_and_names_may_be_cut_short(house):
    assert show(house, "-n -P -X -j 1", SACCT_FORMAT="JOBID,part") == ["1|debug"]
    assert [field.name for field in fields_of("tresusageinmaxn,nn,nt")] == [
        "TRESUsageInMaxNode",
        "NNodes",
        "NTasks",
    ]
    assert len(fields_of("ALL")) == len(FIELDS) == 109


def test_every_field_can_be_printed_of_jobs_and_steps(house):
    lines = show(house, "-P -D -o ALL -j 1,2,3,4,5,6")
    assert {line.count("|") for line in lines} == {108}


def test_a_time_of_day_is_todays_even_if_it_is_over():
    midnight = past_time("00:00", NOW)
    assert midnight <= NOW < midnight + 86400
    assert past_time("00:01", NOW) == midnight + 60
    assert past_time("now-60", NOW) == NOW - 60


@pytest.mark.parametrize("month", range(1, 13))
def test_a_day_without_a_year_is_this_years_even_if_it_is_over(month):
    found = time.localtime(past_time(f"{month:02}/10", NOW))
    assert (found.tm_year, found.tm_mon, found.tm_mday) == (time.localtime(NOW).tm_year, month, 10)


def test_jobs_and_steps_as_json(house):
    house.tell(AccountingRecords("conform", [batch(4, 0, 1, exit_code=None)]))
    whole = json.loads("\n".join(show(house, "--json -j 1,2,4,6")))
    assert whole["meta"]["Slurm"] == {
        "version": {"major": 22, "micro": 8, "minor": 5},
        "release": "22.05.8",
    }
    first, second, cancelled, *tasks = whole["jobs"]
    assert (first["job_id"], first["state"], first["required"]) == (
        1,
        {"current": "FAILED", "reason": "None"},
        {"CPUs": 3, "memory": 500},
    )
    assert [step["step"]["id"] for step in first["steps"]] == ["batch", 0]
    assert first["steps"][1]["nodes"] == {"list": ["n1", "n2"], "count": 2, "range": "n[1-2]"}
    assert first["time"]["elapsed"] == 8
    assert first["tres"]["allocated"][:2] == [
        {"type": "cpu", "name": None, "id": 1, "count": 3},
        {"type": "mem", "name": None, "id": 2, "count": 1000},
    ]
    assert second["time"]["end"] == 0
    assert cancelled["kill_request_user"] == "root"
    assert [task["array"]["task_id"] for task in tasks] == [None, 2, 1]  # by their own numbers
    assert tasks[0]["array"]["limits"] == {"max": {"running": {"tasks": 2}}}
    assert tasks[0]["array"]["task"] == "0x38"
    assert (tasks[0]["flags"], tasks[0]["time"]["start"], cancelled["time"]["start"]) == (
        [],
        0,
        None,
    )
    assert tasks[2]["exit_code"] == {
        "status": "SIGNALED",
        "return_code": None,
        "signal": {"signal_id": 9, "name": "Killed"},
    }
    assert first["exit_code"] == {"status": "SUCCESS", "return_code": 0}  # so 22.05.8 prints it
    assert first["steps"][0]["CPU"] == {"requested_frequency": {"min": 0, "max": 0}, "governor": []}
    assert first["steps"][1]["CPU"]["requested_frequency"] == {"min": None, "max": None}
    assert first["steps"][1]["tres"]["requested"]["total"] == []  # nobody has looked at it


def test_texts_that_are_too_long_are_marked_times_cut_and_numbers_left_whole(house):
    assert show(
        house, "-n -X -j 1 -o jobname%1,state%4,start%-4,elapsed%2,priority%1,ncpus%1,end%2"
    )[0].startswith("+ FAI+ 20")
    line = show(house, "-n -X -j 1 -o elapsed%2,start%4,ncpus%1,state%3")[0]
    assert line[:9] + line[13:] == "00:00:08  3 FA+ "
    assert "+" not in line[:14]


def test_yaml_has_the_tag_of_each_value(house):
    house.tell(
        AccountingRecords("conform", [job(31, comment="a: b", constraints="", work_dir="/w")])
    )
    lines = show(house, "--yaml -j 31")
    assert lines[:4] == ["%YAML 1.1", "--- !!map", "!!str meta: !!map", "  !!str plugin: !!map"]
    assert lines[-2:] == ["  !!str working_directory: !!str /w", "..."]
    wanted = {
        "!!str errors: !!seq []",
        "!!str jobs: !!seq",
        "- !!map",
        "    !!str job: !!str 'a: b'",
        "  !!str constraints: !!str",
    }
    assert wanted | {"  !!str container: !!null null", "  !!str job_id: !!int 31"} <= set(lines)


def test_an_empty_list_takes_two_lines_in_json(house):
    lines = show(house, "--json -j 1")
    assert lines[lines.index('  "errors": [') + 1] == "  ],"


def test_json_of_no_jobs_has_the_frame_alone(house):
    assert json.loads("\n".join(show(house, "--json -j 999")))["jobs"] == []


def test_a_query_that_finds_nothing_says_so_in_json(house):
    errors = json.loads("\n".join(show(house, "--json -j 31")))["errors"]
    assert errors == [
        {
            "description": "Nothing found",
            "error_number": 9003,
            "error": "Nothing found with query",
            "source": "slurmdb_jobs_get",
        }
    ]


def test_a_list_of_fields_ends_at_an_empty_name_and_a_width_of_0_leaves_a_gap(house):
    assert show(house, "-n -X -j 4 -o jobid,,state") == ["4            "]
    assert show(house, "-X -j 4 -o jobid%-3,state%0") == ["Job  ", "---  ", "4    "]


def test_a_job_that_was_to_begin_later_is_found_by_its_state(house):
    now = int(NOW)
    record = job(77, state=CANCELLED, eligible_time=now + 3600, end_time=now + 5)
    house.tell(AccountingRecords("conform", [record]))
    house.now = NOW + 60
    assert show(house, f"-n -X -P -s CA -S uts{now} -E now -o jobid") == ["4", "77"]


def test_a_script_and_an_environment_are_not_shown_together(house):
    said = house.run("sacct", sacct, "-B --env-vars -j 1")
    assert (said.code, said.err) == (
        1,
        "sacct: fatal: Options --batch-script and --env-vars are mutually exclusive\n",
    )


def test_components_of_a_heterogeneous_job_have_its_number_and_their_place(house):
    house.tell(
        AccountingRecords(
            "conform", [ran(50, 1, 5, het_job_id=50), ran(51, 1, 5, het_job_id=50, het_offset=1)]
        )
    )
    assert show(house, "-n -X -P -j 50 -o jobid,jobidraw") == ["50+0|50", "50+1|51"]
    assert show(house, "-n -X -P -j 50+1 -o jobid") == ["50+1"]
    assert show(house, "-n -X -P -j 50+1 --whole-hetjob -o jobid") == ["50+0", "50+1"]
    assert show(house, "-n -X -P -j 50 --whole-hetjob=no -o jobid") == ["50+0"]
    said = house.run("sacct", sacct, "--whole-hetjob=bad -j 50")
    assert (said.code, said.err) == (
        1,
        'sacct: error: Invalid --whole-hetjob value "bad". Valid values: [yes|no].\n',
    )


@pytest.mark.parametrize(
    ("line", "error"),
    [("-u ''", ""), ("-g ''", ""), ("-k ''", "sacct: fatal: Invalid time limit specification\n")],
)
def test_filters_that_need_a_text_are_refused_without_one(house, line, error):
    said = house.run("sacct", sacct, line)
    assert (said.code, said.out, said.err) == (1, "", error)


def test_other_filters_without_a_text_match_all_or_nothing(house):
    assert ids(house, "-a -N ''") == ids(house, "-a -F ''") == []
    assert ids(house, "-j ''") == ids(house, "-a") != []
    assert not any("|" in line for line in show(house, "-n -X -p --delimiter= -o jobid,user"))


def test_scripts_and_environments_are_shown_to_whom_the_jobs_belong_and_to_administrators(house):
    texts = [JobText("k1", "#!/bin/sh\ntrue\n"), JobText("k2", "A=1\nB=\n")]
    mine = [
        ran(20, 1, 2, script="k1", environment="k2"),
        ran(21, 1, 2, script="k1", user="daemon", user_id=1),
    ]
    house.tell(AccountingRecords("conform", [*texts, *mine, *texts]))
    line = "-" * 80
    own = f"Batch Script for 21\n{line}\n#!/bin/sh\ntrue\n\n"
    assert (
        house.run("sacct", sacct, "-B -j 20,21 -n").out
        == f"Batch Script for 20\n{line}\n#!/bin/sh\ntrue\n"
        f"\n{own}"
    )
    assert house.run("sacct", sacct, "-B -j 20,21", user_id=1).out == own
    head = "Environment used for {} (must be batch to display)\n" + line + "\n{}\n"
    assert house.run("sacct", sacct, "--env-vars -j 20,21").out == head.format(
        20, "A=1\nB=\n"
    ) + head.format(21, "NONE\n")
    said = house.run("sacct", sacct, "-B -j 99")
    assert (said.code, said.out, said.err) == (0, "", "")


def test_scripts_go_with_the_last_job_that_has_them(house):
    house.tell(
        AccountingRecords(
            "conform",
            [
                JobText("k1", "a"),
                JobText("k2", "b"),
                ran(20, 1, 2, script="k1"),
                ran(21, 1, 500, environment="k2"),
            ],
        )
    )
    house.accounting.purge({"Job": Purge(NOW + 50, "h")})
    assert [row["key"] for row in house.store.find(schema.job_texts)] == ["k2"]


def test_all_parts_of_a_job_that_went_on_with_fewer_nodes_are_shown(house):
    parts = [
        ran(60, 1, 5, state=RESIZING, nodes="n[1-2]", node_count=2),
        ran(60, 1, 9, submit_time=NOW + 5, eligible_time=NOW + 5),
    ]
    house.tell(
        AccountingRecords(
            "conform",
            [
                *parts,
                batch(60, 1, 5, state=RESIZING),
                batch(60, 6, 7, step="0", name="true", submit_time=NOW + 5),
            ],
        )
    )
    lines = [
        "60|RESIZING|n[1-2]|00:00:04",
        "60.batch|RESIZING|n1|00:00:04",
        "60|COMPLETED|n1|00:00:08",
        "60.0|COMPLETED|n1|00:00:01",
    ]
    for options in ("-j 60", "-D -j 60"):
        assert show(house, f"-n -P {options} -o jobid,state,nodelist,elapsed") == lines
    assert show(house, "-n -P -X -j 60 -s RS -o state") == ["RESIZING"]


def test_a_job_that_was_held_until_it_was_cancelled_was_never_pending(house):
    house.tell(
        AccountingRecords(
            "conform", [job(32, eligible_time=None, end_time=NOW + 9, state=CANCELLED)]
        )
    )
    assert "32" not in ids(house, "-s PD -S 2020-01-01 -E now")
    assert "4" in ids(house, "-s PD -S 2020-01-01 -E now")


@pytest.mark.parametrize("state", ["RS", "resizing", "RV", "Revoked"])
def test_states_that_no_job_keeps_may_be_asked_for(house, state):
    assert show(house, f"-n -s {state}") == []
