"""sacctmgr archive dump, load: the checks before, and what there is to do.

Place: under sacctmgr. Accounting purges by itself what slurmdbd.conf says, so a dump finds nothing that is due; files of archives are not read.
"""

import os

from understudy.commands import sacctmgr_words as sw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.sacctmgr import Session

_KEYS = ("directory", "script", "purgeeventafter", "purgejobafter", "purgeresvafter", "purgestepafter", "purgesuspendafter", "purgetxnafter")
_QUESTION = (
    "This may result in loss of accounting database records (if Purge* options enabled).\n"
    "Are you sure you want to continue? (You have 30 seconds to decide)"
)


def dump(session: "Session", words: list[str]) -> int:
    """Ask whether to write what is due to files. The exit code."""
    context = session.context
    for word in words:
        key, _, value = sw.split_word(word)
        if not key:
            continue
        name = next((each for each in (*_KEYS, "purgeusageafter") if each.startswith(key.lower())), "")
        if not name:
            context.complain(f" Unknown condition: {word}")
            return 1
        if name == "directory" and not os.path.isdir(value):
            reason = os.strerror(20 if os.path.exists(value) else 2)
            context.complain(f" dump: Failed to stat {value}: {reason}\n Note: For archive dump, the directory must be on the calling host.")
            return 1
    if not session.is_administrator():
        context.error("Your user doesn't have privilege to perform this action")
        context.complain(" Problem dumping archive: Access/permission denied")
        return 1
    session.confirmed(_QUESTION)
    return 0


def load(session: "Session", words: list[str]) -> int:
    """Say why nothing is read. The exit code."""
    context = session.context
    path = ""
    for word in words:
        key, _, value = sw.split_word(word)
        if not key or "file".startswith(key.lower()):
            path = value
        elif not "insert".startswith(key.lower()):
            context.complain(f" Unknown option: {word}")
            return 1
    if not path:
        context.error("Error with request.")
        context.complain(" Problem loading archive file: Unspecified error")
    elif not os.path.exists(path):
        context.error("No archive file given to recover.")
        context.complain(
            " Problem loading archive file: No such file or directory\n Note: For archive load, the file must be accessible on the slurmdbd host."
        )
    else:
        context.error("Error with request.")
        context.complain(" Problem loading archive file: Unspecified error")
    return 1
