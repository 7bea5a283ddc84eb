"""Whatever a program had around it: in the surroundings of a cluster it speaks to that one."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.model.environment import VARIABLES
from understudy.tool.cluster.surroundings import surroundings

NAMES = st.sampled_from(
    [
        *VARIABLES,
        *("SLURM_CLUSTERS", "SBATCH_CLUSTERS", "SBATCH_PARTITION", "SQUEUE_FORMAT"),
        *("SLURM_JOB_NODELIST_HET_GROUP_1", "UNDERSTUDY_REGISTRY", "LANG"),
    ]
)
PATHS = st.lists(st.sampled_from(["/usr/bin", "/bin", "", "/opt/slurm/bin", "."]), max_size=4)
TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=6)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("run dir")


@given(st.dictionaries(NAMES, TEXT), PATHS)
def test_it_speaks_to_this_cluster_and_keeps_what_has_nothing_to_do_with_one(
    run_dir, environ, path
):
    environ = {**environ, "PATH": ":".join(path)}
    found = surroundings(run_dir, environ)
    assert found["PATH"] == ":".join([f"{run_dir}/bin", *environ["PATH"].split(":")])
    assert Path(found["SLURM_CONF"]) == run_dir / "slurm.conf"
    assert not {"SLURM_CLUSTERS", "SBATCH_CLUSTERS", "SLURM_JOB_ID", "SLURM_NTASKS"} & found.keys()
    for name in environ.keys() - {"PATH", "SLURM_CONF"}:
        is_option = not name.startswith(("SLURM", "SBATCH_CLUSTERS"))
        assert (found.get(name) == environ[name]) or not is_option
    assert found.keys() <= environ.keys() | {"PATH", "SLURM_CONF"}
    assert surroundings(run_dir, found) == found
