"""Past jobs as submissions of a scenario.

Covers: experiments/past_groups, experiments/past_memory, experiments/past_options.
"""

import time

import pytest

from understudy.experiments.past import PARTITION_LIMIT, UNLIMITED, Count, PastJob
from understudy.experiments.past_options import Default, Mapped
from understudy.experiments.past_scenario import BEYOND_LIMIT_S, PAST_FIELDS, make_scenario
from understudy.tool.replay.submit_line import read_submit_line

T = 1_700_000_000


def job(number, state="COMPLETED", *, submit=0, start=10, end=70, **fields):
    fields.setdefault("user", "ada")
    start, end = (None if at is None else T + at for at in (start, end))
    fields.setdefault("node_list", "n1" if start else "")
    return PastJob(
        1,
        str(number),
        state,
        submit=T + submit,
        eligible=T + submit,
        start=start,
        end=end,
        **fields,
    )


def scenario(*records, **options):
    counts = Count()
    return make_scenario(list(records), counts, read_submit_line, **options), counts


def line(*records, **options):
    made, _ = scenario(*records, **options)
    (found,) = made.workload
    return found


def options(record, **more):
    return line(record, **more)["options"]


def test_columns_become_options():
    record = job(
        1, partition="gpu", account="phys", qos="high", limit_min=90, req_cpus=8, min_nodes=2,
        nodes=2, constraints="a&b", wckey="w",
        req_tres="billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=16G,node=2",
    )  # fmt: skip
    assert options(record) == [
        *(
            "--partition=gpu",
            "--account=phys",
            "--qos=high",
            "--time=90",
            "--nodes=2",
            "--ntasks=8",
            "--mem-per-cpu=2048M",
            "--gres=gpu:a100:2",
        ),
        *("--constraint=a&b", "--wckey=w"),
    ]


def test_a_submission_line_says_the_shape_and_the_columns_the_rest():
    text = (
        "sbatch -o x -c 4 --gres=gpu:1 --exclusive --mail-type=END -p a,b -t 10 -A other "
        "run.sh -n 99"
    )
    record = job(
        1,
        submit_line=text,
        partition="b",
        account="phys",
        limit_min=20,
        req_cpus=8,
        min_nodes=1,
        nodes=1,
    )
    found = options(record)
    assert set(found) == {
        "--partition=a,b",
        "--account=phys",
        "--time=20",
        "--cpus-per-task=4",
        "--gres=gpu:1",
        "--exclusive",
        "--nodes=1",
    }


def test_a_burst_buffer_of_the_line_is_asked_for_and_others_are_counted():
    line_of = "sbatch --bb=capacity=1G access=striped type=scratch -c 2 run.sh"
    found = options(job(1, submit_line=line_of))
    assert "--bb=capacity=1G access=striped type=scratch" in found
    assert "--cpus-per-task=2" in found
    apart = "sbatch --bb #BB_LUA pool=a capacity=1K --exclusive run.sh b=c"
    found = options(job(1, submit_line=apart))
    assert {"--bb=#BB_LUA pool=a capacity=1K", "--exclusive"} <= set(found)
    in_script = {"submit_line": "sbatch run.sh", "req_tres": "bb/lua=1024M,cpu=1,node=1"}
    made, counts = scenario(
        job(1, submit_line="sbatch --bbf=/home/a/buffer run.sh"),
        job(2, submit=1, **in_script),
        job(3, submit=2, submit_line=line_of, req_tres="bb/datawarp=1024M,cpu=1,node=1"),
    )
    assert not any("--bbf" in word for each in made.workload for word in each["options"])
    assert dict(counts.notes) == {
        "--bbf, a file that the history does not have: no burst buffer": 1,
        "a burst buffer (ReqTRES) that the script alone describes: left out": 1,
    }


@pytest.mark.parametrize(
    ("typed", "cpus", "expected"),
    [
        ("-n 4", 8, {"--ntasks=4", "--cpus-per-task=2"}),
        ("-c 2", 8, {"--cpus-per-task=2", "--ntasks=4"}),
        ("-n 8", 8, {"--ntasks=8"}),
        ("", 8, {"--ntasks=8"}),
        ("-N 2 --ntasks-per-node=4", 8, {"--nodes=2", "--ntasks-per-node=4"}),
        ("-N 2", 2, {"--nodes=2"}),
    ],
)
def test_what_the_script_said_of_tasks_is_found_from_the_processors(typed, cpus, expected):
    record = job(1, submit_line=f"sbatch {typed} run.sh", req_cpus=cpus)
    assert {option for option in options(record) if not option.startswith("--nodes=1")} == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"memory": "4Gc"}, "--mem-per-cpu=4096M"),
        ({"memory": "4Gn"}, "--mem=4096M"),
        ({"memory": "0n"}, "--mem=0M"),
        ({"memory": "3G", "req_tres": "cpu=2,mem=3G,node=1"}, "--mem=3072M"),
        ({"req_tres": "cpu=3,mem=1000M,node=2"}, "--mem=500M"),
    ],
)
def test_memory_is_asked_for_as_it_was(fields, expected):
    assert expected in options(job(1, **fields))


