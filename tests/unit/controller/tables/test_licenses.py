"""Licences: counted, reserved by plans, waited for.

Covers: model/licenses.
"""

from __future__ import annotations

import pytest
from controller_harness import Harness, make_tables
from scheduling_harness import World, table

from understudy.controller.scheduling.api import Note
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.tables.licenses import LicensePool, read_licenses
from understudy.controller.tables.settings import Settings
from understudy.model.licenses import configured_licenses


@pytest.mark.parametrize(
    ("text", "licenses"),
    [
        ("matlab", (("matlab", 1),)),
        ("matlab:2,ansys", (("matlab", 2), ("ansys", 1))),
        ("matlab:2;ansys:3", (("matlab", 2), ("ansys", 3))),
    ],
)
def test_a_list_of_licences_means_all_of_them(
    text: str, licenses: tuple[tuple[str, int], ...]
) -> None:
    assert read_licenses(text) == licenses


@pytest.mark.parametrize("text", ["matlab:", "matlab:x", "a|b", "a|b,c", ",", ":2"])
def test_what_is_no_such_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        read_licenses(text)


def test_licences_are_taken_and_given_back() -> None:
    pool = LicensePool({"matlab": 2, "ansys": 1})
    pool.take(1, "matlab:2,ansys")
    assert pool.used == {"matlab": 2, "ansys": 1}
    assert not pool.are_free("ansys")
    pool.give_back(1)
    assert pool.used == {"matlab": 0, "ansys": 0}
    assert pool.are_free("matlab:2,ansys")


def test_a_licence_named_twice_is_needed_twice() -> None:
    assert not LicensePool({"matlab": 3}).are_free("matlab:2,matlab:2")


def test_a_job_has_its_licences_from_its_start_until_its_end_whatever_its_epilog_does() -> None:
    h = Harness(make_tables(), settings=Settings(licenses={"matlab": 2, "ansys": 1}))
    job = h.submit(licenses="matlab:2,ansys")
    assert job.is_running
    assert h.query("licenses", "name", "total", "used") == [["matlab", 2, 2], ["ansys", 1, 1]]
    other = h.submit(licenses="matlab")
    assert other.is_pending
    h.acknowledge()
    h.finish(job)
    assert job.is_completing
    assert h.core.tables.licenses.used == {"matlab": 0, "ansys": 0}
    h.acknowledge()
    h.epilog(job)
    assert other.is_running
    assert h.core.tables.licenses.used["matlab"] == 1


def test_a_pending_jobs_licences_can_be_changed() -> None:
    h = Harness(make_tables(), settings=Settings(licenses={"matlab": 2}))
    h.submit(licenses="matlab:2")
    job = h.submit(licenses="matlab")
    assert job.is_pending
    assert h.update(job, licenses="matlab:3") == 2048
    assert h.update(job, licenses="") == 0
    assert job.is_running


def test_a_job_that_waits_for_licences_blocks_nobody_and_starts_when_they_are_free() -> None:
    world = World(
        table(4), Backfill, SelectConsTres(frozenset({"CR_CPU"})), {"bf_interval": "10"}, check=True
    )
    world.tables.licenses.totals = {"matlab": 2}
    world.policy.note(Note.START, 0.0)
    world.submit(at=1, cpus=1, run_s=100, limit_s=600, licenses="matlab:2")
    waiting = world.submit(at=2, cpus=1, run_s=10, limit_s=60, licenses="matlab")
    world.submit(at=3, cpus=1, run_s=200, limit_s=600)
    world.run(until=60)
    assert set(world.starts) == {1, 3}
    assert waiting.reason == "Licenses"
    assert waiting.expected_start is None
    world.run()
    assert 101 <= world.starts[2] <= 106


def test_licences_that_accounting_tracks_are_among_a_jobs_resources_in_its_order() -> None:
    h = Harness(
        make_tables(),
        settings=Settings(
            licenses={"matlab": 4, "ansys": 2}, tracked_tres=("license/matlab", "gres/gpu")
        ),
    )
    job = h.submit(licenses="ansys,matlab:2")
    rows = h.query("jobs", "tres_requested", "tres_allocated", job_id=[job.job_id])
    assert [text.rpartition("billing=1")[2] for text in rows[0]] == [
        ",license/matlab=2",
        ",license/matlab=2",
    ]
    plain = h.submit()
    assert h.query("jobs", "tres_allocated", job_id=[plain.job_id])[0][0].endswith("billing=1")


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        # `scontrol show licenses` of 22.05.8
        ("foo", {"foo": 1}),
        ("foo:10,bar:2", {"foo": 10, "bar": 2}),
        ("foo:", {"foo": 0}),
        ("foo*10,foo=10", {"foo*10": 1, "foo=10": 1}),
        (",foo,,bar,", {"foo": 1, "bar": 1}),
        ("foo:1,foo:2", {"foo": 3}),
        ("foo@srv:10", {"foo@srv": 10}),
        ("foo:99999999999", {"foo": 1215752191}),
    ],
)
def test_licences_are_counted_as_configured(text: str, counts: dict[str, int]) -> None:
    assert configured_licenses(text) == counts
