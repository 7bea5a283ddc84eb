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
    options = {**last_values(OPTIONS.from_environment(context.environ)), **line}
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
    number = job.partition(".")[0].partition("+")[0]
    if not number.isdigit():
        context.error(f"Invalid job id: {job}")
        return 1
    source, target = operands
    size = (options.get("size") or str(_PIECE)).lower().rstrip("b")
    piece = int(size.rstrip("kmg") or 0) * _UNITS.get(size[-1] if size[-1] in "kmg" else "", 1)
    return broadcast(
        source,
        target,
        int(number),
        context,
        force="force" in options,
        preserve="preserve" in options,
        piece=max(min(piece, _PIECE), 1),
    )


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
                f"Could not get job info: {error.text}"
                if program == "sbcast"
                else f"Unable to get job {job_id}: {error.text}"
            )
            return 1
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