@pytest.mark.parametrize(
    ("asked", "held", "expected"),
    [
        ((1, 1, 200), (2, 1, 400), "--mem-per-cpu=200M"),  # a whole core
        ((1, 1, 200), (8, 1, 1600), "--mem-per-cpu=200M"),  # --exclusive
        ((1, 1, 100), (2, 1, 100), "--mem=100M"),
        ((20, 1, 4000), (20, 4, 4000), "--mem-per-cpu=200M"),
        ((4, 1, 800), (8, 3, 800), "--mem-per-cpu=200M"),
        ((4, 1, 800), (4, 2, 1600), "--mem=800M"),
        ((6, 2, 1200), (8, 2, 1600), "--mem-per-cpu=200M"),
        ((6, 2, 1200), (8, 2, 1200), "--mem=600M"),
        ((4, 1, 800), (4, 1, 800), "--mem=800M"),  # of the node or of its CPUs: nobody can tell
        ((48, 1, 9600), None, "--mem-per-cpu=200M"),  # it never ran: no node need have all of it
        ((4, 4, 16000), None, "--mem=4000M"),  # whole nodes have more CPUs, and no more memory
        ((8, 4, 16000), None, "--mem=4000M"),
    ],
)
def test_what_a_job_got_tells_whether_memory_was_for_nodes_or_cpus(asked, held, expected):
    cpus, nodes, memory = asked
    fields = {
        "req_cpus": cpus,
        "min_nodes": nodes,
        "req_tres": f"cpu={cpus},mem={memory}M,node={nodes}",
        "submit_line": "sbatch --exclusive run.sh",
    }
    if held is None:
        fields |= {"state": "CANCELLED", "start": None, "cpus": cpus, "nodes": nodes}
    else:
        fields |= {
            "cpus": held[0],
            "nodes": held[1],
            "alloc_tres": f"cpu={held[0]},mem={held[2]}M,node={held[1]}",
        }
    assert expected in options(job(1, **fields))


@pytest.mark.parametrize(
    ("default", "expected"),
    [
        ({(4000, "n")}, "--mem=4000M"),  # all of a node, as where nothing is configured
        ({(2400, "c")}, "--mem-per-cpu=2400M"),
        ({(1000, "n")}, "--mem-per-cpu=2400M"),  # the job asked for something else
    ],
)
def test_memory_that_may_be_of_nodes_or_cpus_is_as_the_configuration_gives_it(default, expected):
    record = job(
        1, partition="p", req_cpus=5, min_nodes=3, cpus=5, nodes=3,
        req_tres="cpu=5,mem=12000M,node=3", alloc_tres="cpu=5,mem=12000M,node=3",
    )  # fmt: skip
    assert expected in options(record, defaults={"p": Default(frozenset(default))})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"alloc_tres": "cpu=16,mem=600M,node=2"}, "--mem=300M"),
        ({"alloc_tres": "cpu=16,mem=8000M,node=2"}, "--mem-per-cpu=500M"),
        # all of a node, of which it got two without asking for them
        (
            {"req_cpus": 4, "memory": "8000M", "alloc_tres": "cpu=16,mem=16000M,node=2"},
            "--mem=8000M",
        ),
        # more processors than it asked for have no more memory than it asked for
        (
            {
                "cpus": 16, "nodes": 2, "req_cpus": 4, "min_nodes": 2,
                "alloc_tres": "cpu=16,node=2", "req_tres": "cpu=4,mem=2G,node=2",
            },
            "--mem=1024M",
        ),
    ],
)  # fmt: skip
def test_without_a_line_memory_is_told_by_what_a_job_got(fields, expected):
    assert expected in options(job(1, **fields))


