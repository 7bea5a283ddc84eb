"""What options on hops come to."""

import pytest

from understudy.model.cluster import FLAT, Hops
from understudy.tool.cluster.run_dir import LaunchError
from understudy.tool.understudy.hop_options import Transport, Way, process_count, read_hops

NOTHING = (None, None, None, None, None, None)


def test_hops_are_taken_in_memory_unless_asked_for_and_then_as_asked_for():
    assert read_hops(Way.MEMORY, *NOTHING) is None
    assert read_hops(Way.SOCKETS, *NOTHING) == Hops()
    assert read_hops(Way.SOCKETS, "8", Transport.TCP, 2.5, 0.01, 0.1, 7) == Hops(
        width=8, latency_ms=2.5, loss=0.01, deaths=0.1, seed=7, tcp=True
    )
    assert read_hops(Way.SOCKETS, "flat", *NOTHING[1:]) == Hops(width=FLAT)


@pytest.mark.parametrize(
    ("place", "value", "option"),
    [
        (0, "8", "--hop-width"),
        (1, Transport.UNIX, "--hop-transport"),
        (2, 0.0, "--link-latency-ms"),
        (3, 0.0, "--link-loss"),
        (4, 0.0, "--head-deaths"),
        (5, 0, "--hop-seed"),
    ],
)
def test_what_is_for_sockets_is_refused_in_memory(place, value, option):
    given = [*NOTHING[:place], value, *NOTHING[place + 1 :]]
    with pytest.raises(LaunchError, match=f"{option} goes with --hops sockets"):
        read_hops(Way.MEMORY, *given)


@pytest.mark.parametrize("width", ["0", "wide", "-1", ""])
def test_a_width_is_a_number_or_flat(width):
    with pytest.raises(LaunchError, match=f"--hop-width {width}: expected a number from 1"):
        read_hops(Way.SOCKETS, width, *NOTHING[1:])


def test_nodes_share_as_many_processes_as_asked_for():
    assert process_count(Way.SOCKETS, 1, 3, 64) == 3
    assert process_count(Way.SOCKETS, 4, None, 64) == 4
    assert process_count(Way.SOCKETS, 1, None, 1) == 1
    assert process_count(Way.MEMORY, 5, None, 64) == 5
    for way in Way:
        with pytest.raises(LaunchError, match="--hop-processes"):
            process_count(way, 4, 3, 64)
