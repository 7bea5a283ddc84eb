"""The snapshot of accounting that the controller asks.

Covers: model/qos.
"""

import pytest

from understudy.model.associations import AccountingUser, Association, AssociationState
from understudy.model.qos import Qos


@pytest.fixture
def state():
    return AssociationState(
        "c",
        4,
        associations=[
            Association(1, "c", "root", qos=("normal",)),
            Association(
                2,
                "c",
                "physics",
                parent_id=1,
                max_jobs=5,
                max_tres_per_job={"cpu": 9, "node": 3},
                grp_jobs=7,
                default_qos="normal",
            ),
            Association(3, "c", "optics", parent_id=2, delta_qos=("+fast",), position=-1),
            Association(
                4,
                "c",
                "optics",
                "anna",
                parent_id=3,
                is_default=True,
                max_tres_per_job={"cpu": 4},
                max_jobs=2,
            ),
            Association(5, "c", "optics", "anna", "debug", parent_id=3, qos=("fast",)),
        ],
        qos=[Qos(1, "normal"), Qos(2, "fast", flags=("DenyOnLimit",))],
        users=[AccountingUser("anna", coordinates=("physics",))],
    )


def test_an_association_for_the_partition_goes_before_that_for_all(state):
    assert state.find("optics", "anna", "debug").id == 5
    assert state.find("optics", "anna", "batch").id == 4
    assert state.find("physics", "anna") is None


def test_limits_of_users_and_jobs_are_inherited_by_resource(state):
    effective = state.effective(state.find("optics", "anna"))
    assert effective.max_jobs == 2
    assert effective.max_tres_per_job == {"cpu": 4, "node": 3}
    assert state.effective(state.account("optics")).max_jobs == 5


def test_limits_of_groups_are_not_inherited_but_found_along_the_chain(state):
    anna = state.find("optics", "anna")
    assert state.effective(anna).grp_jobs is None
    assert [each.grp_jobs for each in state.chain(anna)] == [None, None, 7, None]


def test_qualities_of_service_are_inherited_with_changes(state):
    assert state.allowed_qos(state.find("optics", "anna")) == ("normal", "fast")
    assert state.allowed_qos(state.find("optics", "anna", "debug")) == ("fast",)
    assert state.default_qos(state.find("optics", "anna")) == "normal"


def test_the_default_account_is_the_one_that_is_marked(state):
    assert state.default_account("anna") == "optics"
    assert state.default_account("otto") is None


def test_a_coordinator_is_one_of_all_accounts_below(state):
    assert state.coordinates("anna", "optics")
    assert not state.coordinates("anna", "root")


def test_changes_are_taken_over_with_everything_that_depends_on_them(state):
    state.effective(state.find("optics", "anna"))
    state.apply(
        5,
        associations=[Association(2, "c", "physics", parent_id=1, max_tres_per_job={"node": 1})],
        removed_associations=[5],
        removed_qos=["fast"],
    )
    assert state.number == 5
    assert state.effective(state.find("optics", "anna", "debug")).max_tres_per_job == {
        "cpu": 4,
        "node": 1,
    }
    assert set(state.qos) == {"normal"}
