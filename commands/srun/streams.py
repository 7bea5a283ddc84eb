"""Where the streams of a step's tasks come from and go to: here, a file of ours, or files that the
nodes open.

Place: under srun. Follows srun(1), "IO Redirection".
"""

import os

from understudy.commands.srun.io import ByPart, OneTask, Sink
from understudy.commands.srun.srun_settings import StepError
from understudy.model.file_patterns import without_backslashes
from understudy.protocol.task_frames import ALL, STDERR, STDOUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.srun.create import Share
    from understudy.commands.srun.step import Step

# patterns that make a file for each task or node, which the nodes open
_PER_TASK = ("%t", "%n", "%N")
_NO_DIGITS = {ord(digit): None for digit in "0123456789"}


def _is_all(pattern: str) -> bool:
    """Whether it stands for srun's own streams: whatever begins so does, as in Slurm."""
    return not pattern or pattern.lower().startswith("all")


class Streams:
    """`remote`: for each part of the step the patterns of the files that the nodes open. `stdin`:
    what is read here, as the first part says, for task `stdin_task`; -1: all of them, -2: none.
    """

    def __init__(self, step: "Step", environment: dict[str, str]) -> None:
        """Decide for each stream whether it comes here, to a file that we write, or to files that
        the nodes write.
        """
        self._step, self._io = step, step.io
        self._environment = environment
        self.remote: list[dict[str, str]] = []
        sinks = [self._of_part(share) for share in step.shares]
        for kind in (STDOUT, STDERR):
            parts = [
                (share.first_task, each[kind])
                for share, each in zip(step.shares, sinks, strict=True)
            ]
            self._io.sinks[kind] = ByPart(parts) if len(parts) > 1 else parts[0][1]
        self._open_input(self._names(step.shares[0]))

    def _names(self, share: "Share") -> dict[str, str]:
        """What patterns can hold."""
        environment, step = self._environment, self._step
        return {
            "A": environment.get("SLURM_ARRAY_JOB_ID", str(share.job_id)),
            "a": environment.get("SLURM_ARRAY_TASK_ID", "4294967294"),
            "J": f"{share.job_id}.{step.step_id}", "j": str(share.job_id), "s": str(step.step_id),
            "u": environment.get("SLURM_JOB_USER", ""), "x": environment.get("SLURM_JOB_NAME", ""),
        }  # fmt: skip

    def _of_part(self, share: "Share") -> "dict[int, Sink | None]":
        """Where its output and errors go."""
        own = share.settings.own
        width = len(str(max(self._step.size - 1, 0))) if "label" in own else 0
        remote = {"std_in": "", "std_out": "", "std_err": ""}
        self.remote.append(remote)
        names = self._names(share)
        at_once = "unbuffered" in own
        sinks: dict[int, Sink | None] = {STDOUT: None, STDERR: None}
        for kind, option, field in ((STDOUT, "output", "std_out"), (STDERR, "error", "std_err")):
            pattern = own.get(option, "")
            if _is_all(pattern):
                if kind == STDERR and not pattern and not _is_all(own.get("output", "")):
                    sinks[kind] = sinks[STDOUT]
                    remote[field] = remote["std_out"]
                else:
                    sinks[kind] = Sink(kind - STDOUT + 1, width, at_once=at_once)
            elif pattern.lower() == "none":
                remote[field] = "none"
            elif pattern.isdigit() and int(pattern) < self._step.size:
                sinks[kind] = OneTask(kind - STDOUT + 1, width, int(pattern), at_once=at_once)
            elif any(each in pattern.translate(_NO_DIGITS) for each in _PER_TASK):
                remote[field] = (
                    pattern if pattern.startswith("/") else f"{share.settings.work_dir}/{pattern}"
                )
            elif kind == STDERR and pattern == own.get("output"):
                sinks[kind] = sinks[STDOUT]
            else:
                appends = own.get("open_mode", "").startswith("a") or len(self._step.shares) > 1
                sinks[kind] = Sink(
                    self._open(
                        _expanded(pattern, names), kind, os.O_APPEND if appends else os.O_TRUNC
                    ),
                    width,
                    at_once=at_once,
                )
        return sinks

    def _open(self, path: str, kind: int, mode: int) -> int:
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | mode, 0o666)
        except OSError as error:
            self._step.error(
                f"Could not open {'stdout' if kind == STDOUT else 'stderr'} file: {error.strerror}"
            )
            raise StepError from None

    def _open_input(self, names: dict[str, str]) -> None:
        pattern = self._step.settings.own.get("input", "")
        self.stdin_task = -1
        self.stdin = 0
        if _is_all(pattern):
            return
        if pattern.lower() == "none":
            self.stdin_task, self.stdin = -2, -1
        elif pattern.isdigit() and int(pattern) < self._step.size:
            self.stdin_task = int(pattern)
        elif any(each in pattern.translate(_NO_DIGITS) for each in _PER_TASK):
            for share, remote in zip(self._step.shares, self.remote, strict=True):
                remote["std_in"] = (
                    pattern if pattern.startswith("/") else f"{share.settings.work_dir}/{pattern}"
                )
            self.stdin = -1
        else:
            try:
                self.stdin = os.open(_expanded(pattern, names), os.O_RDONLY)
            except OSError as error:
                self._step.error(f"Could not open stdin file: {error.strerror}")
                raise StepError from None

    def feed(self) -> None:
        """Begin to send what is read here."""
        if self.stdin_task != -2:
            self._io.feed(self.stdin, ALL if self.stdin_task < 0 else self.stdin_task)


def _expanded(pattern: str, names: dict[str, str]) -> str:
    if "\\" in pattern:
        return without_backslashes(pattern)
    found, at = "", 0
    while at < len(pattern):
        if pattern[at] != "%":
            found += pattern[at]
            at += 1
            continue
        end = at + 1
        while end < len(pattern) and pattern[end].isdigit():
            end += 1
        width, key = pattern[at + 1 : end], pattern[end : end + 1]
        if key in names and key:
            found += (
                names[key].rjust(min(int(width or 0), 10), "0") if key in "Aajs" else names[key]
            )
        else:
            found += "%" if key == "%" and not width else "%" + width + key
        at = end + 1
    return found
