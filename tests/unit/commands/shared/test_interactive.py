import io
from types import SimpleNamespace

from understudy.commands.shared.interactive import typed


def words_of(text: str) -> tuple[list[list[str]], str]:
    context = SimpleNamespace(stdin=io.StringIO(text), stdout=io.StringIO())
    return list(typed(context, "> ")), context.stdout.getvalue()


def test_each_line_is_a_command_until_stdin_ends():
    assert words_of("list user 'a b'\nquit") == (
        [["list", "user", "a b"], ["quit"]],
        "> list user 'a b'\n> quit\n> \n",
    )


def test_what_is_empty_or_cannot_be_read_is_passed_over():
    assert words_of("\n 'open\n!!\nlist\n")[0] == [["list"]]


def test_two_exclamation_marks_are_the_line_before():
    assert words_of("list qos\n\n!!\n!!\n")[0] == [["list", "qos"]] * 3