@pytest.mark.parametrize(
    ("memory", "most", "is_told"),
    [
        ({(500, "c")}, 3000, False),  # as the partition gives it to each CPU
        ({(500, "c")}, 3500, True),
        ({(500, "n")}, 400, True),
        (set(), 400, True),
    ],
)
def test_no_nodes_are_asked_for_on_which_a_job_may_not_have_its_memory(memory, most, is_told):
    """`sbatch -N1 -n7` is refused where `sbatch -n7` runs."""
    record = job(1, partition="p", req_cpus=7, cpus=8, min_nodes=1, nodes=1)
    default = Default(frozenset(memory), most_memory_mb=most)
    assert ("--nodes=1" in options(record, defaults={"p": default})) is is_told
    if not is_told:
        asked = job(
            1, partition="p", req_cpus=7, cpus=8, min_nodes=1, nodes=1,
            submit_line="sbatch --mem-per-cpu=100M run.sh",
        )  # fmt: skip
        assert "--nodes=1" in options(asked, defaults={"p": default})


def test_nodes_that_were_changed_while_a_job_waited_are_the_columns():
    fewer = job(1, submit_line="sbatch -N2 -n4 run.sh", req_cpus=4, cpus=4, min_nodes=1, nodes=1)
    assert "--nodes=1" in options(fewer)
    assert "--nodes=1-3" in options(
        job(1, submit_line="sbatch -N1-3 -n4 run.sh", req_cpus=4, cpus=4, min_nodes=1, nodes=2)
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-N1-3 -n4", "--nodes=1-2"),
        ("--spread-job -n4", "--nodes=1-2"),
        ("-N1-2 -n4", "--nodes=1-2"),
    ],
)
def test_where_accounts_limit_resources_a_job_asks_for_no_more_nodes_than_were_free(line, expected):
    ran = job(
        1, partition="p", submit_line=f"sbatch {line} run.sh", req_cpus=4, cpus=4, min_nodes=1,
        nodes=2,
    )  # fmt: skip
    assert expected in options(ran, defaults={"p": Default(is_limited=True)})


@pytest.mark.parametrize(
    ("asked", "got", "expected"),
    [
        ((1, 1), (2, 1), {"--mem-per-cpu=100M"}),  # a whole core
        ((2, 2), (4, 2), {"--nodes=2", "--mem-per-cpu=100M"}),
        ((1, 1), (8, 1), {"--nodes=1", "--ntasks=8", "--mem-per-cpu=100M"}),
        ((2, 2), (16, 2), {"--nodes=2", "--ntasks=16", "--mem-per-cpu=100M"}),
    ],
)
def test_without_a_line_a_job_asks_for_the_processors_that_it_got_beyond_whole_cores(
    asked, got, expected
):
    (cpus, nodes), (held, on) = asked, got
    record = job(
        1, req_cpus=cpus, min_nodes=nodes, cpus=held, nodes=on,
        req_tres=f"cpu={cpus},mem={cpus * 100}M,node={nodes}",
        alloc_tres=f"cpu={held},mem={held * 100}M,node={on}",
    )  # fmt: skip
    assert set(options(record)) == expected
    record.submit_line = "sbatch --exclusive run.sh"
    assert "--exclusive" in options(record)


def test_without_a_line_more_processors_are_told_by_whole_sockets_or_nodes():
    """Where the configuration gives these: what was asked for was little."""
    record = job(
        1,
        partition="p",
        req_cpus=2,
        min_nodes=1,
        cpus=8,
        nodes=1,
        req_tres="cpu=2,mem=1000M,node=1",
    )
    given = {"p": Default(unit_cpus=8)}
    assert "--ntasks=2" in options(record, defaults=given)
    assert "--ntasks=8" in options(record)
    assert "--ntasks=2" in options(record, defaults={"p": Default(most_cpus=4)})
    record = job(1, partition="p", cpus=8, nodes=1)
    assert "--ntasks=4" in options(record, defaults={"p": Default(most_cpus=4)})


@pytest.mark.parametrize(
    ("cpus", "tasks"),
    [
        (4, ["--ntasks=2", "--cpus-per-task=2"]),
        (6, ["--ntasks=3", "--cpus-per-task=2"]),
        (5, ["--ntasks=5"]),
        (2, []),
    ],
)
@pytest.mark.parametrize("is_told", [False, True])
def test_no_more_sockets_are_asked_for_than_were_enough(cpus, tasks, is_told):
    record = job(
        1, partition="p", cpus=cpus, req_cpus=cpus if is_told else None, min_nodes=2, nodes=2
    )
    said = options(record, defaults={"p": Default(socket_cpus=2)})
    assert "--nodes=2" in said
    assert [text for text in said if "task" in text] == tasks


