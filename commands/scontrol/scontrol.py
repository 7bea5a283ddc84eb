"""scontrol: look at the cluster's records one by one, and change them. Follows scontrol(1) of
22.05.

Place: options, keywords and the interactive mode; `show` is in `show`, changes of records in
`update`, what concerns the daemons in `daemons`.
"""

import os

from understudy.commands.scontrol import update as scontrol_update
from understudy.commands.scontrol.session import OPTIONS, Session
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.in_order import EndedError, read_in_order
from understudy.commands.shared.options import Option
from understudy.documents.documents import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

API_VERSION = "slurm_api_version: 2490368, 38.0.0"  # as `version` adds when it is to say more
PROMPT = "scontrol: "


def do(session: Session, words: list[str]) -> int:
    """One command line in words."""
    typed, rest = words[0], words[1:]
    keyword = find_keyword(typed)
    if keyword is None:
        session.context.complain(f"invalid keyword: {typed}")
        return 1
    if len(rest) < keyword.fewest:
        text = (
            f"too few arguments for {typed} keyword"
            if keyword.word_first
            else f"too few arguments for keyword:{typed}"
        )
        (session.context.complain if keyword.word_first else session.complain)(text)
        return 1
    if keyword.most is not None and len(rest) > keyword.most:
        session.context.complain(
            f"too many arguments for {typed} keyword"
            if keyword.word_first
            else f"too many arguments for keyword:{typed}"
        )
        if not keyword.goes_on:
            return 1
        return keyword.do(session, []) or 1
    return keyword.do(session, rest)


