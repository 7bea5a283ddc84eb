"""MPI by srun and by mpirun, with Debian's Open MPI; what is said otherwise is what Slurm 22.05.8
said.

Covers: noded/pmix_library, noded/task_pmix.
"""

import ctypes
import re
import shutil
import sys
from pathlib import Path

import mpi_ring
import pytest
from real_cluster import RealCluster

from understudy.noded.pmix_library import LibraryError, load

RING = Path(mpi_ring.__file__)
# by its path it would take an srun that lies beside it
MPIRUN = next(filter(shutil.which, ("mpirun.openmpi", "mpirun")), None)


def has_open_mpi() -> bool:
    try:
        ctypes.CDLL(mpi_ring.LIBRARY)
        load()
    except (OSError, LibraryError):
        return False
    return True


needs_open_mpi = pytest.mark.skipif(
    not has_open_mpi() or not MPIRUN,
    reason="Open MPI 4 with its libpmix is not installed (Debian: openmpi-bin)",
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = RealCluster(tmp_path_factory.mktemp("c"), more="MpiDefault=pmix", noded=2)
    cluster.environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    cluster.up()
    yield cluster
    cluster.down()


def lines(nodes: str) -> list[str]:
    """What the tasks of the ring print, sorted; `nodes`: where each is."""
    size = len(nodes.split())
    return [
        f"{rank} of {size} on {node}: {rank + 1 if rank else size} {sum(range(size))}"
        for rank, node in enumerate(nodes.split())
    ]


@needs_open_mpi
def test_tasks_of_nodes_of_one_daemon_and_of_two_find_each_other(cluster):
    done = cluster.run(
        "srun", "--mpi=pmix_v4", "-w", "n[1-3]", "--ntasks-per-node=2", sys.executable, RING
    )
    assert (done.returncode, sorted(done.stdout.splitlines()), done.stderr) == (
        0,
        lines("n1 n1 n2 n2 n3 n3"),
        "",
    )


@needs_open_mpi
def test_nothing_is_left_of_what_tasks_shared(cluster):
    done = cluster.run(
        "srun",
        "--mpi=pmix",
        "-N2",
        "printenv",
        "PMIX_SERVER_TMPDIR",
        "OMPI_MCA_btl_vader_backing_directory",
    )
    folders = done.stdout.split()
    assert len(set(folders)) == 4
    assert not any(Path(folder).exists() for folder in folders)


@needs_open_mpi
def test_mpi_default_holds_where_srun_does_not_say(cluster):
    done = cluster.run("srun", "-N1", "-n2", sys.executable, RING)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, lines("n1 n1"))
    assert (
        cluster.run("srun", "printenv", "SLURM_MPI_TYPE", "SLURM_PMIX_MAPPING_SERV").stdout
        == "pmix\n(vector,(0,1,1))\n"
    )
    assert (
        cluster.run("srun", "--mpi=none", "sh", "-c", "env | grep -E '^PMI|MPI_TYPE'").stdout == ""
    )


@needs_open_mpi
def test_who_aborts_ends_the_step_on_all_nodes_and_says_how_srun_ends(cluster):
    done = cluster.run(
        "srun", "--mpi=pmix", "-w", "n[2-3]", "--ntasks-per-node=2", sys.executable, RING, "abort"
    )
    assert done.returncode == 3
    assert "MPI_ABORT was invoked on rank 1" in done.stderr
    assert "*** STEP " in done.stderr
    assert "srun: Job step aborted: Waiting up to 3 seconds for job step to finish." in done.stderr
    assert "srun: error: n3: tasks 2-3: Killed" in done.stderr


@needs_open_mpi
def test_who_leaves_without_a_good_bye_ends_the_step(cluster):
    done = cluster.run(
        "srun", "--mpi=pmix", "-w", "n[2-3]", "--ntasks-per-node=2", sys.executable, RING, "leave"
    )
    assert done.returncode == 137
    assert (
        "slurmstepd-n2: error:  mpi/pmix_v4: _errhandler: n2 [0]: pmixp_client_v2.c:211: "
        "Error handler invoked: status = -61, source" in done.stderr
    )
    assert "srun: error: n3: tasks 2-3: Killed" in done.stderr


@needs_open_mpi
def test_mpirun_starts_its_daemons_by_srun(cluster):
    done = cluster.run(
        "salloc", "-w", "n[2-3]", "--ntasks-per-node=2", MPIRUN, sys.executable, RING
    )
    assert done.returncode == 0, done.stderr
    # mpirun does not keep the lines of several tasks apart.
    assert sorted(re.findall(r"\d of 4 on n\d: \d 6", done.stdout)) == lines("n2 n2 n3 n3")


def test_who_aborts_by_pmi_1_ends_the_step_on_all_nodes(cluster):
    program = (
        r"[ $SLURM_PROCID = 1 ] || exec sleep 60; printf 'cmd=abort exitcode=3\n"
        r"' >&$PMI_FD; exec sleep 60"
    )
    done = cluster.run("srun", "--mpi=pmi2", "-w", "n[2-3]", "bash", "-c", program)
    assert done.returncode == 137
    assert "srun: error: n2: task 0: Killed" in done.stderr
    assert "srun: error: n3: task 1: Killed" in done.stderr


def test_the_types_are_listed(cluster):
    done = cluster.run("srun", "--mpi=list")
    assert (
        done.stdout == "MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\n"
        "specific pmix plugin versions available: pmix_v4\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_type_that_there_is_not_is_refused(cluster):
    done = cluster.run("srun", "true", SLURM_MPI_TYPE="wrong")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "".join(
        f"srun: error: {line}\n"
        for line in (
            "Couldn't find the specified plugin name for mpi/wrong looking at all files",
            "cannot find mpi plugin for mpi/wrong",
            "MPI: Cannot create context for mpi/wrong",
            "MPI: Unable to load any plugin",
            "Invalid MPI type 'wrong', --mpi=list for acceptable types",
        )
    )