def test_a_limit_that_main_scheduling_found_shorter_than_the_line_was_changed_by_hand():
    line = "sbatch --time-min=1 -t 9 run.sh"
    by_hand = options(job(1, submit_line=line, limit_min=3, flags="SchedMain"))
    assert ("--time=3" in by_hand, "--time-min=1" in by_hand) == (True, True)
    by_backfill = options(job(1, submit_line=line, limit_min=3, flags="SchedBackfill"))
    assert "--time=9" in by_backfill


def test_whole_nodes_of_which_a_partition_gives_more_at_least_are_not_taken_for_asked():
    record = job(
        1, partition="p", req_cpus=1, min_nodes=2, cpus=16, nodes=2,
        req_tres="cpu=1,mem=2G,node=2", alloc_tres="cpu=16,node=2",
    )  # fmt: skip
    said = options(record, defaults={"p": Default(unit_cpus=8)})
    assert "--mem=1024M" in said
    assert not any("ntasks" in text and text != "--ntasks=1" for text in said)


def test_no_nodes_are_asked_for_that_are_fewer_than_the_tasks_of_each_want():
    line = "sbatch -n4 --ntasks-per-node=2 run.sh"
    one = job(1, submit_line=line, req_cpus=4, cpus=4, min_nodes=1, nodes=1)
    assert not any(text.startswith("--nodes") for text in options(one))
    two = job(1, submit_line=line, req_cpus=4, cpus=4, min_nodes=2, nodes=2)
    assert "--nodes=2" in options(two)


def test_resources_tell_of_processors_and_nodes_without_columns_of_their_own():
    record = job(1, req_tres="cpu=1,mem=100M,node=1", alloc_tres="cpu=8,mem=800M,node=1")
    assert set(options(record)) == {"--nodes=1", "--ntasks=8", "--mem-per-cpu=100M"}


def test_one_node_is_asked_for_where_it_is_known_to_have_been_one():
    assert "--nodes=1" in options(job(1, req_cpus=20, min_nodes=1, nodes=1))
    assert not any("--nodes" in option for option in options(job(1, req_cpus=20, min_nodes=1)))


def test_a_line_says_where_a_job_ran_if_no_column_does():
    record = job(
        1,
        submit_line="sbatch -p a,b -A phys --qos=high --reservation=class run.sh",
        node_list="n[1-2]",
    )
    made, _ = scenario(record)
    assert set(made.workload[0]["options"]) == {
        "--partition=a,b",
        "--account=phys",
        "--qos=high",
        "--reservation=class",
    }
    assert (made.partitions, made.associations, list(made.qos)) == (
        {"a": 1, "b": 1},
        {("ada", "phys"): None},
        ["high"],
    )
    assert "reservationname=class" in made.events[0]["cmd"]


def test_limits_without_end_and_of_the_partition_stay_that():
    assert "--time=UNLIMITED" in options(job(1, limit_min=UNLIMITED))
    assert not any(
        option.startswith("--time") for option in options(job(1, limit_min=PARTITION_LIMIT))
    )


def test_the_tasks_of_an_array_are_one_submission():
    records = [
        job("5_1", start=0, end=10), job("5_3", start=5, end=25, exit_code=2, state="FAILED"),
        job("5_[7-9%2]", state="PENDING", start=None, end=None, limit_min=5),
    ]  # fmt: skip
    found = line(*records)
    assert found["options"][0] == "--array=1,3,7-9%2"
    assert found["run"] == {"1": 10, "3": 20, "7": 300, "8": 300, "9": 300}
    assert found["exit"] == {"3": 2}


@pytest.mark.parametrize(
    ("flags", "line_text", "expected"),
    [
        ("SchedBackfill", "", ["--time=9", "--time-min=1"]),
        ("SchedMain", "", ["--time=1"]),  # changed by hand
        ("SchedBackfill", "sbatch -t 9 --time-min=2 -a 1-2 run.sh", ["--time-min=2", "--time=9"]),
    ],
)
def test_tasks_to_which_backfill_gave_less_time_than_others_have_were_content_with_it(
    flags, line_text, expected
):
    more = {"submit_line": line_text}
    records = [
        job("5_1", limit_min=1, flags=flags, **more),
        job("5_2", state="CANCELLED", start=None, limit_min=9, **more),
    ]
    found = line(*records)["options"]
    assert sorted(each for each in found if each.startswith("--time")) == sorted(expected)


def test_tasks_that_are_not_on_record_and_pauses_are_counted():
    _, counts = scenario(job("5_1", submit_line="sbatch --array=0-9:3%1 run.sh", suspended=7))
    assert dict(counts.notes) == {
        "a task of an array that the submission line names and no record tells of (cancelled "
        "before its turn?): left out": 4,
        "suspended meanwhile, which a replay does not repeat by itself": 1,
    }


