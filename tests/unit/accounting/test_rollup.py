"""Usage added up, against what slurmdbd 22.05.8 had in its tables for the same jobs and events.

Covers: accounting/usage.
"""

from recorded_usage import CLUSTER, DOWN, HOUR, JOBS, job

from understudy.accounting.rollup import usage_of_hours


def one_hour(jobs=(), down=(), **more):
    ((start, usage),) = usage_of_hours(
        HOUR, HOUR + 3600, jobs, down, [CLUSTER], {("root", "key"): 5}, **more
    )
    assert start == HOUR
    return usage


def test_a_real_clusters_first_hour():
    usage = one_hour(JOBS, DOWN)
    cpu = {kind: usage[kind, 0, "cpu"] for kind in ("allocated", "down", "idle", "planned")}
    assert cpu == {"allocated": 1066, "down": 20, "idle": 53046, "planned": 300}
    assert {number: usage["association", number, "cpu"] for number in (2, 7, 8)} == {
        2: 979,
        7: 47,
        8: 40,
    }
    memory = {kind: usage[kind, 0, "mem"] for kind in ("down", "allocated", "idle")}
    assert memory["down"] == 20000
    assert sum(memory.values()) == 16000 * (3600 - 198)
    assert ("planned", 0, "mem") not in usage


def test_an_hour_in_which_nothing_ran_is_idle():
    (_, first), (_, second) = usage_of_hours(HOUR, HOUR + 7200, (), (), [CLUSTER], {})
    assert first == {("idle", 0, "cpu"): 16 * 3402, ("idle", 0, "mem"): 16000 * 3402}
    assert second == {("idle", 0, "cpu"): 57600, ("idle", 0, "mem"): 57_600_000}


def test_what_waiting_jobs_want_beyond_what_is_left_is_overcommitted():
    usage = one_hour([job(1600, 2000, 3600, 16, asked=16), job(1600, None, None, asked=100)])
    idle = 16 * (3600 - 198) - 16 * 1600
    assert usage["planned", 0, "cpu"] == idle
    assert ("idle", 0, "cpu") not in usage
    assert usage["overcommitted", 0, "cpu"] == 16 * 400 + 100 * 2000 - idle


def test_reservations_are_allocated_used_or_not_and_down_as_planned_if_for_maintenance():
    def reservation(number, flags):
        return {
            "id": number,
            "start_time": HOUR + 1000,
            "end_time": HOUR + 1100,
            "flags": flags,
            "tres": {"cpu": 8},
        }

    inside = job(1010, 1010, 1060, 8, reservation_id=1, asked=0)
    usage = one_hour(
        [inside],
        reservations=[
            reservation(1, "SPEC_NODES"),
            reservation(2, "MAINT"),
            reservation(3, "MAINT,IGNORE_JOBS"),
        ],
    )
    assert (usage["allocated", 0, "cpu"], usage["planned_down", 0, "cpu"]) == (800, 800)
    assert usage["association", 2, "cpu"] == 400


def test_keys_count_as_associations_do():
    assert one_hour([job(0, 1000, 1010, 2, wckey="key")])["wckey", 5, "cpu"] == 20


def test_more_than_there_was_is_cut():
    usage = one_hour([job(0, 198, 3600, 16), job(0, 198, 3600, 16)], DOWN)
    assert usage["allocated", 0, "cpu"] == 16 * 3402
    assert ("down", 0, "cpu") not in usage
    assert usage["association", 2, "cpu"] == 2 * 16 * 3402
