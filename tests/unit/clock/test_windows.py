"""Who is granted virtual time, and how far."""

import random

import pytest

from understudy.clock.timers import NEVER
from understudy.clock.windows import Grant, Held, Stalled, Windows

L = 1000


def joined(*names, watches=()):
    windows = Windows(L, names)
    for name in names:
        windows.join(name, watches=name in watches)
    return windows


def idle(windows, name, next_us=NEVER, now_us=0, sent=None, *, waiting=False, needs_us=None):
    needs_us = (-1 if next_us == NEVER else next_us) if needs_us is None else needs_us
    windows.report(name, next_us, now_us, sent or {}, waiting=waiting, needs_us=needs_us)


def grants(windows):
    """Who may run how far, whatever that means for what is periodic."""
    return [decision._replace(needed_us=NEVER) for decision in windows.decide()]


def test_nobody_is_granted_time_before_all_that_are_expected_have_joined_and_reported():
    windows = Windows(L, ["a", "b"])
    windows.join("a")
    idle(windows, "a", 5)
    assert windows.decide() == []
    assert windows.state()[0] == "waiting"
    windows.join("b")
    assert windows.decide() == []
    idle(windows, "b")
    assert [decision.to for decision in windows.decide()] == ["a"]


def test_the_first_may_run_until_what_the_second_could_send_it():
    windows = joined("a", "b")
    idle(windows, "a", 10_000)
    idle(windows, "b", 50_000)
    assert grants(windows) == [Grant("a", 50_000 + L, {})]


def test_two_with_events_inside_one_latency_run_side_by_side():
    windows = joined("a", "b", "c")
    idle(windows, "a", 10_000)
    idle(windows, "b", 10_500)
    idle(windows, "c", 99_000)
    assert grants(windows) == [Grant("a", 10_500 + L, {}), Grant("b", 10_000 + L, {})]


def test_a_message_in_flight_is_an_event_and_the_grant_says_how_many_must_have_come():
    windows = joined("a", "b")
    idle(windows, "a", NEVER, sent={"b": (2, 3000)})
    idle(windows, "b", 9000)
    assert grants(windows) == [Grant("b", NEVER, {"a": 2})]
    idle(windows, "b", NEVER, 9000, {"a": (1, 4000)})
    assert grants(windows) == [Grant("a", NEVER, {"b": 1})]
    idle(windows, "a", NEVER, 4000, {"b": (1, 5000)})
    assert grants(windows) == [Grant("b", NEVER, {"a": 3})]


def test_a_hold_stops_everybody_at_one_instant():
    windows = joined("a", "b")
    idle(windows, "a", 10_000)
    idle(windows, "b", 90_000)
    windows.decide()
    windows.hold("b")
    assert windows.decide() == [], "a has been granted time and has not come back"
    idle(windows, "a", 20_000, 12_000)
    assert windows.decide() == [Held("b", 12_000)]
    assert windows.decide() == [], "nothing moves while b is busy"
    idle(windows, "b", 90_000, 12_000)
    assert windows.decide()[0].to == "a"


def test_somebody_who_comes_late_starts_at_the_present():
    windows = joined("a")
    idle(windows, "a", 7000)
    windows.decide()
    idle(windows, "a", 9000, 7000)
    windows.join("late")
    assert windows.decide() == [Held("late", 7000)]
    with pytest.raises(ValueError, match="already"):
        windows.join("late")


def test_pause_stops_and_resume_goes_on():
    windows = joined("a")
    windows.pause("by request")
    idle(windows, "a", 7000)
    assert windows.decide() == []
    assert windows.state() == ("paused", "by request")
    windows.resume()
    assert grants(windows) == [Grant("a", NEVER, {})]


def test_a_breakpoint_stops_before_anything_happens_at_its_instant():
    windows = joined("a")
    windows.break_at(8000)
    idle(windows, "a", 7999)
    assert grants(windows) == [Grant("a", 8000, {})]
    idle(windows, "a", 8000, 7999)
    assert windows.decide() == []
    assert windows.state() == ("paused", "breakpoint")
    windows.resume()
    assert grants(windows) == [Grant("a", NEVER, {})]


def test_periodic_breakpoints_stop_at_each_multiple():
    windows = joined("a")
    idle(windows, "a", 500)
    windows.break_every(1000)
    reached = []
    now = 500
    for _ in range(3):
        for grant in windows.decide():
            now = grant.end_us
            idle(windows, "a", now, now - 1)
        assert windows.decide() == []
        assert windows.state()[0] == "paused"
        reached.append(now)
        windows.resume()
    assert reached == [1000, 2000, 3000]