def test_components_of_a_heterogeneous_job_are_parted_by_colons_in_their_order():
    text = "sbatch -n 2 : -n 1 -C fast run.sh"
    found = line(
        job("12+1", submit_line=text, req_cpus=1), job("12+0", submit_line=text, req_cpus=2)
    )
    at = found["options"].index(":")
    assert "--ntasks=2" in found["options"][:at]
    assert {"--ntasks=1", "--constraint=fast"} <= set(found["options"][at:])


def test_who_was_cancelled_while_he_waited_is_cancelled_at_the_same_time():
    made, _ = scenario(
        job(1),
        job(2, "CANCELLED", submit=5, start=None, end=40),
        job(3, "CANCELLED", start=40, end=40, node_list=""),
    )
    assert made.events == [
        {"at": 40.5, "cmd": ["scancel", "{3}"]},
        {"at": 40.5, "cmd": ["scancel", "{2}"]},
    ]


def test_who_missed_his_deadline_misses_it_again():
    made, _ = scenario(
        job(1),
        job(2, "DEADLINE", start=None, end=40, submit_line="sbatch --deadline=now+1hour run.sh"),
    )
    assert not made.events
    made, _ = scenario(job(1), job(2, "DEADLINE", start=None, end=40))
    assert made.events == [{"at": 40.5, "cmd": ["scancel", "{2}"]}]


def test_the_end_of_a_run_follows_from_its_length():
    made, _ = scenario(
        job(1, "REQUEUED", start=10, end=None, elapsed=20),
        job(1, submit=30, start=160, end=None, elapsed=40),
    )
    assert made.events == [{"at": 30.5, "cmd": ["scontrol", "requeue", "{1}"]}]


def test_how_jobs_ended_is_told():
    assert line(job(1, "CANCELLED"))["ended"] == "cancelled"
    assert line(job(1, "OUT_OF_MEMORY"))["ended"] == "memory"
    assert line(job(1, "FAILED", exit_code=3))["exit"] == 3
    assert line(job(1, "FAILED", signal=9))["signal"] == 9
    # by its exit code, at the end of the history: what its next run ends with nobody knows
    assert "exit" not in line(job(1, "REQUEUED", exit_code=3))
    assert line(job(1, "TIMEOUT", limit_min=1, start=0, end=65))["run"] == 65 + BEYOND_LIMIT_S


def test_who_waited_for_the_failure_of_a_job_that_may_end_well_waits_for_its_end():
    waiting = "sbatch --dependency=afternotok:1 run.sh"
    left, _ = scenario(job(1, "REQUEUED", exit_code=3), job(2, submit_line=waiting))
    assert "--dependency=afterany:{1}" in left.workload[-1]["options"]
    never, _ = scenario(job(1, "CANCELLED", start=None), job(2, submit_line=waiting))
    assert "--dependency=afterany:{1}" in never.workload[-1]["options"]
    preempted, _ = scenario(job(1, "PREEMPTED"), job(2, submit_line=waiting))
    assert "--dependency=afterany:{1}" in preempted.workload[-1]["options"]
    failed, _ = scenario(job(1, "FAILED", exit_code=3), job(2, submit_line=waiting))
    assert "--dependency=afternotok:{1}" in failed.workload[-1]["options"]
    again, _ = scenario(
        job(1, "REQUEUED", end=30), job(1, "FAILED", submit=30, start=60, end=90, exit_code=3),
        job(2, submit=95, start=99, end=100, submit_line=waiting),
    )  # fmt: skip
    assert "--dependency=afternotok:{1}" in again.workload[-1]["options"]


def test_a_job_that_was_requeued_is_one_submission_at_the_time_of_the_first():
    made, _ = scenario(job(1, "REQUEUED", end=30), job(1, submit=30, start=160, end=200))
    (found,) = made.workload
    assert (found["at"], found["run"]) == (0, 40)
    assert made.events == [{"at": 30.5, "cmd": ["scontrol", "requeue", "{1}"]}]


def test_a_job_that_was_preempted_is_not_preempted_by_hand():
    made, counts = scenario(job(1, "PREEMPTED", end=30), job(1, submit=30, start=160, end=200))
    assert (len(made.workload), made.events) == (1, [])
    assert sum(counts.notes.values()) == 1


def test_a_number_that_means_another_job_later_on_is_another_submission():
    made, _ = scenario(
        job(1, name="a", end=30), job(1, submit=900, start=910, end=950, name="b", user="bob")
    )
    assert [each["id"] for each in made.workload] == ["1", "1x2"]


