"""The report of a run in a real browser: it is drawn, tells jobs' stories, zooms, and complains of
nothing, whatever the run was like.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from browser import Browser, browser
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from understudy.experiments.metrics import groups, summarize
from understudy.experiments.records import REJECTED, JobRecord
from understudy.experiments.report import Told, report
from understudy.experiments.watched import Nodes, Share, Watched
from understudy.model.hostlist import expand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

DAY = 86_400
CANVAS = ".gantt canvas"
INK = """
const { canvas, gutter, wide, high, top } = window.page.gantts[arguments[0] || 0];
const { data } = canvas.getContext('2d').getImageData(gutter + 1, top + 1, wide - 2, high - 2);
let ink = 0;
for (let i = 3; i < data.length; i += 4) ink += data[i] > 0;
return ink / (data.length / 4);
"""


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as found:
        yield found


def told(
    records: Sequence[JobRecord],
    nodes: str = "n[1-8]",
    *,
    attempts: Sequence[JobRecord] = (),
    title: str = "Replay",
    zero: int | None = None,
    watched: Watched | None = None,
) -> Told:
    cpus = 4 * len(expand(nodes))
    summary = summarize(records, cpus, 2.0, attempts=attempts)
    config: dict[str, Any] = {"scheduler": "backfill"} | (
        {} if zero is None else {"zero": zero, "calendar": True}
    )
    conf = f"ClusterName=c\nSlurmctldHost=h\nNodeName={nodes} CPUs=4\n"
    seen = watched or Watched()
    return Told(records, summary, cpus, title, config, conf, groups(records), attempts, seen)


def job(number: int, start: int | None, end: int | None, nodes: str, **more: Any) -> JobRecord:
    count = len(expand(nodes)) if nodes else 0
    ended = "PENDING" if start is None else "RUNNING" if end is None else "COMPLETED"
    given = {"submit": 0, "state": ended, "id": str(number), "user": "ada", "cpus": 4 * count}
    return JobRecord(
        job=number, start=start, end=end, nodes=nodes, req_time=90, node_count=count,
        **{**given, **more},
    )  # fmt: skip


def busy(jobs: int = 1500, users: int = 489, seed: int = 1, last: int = 3 * DAY) -> list[JobRecord]:
    """Jobs of many users, one behind the other on each of 64 nodes."""
    rng, free, found = random.Random(seed), [0] * 64, []
    for number in range(1, jobs + 1):
        submit, node, size = last * number // jobs, rng.randrange(61), rng.randint(1, 4)
        start = max(submit, *free[node : node + size])
        end = start + rng.randint(60, 60 * last // jobs)
        free[node : node + size] = [end] * size
        waits = start > submit
        found.append(
            job(
                number, start, end, f"n[{node + 1}-{node + size}]", submit=submit,
                user=f"u{min(int(rng.expovariate(0.01)), users - 1):03}",
                account=rng.choice(["physics", "biology"]), qos="normal", partition="batch",
                waited_for="Priority" if waits else "",
                scheduled_by=rng.choice(["Main", "Backfill"]),
                first_promise=start + rng.randint(-500, 500) if waits else None,
                last_promise=start + 5 if waits else None, promise_moves=int(waits),
            )
        )  # fmt: skip
    return found


FAILED_ONCE = [
    job(1, 60, 100, "n[1-2]", submit=50, restarts=1),
    job(2, 5, 30, "n[3-4]", state="NODE_FAIL"),
]
RUNS = {
    "one job": told([job(1, 5, 65, "n1")]),
    "no job": told([]),
    "all refused": told([job(n, None, None, "", state=REJECTED) for n in range(1, 9)]),
    "one node": told([job(n, 10 * n, 10 * n + 9, "solo") for n in range(20)], "solo"),
    "16,384 nodes": told(
        [job(n, n, 90 * n, f"r[{n:05}-{n + 4000:05}]") for n in range(1, 40)], "r[00001-16384]"
    ),
    "a heterogeneous job": told([job(n, 3, 50, f"n{n + 1}", id=f"5+{n}") for n in range(4)]),
    "an array of 10,000": told(
        [job(n, n // 8 * 30, n // 8 * 30 + 30, f"n{n % 8 + 1}", id=f"7_{n}") for n in range(10_000)]
    ),
    "requeued jobs and failed nodes": told(
        FAILED_ONCE, attempts=[job(1, 5, 50, "n[1-2]", state="NODE_FAIL")]
    ),
    "shared nodes": told([job(n, 3 * n, 3 * n + 40, f"n{1 + n % 2}", cpus=1) for n in range(40)]),
    "unfinished jobs": told(
        [job(1, 5, None, "n[1-2]"), job(2, None, None, "", reason="Resources")]
    ),
    "two years": told(busy(last=730 * DAY), "n[1-64]", zero=946_684_800),
    "ten seconds": told([job(n, n, n + 1, f"n{n % 8 + 1}") for n in range(10)]),
    "an instant": told([job(n, 0, 0, f"n{n + 1}") for n in range(3)]),
    "names that mean something to HTML": told(
        [job(1, 1, 9, "n1", user="</script><b>", name="&lt;")]
    ),
}


def show(window: Browser, folder: Path, *runs: Told) -> None:
    page = folder / "report.html"
    page.write_text(report(*runs))
    window.open(page)


@pytest.mark.parametrize("name", RUNS)
def test_every_kind_of_run_is_drawn_without_a_complaint(name, window, tmp_path):
    window.look(1200)
    show(window, tmp_path, RUNS[name])
    assert window.complaints() == []
    if any(record.start is not None for record in RUNS[name].records):
        assert window.run(INK) > 0
        assert window.run("return document.querySelectorAll('.u-wrap canvas').length") >= 5
    for value in ("wait", "state", "scheduled_by", "account"):
        if window.run("return !!document.getElementById('colour')"):
            Select(window.driver.find_element(By.ID, "colour")).select_by_value(value)
    assert window.complaints() == []


@pytest.mark.parametrize("name", RUNS)
def test_the_browser_decodes_what_was_packed(name, window, tmp_path):
    """Each story has the job's own id, user and nodes, and times come out to the second."""
    run = RUNS[name]
    if not run.records:
        return
    show(window, tmp_path, run)
    rows = window.run(
        "const run = window.page.runs[0], c = run.columns, none = v => Number.isNaN(v) ? null : v;"
        "const {begin, runs, at} = run.lists;"
        "return Array.from({length: run.rows}, (_, i) => { const nodes = [];"
        "for (let r = begin[at[i]]; r < begin[at[i] + 1]; r += 2)"
        " for (let n = 0; n < runs[r + 1]; n++) nodes.push(run.nodes[runs[r] + n]);"
        "return [c.job[i], c.submit[i], none(c.start[i]), none(c.end[i]), c.cpus[i],"
        " c.user.words[c.user.at[i]], c.id.words[c.id.at[i]], none(c.first_promise[i]),"
        " nodes.join()];"
        "});"
    )
    order = sorted(run.records, key=lambda r: (r.submit, r.job))
    assert rows == [
        [r.job, r.submit, r.start, r.end, r.cpus, r.user, r.id, r.first_promise,
         ",".join(expand(r.nodes) if r.nodes else [])]
        for r in (*order, *run.attempts)
    ]  # fmt: skip


