"""What accounting has told is saved, and enforced by a controller that comes back without it."""

from __future__ import annotations

import msgspec
import pytest
from controller_harness import Harness

from understudy.controller.accounting import known
from understudy.controller.accounting.known import SAVED_AS
from understudy.controller.saved import documents
from understudy.model.associations import AccountingUser, Association, Tres
from understudy.model.qos import Qos
from understudy.protocol.messages import Associations

TOLD = Associations(
    "conform",
    7,
    [Association(1, "conform", "root", "", ""), Association(2, "conform", "a1", "ann", "")],
    [Qos(1, "normal"), Qos(2, "short", max_jobs_per_user=1)],
    [AccountingUser("ann")],
    [],
    [Tres(1, "cpu"), Tres(1001, "gres/gpu")],
    licenses={"matlab@flex": 3},
)


def test_a_controller_that_comes_back_knows_what_the_earlier_one_was_told() -> None:
    earlier, later = Harness().core, Harness().core
    known.take(earlier, TOLD)
    record = documents.encode(earlier, SAVED_AS)
    assert record is not None
    documents.decode(later, SAVED_AS, record)
    assert later.associations.number == 7
    assert later.associations.has_users
    assert later.associations.associations == earlier.associations.associations
    assert later.associations.qos == earlier.associations.qos
    assert later.associations.users == earlier.associations.users
    assert later.associations.tres == {"cpu": 1, "gres/gpu": 1001}
    assert later.remote_licenses == {"matlab@flex": 3}


@pytest.mark.parametrize(("account", "counts"), [("root", False), ("a1", True)])
def test_root_s_own_association_alone_makes_nobody_known(account: str, counts: bool) -> None:
    core = Harness().core
    own = Association(2, "conform", account, "root", "")
    known.take(core, msgspec.structs.replace(TOLD, associations=[*TOLD.associations[:1], own]))
    assert core.associations.has_users is counts
