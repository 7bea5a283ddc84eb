"""What a preview of a run says in one line and at length."""

from understudy.experiments.preview import Answer, Preview


def a_look() -> Preview:
    preview = Preview(2, 8, without_effect=["TmpFS"])
    preview.add("1", 0.0, 100.0, 4, Answer(cpus=4))
    preview.add("2", 50.0, 100.0, 16, Answer(stuck="PartitionConfig"))
    preview.add("3", 300.0, 100.0, 1, Answer(refused="Invalid account"))
    preview.add("4", 300.0, 100.0, 1, Answer(refused="Invalid account"))
    return preview


def test_one_line_says_all() -> None:
    line = a_look().line()
    assert line == (
        "2 nodes, 8 CPUs, offered load 0.69; 2 of 4 jobs would be refused (2 Invalid "
        "account); 1 of 4 jobs can never start (1 PartitionConfig); "
        "without effect here: TmpFS"
    )


def test_at_length_the_jobs_are_named() -> None:
    text = a_look().text().splitlines()
    assert text[1] == "1 of 4 jobs can run"
    assert "2 jobs would be refused: Invalid account (job 3, 4)" in text
    assert "1 job can never start: PartitionConfig (job 2)" in text


def test_a_job_wider_than_the_machine_is_warned_of() -> None:
    assert a_look().warnings == [
        (
            "1 job wider than the machine's 8 CPUs (the widest has 16, the first is job 2): "
            "is it the right machine?"
        )
    ]


def test_a_load_that_no_machine_can_bear_is_warned_of() -> None:
    preview = Preview(1, 1)
    for number in range(10):
        preview.add(str(number), number * 10.0, 100.0, 1, Answer())
    assert preview.load is not None
    assert preview.load > 1.5
    assert "offered load is 5.26" in preview.warnings[0]


def test_a_run_without_jobs_has_no_load() -> None:
    assert Preview(1, 1).line() == "1 node, 1 CPU, all jobs at once; all 0 jobs can run"


def test_many_reasons_and_keys_are_cut_short_in_the_line_alone() -> None:
    preview = Preview(1, 1, without_effect=[f"Key{number}" for number in range(9)])
    for number in range(5):
        preview.add(str(number), 0.0, 1.0, 1, Answer(refused=f"reason {number}"))
    assert "reason 2, ...)" in preview.line()
    assert "Key5 and 3 more" in preview.line()
    assert all(
        f"reason {number}" in preview.text() and f"Key{number + 4}" in preview.text()
        for number in range(5)
    )
