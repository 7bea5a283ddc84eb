"""What `sacctmgr --help` says behind its options: commands, entities, and the keys of each."""

import textwrap

from understudy.commands.sacctmgr.fields import DEFAULTS, columns_of
from understudy.commands.sacctmgr.keys import ADDED_TO, SET, WHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.commands.sacctmgr.keys import Key

_COMMANDS = """
  Without a command it asks for one after the other, until the end of the input.

  Valid <COMMAND> values are:
     add <ENTITY> <SPECS>     make one or several
     archive <DUMP/LOAD> <SPECS>
                              put records of past jobs away, or back
     associations             from now on show associations along with the rest
     clear stats              statistics of the accounting daemon begin anew
     delete <ENTITY> <SPECS>  delete those that meet the conditions
     dump <CLUSTER> [File=<FILENAME>]
                              write a cluster's accounts and users into a file
     exit                     end
     help                     print this text
     list <ENTITY> [<SPECS>]  show those that meet the conditions, or all
     load <FILE> [<SPECS>]    make what such a file has. "cluster=" names another
                              cluster than the file, "clean" deletes what is there
     modify <ENTITY> <SPECS>  change those that meet the conditions
     oneliner                 each record on one line
     parsable                 fields with a | behind each
     parsable2                fields with a | between them
     quiet                    print errors alone
     quit                     end
     readonly                 change nothing from now on
     reconfigure              have the accounting daemon read its configuration
     shutdown                 end the accounting daemon
     show                     the same as list
     verbose                  say more
     version                  print the version
     !!                       the last command once more

  <ENTITY> may be "account", "association", "cluster", "configuration",
                  "coordinator", "event", "federation", "job", "problem", "qos",
                  "resource", "reservation", "runawayjobs", "stats",
                  "transaction", "tres", "user" or "wckey"

  <SPECS> are different for each command entity pair.
"""
_LISTED = (
    *("account", "association", "cluster", "event", "federation", "problem", "qos"),
    *("reservation", "resource", "runawayjobs", "transaction", "tres", "user", "wckey"),
)
_CHANGED = ("account", "cluster", "coordinator", "federation", "qos", "resource", "user")
_MODIFIED = ("account", "cluster", "federation", "job", "qos", "resource", "user")
_FORMATS = """
  Format options are different for listing each entity pair. What each shows
  of itself is here; a width may stand behind a field: format=name%30.
"""
_END = "\n  All commands, entities and options are case-insensitive.\n"


def help_words() -> str:
    """The text."""
    lines: list[str] = []
    for entity in _LISTED:
        lines += _keys(f"list {entity}", "", [*WHERE[entity], "Format"])
    for entity in _CHANGED:
        lines += _keys(f"add {entity}", "", [*ADDED_TO[entity], *SET[entity]])
    for entity in _MODIFIED:
        lines += _keys(f"modify {entity}", "(set options) ", SET[entity])
        lines += _keys("", "(where options) ", WHERE[entity])
    for entity in _CHANGED:
        lines += _keys(f"delete {entity}", "", WHERE[entity])
    fields = [
        line
        for entity, names in DEFAULTS.items()
        for line in _paragraph(
            entity.capitalize(), ", ".join(column.name for column in columns_of(names))
        )
    ]
    return "\n".join([_COMMANDS.rstrip(), *lines, _FORMATS.rstrip(), "", *fields]) + "\n" + _END


def _keys(title: str, before: str, keys: "Iterable[Key | str]") -> list[str]:
    names = dict.fromkeys(key if isinstance(key, str) else key.name for key in keys)
    return _paragraph(title, before + ", ".join(f"{name}=" for name in names))


def _paragraph(title: str, text: str) -> list[str]:
    head = f"       {title:<19}{'-' if title else ' '} "
    return textwrap.wrap(text, 80, initial_indent=head, subsequent_indent=" " * 28)