def test_means_over_time_hold_all_cpu_time_and_all_waiting(window, tmp_path):
    run = told(busy(), "n[1-64]")
    show(window, tmp_path, run)
    used, waited, ran = window.run(
        "const page = window.page, [use] = page.useChart.data.slice(1), xs = page.useChart.data[0];"
        "const sum = of => xs.slice(1).reduce((all, x, k) => all + of[k] * (x - xs[k]), 0);"
        "return [use, page.queueChart.data[1], page.runningChart.data[1]].map(sum)"
    )
    records = run.records
    assert used == pytest.approx(100 * sum(r.cpus * r.run for r in records) / run.cpus)
    assert waited == pytest.approx(sum(r.wait for r in records))
    assert ran == pytest.approx(sum(r.run for r in records))


def test_a_job_under_the_pointer_tells_its_story(window, tmp_path):
    window.look(1200)
    run = told(
        [job(7, 30, 100, "n[1-8]", account="physics", qos="high", waited_for="Priority",
             scheduled_by="Backfill", first_promise=50, last_promise=40, promise_moves=1)],
        zero=1_700_000_000,
    )  # fmt: skip
    show(window, tmp_path, run)
    canvas = window.driver.find_element(By.CSS_SELECTOR, CANVAS)
    ActionChains(window.driver).move_to_element(canvas).perform()
    window.wait("return getComputedStyle(document.getElementById('tip')).visibility == 'visible'")
    text = window.driver.find_element(By.ID, "tip").text
    for part in (
        "Job 7, COMPLETED", "ada, account physics, QOS high", "Submitted 14 Nov 2023 22:13:20",
        "Started 14 Nov 2023 22:13:50 by the backfill scheduler, after 30 s, longest for Priority",
        "Ran 1.2 min of at most 1.5 min", "32 CPUs, 8 nodes: n[1-8]",
        "First promised 14 Nov 2023 22:14:10, moved 1 time, last 14 Nov 2023 22:14:00",
    ):  # fmt: skip
        assert part in text
    ActionChains(window.driver).click(canvas).perform()
    window.wait("return document.getElementById('story').textContent.includes('Job 7,')")


