"""EASY backfilling, as its paper has it.

Covers: controller/scheduling/textbook/pools, controller/scheduling/textbook/waiting.
"""

from scheduling_harness import World, oracle, read_starts, read_swf, table

from understudy.controller.scheduling.api import Note
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.select.linear import SelectLinear
from understudy.controller.scheduling.textbook.easy import Easy


def world(nodes, selector=None, **node):
    return World(
        table(nodes, **node), Easy, selector or SelectConsTres(frozenset({"CR_CPU"})), check=True
    )


def test_a_short_job_passes_the_head():
    w = world(4)
    w.submit(at=0, cpus=3, run_s=100, limit_s=100)
    w.submit(at=1, cpus=4, run_s=10, limit_s=10)
    w.submit(at=2, cpus=1, run_s=98, limit_s=98)
    w.run()
    assert w.starts == {1: 0, 3: 2, 2: 100}


def test_a_job_that_would_delay_the_head_waits():
    w = world(4)
    w.submit(at=0, cpus=3, run_s=100, limit_s=100)
    w.submit(at=1, cpus=4, run_s=10, limit_s=10)
    w.submit(at=2, cpus=1, run_s=99, limit_s=99)
    w.run()
    assert w.starts == {1: 0, 2: 100, 3: 110}


def test_extra_processors_are_used_by_long_jobs_and_used_up():
    w = world(5)
    w.submit(at=0, cpus=3, run_s=100, limit_s=100)
    w.submit(at=1, cpus=4, run_s=10, limit_s=10)
    w.submit(at=2, cpus=1, run_s=500, limit_s=500)
    w.submit(at=3, cpus=1, run_s=500, limit_s=500)
    w.run()
    assert w.starts == {1: 0, 3: 2, 2: 100, 4: 110}


def test_what_arrives_in_one_second_is_one_instant():
    w = world(2)
    w.submit(at=0, cpus=2, run_s=50, limit_s=60)
    w.submit(at=50, cpus=2, run_s=5, limit_s=60)
    w.submit(at=50, cpus=1, run_s=5, limit_s=60)
    w.run()
    assert w.starts == {1: 0, 2: 50, 3: 55}


def test_the_head_is_promised_its_shadow_time():
    w = world(2)
    w.submit(at=0, cpus=2, run_s=50, limit_s=60)
    w.submit(at=1, cpus=2, run_s=5, limit_s=60)
    w.submit(at=2, cpus=1, run_s=5, limit_s=60)
    w.run(until=10)
    assert w.promises.get(2) is None  # with no processor free nobody needs to know
    w = world(3)
    w.submit(at=0, cpus=2, run_s=50, limit_s=60)
    w.submit(at=1, cpus=3, run_s=5, limit_s=60)
    w.submit(at=2, cpus=1, run_s=5, limit_s=60)
    w.run(until=10)
    assert w.tables.jobs[2].expected_start == 60
    assert w.tables.jobs[2].reason == "Resources"


def test_a_note_behind_the_pass_belongs_to_the_next_instant():
    w = world(1)
    policy = w.policy
    policy.note(Note.SUBMIT, 10.2)
    assert policy.next_run() == 10.5
    assert list(policy.run(10.5)) == [None]
    assert policy.next_run() is None
    policy.note(Note.FREE, 10.502)
    assert policy.next_run() == 11.5
    policy.note(Note.SUBMIT, 11.0)
    assert policy.next_run() == 11.5


def test_a_note_in_the_second_half_of_a_second_waits_for_the_next():
    w = world(1)
    w.policy.note(Note.SUBMIT, 10.7)
    assert w.policy.next_run() == 11.5


def test_held_jobs_are_not_looked_at_and_released_ones_are():
    w = world(2)
    job = w.submit(at=0, cpus=2, run_s=10, limit_s=10)
    job.priority = 0
    w.submit(at=1, cpus=1, run_s=10, limit_s=10)

    def release():
        job.priority = 1
        w.policy.note(Note.CHANGE, w.now)

    w.call(30.0, release)
    w.run()
    assert w.starts == {2: 1, 1: 30}


def test_a_job_with_a_begin_time_is_looked_at_when_it_has_come():
    w = world(2)
    w.submit(at=0, cpus=2, run_s=10, limit_s=10).eligible_time = 40
    w.run()
    assert w.starts == {1: 40}


def test_an_administrator_puts_a_job_first():
    w = world(1)
    w.submit(at=0, cpus=1, run_s=10, limit_s=10)
    w.submit(at=1, cpus=1, run_s=10, limit_s=10)
    w.submit(at=2, cpus=1, run_s=10, limit_s=10).admin_priority = 7
    w.run()
    assert w.starts == {1: 0, 3: 10, 2: 20}


def test_jobs_without_a_limit_are_taken_to_run_for_ever():
    w = world(3)
    w.submit(at=0, cpus=2, run_s=100, limit_s=None)
    w.submit(at=1, cpus=3, run_s=10, limit_s=10)
    w.submit(at=2, cpus=1, run_s=500, limit_s=None)
    w.run()
    assert w.starts == {1: 0, 3: 2, 2: 502}


def test_drained_nodes_are_not_counted_and_a_resumed_node_is():
    w = world(3)
    made = w.tables.nodes
    made.up_nodes &= ~0b1
    w.submit(at=0, cpus=3, run_s=10, limit_s=10)
    w.submit(at=1, cpus=2, run_s=50, limit_s=50)

    def resume():
        made.up_nodes |= 0b1
        w.policy.note(Note.CHANGE, w.now)

    w.call(20.0, resume)
    w.run()
    assert w.starts == {2: 1, 1: 51}


def test_a_node_drained_under_a_running_job_does_not_come_back_for_the_head():
    w = world(4)
    w.submit(at=0, cpus=2, run_s=100, limit_s=100)  # nodes 0 and 1
    w.submit(at=1, cpus=3, run_s=10, limit_s=10)

    def drain():
        w.tables.nodes.up_nodes &= ~0b1
        w.policy.note(Note.CHANGE, w.now)

    w.call(5.0, drain)
    w.submit(at=10, cpus=1, run_s=200, limit_s=200)  # of three nodes left none is extra
    w.run()
    assert w.starts == {1: 0, 2: 100, 3: 110}


def test_whole_nodes_that_the_selector_refuses_do_not_start():
    w = world(2, SelectLinear(), cores=4)
    w.submit(at=0, cpus=1, run_s=100, limit_s=100)
    w.submit(at=1, cpus=4, run_s=10, limit_s=10)
    w.submit(at=2, cpus=1, run_s=10, limit_s=10)
    w.run()
    assert w.starts == {1: 0, 2: 1, 3: 11}


def test_every_start_of_kth_sp2_is_the_textbooks():
    answers = read_starts(oracle("kth-sp2-easy.csv.gz"))
    w = World(table(100), Easy, SelectConsTres(frozenset({"CR_CPU"})))
    for job_id, submit, run, processors, limit in read_swf(oracle("kth-sp2-normalised.swf.gz")):
        assert w.submit(at=submit, run_s=run, limit_s=limit, cpus=processors).job_id == job_id
    w.run()
    assert len(answers) == 28_481
    assert w.starts == answers
