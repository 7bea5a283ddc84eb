"""Addresses that cannot be listened on are named with the reason."""

import pytest

from understudy.protocol import addresses


def test_a_unix_path_that_is_too_long_is_named_with_the_reason(tmp_path):
    with pytest.raises(OSError, match=r"cannot listen on unix:.*: AF_UNIX path too long"):
        addresses.listen(f"unix:{tmp_path}/{'x' * 120}")


def test_a_busy_address_is_named_with_the_reason():
    with (
        addresses.listen("tcp:127.0.0.1:0") as first,
        pytest.raises(OSError, match=r"cannot listen on tcp:127.0.0.1:\d+: Address already in use"),
    ):
        addresses.listen(f"tcp:127.0.0.1:{first.getsockname()[1]}")


@pytest.mark.parametrize(
    "address", ["", "tcp:host", "tcp::6817", "tcp:host:port", "udp:host:1", "unix:"]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ValueError, match="not an address"):
        addresses.parse(address)


@pytest.mark.parametrize(
    ("peer", "shown"),
    [(("127.0.0.1", 50022), "127.0.0.1:50022"), ("", "a local process"), (b"", "a local process")],
)
def test_the_other_end_is_shown_for_the_log(peer, shown):
    assert addresses.shown(peer) == shown