def test_dependencies_name_submissions_and_leave_out_jobs_that_are_not_there():
    text = "sbatch -d afterok:1:77,after:5_3+2,singleton run.sh"
    made, counts = scenario(job(1), job("5_3"), job(9, submit=5, submit_line=text))
    assert made.workload[-1]["options"][0] == "--dependency=afterok:{1},after:{5}_3+2,singleton"
    assert sum(counts.notes.values()) == 1


def test_a_begin_time_counts_from_the_submission():
    record = job(1, submit_line="sbatch --begin=16:00 x", start=3700, end=3800)
    record.eligible = T + 3600
    assert options(record)[0] == "--begin=now+3600"
    held = job(1, submit_line="sbatch -H x", start=60, end=70)
    held.eligible = T + 50
    assert options(held)[0] == "--begin=now+50"


def test_jobs_that_run_when_it_begins_go_on_on_their_nodes_before_those_that_wait():
    running = job(
        1, start=100, end=4000, limit_min=100, node_list="n[3-4]", nodes=2, min_nodes=2, req_cpus=4
    )
    waiting = job(2, start=2000, end=2500)
    over = job(3, start=100, end=900)
    made, counts = scenario(
        waiting, over, running, job(4, submit=1500, start=1600, end=1700), since=T + 1000
    )
    assert [(each["id"], each["at"]) for each in made.workload] == [("1", 0), ("2", 0), ("4", 500)]
    first = made.workload[0]
    assert first["run"] == 3000
    assert {"--time=85", "--nodelist=n[3-4]", "--nodes=2"} <= set(first["options"])
    assert counts.left_out["ended before --from"] == 1


def test_what_is_submitted_later_than_until_is_left_out():
    made, counts = scenario(job(1), job(2, submit=500, start=600, end=700), until=T + 100)
    assert len(made.workload) == 1
    assert counts.left_out["submitted after --until"] == 1


def test_names_are_changed_as_the_user_says():
    mapped = Mapped(
        {
            "partition": {"old": "new"},
            "account": {"x": "y"},
            "node": {"a1": "b1"},
            "feature": {"f": "g"},
            "gres": {"k80": "a100"},
            "qos": {"q": ""},
        }
    )
    text = "sbatch -w a[1-2] -C f&h --gres=gpu:k80:1 run.sh"
    record = job(1, partition="old", account="x", qos="q", submit_line=text)
    assert set(options(record, mapped=mapped)) == {
        *(
            "--partition=new",
            "--account=y",
            "--nodelist=b1,a2",
            "--constraint=g&h",
            "--gres=gpu:a100:1",
        ),
    }
    assert "--partition=p" in options(record, mapped=Mapped(partition="p"))


def test_what_a_job_got_is_not_what_it_asked_for_where_its_line_says_that():
    text = "sbatch -n4 --exclusive --wrap true"
    record = job(1, nodes=3, cpus=24, submit_line=text)
    assert options(record) == ["--ntasks=4", "--exclusive"]


@pytest.mark.parametrize(
    ("got", "option"), [(4, "--gpus=4"), (8, "--gres=gpu:4")], ids=["of the job", "of each node"]
)
def test_gpus_on_more_nodes_than_asked_for_tell_whether_they_were_asked_for_of_each(got, option):
    record = job(
        1,
        nodes=2,
        min_nodes=1,
        req_cpus=4,
        cpus=4,
        req_tres="cpu=4,gres/gpu=4,mem=1G,node=1",
        alloc_tres=f"cpu=4,gres/gpu={got},mem=2G,node=2",
    )
    assert option in options(record)


def test_licences_of_scripts_are_told_by_their_resources_alone():
    record = job(1, req_tres="billing=1,cpu=1,license/matlab=3,license/x=0,node=1")
    assert "--licenses=matlab:3" in options(record)
    record = job(1, req_tres="cpu=1,license/matlab=3,node=1", submit_line="sbatch -L matlab:2 x")
    assert [word for word in options(record) if "license" in word] == ["--licenses=matlab:2"]


def test_a_reservation_is_made_of_what_its_jobs_tell():
    made, _ = scenario(
        job(1, reservation="maint", node_list="n[1-2]", limit_min=2),
        job(2, submit=5, reservation="maint", node_list="n3", user="bob", end=100, limit_min=3),
    )
    (event,) = made.events
    assert event["cmd"] == [
        *(
            "scontrol",
            "create",
            "reservation",
            "reservationname=maint",
            "starttime=@10",
            "endtime=@370",
            "nodes=n[1-3]",
            "users=ada,bob",
        ),
        "flags=ignore_jobs,overlap",
    ]