def test_at_a_breakpoint_it_is_that_late_and_what_is_done_there_is_done_then():
    windows = joined("a")
    windows.break_at(8000)
    idle(windows, "a", 20_000, 500)
    assert windows.decide() == []
    assert windows.now_us == 8000
    windows.hold("a")
    assert windows.decide() == [Held("a", 8000)]


def test_what_is_done_at_a_breakpoint_does_not_hold_time_there():
    windows = joined("a")
    windows.break_at(8000)
    idle(windows, "a", 20_000, 500)
    windows.decide()
    windows.hold("a")
    windows.decide()
    idle(windows, "a", 8500, 8000)  # a command set a timer that is earlier than all others
    windows.break_at(30_000)
    windows.resume()
    assert grants(windows) == [Grant("a", 30_000, {})]


def test_a_breakpoint_that_is_set_while_time_stands_for_another_reason_outlives_going_on():
    windows = joined("a")
    idle(windows, "a", 5000)
    windows.pause("by request")
    windows.break_at(3000)
    windows.resume()
    assert windows.decide() == []
    assert windows.state() == ("paused", "breakpoint")
    assert windows.now_us == 3000


def test_single_and_periodic_breakpoints_stand_side_by_side_until_they_are_taken_off():
    windows = joined("a")
    windows.break_at(2500)
    windows.break_every(2000, 100)
    idle(windows, "a", 50_000)
    reached = []
    for _ in range(4):
        assert windows.decide() == []
        reached.append(windows.now_us)
        windows.resume()
    assert reached == [2100, 2500, 4100, 6100]
    windows.break_every(0)
    assert grants(windows) == [Grant("a", NEVER, {})]


def test_steps_are_narrow_windows_and_then_it_stops():
    windows = joined("a")
    idle(windows, "a", 5000)
    windows.step(1)
    assert grants(windows) == [Grant("a", 5000 + L, {})]
    idle(windows, "a", 9000, 5000)
    assert windows.decide() == []
    assert windows.state() == ("paused", "step done")


def test_a_rate_limits_how_far_time_goes():
    windows = joined("a")
    allowed = [4000]
    windows.allowed_us = lambda: allowed[0]
    idle(windows, "a", 5000)
    assert windows.decide() == []
    assert windows.throttled
    allowed[0] = 6000
    assert grants(windows) == [Grant("a", 6001, {})]


def test_watchers_are_told_once_when_somebody_waits_and_nobody_has_anything_to_do():
    windows = joined("a", "watcher", watches=["watcher"])
    idle(windows, "a")
    idle(windows, "watcher", waiting=True)
    (told,) = windows.decide()
    assert told == Stalled("watcher", "nobody has anything left to do; waiting: watcher")
    assert windows.decide() == []
    assert windows.state()[0] == "idle"


def test_an_idle_cluster_that_waits_for_nothing_is_no_stall():
    windows = joined("a", "watcher", watches=["watcher"])
    idle(windows, "a")
    idle(windows, "watcher")
    assert windows.decide() == []


def test_watchers_are_told_who_died():
    windows = joined("a", "watcher", watches=["watcher"])
    idle(windows, "watcher", 50_000)
    windows.leave("a", died=True)
    assert windows.decide() == [Stalled("watcher", "a died")]


def test_who_leaves_in_good_order_is_not_missed():
    windows = joined("a", "b")
    idle(windows, "a", 500)
    windows.leave("b")
    assert grants(windows) == [Grant("a", NEVER, {})]


def test_time_does_not_go_on_for_periodic_events_alone_unless_somebody_drives_it():
    windows = joined("a", "b")
    idle(windows, "a", 5000, needs_us=-1)
    idle(windows, "b")
    assert windows.decide() == []
    assert windows.state()[0] == "idle"
    windows.run_until(4000)
    assert windows.decide() == []
    assert windows.state()[0] == "paused"
    windows.run_until(6000)
    assert grants(windows) == [Grant("a", 6000, {})]
    idle(windows, "a", 8000, 5000, needs_us=-1)
    assert windows.decide() == []  # the instant that it was driven to has come
    windows.step(1)
    assert [decision.to for decision in windows.decide()] == ["a"]


def test_time_goes_to_the_instant_that_was_asked_for_though_nothing_happens_until_then():
    windows = joined("a", "b")
    idle(windows, "a", 500)
    idle(windows, "b")
    windows.run_until(4000)
    assert grants(windows) == [Grant("a", 4000, {})]
    idle(windows, "a", now_us=500)
    assert windows.state()[0] == "running"
    assert windows.decide() == []
    assert (windows.now_us, windows.state()[0]) == (4000, "paused")
    windows.resume()
    assert windows.decide() == []
    assert (windows.now_us, windows.state()[0]) == (4000, "idle")
    windows.break_at(9000)
    assert windows.decide() == []
    assert windows.now_us == 4000, "a breakpoint asks for no time"
    windows.hold("b")
    assert windows.decide() == [Held("b", 4000)]


