"""The environment of a batch script."""

import pytest

from understudy.noded.environment import batch_environment, limits_of, umask_of, wants_login
from understudy.protocol.messages import JobSpec, LaunchBatch


def environment(told=(), submitted=(), **spec):
    launch = LaunchBatch(
        1,
        0,
        "n[1-2]",
        100,
        b"",
        1000,
        100,
        None,
        "",
        JobSpec(environment=list(submitted), **spec),
        list(told),
    )
    return batch_environment(
        launch,
        node="n1",
        conf="/c/slurm.conf",
        controller="127.0.0.1:6817",
    )


def test_a_script_learns_about_its_job_and_node():
    found = environment(["SLURM_JOB_CPUS_PER_NODE=4(x2)", "SLURM_NTASKS=8"], work_dir="/w")
    assert found["SLURM_CPUS_ON_NODE"] == "4"
    assert found["SLURMD_NODENAME"] == found["HOSTNAME"] == "n1"
    assert (
        found["SLURM_PROCID"],
        found["SLURM_NODEID"],
        found["SLURM_LOCALID"],
        found["SLURM_GTIDS"],
    ) == ("0", "0", "0", "0")
    assert (
        found["ENVIRONMENT"],
        found["SLURM_CONF"],
        found["SLURM_SUBMIT_DIR"],
        found["SLURM_NTASKS"],
    ) == ("BATCH", "/c/slurm.conf", "/w", "8")


def test_the_submitters_variables_are_kept_unless_they_speak_of_another_job():
    found = environment(
        ["SLURM_JOB_ID=1", "SLURM_NTASKS=2"],
        [
            "A=b=c",
            "TMPDIR=/scratch",
            "SLURM_JOB_ID=99",
            "SLURM_NTASKS=64",
            "SLURM_SUBMIT_DIR=/s",
            "junk",
        ],
        work_dir="/w",
    )
    assert (found["A"], found["TMPDIR"], found["SLURM_SUBMIT_DIR"]) == ("b=c", "/scratch", "/s")
    assert (found["SLURM_JOB_ID"], found["SLURM_NTASKS"]) == ("1", "2")
    assert "junk" not in found


def test_only_a_restarted_job_knows_its_restart_count():
    assert "SLURM_RESTART_COUNT" not in environment(submitted=["SLURM_RESTART_COUNT=3"])
    told = environment(["SLURM_RESTART_COUNT=2"], ["SLURM_RESTART_COUNT=3"])
    assert told["SLURM_RESTART_COUNT"] == "2"


def test_variables_for_options_that_were_not_given_are_absent():
    found = environment()
    assert not {
        "SLURM_NTASKS",
        "SLURM_CPUS_PER_TASK",
        "SLURM_MEM_PER_NODE",
        "SLURM_DISTRIBUTION",
        "SLURM_JOB_ACCOUNT",
    } & set(found)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [([], 0o022), (["SLURM_UMASK=0077"], 0o077), (["SLURM_UMASK=x"], 0o022)],
)
def test_the_submitters_umask_is_taken_from_what_sbatch_hands_over(entries, expected):
    launch = LaunchBatch(1, 0, "n1", 100, b"", 1, 1, spec=JobSpec(environment=entries))
    assert umask_of(launch) == expected
    assert "SLURM_UMASK" not in environment(submitted=entries)


def launch(*entries, **fields):
    return LaunchBatch(
        1, 0, "n1", 100, b"", 1, 1, spec=JobSpec(environment=list(entries)), **fields
    )


def test_a_login_is_asked_for_by_what_sbatch_hands_over():
    assert wants_login(launch("SLURM_GET_USER_ENV=1"))
    assert not wants_login(launch("A=1"))


def test_nothing_is_made_up_that_the_submitter_did_not_have():
    assert not {"HOME", "PATH", "SHELL", "USER"} & environment().keys()
    assert environment()["TMPDIR"] == "/tmp"


def test_the_controller_can_be_found_without_a_file():
    assert (
        environment(["SLURM_CLUSTER_NAME=c"])["SLURM_WORKING_CLUSTER"]
        == "c:127.0.0.1:6817:9728:109"
    )


def test_limits_go_on_where_the_submitter_or_the_site_wants_it():
    entries = [
        "SLURM_RLIMIT_CORE=0",
        "SLURM_RLIMIT_NOFILE=U1024",
        "SLURM_RLIMIT_STACK=-1",
        "SLURM_RLIMIT_NONE=U",
        "SLURM_RLIMIT_CPU=x",
    ]
    assert limits_of(launch(*entries), frozenset(("CORE", "STACK"))) == {
        "CORE": 0,
        "NOFILE": 1024,
        "STACK": -1,
    }
    assert limits_of(launch(*entries, memory_mb=2), frozenset()) == {"NOFILE": 1024, "RSS": 2 << 20}
    assert not [name for name in environment(submitted=entries) if name.startswith("SLURM_RLIMIT")]