def test_a_reservation_is_for_who_has_no_name_in_the_history():
    made, _ = scenario(job(1, reservation="maint", user="", node_list="n1"))
    (event,) = made.events
    assert "users=unknown" in event["cmd"]


def test_a_reservation_in_which_no_job_ran_is_left_out():
    found = line(job(1, "CANCELLED", reservation="maint", start=None, node_list=""))
    assert not any(option.startswith("--reservation") for option in found["options"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "sbatch -n4 -p x --wrap=sleep 10 --mem=5G",
            [{"ntasks": "4", "partition": "x", "wrap": "sleep", "mem": "5G"}],
        ),
        ("/usr/bin/srun --pty -n 2 bash", [{"ntasks": "2"}]),
        ("salloc -N 3 -t 5 make", [{"nodes": "3", "time": "5"}]),
        ("sbatch -n 1 : -n 2 x", [{"ntasks": "1"}, {"ntasks": "2"}]),
        (
            "sbatch -n4 -N2 --wrap srun -n1 --mem=1 x",
            [{"ntasks": "4", "nodes": "2", "wrap": "srun"}],
        ),
        ("sbatch -n4 --wrap kill -9 $$", [{"ntasks": "4", "wrap": "kill"}]),
        ("sbatch -n4 --wrap=a -n9 --ntasks=8 -p x", [{"ntasks": "4", "wrap": "a"}]),
        ("sbatch -n4 --wrap a b : -n2 c", [{"ntasks": "4", "wrap": "a"}, {"ntasks": "2"}]),
        ("python x.py", None),
        ("sbatch --no-such-option x", None),
        ("", None),
    ],
)
def test_submission_lines_are_read_as_the_command_reads_them(text, expected):
    assert read_submit_line(text) == expected


@pytest.mark.parametrize(
    ("fields", "run"),
    [
        ({"elapsed": 45}, 45),
        ({"elapsed": 0}, 3600),
        ({}, 3600),
        ({"limit_min": 7}, 420),
        ({"state": "FAILED", "elapsed": 45}, 45),
    ],
)
def test_an_end_before_the_start_is_counted_and_the_run_is_what_else_is_known(fields, run):
    state = fields.pop("state", "COMPLETED")
    made, counts = scenario(job(1, state, start=100, end=40, **fields), job(2, start=100, end=100))
    assert [each["run"] for each in made.workload] == [run, 0]
    assert counts.notes["an end before the start, which is not used"] == 1


def test_who_was_cancelled_before_his_expected_start_does_not_end_before_it():
    made, counts = scenario(job(1, "CANCELLED", start=500, end=40, node_list=""))
    assert [event["at"] for event in made.events] == [40.5]
    assert not counts.notes


def test_jobs_that_tell_neither_end_nor_elapsed_run_as_long_as_they_may():
    made, counts = scenario(job(1, end=None, limit_min=5), job(2, "CANCELLED", end=None))
    assert [each["run"] for each in made.workload] == [300, 3600]
    assert counts.notes["no time to tell how long it ran: for as long as it may, or an hour"] == 2


DAY = 86_400


