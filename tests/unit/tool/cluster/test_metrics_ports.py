"""What `--metrics [HOST:]PORT` means on one host and on many.

Covers: tool/cluster/metrics_ports.
"""

import socket

import pytest

from understudy.tool.cluster.metrics_ports import on_many_hosts, on_one_host, parse
from understudy.tool.cluster.run_dir import LaunchError

DAEMONS = ("controller", "noded0", "noded1")


def test_the_host_is_the_local_one_unless_another_is_named():
    assert parse("9341") == ("127.0.0.1", 9341)
    assert parse("0.0.0.0:9341") == ("0.0.0.0", 9341)


@pytest.mark.parametrize("text", ["metrics", "host:", ":9341", "65536", "-1", "1.5"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(LaunchError, match="expected PORT or HOST:PORT"):
        parse(text)


def test_nobody_who_did_not_ask_has_figures():
    assert on_one_host("", DAEMONS) == {} == on_many_hosts("", DAEMONS, [])


def test_zero_is_a_free_port_of_its_own_for_each_daemon():
    found = on_one_host("0", DAEMONS)
    assert list(found) == list(DAEMONS)
    ports = [parse(address)[1] for address in found.values()]
    assert len(set(ports)) == 3
    assert 0 not in ports


def test_a_port_that_is_taken_is_refused_by_the_name_of_its_daemon():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        with pytest.raises(LaunchError, match=f"{port} for controller: Address already in use"):
            on_one_host(str(port), DAEMONS)


def test_there_must_be_a_port_for_each_daemon():
    with pytest.raises(LaunchError, match="3 daemons need a port each"):
        on_one_host("65534", DAEMONS)


def test_hosts_of_their_own_have_the_same_port():
    found = on_many_hosts("0.0.0.0:9341", DAEMONS, ["agent", "clock"])
    beside = {"agent": "0.0.0.0:9342", "clock": "0.0.0.0:9343"}
    assert found == dict.fromkeys(DAEMONS, "0.0.0.0:9341") | beside
    with pytest.raises(LaunchError, match="2 daemons need a port each"):
        on_many_hosts("65535", DAEMONS, ["agent"])
    with pytest.raises(LaunchError, match="need a port"):
        on_many_hosts("0", DAEMONS, [])
