"""sbcast: copy a file to all nodes of a job. Follows sbcast(1) of 22.05."""

import os

from understudy.commands.shared.client import RefusedError, pack
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.options import (
    NONE,
    OPTIONAL,
    REQUIRED,
    Option,
    OptionTable,
    last_values,
)
from understudy.commands.srun.send_down import send_down
from understudy.model.times import leading_number

OPTIONS = OptionTable(
    [
        Option("compress", "C", OPTIONAL, "KIND: of compression", env="SBCAST_COMPRESS"),
        Option(
            "exclude", "", REQUIRED, "PATHS: libraries that are not copied", env="SBCAST_EXCLUDE"
        ),
        Option(
            "fanout",
            "F",
            REQUIRED,
            "COUNT: of nodes that are sent to at a time",
            env="SBCAST_FANOUT",
        ),
        Option("force", "f", NONE, "replace a file that is there", env="SBCAST_FORCE"),
        Option("help", "", NONE, "print this text"),
        Option("jobid", "j", REQUIRED, "ID: to this job's nodes"),
        Option("preserve", "p", NONE, "keep times and mode", env="SBCAST_PRESERVE"),
        Option("send-libs", "", OPTIONAL, "yes|no: shared libraries, too", env="SBCAST_SEND_LIBS"),
        Option("size", "s", REQUIRED, "SIZE: of the pieces", env="SBCAST_SIZE"),
        Option("timeout", "t", REQUIRED, "SECONDS: to wait for an answer", env="SBCAST_TIMEOUT"),
        Option("usage", "", NONE, "print a short summary of the options"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
    ]
)
USAGE = "Usage: sbcast [--exclude] [-CfFjpvV] [--send-libs] SOURCE DEST"
_PIECE = 8 << 20
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def sbcast(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code."""
    given, operands = OPTIONS.parse(arguments)
    line = last_values(given)
    if context.tells(OPTIONS, line, USAGE):
        return 0
    environment = OPTIONS.from_environment(context.environ)
    options = {**last_values(environment), **line}
    for option, value in (*environment, *given):
        _say_ignored(option.dest, value, context)
    if len(operands) != 2:
        context.complain(
            f"Need two file names, have {len(operands)} names\n"
            'Try "sbcast --help" for more information'
        )
        return 1
    job = (
        options.get("jobid")
        or context.environ.get("SLURM_JOB_ID")
        or context.environ.get("SLURM_JOBID")
        or ""
    )
    if not job:
        context.error(
            "Need a job id to run this command.  Run from within a Slurm job or use the "
            "--jobid option."
        )
        return 1
    source, target = operands
    piece = _size(options.get("size") or "") or _PIECE
    return broadcast(
        source,
        target,
        max(leading_number(job), 0),
        context,
        force="force" in options,
        preserve="preserve" in options,
        piece=max(min(piece, _PIECE), 1),
    )


def _size(text: str) -> int:
    """Octets of `512`, `4k`, `8M`, `1g`; 0 where it is none."""
    digits = text.lower().rstrip("b").rstrip("kmg")
    unit = text.lower().rstrip("b")[len(digits) :]
    return int(digits) * _UNITS[unit] if digits.isdigit() and unit in _UNITS else 0


def _say_ignored(name: str, value: str | None, context: Context) -> None:
    """What an option cannot be, which is then as if nothing was given."""
    if name == "send_libs" and value is not None and value.lower() not in {"yes", "no"}:
        context.error(f"Ignoring unrecognized --send-libs value '{value}'")
    elif name == "compress" and value is not None and value.lower() not in {"lz4", "none"}:
        context.error(f"Compression type '{value}' unknown, disabling compression support.")
    elif name == "size" and value and not _size(value) and value.strip("0"):
        context.complain("size specification is invalid, ignored")


def broadcast(
    source: str,
    target: str,
    job_id: int,
    context: Context,
    *,
    force: bool,
    preserve: bool,
    piece: int = _PIECE,
) -> int:
    """Send the file; the exit code: 0, or the number of the error."""
    program = context.program
    try:
        file = open(source, "rb")  # noqa: SIM115  its errors are told from those of the nodes
    except OSError as error:
        context.error(f"Can't open `{source}`: {error.strerror}")
        return 255
    with file:
        status = os.fstat(file.fileno())
        try:
            answer = context.client.call("GetAllocation", job_id)
        except RefusedError as error:
            context.error(
                f"Slurm job {job_id} lookup error: {error.text}"
                if program == "sbcast"
                else f"Unable to get job {job_id}: {error.text}"
            )
            return 255 if program == "sbcast" else 1
        credential, daemons = answer[6], answer[7]
        if target.endswith("/"):
            target += os.path.basename(source)
        path = target if target.startswith("/") else os.path.join(os.getcwd(), target)
        times = (status.st_atime, status.st_mtime) if preserve else None
        number, data = 1, file.read(piece)
        while True:
            following = file.read(piece)
            message = pack(
                "SendFile",
                credential,
                job_id,
                path,
                number,
                data,
                not following,
                status.st_mode & 0o7777,
                "",
                force,
                times,
            )
            bad = send_down(context.client, message, daemons, 32, codes=True)
            if bad:
                from understudy.model.hostlist import expand

                for code_and_text in bad:
                    _, _, text = code_and_text.partition(" ")
                    where, _, what = text.partition(": ")
                    for node in expand(where):
                        context.error(f"REQUEST_FILE_BCAST({node}): {what}")
                return int(bad[0].partition(" ")[0]) & 0xFF or 1
            if not following:
                return 0
            number, data = number + 1, following


def main() -> int:
    """Run as a program; does not return."""
    return run("sbcast", sbcast)


if __name__ == "__main__":
    main()