def scontrol(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code."""
    keywords = (at for at, word in enumerate(arguments) if word.lower().startswith("setdebugf"))
    flags_at = next(keywords, len(arguments))  # behind it a minus is no option's
    try:
        given, words = read_in_order(
            OPTIONS,
            arguments[:flags_at],
            "",
            lambda option, value: _look(option, value, context),
            context,
        )
    except EndedError as ended:
        return ended.code
    words += arguments[flags_at:]
    names = {option.dest for option, _ in given} | {
        option.dest for option, _ in OPTIONS.from_environment(context.environ)
    }
    session = Session(context)
    session.one_line, session.details, session.quiet = (
        "oneliner" in names,
        "details" in names,
        "quiet" in names,
    )
    session.all, session.future, session.verbose = (
        "all" in names and "hide" not in names,
        "future" in names,
        "verbose" in names,
    )
    return do(session, words) if words else _interactive(session)


def _look(option: Option, value: "str | None", context: Context) -> None:
    """Show the help, or become the user.

    Raises:
        EndedError: that is all, or there is no such user.
    """
    if option.dest == "full_help":
        Session(context).show_help()
        raise EndedError(0)
    if option.dest == "uid" and not _become(value or ""):
        context.error(f'--uid="{value}" invalid')
        raise EndedError(0)


def _become(name: str) -> bool:
    """Ask the controller as another user, as far as the system lets us. Whether there is such a
    user.
    """
    import pwd

    try:
        number = (pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)).pw_uid
    except KeyError:
        return False
    if os.geteuid() == 0:
        os.seteuid(number)
    return True


def _interactive(session: Session) -> int:
    """Read lines until the end. What is typed into a pipe is shown, as the line editor shows it.
    `!!` stands for the last command.
    """
    context = session.context
    code = 0
    last: list[str] = []
    echoes = not context.stdin.isatty()
    while not session.ended:
        context.stdout.write(PROMPT)
        context.stdout.flush()
        line = context.stdin.readline()
        if not line:
            context.print("")
            break
        if echoes:
            context.stdout.write(line if line.endswith("\n") else line + "\n")
        words = _words(line)
        if words == ["!!"]:
            words = last
            code = code if words else 1
        if words:
            last = words
            code = do(session, words) or code
    return code


def _words(line: str) -> list[str]:
    """The words of a line; blanks between quotation marks are part of a word, and the marks are."""
    found: list[str] = []
    word, quote = "", ""
    for letter in line:
        if letter.isspace() and not quote:
            found.append(word)
            word = ""
            continue
        if letter in "\"'":
            quote = "" if quote == letter else quote or letter
        word += letter
    return [each for each in (*found, word) if each]


# --- keywords that concern the session or a job ---------------------------------------------------


def _show(session: Session, words: list[str]) -> int:
    from understudy.commands.scontrol.show import show

    return show(session, words)


def _set_flag(name: str, *, value: bool) -> "Callable[[Session, list[str]], int]":
    def set_flag(session: Session, words: list[str]) -> int:
        del words
        setattr(session, name, value)
        return 0

    return set_flag


def _quiet(session: Session, words: list[str]) -> int:
    del words
    session.quiet, session.verbose = True, False
    return 0


def _help(session: Session, words: list[str]) -> int:
    if words:
        session.context.complain("too many arguments for keyword:help")
    session.show_help()
    return int(bool(words))


def _version(session: Session, words: list[str]) -> int:
    del words
    session.context.print(f"slurm {VERSION}")
    if session.verbose:
        session.context.print(API_VERSION)
    return 0


def _cluster(session: Session, words: list[str]) -> int:
    return int(bool(words) and session.context.refuses_clusters(words[0]))


def _error_text(session: Session, words: list[str]) -> int:
    from understudy.model.errors import ERROR_TEXT, OTHER_TEXT

    if len(words) != 1:
        session.context.complain("one arguments required for keyword:errnumstr")
        return 1
    number = words[0].removeprefix("-")
    if not number.isdigit():
        session.context.complain("numeric arguments required for keyword:errnumstr")
        return 1
    code = int(words[0])
    session.context.print(OTHER_TEXT.get(code) or ERROR_TEXT.get(code) or os.strerror(code))
    return 0


def _jobs(action: str) -> "Callable[[Session, list[str]], int]":
    def act(session: Session, words: list[str]) -> int:
        return scontrol_update.control(action, words, session)

    return act


def _change(name: str) -> "Callable[[Session, list[str]], int]":
    def change(session: Session, words: list[str]) -> int:
        made: int = getattr(scontrol_update, name)(words, session)
        return made

    return change


def _processes(name: str) -> "Callable[[Session, list[str]], int]":
    """A keyword of scontrol_processes."""

    def ask(session: Session, words: list[str]) -> int:
        from understudy.commands.scontrol import processes as scontrol_processes

        answer: int = getattr(scontrol_processes, name)(session, words)
        return answer

    return ask


def _daemons(name: str) -> "Callable[[Session, list[str]], int]":
    """A keyword of scontrol_daemons, which is read when it is needed."""

    def ask(session: Session, words: list[str]) -> int:
        from understudy.commands.scontrol import daemons as scontrol_daemons

        answer: int = getattr(scontrol_daemons, name)(session, words)
        return answer

    return ask


class Keyword:
    """What one may ask for. `least`: how many letters of it must be written; `fewest`, `most`: how
    many words may follow.

    `word_first`: how the refusal of too few or too many is worded; `goes_on`: after too many it is
    done all the same.
    """

    __slots__ = ("do", "fewest", "goes_on", "least", "most", "name", "word_first")

    def __init__(
        self,
        name: str,
        least: int,
        do: "Callable[[Session, list[str]], int]",
        fewest: int = 0,
        most: int | None = None,
        *,
        word_first: bool = False,
        goes_on: bool = False,
    ) -> None:
        self.name, self.least, self.do, self.fewest, self.most, self.word_first, self.goes_on = (
            name,
            least,
            do,
            fewest,
            most,
            word_first,
            goes_on,
        )


# In the order in which an abbreviation is looked up.
KEYWORDS = (
    Keyword("abort", 2, _daemons("abort")),
    Keyword("all", 2, _set_flag("all", value=True)),
    Keyword("cancel_reboot", 3, _daemons("cancel_reboot"), 0, 1),
    Keyword("cluster", 2, _cluster),
    Keyword("completing", 2, _daemons("completing"), 0, 0),
    Keyword("create", 2, _change("create"), 1, word_first=True),
    Keyword("details", 1, _set_flag("details", value=True), 0, 0),
    Keyword("delete", 3, _change("delete"), 1, word_first=True),
    Keyword("errnumstr", 2, _error_text),
    Keyword("exit", 2, _set_flag("ended", value=True), 0, 0, goes_on=True),
    Keyword("fsdampeningfactor", 3, _daemons("dampening_factor"), 1, 1),
    Keyword("getent", 6, _processes("getent")),
    Keyword("help", 2, _help),
    Keyword("hide", 2, _set_flag("all", value=False)),
    Keyword("hold", 4, _jobs("hold"), 1),
    Keyword("holdjob", 5, _jobs("hold"), 1),
    Keyword("holdu", 5, _jobs("uhold"), 1),
    Keyword("listpids", 1, _processes("list_processes"), 0, 2),
    Keyword("notify", 1, _daemons("notify"), 2),
    Keyword("oneliner", 1, _set_flag("one_line", value=True), 0, 0),
    Keyword("pidinfo", 3, _processes("process_info"), 0, 1),
    Keyword("ping", 3, _daemons("ping"), 0, 0),
    Keyword("quiet", 4, _quiet, 0, 0),
    Keyword("quit", 4, _set_flag("ended", value=True), 0, 0, goes_on=True),
    Keyword("reboot", 3, _daemons("reboot")),
    Keyword("reconfigure", 3, _daemons("reconfigure")),
    Keyword("release", 3, _jobs("release"), 1),
    Keyword("requeue", 3, _jobs("requeue"), 1),
    Keyword("requeuehold", 11, _jobs("requeuehold"), 1),
    Keyword("resume", 3, _jobs("resume"), 1),
    Keyword("schedloglevel", 3, _daemons("schedule_log_level"), 1, 1),
    Keyword("setdebug", 2, _daemons("debug_level"), 1, 1),
    Keyword("setdebugflags", 9, _daemons("debug_flags"), 1, 1),
    Keyword("show", 3, _show, 1),
    Keyword("shutdown", 8, _daemons("shutdown"), 0, 1),
    Keyword("suspend", 2, _jobs("suspend"), 1),
    Keyword("takeover", 8, _daemons("takeover")),
    Keyword("token", 3, _daemons("token")),
    Keyword("top", 3, _jobs("top"), 1, 1),
    Keyword("uhold", 5, _jobs("uhold"), 1),
    Keyword("update", 1, _change("update"), 1, word_first=True),
    Keyword("verbose", 4, _set_flag("verbose", value=True), 0, 0, word_first=True),
    Keyword("version", 4, _version, 0, 0, word_first=True, goes_on=True),
    Keyword("wait_job", 2, _daemons("wait_job"), 1, 1),
    Keyword("write", 5, _daemons("write"), 1, 3),
)


def find_keyword(word: str) -> Keyword | None:
    """The keyword that the word is, or begins with enough of its letters."""
    lowered = word.lower()
    exact = next((keyword for keyword in KEYWORDS if keyword.name == lowered), None)
    return exact or next(
        (
            keyword
            for keyword in KEYWORDS
            if len(lowered) >= keyword.least and keyword.name.startswith(lowered)
        ),
        None,
    )


def main() -> int:
    """Run as a program; does not return."""
    return run("scontrol", scontrol)


if __name__ == "__main__":
    main()
