"""Alternatives, as a file says them."""

from pathlib import Path

import pytest

from understudy.experiments.futures import Deed, Future, FuturesError, read_deed, read_futures

EXAMPLES = Path(__file__).parents[3] / "examples"


def read(tmp_path, text):
    path = tmp_path / "futures.toml"
    path.write_text(text)
    return read_futures(path)


def test_a_file_of_alternatives_is_read(tmp_path):
    text = """
    [[future]]
    name = "drain-2"
    do = ["scontrol update NodeName=n1 State=DRAIN Reason='a b'",
          {after = "1h", command = "sbatch -n1 --wrap=x", run = 30, user = "ada"}]
    set = "KillWait=9"
    [[future]]
    trace = "more.swf"
    load = 2
    failures = "exponential:mtbf=1h"
    seed = 3
    """
    (tmp_path / "more.swf").touch()
    first, second = read(tmp_path, text)
    drain = Deed(("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=a b"))
    sbatch = Deed(("sbatch", "-n1", "--wrap=x"), 3600.0, 30.0, "ada")
    assert first == Future("drain-2", (drain, sbatch), ("KillWait=9",))
    assert second == Future(
        "2", trace=tmp_path / "more.swf", load=2.0, failures="exponential:mtbf=1h", seed=3
    )
    assert first.changes() == [
        "--set KillWait=9",
        "scontrol update NodeName=n1 State=DRAIN 'Reason=a b'",
        "sbatch -n1 --wrap=x (after 3600 s)",
    ]
    assert second.changes() == [
        f"trace {tmp_path}/more.swf",
        "load 2",
        "failures exponential:mtbf=1h",
    ]
    assert (sbatch.submits, drain.submits) == (True, False)


def test_one_without_a_change_is_an_unchanged_one():
    assert not Future("a", seed=7).is_changed
    assert Future("a", load=1.5).is_changed
    assert Future("a", (Deed(("scancel", "1")),)).is_changed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no [[future]] table"),
        ("future = 3", "no [[future]] table"),
        ("future = [3]", "future 1: expected a table"),
        ("a = 1\n[[future]]", "a: it has [[future]] tables, nothing else"),
        ("[[future", "Expected ']]'"),
        ("[[future]]\nnam = 'a'", "future 1: nam: unknown; there are do, failures"),
        ("[[future]]\nname = '../a'", "name '../a': it names a folder"),
        ("[[future]]\nname = 3", "future 3: name 3: expected a text"),
        ("[[future]]\nname = 'original'", "name 'original' is that of the unchanged run"),
        ("[[future]]\nname = '2'\n[[future]]", "two have the name '2'"),
        ("[[future]]\ndo = ['']", "future 1: an empty command"),
        ("[[future]]\ndo = [3]", "do 3: expected a command line"),
        ("[[future]]\ndo = 'rm -rf /'", "rm: not a command that can be used here (scontrol, "),
        ('[[future]]\ndo = "scontrol \'"', "No closing quotation"),
        ("[[future]]\ndo = [{command='scancel 1', after='soon'}]", "after 'soon': expected a time"),
        ("[[future]]\ndo = [{command='scancel 1', run=3}]", "run and user are for sbatch"),
        ("[[future]]\ndo = [{command='sbatch a', run=-3}]", "do: run -3: expected seconds"),
        ("[[future]]\ndo = [{cmd='scancel 1'}]", "do: cmd: unknown; there are after, command"),
        ("[[future]]\nset = [1]", "set 1: expected a text"),
        ("[[future]]\nset = ['Nonsense=3']", "future 1: set Nonsense=3: slurm.conf has no key"),
        ("[[future]]\ntrace = 'none.swf'", "/none.swf: there is no such file"),
        ("[[future]]\nload = 0.5", "load 0.5: from 1 to 100"),
        ("[[future]]\nload = nan", "load nan: expected a number"),
        ("[[future]]\nload = true", "load True: expected a number"),
        ("[[future]]\nseed = 1.5", "seed 1.5: expected a whole number"),
        ("future = " + "[" * 9999, "maximum recursion depth exceeded"),
        ("[[future]]\nfailures = 'gamma'", "failures gamma: 'gamma' is none of exponential"),
    ],
)
def test_what_is_none_is_said_in_a_line_with_the_file(tmp_path, text, said):
    with pytest.raises(FuturesError) as caught:
        read(tmp_path, text)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{tmp_path}/futures.toml")
    assert said in line


def test_a_mistake_is_told_with_its_line(tmp_path):
    text = "[[future]]\nload = 2\nname = 'a'\n[[future]]\nname = 'b'\n{}\n"
    for wrong, line in (("load = 0.5", 6), ("nam = 1", 6), ("do = 'rm x'", 4)):
        with pytest.raises(FuturesError, match=rf"futures.toml line {line}: future b: "):
            read(tmp_path, text.format(wrong))
    with pytest.raises(FuturesError, match="line 4: future a: two have the name 'a'"):
        read(tmp_path, text.replace("'b'", "'a'").format(""))


def test_a_file_that_is_not_there_or_no_text_is_said(tmp_path):
    with pytest.raises(FuturesError, match="No such file"):
        read_futures(tmp_path / "none.toml")
    (tmp_path / "futures.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(FuturesError, match="not in UTF-8"):
        read_futures(tmp_path / "futures.toml")


def test_words_are_a_command_as_they_are():
    assert read_deed(["scancel", "a b"]) == Deed(("scancel", "a b"))


def test_the_shipped_alternatives_can_be_read():
    names = [each.name for each in read_futures(EXAMPLES / "futures.toml")]
    assert names == ["same", "drain", "hour", "urgent", "builtin", "busy", "failing"]
