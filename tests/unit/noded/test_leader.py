"""Node daemons follow the controller that leads, and take no orders of one that has led."""

import logging
from types import SimpleNamespace

import pytest

from understudy.noded.leader import NOT_LEADING, FollowedLeader
from understudy.protocol.messages import Lead, Ok, Ping, Reconfigure

CONTROLLERS = {"controller": "unix:/c", "backup1": "unix:/b"}


class Links:
    def __init__(self):
        self.preferred = []

    def prefer(self, name, address):
        self.preferred.append((name, address))


def request(name, message, *, is_daemon=True):
    return SimpleNamespace(message=message, sender=SimpleNamespace(name=name, is_daemon=is_daemon))


@pytest.fixture
def links():
    return Links()


@pytest.fixture
def leader(links):
    return FollowedLeader(CONTROLLERS, links, logging.getLogger("test"))


def test_before_anybody_has_said_that_he_leads_all_are_heard(leader):
    assert not leader.refuses(request("controller", Reconfigure()))


def test_who_says_that_he_leads_is_followed_and_the_other_refused(leader, links):
    assert leader.follow(Lead(2), "backup1") == Ok()
    assert links.preferred == [("controller", "unix:/b")]
    assert leader.refuses(request("controller", Reconfigure()))
    assert not leader.refuses(request("controller", Ping()))
    assert not leader.refuses(request("backup1", Reconfigure()))
    assert not leader.refuses(request("noded1", Reconfigure()))
    assert not leader.refuses(request("controller", Reconfigure(), is_daemon=False))


def test_who_has_led_under_a_lower_number_is_not_followed_again(leader, links):
    leader.follow(Lead(3), "controller")
    assert leader.follow(Lead(2), "backup1") == NOT_LEADING
    assert leader.follow(Lead(9), "stranger") == NOT_LEADING
    assert not leader.refuses(request("controller", Reconfigure()))
    assert leader.follow(Lead(4), "backup1") == Ok()
    assert leader.refuses(request("controller", Reconfigure()))
