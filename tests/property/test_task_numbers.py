"""Array expressions: what is shown is understood again.

Covers: model/task_numbers.
"""

from hypothesis import given
from hypothesis import strategies as st

from understudy.model.task_numbers import format_tasks, parse, parse_tasks


@given(st.sets(st.integers(0, 200), min_size=1))
def test_what_is_shown_names_the_same_tasks(numbers: set[int]) -> None:
    tasks = sum(1 << number for number in numbers)
    assert parse_tasks(format_tasks(tasks), 1001) == tasks


@given(st.text(alphabet="0123456789,-:%[] a", max_size=12))
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        tasks, limit = parse(text, 1001)
    except ValueError:
        return
    assert tasks < 1 << 1001
    assert tasks > 0 or not text.strip("[,"), "commas alone name no task"
    assert limit >= 0
