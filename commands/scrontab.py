"""scrontab: a user's crontab, kept by the controller, whose entries are jobs. Follows scrontab(1)
of 22.05.
"""

import os

from understudy.commands.shared.client import RefusedError, pack_named
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.options import NONE, REQUIRED, Option, OptionError, OptionTable
from understudy.commands.submission.batch_script import ScriptError, directives
from understudy.commands.submission.job import BadOptionError, Job
from understudy.commands.submission.option_table import OPTIONS as JOB_OPTIONS
from understudy.commands.submission.options import apply
from understudy.model.cron import CronError, CronTime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OPTIONS = OptionTable(
    [
        Option("edit", "e", NONE, "change the crontab with $VISUAL or $EDITOR"),
        Option("help", "", NONE, "print this text"),
        Option("list", "l", NONE, "print the crontab"),
        Option("remove", "r", NONE, "remove the crontab"),
        Option("user", "u", REQUIRED, "NAME: of another user (administrators only)"),
        Option("usage", "", NONE, "print a short summary of the options"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
    ]
)
USAGE = "Usage: scrontab [-u user] [-v] [FILE | - | -e | -l | -r]"
OFF = "scrontab is disabled on this cluster"
BAD = "#BAD: "
DISABLED = "#DISABLED: "
NO_CRONTAB = 2
_EXAMPLE = """# A crontab of jobs. An entry is five fields that say when (minute, hour, day of
# the month, month, day of the week), or a name such as @hourly, and a command:
#
#   0 4 * * 1-5  $HOME/bin/nightly
#
# Lines that begin with #SCRON hold options of sbatch for the entry below them:
#
#   #SCRON --time=30 --job-name=nightly
"""


class _LineError(Exception):
    """A line that is not understood."""

    def __init__(self, line: int, text: str) -> None:
        self.line = line
        self.text = text
        super().__init__(text)


def scrontab(arguments: "list[str]", context: Context) -> int:
    """The command. Returns the exit code."""
    given, words = OPTIONS.parse(arguments)
    options = {option.dest: value or "" for option, value in given}
    if context.tells(OPTIONS, options, USAGE):
        return 0
    actions = [name for name in ("edit", "list", "remove") if name in options]
    if len(actions) + bool(words) > 1 or len(words) > 1:
        context.error("Only one of -e, -l, -r or a file may be given.")
        context.complain(USAGE)
        return 1
    user = _user(options.get("user"), context)
    if user is None:
        return 1
    try:
        config = dict(
            context.client.query("config", ["name", "value"], {"name": ["ScronParameters"]}).rows
        )
        if "enable" not in (config.get("ScronParameters") or "").lower():
            context.fatal(OFF)
            return 1
        if actions == ["list"]:
            return _list(user, context)
        if actions == ["remove"]:
            context.client.call("SetCrontab", "", [], user[1], user[2])
            return 0
        if actions == ["edit"]:
            return _edit(user, context, is_verbose="verbose" in options)
        text = _read(words[0] if words else "-", context)
        return (
            1
            if text is None
            or _install(text, user, context, is_verbose="verbose" in options) is not None
            else 0
        )
    except RefusedError as error:
        context.error(error.text)
        return 1


def _user(name: "str | None", context: Context) -> "tuple[str, int, int, str, str] | None":
    """Name, number, group, home and shell of whose crontab it is."""
    import pwd

    try:
        entry = (
            pwd.getpwuid(os.getuid())
            if name is None
            else pwd.getpwuid(int(name))
            if name.isdigit()
            else pwd.getpwnam(name)
        )
    except KeyError:
        context.error(f"Invalid user id: {name if name is not None else os.getuid()}")
        return None
    return entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_dir, entry.pw_shell


def _fetch(user: "tuple[str, int, int, str, str]", context: Context) -> "str | None":
    try:
        (text,) = context.client.call("GetCrontab", user[1])
    except RefusedError as error:
        if error.code == NO_CRONTAB:
            return None
        raise
    return str(text)


def _list(user: "tuple[str, int, int, str, str]", context: Context) -> int:
    text = _fetch(user, context)
    if text is None:
        context.complain(f"no crontab for {user[0]}")
        return 1
    context.stdout.write(text)
    return 0


def _read(path: str, context: Context) -> "str | None":
    if path == "-":
        return context.stdin.read()
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError as error:
        context.fatal(f"open() failed on {path}: {error.strerror}")
        return None


def _edit(user: "tuple[str, int, int, str, str]", context: Context, *, is_verbose: bool) -> int:
    """Hand the crontab to an editor until it can be installed or the user gives up."""
    import tempfile

    before = _fetch(user, context)
    editor = context.environ.get("VISUAL") or context.environ.get("EDITOR") or "vi"
    handle, path = tempfile.mkstemp(prefix="scrontab-")
    os.close(handle)
    try:
        text = before if before is not None else _EXAMPLE
        while True:
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
            import subprocess

            code = subprocess.call(["/bin/sh", "-c", f'{editor} "$1"', "sh", path])
            if code:
                context.error(f"editor '{editor}' failed with exit code {code}")
                return 1
            edited = _read(path, context)
            if edited is None:
                return 1
            if edited == (before if before is not None else _EXAMPLE):
                context.print("scrontab: no changes made")
                return 0
            marked = _install(edited, user, context, is_verbose=is_verbose)
            if marked is None:
                return 0
            text = marked
            context.stdout.write("Do you want to retry the edit? (y/n) ")
            context.stdout.flush()
            if not context.stdin.readline().lower().startswith("y"):
                return 1
    finally:
        os.unlink(path)


def _install(
    text: str, user: "tuple[str, int, int, str, str]", context: Context, *, is_verbose: bool
) -> "str | None":
    """Send the crontab. None: done; else the text with the lines marked that are wrong, which have
    been named.
    """
    lines = [line.removeprefix(BAD) if line.startswith(BAD) else line for line in text.splitlines()]
    entries, errors = [], []
    for found in _entries(lines, user, context):
        if isinstance(found, _LineError):
            errors.append(found)
        else:
            entries.append(found)
    if not errors:
        job_ids, failed, failure = context.client.call(
            "SetCrontab", "".join(line + "\n" for line in lines), entries, user[1], user[2]
        )[:3]
        if failed < 0:
            if is_verbose:
                for job_id in job_ids:
                    context.print(f"scrontab: submitted job {job_id}")
            return None
        errors.append(_LineError(entries[failed][2], failure))
    for error in errors:
        context.error(f"line {error.line}: {error.text}")
    context.error(
        "The crontab has errors and was not installed."
        if len(errors) > 1
        else "The crontab has an error and was not installed."
    )
    bad = {error.line for error in errors}
    return "".join((BAD if at in bad else "") + line + "\n" for at, line in enumerate(lines, 1))


def _entries(
    lines: "list[str]", user: "tuple[str, int, int, str, str]", context: Context
) -> "list[Any]":
    """Each entry as SetCrontab wants it, or what is wrong with its line."""
    found: list[Any] = []
    words: list[str] = []
    first = 0
    variables: dict[str, str] = {}
    for at, line in enumerate(lines, 1):
        stripped = line.strip()
        if line.startswith("#SCRON"):
            try:
                words += [word for each in directives(line, "crontab", "#SCRON") for word in each]
            except ScriptError as error:
                found.append(_LineError(at, error.lines[-1]))
            first = first or at
        elif stripped.startswith("#") or not stripped:
            continue
        else:
            name, equals, value = stripped.partition("=")
            if equals and name.strip().isidentifier():
                variables[name.strip()] = value.strip().strip("\"'")
                continue
            try:
                found.append(_entry(stripped, first or at, at, words, variables, user, context))
            except _LineError as error:
                found.append(error)
            words, first = [], 0
    return found


def _entry(
    line: str,
    first: int,
    last: int,
    words: "list[str]",
    variables: "dict[str, str]",
    user: "tuple[str, int, int, str, str]",
    context: Context,
) -> "tuple[Any, ...]":
    count = 1 if line.startswith("@") else 5
    parts = line.split(None, count)
    when, command = " ".join(parts[:count]), parts[count] if len(parts) > count else ""
    try:
        CronTime(when)
    except CronError as error:
        raise _LineError(last, str(error)) from None
    if not command:
        raise _LineError(last, "missing command")
    job = Job(0.0)
    try:
        given, operands = JOB_OPTIONS.parse(words)
        if operands:
            raise _LineError(first, f"unexpected argument '{operands[0]}'")
        for option, value in given:
            apply(job, option, value)
    except OptionError as error:
        raise _LineError(first, str(error)) from None
    except BadOptionError as error:
        raise _LineError(first, error.text) from None
    spec = job.spec
    spec.setdefault("name", os.path.basename(command.split()[0]))
    spec.setdefault("work_dir", user[3])
    spec["command"], spec["extra"] = command, job.extra
    spec["submit_line"] = " ".join([context.program, *words])
    known = {
        "HOME": user[3],
        "SHELL": user[4],
        "USER": user[0],
        "LOGNAME": user[0],
        "PATH": "/usr/local/bin:/usr/bin:/bin",
    }
    spec["environment"] = [f"{name}={value}" for name, value in {**known, **variables}.items()]
    script = f"#!/bin/sh\n# This script was created by scrontab.\n\n{command}\n"
    return when, first, last, pack_named("JobSpec", spec), script


def main() -> int:
    """Run as a program; does not return."""
    return run("scrontab", scrontab)


if __name__ == "__main__":
    main()
