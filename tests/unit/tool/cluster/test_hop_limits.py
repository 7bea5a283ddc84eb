"""What `--hops sockets` does not go with."""

import resource

import pytest

from understudy.model.cluster import FLAT, Hops
from understudy.tool.cluster.hop_limits import check_hops
from understudy.tool.cluster.run_dir import LaunchError

NODES = [f"n{i}" for i in range(1000)]


def check(hops=None, nodes=NODES, processes=2, time="real", executor="emulated"):
    check_hops(hops or Hops(), nodes, processes, time=time, executor=executor)


@pytest.fixture
def limit(monkeypatch):
    def set_limit(number):
        monkeypatch.setattr(resource, "getrlimit", lambda _: (number, number))

    set_limit(20_000)
    return set_limit


@pytest.mark.parametrize("time", ["real", "scaled"])
@pytest.mark.usefixtures("limit")
def test_real_and_scaled_time_do(time):
    check(time=time)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"time": "virtual"}, "--hops sockets needs --time real or scaled:N"),
        ({"executor": "real"}, "--hops sockets is for emulated jobs"),
        ({"processes": 0}, "--hops sockets needs node daemons"),
        ({"nodes": ["n1", "noded1"]}, "node noded1 goes by the name of a node daemon"),
    ],
)
@pytest.mark.usefixtures("limit")
def test_what_cannot_be_is_refused_with_the_reason(options, text):
    with pytest.raises(LaunchError, match=text):
        check(**options)


def test_more_processes_are_asked_for_where_descriptors_do_not_suffice(limit):
    limit(628)
    with pytest.raises(LaunchError, match=r"have 628 .*use --hop-processes 4"):
        check()
    check(processes=4)


def test_a_flat_tree_needs_a_descriptor_a_node_at_the_controller(limit):
    limit(1127)
    check(processes=4)
    with pytest.raises(LaunchError, match="the controller needs 1128 descriptors"):
        check(Hops(width=FLAT), processes=4)