def submitted_daily(first, last):
    """One job a quarter of a day, each of which runs for an hour, from one day to another."""
    return [
        job(1000 + at // 3600, submit=at, start=at + 60, end=at + 3660)
        for at in range(first * DAY, last * DAY, DAY // 4)
    ]


def test_a_dump_of_a_window_in_which_earlier_jobs_ran_gets_the_advice_to_begin_with_it():
    earlier = [
        job(1, submit=0, start=60, end=12 * DAY),
        job(2, submit=5 * DAY, start=6 * DAY, end=11 * DAY),
    ]
    made, _ = scenario(*earlier, *submitted_daily(10, 40))
    begins = T + 10 * DAY + 3660 - 1
    assert made.advice.startswith("3 jobs began before 20")
    assert (
        f"--from {time.strftime('%Y-%m-%dT%H:%M:%S', time.localtime(begins))} starts them "
        "as running" in made.advice
    )
    again, counts = scenario(*earlier, *submitted_daily(10, 40), since=begins)
    assert not again.advice
    assert len(again.workload) == len(made.workload)
    assert (
        counts.notes[
            "running when the scenario begins: to start then on its nodes for the rest of its time"
        ]
        == 3
    )


@pytest.mark.parametrize(
    "records",
    [
        submitted_daily(0, 30),
        [
            job(1 + at // 3600, submit=at, start=at, end=at + 8 * DAY)
            for at in range(0, 30 * DAY, DAY // 4)
        ],  # whole, of long jobs
        [job(1, submit=0, start=60, end=3660), *submitted_daily(20, 40)],  # whole, with a pause
        [job(1, submit=0, start=60, end=None, state="RUNNING")],
        [job(1, "CANCELLED", submit=0, start=None, end=90, node_list="")],
    ],
)
def test_a_history_that_is_whole_gets_no_such_advice(records):
    assert not scenario(*records)[0].advice


# --- what really happened -------------------------------------------------------------------------


def past(*records, **more):
    made, _ = scenario(*records, **more)
    return [dict(zip(PAST_FIELDS, row, strict=True)) for row in made.past]


def test_what_really_happened_is_kept_in_times_of_the_scenario():
    (row,) = past(
        job(7, start=40, end=90, cpus=8, nodes=2, node_list="n[1-2]", limit_min=3, account="phys",
            partition="gpu", qos="high", name="sim", exit_code=1),
        mapped=Mapped({"account": {"phys": "physics"}}, "all"),
    )  # fmt: skip
    assert row == {
        "job": 1, "submit": 0, "start": 40, "end": 90, "state": "COMPLETED", "cpus": 8,
        "nodes": "n[1-2]", "req_time": 180, "id": "7", "name": "sim", "user": "ada",
        "account": "physics", "partition": "all", "qos": "high", "eligible": 0, "node_count": 2,
        "exit_code": "1:0", "restarts": 0,
    }  # fmt: skip


def test_tasks_and_components_have_the_ids_that_they_have_in_a_replay():
    rows = past(
        job("3_1", start=10), job("3_4", start=20), job("3_[5-6]", "PENDING", start=None, end=None),
        job("8+0", start=30), job("8+1", start=30),
    )  # fmt: skip
    assert [(row["id"], row["start"]) for row in rows] == [
        ("3_1", 10), ("3_4", 20), ("3_5", None), ("3_6", None), ("8", 30), ("8+1", 30),
    ]  # fmt: skip


def test_who_was_cancelled_while_it_waited_never_started():
    (row,) = past(job(1, "CANCELLED", start=5, end=5, node_list=""))
    assert (row["state"], row["start"], row["end"], row["nodes"]) == ("CANCELLED", None, None, "")


def test_of_a_job_that_was_requeued_the_last_run_counts():
    (row,) = past(job(1, "REQUEUED", start=5, end=8), job(1, submit=10, start=20, end=30))
    assert (row["submit"], row["start"], row["restarts"]) == (10, 20, 1)


def test_who_ran_when_the_scenario_begins_is_submitted_and_starts_then():
    rows = past(job(1, start=10, end=900), job(2, submit=20, start=300, end=400), since=T + 100)
    assert [(row["submit"], row["start"], row["end"]) for row in rows] == [
        (0, 0, 800),
        (0, 200, 300),
    ]


def test_a_limit_that_a_deadline_made_is_not_asked_for():
    record = job(1, limit_min=9, submit_line="sbatch --deadline=now+10minutes x")
    assert not any(option.startswith("--time") for option in options(record))
    record = job(1, limit_min=9, submit_line="sbatch -t9 --deadline=now+10minutes x")
    assert "--time=9" in options(record)


def test_tasks_that_have_records_of_their_own_are_not_those_that_still_wait():
    made, _ = scenario(
        job("5_1", "FAILED", exit_code=3),
        job("5_[1-3]", "CANCELLED", start=None, end=90),
    )
    (found,) = made.workload
    assert found["run"] == {"1": 60, "2": 3600, "3": 3600}
    assert [event["cmd"] for event in made.events] == [["scancel", "{5}_[2-3]"]]


@pytest.mark.parametrize(
    ("typed", "fields", "there", "absent"),
    [
        ("--prefer=a", {"constraints": "a"}, "--prefer=a", "--constraint"),
        ("--prefer=a -C b", {"constraints": "b"}, "--constraint=b", "--constraint=a"),
        ("-n1", {"min_nodes": 2, "nodes": 2, "req_cpus": 1, "cpus": 4}, "--ntasks=1", "--nodes"),
        ("-p a,b", {"partition": "b", "limit_min": 600}, "--partition=a,b", "--time"),
        ("-p a,b -t 9", {"partition": "b", "limit_min": 9}, "--time=9", "--time=600"),
    ],
)
def test_what_slurm_made_of_a_line_is_not_asked_for(typed, fields, there, absent):
    """A wish is among the constraints, a partition's least nodes are among the job's, and its
    limit is that of the partition in which it ran.
    """
    found = options(job(1, submit_line=f"sbatch {typed} run.sh", **fields))
    assert there in found
    assert not [option for option in found if option.startswith(absent)]
