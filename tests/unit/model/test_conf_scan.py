"""Lines and pairs of slurm.conf, as 22.05 splits them."""

from pathlib import Path

import pytest

from understudy.model.conf_scan import scan, scan_text, split_pairs


def pairs(text: str) -> list[list[tuple[str, str]]]:
    return [line.pairs for line in scan_text(text).lines]


def errors(text: str) -> list[tuple[int, str, str]]:
    return [(finding.line, finding.text, finding.key) for finding in scan_text(text).findings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("KillWait=3\n", [[("killwait", "3")]]),
        ("  KILLWAIT \t=  3", [[("killwait", "3")]]),
        ("KillWait=3 # comment\n#KillWait=4\n", [[("killwait", "3")]]),
        ("KillWait=3#comment", [[("killwait", "3")]]),
        ("Epilog=a\\#b", [[("epilog", "a#b")]]),
        ('Reason="a b" CPUs=2', [[("reason", "a b"), ("cpus", "2")]]),
        ('Epilog=""', [[("epilog", "")]]),
        ('Epilog="a#b"', [[("epilog", '"a')]]),
        ("KillWa\\\nit=3", [[("killwait", "3")]]),
        (
            "NodeName=a \\\n CPUs=2 \\  \n State=UP\nKillWait=1",
            [[("nodename", "a"), ("cpus", "2"), ("state", "UP")], [("killwait", "1")]],
        ),
        ("KillWait=3 # comment \\\nWaitTime=4", [[("killwait", "3")], [("waittime", "4")]]),
        ("KillWait==3", [[("killwait", "=3")]]),
        ("NodeName= CPUs=1", [[("nodename", "CPUs=1")]]),
        ("KillWait=3\r\nWaitTime=4\r\n", [[("killwait", "3")], [("waittime", "4")]]),
        ("KillWait=3 \\", [[("killwait", "3")]]),
        ("\n \n\\\n\n", []),
        ("", []),
    ],
)
def test_lines_are_split_into_pairs(text: str, expected: list[list[tuple[str, str]]]) -> None:
    assert pairs(text) == expected
    assert errors(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("foo", (1, "foo", "")),
        ("\n\nKillWait=\n", (3, "KillWait=", "")),
        ("=3", (1, "=3", "")),
        ("Epi log=3", (1, "Epi log=3", "")),
        ("Epi-log=3", (1, "Epi-log=3", "")),
        ("KillWait=3 junk", (1, "junk", "KillWait")),
        ('Epilog="a b', (1, "b", "Epilog")),
        ("\nNodeName=a \\\n CPUs=2 \\\n junk State=UP", (2, "junk State=UP", "NodeName")),
        ("NodeName=a RealMemory=", (1, "RealMemory=", "NodeName")),
        ("x" * 300, (1, "x" * 100, "")),
    ],
)
def test_what_is_no_pair_is_named_with_the_line_where_it_begins(
    text: str, expected: tuple[int, str, str]
) -> None:
    assert errors(text) == [expected]


def test_pairs_before_a_stray_word_are_kept() -> None:
    assert split_pairs("A=1 B=2 c D=3") == ([("A", "1"), ("B", "2")], "c D=3")


def test_continued_lines_are_counted_once_each() -> None:
    assert scan_text("a=\\\n1\\\n2\nb=3\nc=4 \\\n").continued_lines == 2


def test_includes_are_relative_to_the_including_file_or_beside_it(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "slurm.conf").write_text(
        "A=1\nInclude more/b.conf\ninclude /no/such/folder/c.conf # beside\nD=4\n"
    )
    (tmp_path / "more" / "b.conf").write_text("\nB=2\nINCLUDE   e.conf\n")
    (tmp_path / "more" / "e.conf").write_text("E=5\n")
    (tmp_path / "c.conf").write_text("C=3\n")
    result = scan(str(tmp_path / "slurm.conf"))
    assert [(Path(line.file).name, line.line, line.key) for line in result.lines] == [
        ("slurm.conf", 1, "a"), ("b.conf", 2, "b"), ("e.conf", 1, "e"), ("c.conf", 1, "c"),
        ("slurm.conf", 4, "d"),
    ]  # fmt: skip
    assert [Path(name).name for name in result.files] == [
        "slurm.conf",
        "b.conf",
        "e.conf",
        "c.conf",
    ]
    assert result.findings == []


def test_a_missing_include_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text("A=1\nInclude nothing.conf\nB=2\n")
    result = scan(str(path))
    assert [str(finding) for finding in result.findings] == [
        f"{path} line 2: cannot include nothing.conf: No such file or directory"
    ]
    assert [line.key for line in result.lines] == ["a", "b"]


def test_a_file_that_includes_itself_ends(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text("Include slurm.conf\nA=1\n")
    findings = scan(str(path)).findings
    assert [finding.message for finding in findings] == [
        "cannot include slurm.conf: it includes itself"
    ]


def test_bytes_that_are_no_text_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_bytes(b"A=\xff\xfe\nB=1\0\n")
    assert [line.key for line in scan(str(path)).lines] == ["a", "b"]
