"""What --switches says, as slurmctld 22.05.8 understands it."""

import pytest

from understudy.model.switches import read_switches


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("2", (2, None)),
        ("2@5", (2, 300)),
        ("2@1:30", (2, 90)),
        ("2@0", (2, 0)),
        ("2@", (2, None)),
        ("2@-1", (2, None)),
        ("2@infinite", (2, None)),
        ("2@soon", (2, None)),
        ("2@5@6", (2, None)),
        ("0", (None, None)),
        ("soon", (None, None)),
    ],
)
def test_a_count_and_the_seconds_to_wait_for_it(
    text: str, meaning: tuple[int | None, int | None]
) -> None:
    assert read_switches(text) == meaning
