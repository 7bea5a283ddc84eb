"""What tasks have used is added up: over those of one daemon, and over the daemons of a step."""

from understudy.model.task_usage import QUANTITIES, merge, summed_up

FIRST = (0, 0, (700_000, 118_456_320, 121_827_328, 0, 1000, 7))
SECOND = (1, 0, (730_000, 223_453_184, 226_684_928, 1, 1000, 5))
THIRD = (2, 1, (1_460_000, 328_331_264, 331_542_528, 3, 2000, 9))


def test_of_each_quantity_there_are_the_sum_and_the_least_and_most_with_their_places():
    found = summed_up([FIRST, SECOND, THIRD])
    assert found["tasks"] == 3
    assert [found[f"sum_{name}"] for name in QUANTITIES] == [
        2_890_000,
        670_240_768,
        680_054_784,
        4,
        4000,
        21,
    ]
    assert (found["max_rss"], found["max_rss_task"], found["max_rss_node"]) == (328_331_264, 2, 1)
    assert (found["min_written"], found["min_written_task"], found["min_written_node"]) == (5, 1, 0)
    assert summed_up([]) == {}


def test_parts_of_a_step_give_the_same_in_any_order_as_the_whole():
    parts = [
        {"user_cpu_us": 5} | summed_up([FIRST, SECOND]),
        {"user_cpu_us": 7} | summed_up([THIRD]),
    ]
    for order in (parts, parts[::-1]):
        whole: dict[str, int] = {}
        for part in order:
            merge(whole, part)
        assert whole == {"user_cpu_us": 12} | summed_up([FIRST, SECOND, THIRD])


def test_a_part_whose_tasks_nobody_has_looked_at_adds_its_times_alone():
    whole: dict[str, int] = {}
    merge(whole, {"user_cpu_us": 5})
    merge(whole, {"user_cpu_us": 7} | summed_up([THIRD]))
    assert whole == {"user_cpu_us": 12} | summed_up([THIRD])