def shown(window: Browser) -> tuple[float, float]:
    return tuple(window.run("return [window.page.view.from, window.page.view.to]"))


def test_the_range_is_zoomed_by_button_key_wheel_and_drag(window, tmp_path):
    window.look(1200, 1200)
    show(window, tmp_path, told(busy(), "n[1-64]"))
    first, last = shown(window)
    act = window.driver.find_element
    act(By.CSS_SELECTOR, "button[data-do=in]").click()
    assert shown(window)[1] - shown(window)[0] == pytest.approx((last - first) / 2)
    canvas = act(By.CSS_SELECTOR, CANVAS)
    canvas.send_keys("+")
    assert shown(window)[1] - shown(window)[0] == pytest.approx((last - first) / 4)
    before = shown(window)
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert shown(window)[0] > before[0]
    window.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
    ActionChains(window.driver).move_to_element_with_offset(canvas, -100, -60).click_and_hold(
    ).move_by_offset(150, 90).release().perform()  # fmt: skip
    after = shown(window)
    assert after[1] - after[0] < (before[1] - before[0]) / 3
    assert window.run("return window.page.gantts[0].nodes[1] - window.page.gantts[0].nodes[0]") < 32
    window.wait(f"return document.querySelector('{CANVAS}').dataset.drawn == 'boxes'")
    assert window.run(INK) > 0
    scales = window.run(
        "return [page.useChart, page.queueChart].map(c => [c.scales.x.min, c.scales.x.max])"
    )
    assert scales == [list(after), list(after)]
    canvas.send_keys("0")
    assert shown(window) == (first, last)
    assert window.complaints() == []


def test_a_job_is_found_by_its_id_and_one_user_of_489_stands_out(window, tmp_path):
    window.look(1200)
    records = busy()
    show(window, tmp_path, told(records, "n[1-64]"))
    field = window.driver.find_element(By.ID, "job")
    field.send_keys("777", Keys.ENTER)
    window.wait("return document.getElementById('story').textContent.includes('Job 777,')")
    wanted = records[776]
    assert shown(window)[0] <= wanted.start <= wanted.end <= shown(window)[1]
    field.clear()
    field.send_keys("none", Keys.ENTER)
    window.wait("return document.getElementById('story').textContent == 'No job is called none.'")
    legend = window.driver.find_element(By.ID, "legend")
    users = len({record.user for record in records})
    assert f"{users - 6} others" in legend.text
    window.driver.find_element(By.ID, "only").send_keys(wanted.user, Keys.ENTER)
    window.wait("return window.page.only == arguments[0]", wanted.user)
    assert wanted.user in legend.text


def test_the_scheme_follows_the_system_and_the_switch(window, tmp_path):
    window.look(1200, scheme="dark")
    show(window, tmp_path, told(busy(200), "n[1-64]"))
    background = "return getComputedStyle(document.body).backgroundColor"
    assert window.run(background) == "rgb(21, 23, 26)"
    assert window.run("return page.gantts[0].colours.page().soft") == "#a2a8b1"
    theme = Select(window.driver.find_element(By.ID, "theme"))
    theme.select_by_value("light")
    assert window.run(background) == "rgb(247, 247, 245)"
    assert window.run("return page.gantts[0].colours.page().soft") == "#5b616b"
    theme.select_by_value("dark")
    assert window.run(background) == "rgb(21, 23, 26)"
    assert window.complaints() == []


