"""What two sides said, made comparable, and the difference's name. Pure.

The rules for numbers of jobs, times, hosts and versions are those of the conformance kit; here is
what two clusters that run at the same time besides do not share, and the signature: the command,
what differs (exit code, output, errors, state), and the first lines that differ without what
changes from sequence to sequence. Two differences with one signature are taken to be of one cause.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Any

EXIT, OUTPUT, ERRORS, STATE = "exit code", "output", "errors", "state"
OVERHEARD = re.compile(
    r"spurious message type|error: _get_socket|^(\w+: )?(debug\d?|slurm_\w+): |: debug\d?: |plugin"
)
# lines of `show config` about the folder, the ports and the package of each cluster
OWN_SETTINGS = re.compile(
    r"(AccountingStoragePort|AuthInfo|BOOT_TIME|NEXT_JOB_ID|PluginDir|Slurm(ctl)?d(Port|LogFile|"
    r"PidFile)|SlurmdSpoolDir|StateSaveLocation|SLURM_CONF|AccountingStoragePass|DbdPort|LogFile|"
    r"PidFile|SLURMDBD_CONF|Storage(Type|Loc|Port|Host|User|Pass)) +="
)
# what our help has beside Slurm's
OWN_HELP = {"--cpu-bind", "--hint", "--mem-bind", "--time"}
CLOCK = r"\b(\d+-)?(\d+:)?\d?\d:\d\d\b(?<!00)"


@dataclass
class Observation:
    """What a command line gave, normalised by the kit's rules."""

    exit: int | str
    output: list[str]
    errors: list[str]


@dataclass
class Difference:
    """Where two sides differ first: the step's number (the state's show commands have their own
    text), what, and both sides' lines.
    """

    step: int
    run: str
    kind: str
    slurm: list[str]
    ours: list[str]

    @property
    def signature(self) -> str:
        words = ["show"] if self.kind == STATE else self.run.split()
        command = " ".join(words[:2]) if words[0] in ("scontrol", "sacctmgr") else words[0]
        gone, come = first_lines(self.slurm, self.ours)
        return f"{command} | {self.kind} | {general(gone)} | {general(come)}"

    def lines(self) -> list[str]:
        """Readable: `-` Slurm, `+` ours."""
        found = difflib.unified_diff(self.slurm, self.ours, n=0, lineterm="")
        return [line for line in found if not line.startswith(("---", "+++", "@@"))][:40]


def hidden(match: re.Match[str]) -> str:
    """The colon away."""
    return match[0].replace(":", "\0")


def own_rules(lines: list[str], command: str) -> list[str]:
    """Without what two clusters that run beside each other do not share."""
    found: list[str] = []
    if any(re.search(r"--help\b", line) for line in lines) and len(lines) > 4:
        names = set(re.findall(r"(?<![\w-])--[A-Za-z][\w-]+", "\n".join(lines)))
        return ["(help)", *sorted(names - OWN_HELP)]  # in words of its own: docs/differences.md
    if command == "sdiag":  # counters
        lines = [re.sub(r"\s*\(?[\d-].*", "", line) for line in lines[:20]]
    for line in lines:
        if OWN_SETTINGS.match(line):
            continue
        if command == "sstat":  # pids
            line = re.sub(r"\b\d+(,\d+)+\b", "PIDS", line)  # noqa: PLW2901
        # of exit codes two numbers alone
        goes_on = r"\b(\d+-)?\d?\d:\d\d:\d\d\b(?<!00)" if command == "sacct" else CLOCK
        text = re.sub(goes_on, "T:TT", re.sub(r"ExitCode=\d+:\d+", hidden, line))
        text = text.replace("\0", ":")
        # of a script that is cancelled; see docs/differences.md
        text = re.sub(r"(?<=ExitCode=)(143:0|0:SS)\b", "0:15", text)
        text = re.sub(r"\bSecsPreSuspend=\d+", "SecsPreSuspend=S", text)
        text = re.sub(r"AccrueTime=\S+", "AccrueTime=A", text)  # see docs/differences.md
        text = text.replace("=(null)", "=")  # as well
        text = re.sub(r"\bPort=\d+", "Port=PORT", text)
        text = re.sub(r"\b(127\.0\.0\.1[ |]+)\d+", r"\1PORT", text)
        text = re.sub(r"\b(TaskPid|Pid|pid)=\d+", r"\1=PID", text)
        text = re.sub(r"NodeAddr=\S+ NodeHostName=\S+", "NodeAddr=ADDR NodeHostName=HOST", text)
        text = re.sub(r"\bOS=.*?(?= +\w+=|$)", "OS=OS", text)
        text = re.sub(r"\bMCS_label=\S*", "MCS_label=M", text)
        found.append(text.rstrip() if command == "sacctmgr" else text)
    return found


def compare(
    slurm: Observation, ours: Observation, number: int, run: str, kind: str = ""
) -> Difference | None:
    """The first difference of exit code, output and errors; `kind` names it in place of these."""
    unordered = run.startswith("sinfo") and sorted(slurm.output) == sorted(ours.output)
    if slurm.output != ours.output and not unordered:
        # what one side says in place of the other's output tells causes apart
        both = [
            [line for line in each.output + each.errors if line or not each.errors]
            for each in (slurm, ours)
        ]
        return Difference(number, run, kind or OUTPUT, both[0], both[1])
    # Slurm's scancel asks for several jobs at once; see docs/differences.md of sinfo
    parallel = run.startswith("scancel") and sorted(slurm.errors) == sorted(ours.errors)
    if slurm.errors != ours.errors and not parallel:
        return Difference(number, run, kind or ERRORS, slurm.errors, ours.errors)
    if slurm.exit != ours.exit:
        return Difference(number, run, kind or EXIT, [str(slurm.exit)], [str(ours.exit)])
    return None


def first_lines(slurm: list[str], ours: list[str]) -> tuple[str, str]:
    """The first line, or the first words of it, that one has and the other has not."""
    for gone, come in zip([*slurm, *[""] * len(ours)], [*ours, *[""] * len(slurm)], strict=True):
        if gone == come:
            continue
        keys, others = _pairs(gone), _pairs(come)
        if keys and others:
            words = [(f"{key}={keys.get(key, '')}", f"{key}={others.get(key, '')}") for key in
                     [*keys, *(key for key in others if key not in keys)]
                     if keys.get(key) != others.get(key)]  # fmt: skip
            if words:
                return words[0]
        return gone, come
    return "", ""


def _pairs(line: str) -> dict[str, str]:
    words = re.findall(r"(?<!\S)([A-Za-z][\w:/]*)=(.*?)(?=\s+[A-Za-z][\w:/]*=|\s*$)", line)
    return dict(words) if words and line.strip().startswith(f"{words[0][0]}=") else {}


def general(line: str) -> str:
    """Without what is drawn anew in each sequence: numbers, quoted words, names."""
    text = re.sub(r"\"[^\"]*\"|'[^']*'|`[^']*'", "'X'", line.strip())
    text = re.sub(r"J\d{3}(_\d+)?", "J", text)
    text = re.sub(r"\b(root|daemon|bin|sys)\b", "USER", text)
    text = re.sub(r"\bn(\d|\[[\d,-]+\])", "NODES", text)
    text = re.sub(r"\d+", "N", text)
    return re.sub(r"\s+", " ", text)[:110]


def table(signature: str) -> dict[str, Any]:
    """The parts of a signature."""
    command, kind, slurm, ours = (signature.split(" | ") + [""] * 3)[:4]
    return {"command": command, "kind": kind, "slurm": slurm, "ours": ours}
