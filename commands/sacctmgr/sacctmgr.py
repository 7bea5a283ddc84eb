"""sacctmgr: show and change what accounting knows. Follows sacctmgr(1) of 22.05."""

import sys

from understudy.commands.sacctmgr.session import Session
from understudy.commands.shared.accounting_client import (
    AccountingClient,
    NoAccountingError,
    say_connected,
)
from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.options import NONE, Option, OptionTable
from understudy.documents.documents import VERSION

TYPE_CHECKING = False

OPTIONS = OptionTable(
    [
        Option("help", "h", NONE, "print this text"),
        Option("usage", "", NONE, ""),
        Option("associations", "s", NONE, "show associations along with users and accounts"),
        Option("immediate", "i", NONE, "commit changes without asking"),
        Option("noheader", "n", NONE, "print no header"),
        Option("oneliner", "o", NONE, "accepted; each record is on one line"),
        Option("parsable", "p", NONE, "fields with a | behind each"),
        Option("parsable2", "P", NONE, "fields with a | between them"),
        Option("quiet", "Q", NONE, "print errors alone"),
        Option("readonly", "r", NONE, "change nothing"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
    ]
)
_ENTITIES = [  # name, how many letters are enough
    ("account", 2),
    ("association", 2),
    ("cluster", 2),
    ("configuration", 2),
    ("coordinator", 4),
    ("event", 1),
    ("federation", 1),
    ("job", 1),
    ("problem", 1),
    ("qos", 1),
    ("reservation", 4),
    ("resource", 4),
    ("runawayjobs", 2),
    ("stats", 1),
    ("transaction", 1),
    ("tres", 2),
    ("user", 1),
    ("wckey", 1),
]
_LISTED = (
    'No valid entity in list command\nInput line must include "Account", "Association", '
    '"Cluster", "Configuration",\n'
    '"Event", "Federation", "Problem", "QOS", "Resource", "Reservation",\n'
    '"RunAwayJobs", "Stats", "Transaction", "TRES", "User", or "WCKey"'
)
_CHANGED = (
    'Input line must include "Account", "Cluster", "Coordinator", "Federation", "QOS", '
    '"Resource", or "User"'
)
_MODIFIED = (
    'Input line must include "Account", "Cluster", "Federation", "Job", "QOS", "Resource" or "User"'
)
_CHANGEABLE = frozenset(
    ("account", "cluster", "coordinator", "federation", "qos", "resource", "user")
)
_MODIFIABLE = frozenset(("account", "cluster", "federation", "job", "qos", "resource", "user"))
_SHOWN = frozenset(
    (
        *(
            "account",
            "association",
            "cluster",
            "configuration",
            "event",
            "federation",
            "problem",
            "qos",
            "reservation",
            "resource",
            "runawayjobs",
            "stats",
        ),
        *("transaction", "tres", "user", "wckey"),
    )
)
_WITHOUT_EFFECT = (("quiet", 4), ("oneliner", 1), ("exit", 4), ("quit", 4))


def sacctmgr(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code."""
    given, words = OPTIONS.parse(arguments, permute=True)
    session = Session(context)
    verbosity = sum(option.dest == "verbose" for option, _ in given)
    for option, _ in given:
        if option.dest in {"help", "usage"}:
            _help(context)
            return 0
        if option.dest == "version":
            context.print(f"slurm {VERSION}")
            return 0
        _apply(session, option.dest)
    try:
        if verbosity:
            say_connected(context, "sacctmgr", verbosity)
        if not words:
            return _interactive(session)
        _command(session, words)
    except NoAccountingError:
        context.complain(
            "You are not running a supported accounting_storage plugin\n"
            "Only 'accounting_storage/slurmdbd' is supported."
        )
        return 1
    except RefusedError as error:
        context.error(error.text)
        return 1
    return session.code


def _help(context: Context) -> None:
    from understudy.commands.sacctmgr.help_words import help_words

    context.help(OPTIONS, help_words())


def _apply(session: Session, option: str) -> None:
    if option == "immediate":
        session.asks = False
    elif option == "noheader":
        session.header = False
    elif option == "parsable":
        session.parsable = 1
    elif option == "parsable2":
        session.parsable = 2
    elif option == "associations":
        session.with_associations = True
    elif option == "readonly":
        session.readonly = True


def _interactive(session: Session) -> int:
    """Commands from stdin until it ends or `quit`."""
    from understudy.commands.shared.interactive import typed

    for words in typed(session.context, "sacctmgr: "):
        _command(session, words)
        if words[0].lower() in {"exit", "quit"}:
            break
    return session.code


def _is(word: str, name: str, least: int) -> bool:
    return len(word) >= least and name.startswith(word.lower())


def _command(session: Session, words: list[str]) -> None:
    """One command."""
    context = session.context
    verb, rest = words[0], words[1:]
    if _is(verb, "add", 3) or _is(verb, "create", 3):
        _change(session, "add", rest)
    elif _is(verb, "show", 3) or _is(verb, "list", 3):
        _show(session, rest)
    elif _is(verb, "modify", 1) or _is(verb, "update", 1):
        _change(session, "modify", rest)
    elif _is(verb, "delete", 3) or _is(verb, "remove", 3):
        _change(session, "delete", rest)
    elif _is(verb, "dump", 3):
        from understudy.commands.sacctmgr.dump import dump

        session.code = dump(session, rest)
    elif _is(verb, "load", 2):
        _load(session, rest)
    elif _is(verb, "archive", 3):
        if not rest or not (_is(rest[0], "dump", 1) or _is(rest[0], "load", 1)):
            context.complain(
                'No valid entity in archive command\nInput line must include, "Dump", or "load"'
            )
            session.code = 1
            return
        from understudy.commands.sacctmgr import archive

        session.code = max(
            session.code,
            (archive.dump if _is(rest[0], "dump", 1) else archive.load)(session, rest[1:]),
        )
    elif _is(verb, "version", 4):
        context.print(f"slurm {VERSION}")
        _refuse_more(session, f"{verb} keyword", rest)
    elif _is(verb, "help", 2):
        _help(context)
        _refuse_more(session, f"keyword:{verb}", rest)
    elif _is(verb, "associations", 3):
        session.with_associations = True
    elif _is(verb, "readonly", 4) or _is(verb, "verbose", 4):
        if not _refuse_more(session, f"{verb} keyword", rest):
            _apply(session, "readonly" if _is(verb, "readonly", 4) else "verbose")
    elif _is(verb, "clear", 3):
        _clear(session, rest)
    elif _is(verb, "shutdown", 4) or _is(verb, "reconfigure", 3):
        if not _refuse_more(session, f"{verb} keyword", rest) and _is(verb, "shutdown", 4):
            _shut_down(session)
    elif any(_is(verb, name, least) for name, least in _WITHOUT_EFFECT):
        _refuse_more(session, f"keyword:{verb}", rest)
    else:
        context.complain(f"invalid keyword: {verb}")
        session.code = 1


def _load(session: Session, words: list[str]) -> None:
    if session.readonly:
        session.context.complain("Can't run this command in readonly mode.")
        session.code = 1
        return
    from understudy.commands.sacctmgr.load import load

    session.code = max(session.code, load(session, words))


def _refuse_more(session: Session, what: str, rest: "list[str]") -> bool:
    """Whether words follow what stands alone, which is said then."""
    if rest:
        session.context.complain(f"too many arguments for {what}")
        session.code = 1
    return bool(rest)


def _shut_down(session: Session) -> None:
    try:
        session.context.client.call("Shutdown")
    except RefusedError as error:
        session.context.complain(f" Problem shutting down server: {error.text}")
        session.code = 1


def _clear(session: Session, words: list[str]) -> None:
    if not words or not _is(words[0], "stats", 1):
        session.context.complain('No valid entity in list command\nInput line must include "Stats"')
        session.code = 1
    elif not session.is_administrator():
        session.code = 1
    else:
        session.context.client.call("GetStatistics", True)


def _entity(words: list[str]) -> str:
    if not words:
        return ""
    return next(
        (name for name, least in _ENTITIES if len(words[0]) >= least and _begins(name, words[0])),
        "",
    )


def _begins(name: str, word: str) -> bool:
    """Whether the word is a beginning of the entity's name or of its plural."""
    lowered = word.lower()
    other = {"account": "acct", "transaction": "txn"}.get(name, "")
    return (name + "s").startswith(lowered) or other.startswith(lowered)


def _show(session: Session, words: list[str]) -> None:
    entity = _entity(words)
    if entity not in _SHOWN:
        session.context.complain(_LISTED)
        session.code = 1
        return
    from understudy.commands.sacctmgr.request import refuse
    from understudy.commands.sacctmgr.show import show
    from understudy.commands.sacctmgr.words import ValueRefusedError

    try:
        code = show(session, entity, words[1:])
    except ValueRefusedError as error:
        code = refuse(session, error)
    session.code = max(session.code, code)


def _change(session: Session, action: str, words: list[str]) -> None:
    if session.readonly:
        session.context.complain("Can't run this command in readonly mode.")
        session.code = 1
        return
    entity = _entity(words)
    if entity not in (_MODIFIABLE if action == "modify" else _CHANGEABLE):
        session.context.complain(
            f"No valid entity in {action} command\n{_MODIFIED if action == 'modify' else _CHANGED}"
        )
        session.code = 1
        return
    from understudy.commands.sacctmgr.change import change
    from understudy.commands.sacctmgr.request import refuse
    from understudy.commands.sacctmgr.words import ValueRefusedError

    try:
        code = change(session, action, entity, words[1:])
    except ValueRefusedError as error:
        code = refuse(session, error)
    session.code = max(session.code, code)


def main() -> None:
    """The console script."""
    sys.exit(run("sacctmgr", sacctmgr, client=AccountingClient()))