@pytest.mark.parametrize("runs", [1, 2])
def test_a_phone_shows_all_without_scrolling_sideways(runs, window, tmp_path):
    window.look(400, 800)
    both = [told(busy(seed=seed), "n[1-64]", title=f"a run {seed}") for seed in (1, 2)]
    show(window, tmp_path, *both[:runs])
    wide = window.run("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide == [400, 400]
    assert [window.run(INK, number) > 0.1 for number in range(runs)] == [True] * runs
    window.look(1200)


def test_a_hundred_thousand_jobs_on_16384_nodes_are_a_small_page_that_can_be_zoomed(
    window, tmp_path
):
    rng = random.Random(5)
    records = []
    for number in range(100_000):
        first, count = rng.randrange(1, 16_000), rng.randint(1, 300)
        start = 25 * number + rng.randint(0, 9000)
        records.append(
            JobRecord(
                number, 25 * number, start, start + rng.randint(10, 20_000), "COMPLETED", count,
                f"r[{first:05}-{first + count - 1:05}]", 30_000, id=str(number),
                user=f"u{rng.randrange(489)}", node_count=count, waited_for="Priority",
            )
        )  # fmt: skip
    window.look(1200)
    show(window, tmp_path, told(records, "r[00001-16384]"))
    assert (tmp_path / "report.html").stat().st_size < 15_000_000
    drawn = f"return document.querySelector('{CANVAS}').dataset.drawn"
    assert window.run(drawn) == "pixels"
    assert window.run(INK) > 0.9
    window.run("page.show(1e6, 1e6 + 4000); page.showNodes(page.gantts[0], 5000, 5040)")
    window.wait(f"{drawn} == 'boxes'")
    assert window.run(INK) > 0.1
    assert window.complaints() == []


def test_two_runs_have_the_same_axes(window, tmp_path):
    window.look(1200)
    runs = [told([job(1, 5, end, "n1")], title=name) for name, end in (("A", 60), ("B", 500))]
    show(window, tmp_path, *runs)
    assert shown(window) == (0, 500)
    assert window.run("return document.querySelectorAll('.gantt canvas').length") == 2
    assert window.run("return page.useChart.data.length") == 3
    assert window.run(INK, 0) < window.run(INK, 1)
    assert window.complaints() == []


def seen() -> Watched:
    """Of eight nodes: two drained from 20 on, one of them down from 40 on; and of two accounts."""
    found = Watched()
    found.nodes = [Nodes(0, 8, 0, 0, 0), Nodes(20, 4, 0, 2, 0), Nodes(40, 0, 1, 1, 2)]
    found.shares = [
        *(Share("physics", "", 0.75), Share("physics", "ada", 0.5), Share("physics", "bob", 0.25)),
        *(Share("biology", "", 0.25), Share("biology", "eve", 0.25)),
    ]
    return found


def test_nodes_by_state_and_fair_share_stand_on_the_axis_of_the_queue(window, tmp_path):
    window.look(1200)
    jobs = [
        job(1, 0, 20, "n[1-8]", account="physics"),
        job(2, 20, 60, "n[1-4]", account="biology"),
    ]
    show(window, tmp_path, told(jobs, watched=seen()))
    assert window.complaints() == []
    at = """
    const chart = window.page.stateCharts[0];
    const k = chart.data[0].findIndex(t => t >= arguments[0]);
    return chart.raw.map(each => Math.round(1e6 * each[k]) / 1e6);
    """
    assert window.run(at, 10) == [8, 0, 0, 0, 0]  # with jobs, idle, powered down, drained, down
    assert window.run(at, 30) == [4, 2, 0, 2, 0]
    assert window.run(at, 50) == [0, 4, 2, 1, 1]
    due = """
    const chart = window.page.dueCharts[0], k = chart.data[0].findIndex(t => t >= arguments[0]);
    return Object.fromEntries(chart.series.map((each, s) => [each.label, chart.data[s][k]]));
    """
    early, late = window.run(due, 10), window.run(due, 59)
    assert (early["physics"], early["due to physics"], early["due to biology"]) == (100, 75, 25)
    assert late["biology"] == pytest.approx(50, abs=2)  # 8 nodes for 20 s, 4 for 40 s
    window.run("window.page.show(20, 40)")
    ranges = "return window.page.charts.filter(each => each.overTime).map(each => each.scales.x)"
    window.wait("return window.page.stateCharts[0].scales.x.min === 20")
    assert {(each["min"], each["max"]) for each in window.run(ranges)} == {(20, 40)}
    assert window.complaints() == []


def test_a_run_of_which_neither_is_known_has_no_empty_pictures(window, tmp_path):
    show(window, tmp_path, told([job(1, 5, 65, "n1")]))
    hidden = "return ['nodes', 'fair'].map(each => document.getElementById(each).hidden)"
    assert window.run(hidden) == [True, True]
    show(window, tmp_path, told([job(1, 5, 65, "n1")]), told([job(1, 5, 65, "n1")], watched=seen()))
    assert window.run(hidden) == [False, False]
    assert window.complaints() == []
