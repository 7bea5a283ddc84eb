"""sacctmgr archive dump, load: the checks before, and what accounting is asked for.

Place: under sacctmgr. Accounting writes and reads the files.
"""

import os
import re

from understudy.commands.sacctmgr import words as sw
from understudy.commands.shared.client import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.sacctmgr.session import Session

_ARCHIVED = {
    "events": "Event",
    "jobs": "Job",
    "resvs": "Resv",
    "steps": "Step",
    "suspend": "",
    "txn": "TXN",
    "usage": "Usage",
}
_PURGES = {
    f"purge{kind.lower()}after": kind for kind in ("Event", "Job", "Resv", "Step", "TXN", "Usage")
} | {"purgesuspendafter": ""}
_KEYS = ("directory", "script", *_PURGES)
_AGE = re.compile(r"\d+(h(ours?)?|d(ays?)?|m(onths?)?)?", re.IGNORECASE)
_QUESTION = (
    "This may result in loss of accounting database records (if Purge* options enabled).\n"
    "Are you sure you want to continue? (You have 30 seconds to decide)"
)


def dump(session: "Session", words: list[str]) -> int:
    """Have accounting write old records to files, and forget them. The exit code."""
    context = session.context
    folder, archived, purges = "", [], {}
    for word in words:
        key, _, value = sw.split_word(word)
        if not key:
            kind = next(
                (
                    kind
                    for name, kind in _ARCHIVED.items()
                    if value and name.startswith(value.lower())
                ),
                "",
            )
            archived += [kind] if kind else []
            continue
        name = next((each for each in _KEYS if each.startswith(key.lower())), "")
        if not name:
            context.complain(f" Unknown condition: {word}")
            return 1
        if name in {"directory", "script"}:
            if not (os.path.isdir if name == "directory" else os.path.isfile)(value):
                reason = os.strerror(20 if os.path.exists(value) and name == "directory" else 2)
                context.complain(
                    f" dump: Failed to stat {value}: {reason}\n"
                    f" Note: For archive dump, the {name} must be on the calling host."
                )
                return 1
            folder = os.path.abspath(value) if name == "directory" else folder
        elif not _AGE.fullmatch(value):
            context.error(f"Invalid purge string '{value}'")
            return 1
        elif _PURGES[name]:
            purges[_PURGES[name]] = value
    if not session.is_administrator():
        context.error("Your user doesn't have privilege to perform this action")
        context.complain(" Problem dumping archive: Access/permission denied")
        return 1
    if not session.confirmed(_QUESTION):
        return 0
    return _ask(session, "dumping archive", "archive", "DumpArchive", folder, archived, purges)


def load(session: "Session", words: list[str]) -> int:
    """Have accounting read a file. The exit code."""
    context = session.context
    path = ""
    for word in words:
        key, _, value = sw.split_word(word)
        if not key or "file".startswith(key.lower()):
            path = value
        elif not "insert".startswith(key.lower()):
            context.complain(f" Unknown option: {word}")
            return 1
    if path and not os.path.exists(path):
        context.error("No archive file given to recover.")
        context.complain(
            " Problem loading archive file: No such file or directory\n"
            " Note: For archive load, the file must be accessible on the slurmdbd host."
        )
        return 1
    if not path:
        context.error("Error with request.")
        context.complain(" Problem loading archive file: Unspecified error")
        return 1
    return _ask(
        session, "loading archive file", "archive_load", "LoadArchive", os.path.abspath(path)
    )


def _ask(session: "Session", what: str, call: str, message: str, *fields: "Any") -> int:
    try:
        session.context.client.call(message, *fields)
    except RefusedError as error:
        session.context.error("Error with request.")
        session.context.complain(f" Problem {what}: {error.text}")
        return 1
    session.context.complain(
        f"sacctmgr: accounting_storage/slurmdbd: jobacct_storage_p_{call}: SUCCESS"
    )
    return 0