def test_at_a_rate_time_takes_its_time_to_the_instant_that_was_asked_for():
    windows = joined("a")
    idle(windows, "a")
    allowed = 3999
    windows.allowed_us = lambda: allowed
    windows.run_until(4000)
    assert windows.decide() == []
    assert windows.throttled
    allowed = 4000
    assert windows.decide() == []
    assert (windows.now_us, windows.throttled) == (4000, False)


def test_breakpoints_that_are_taken_off_end_the_way_to_an_instant():
    windows = joined("a")
    idle(windows, "a")
    windows.pause("by request")
    windows.run_until(4000)
    windows.break_every(0)
    assert windows.decide() == []
    assert (windows.now_us, windows.state()[0]) == (0, "idle")


def test_periodic_events_come_in_their_turn_while_others_go_on():
    windows = joined("a", "b")
    idle(windows, "a", 5000, needs_us=-1)
    idle(windows, "b", 9000)
    assert windows.decide() == [Grant("a", 9000 + L, {}, 9000)]


def test_who_waits_is_told_when_only_periodic_events_are_left():
    windows = joined("a", "b", watches=("b",))
    idle(windows, "a", 5000, needs_us=-1)
    idle(windows, "b", waiting=True)
    assert windows.decide() == [Stalled("b", "nobody has anything left to do; waiting: b")]
    assert windows.decide() == [], "once is enough"


@pytest.mark.parametrize("seed", range(200))
def test_time_ends_at_one_instant_however_events_are_dealt_to_processes(seed):
    draw = random.Random(seed)
    # by daemon: events, periods (length), messages that an event sends: (event's place, to whom)
    plan = {name: ([], [], []) for name in "abc"}
    for events, periods, messages in plan.values():
        events.extend(sorted(draw.randrange(1, 40_000) for _ in range(draw.randrange(4))))
        periods.extend(draw.randrange(300, 7000) for _ in range(draw.randrange(1, 3)))
        messages.extend(draw.choice("abc") for _ in events)

    apart = run_in_windows(plan)
    together = run_in_windows({"all": plan}, is_nested=True)
    assert apart == together


def run_in_windows(plan, *, is_nested=False):
    """Daemons with events, periodic ones and messages, each a participant, or all one: who did what
    when, and the end.
    """
    hosts = {name: {name: each} for name, each in plan.items()} if not is_nested else plan
    windows = joined(*hosts)
    waiting = {host: [] for host in hosts}  # (when, is periodic, what)
    home = {name: host for host, daemons in hosts.items() for name in daemons}
    done = []
    for host, daemons in hosts.items():
        for name, (events, periods, messages) in daemons.items():
            waiting[host] += [
                (when, False, f"{name} to {to}") for when, to in zip(events, messages, strict=True)
            ]
            waiting[host] += [(length, True, f"{name} every {length}") for length in periods]
    now = dict.fromkeys(hosts, 0)
    sent = {host: {} for host in hosts}

    def report(host):
        ahead = [when for when, _, _ in waiting[host]]
        needed = [when for when, is_periodic, _ in waiting[host] if not is_periodic]
        windows.report(
            host,
            min(ahead, default=NEVER),
            now[host],
            sent[host],
            waiting=False,
            needs_us=min(needed, default=-1),
        )
        sent[host] = {}

    for host in hosts:
        report(host)
    while decisions := windows.decide():
        for grant in decisions:
            host, end_us, needed_us = grant.to, grant.end_us, grant.needed_us
            while waiting[host]:
                when, is_periodic, what = min(waiting[host])
                is_needed = any(not each[1] for each in waiting[host]) or when <= max(
                    needed_us, now[host]
                )
                if when >= end_us or not is_needed:
                    break
                waiting[host].remove((when, is_periodic, what))
                now[host] = max(now[host], when)
                done.append((when, what))
                if is_periodic:
                    waiting[host].append((when + int(what.rpartition(" ")[2]), True, what))
                elif " to " in what and not what.startswith("message"):
                    to = home[what[-1]]
                    waiting[to].append((when + L, False, f"message of {what}"))
                    if to != host:
                        count, earliest = sent[host].get(to, (0, NEVER))
                        sent[host][to] = (count + 1, min(earliest, when + L))
                        end_us = min(end_us, when + 2 * L)
                        needed_us = (
                            when + L
                            if sum(each[0] for each in sent[host].values()) == 1
                            else max(needed_us, when + L)
                        )
                elif what.startswith("message"):
                    # it takes away the last thing that was to be done there
                    later = [each for each in waiting[host] if each[2].startswith(f"{what[-1]} to")]
                    if later:
                        waiting[host].remove(max(later))
        for grant in decisions:
            report(grant.to)
    return max(now.values()), sorted(done)
