"""Draws sequences of command lines by seed: jobs in some state, then what a user would look at or
change. Options, their variables and fields are those of the catalogue that docs/options.md is made
from. Pure.
"""

from __future__ import annotations

import random
import shlex
from functools import cache

from differential.sequence import Sequence, Step
from differential.words import (
    ACCOUNT_KEYS,
    ACCOUNTING_SHOWS,
    ACCOUNTING_VERBS,
    ALL_COMMANDS,
    DUTIES,
    JOB_KEYS,
    JOB_SCRIPTS,
    JOBS,
    LEFT_OUT,
    LEFT_OUT_FIELDS,
    LISTING,
    NAMES,
    NODE_KEYS,
    NODE_STATES,
    NUMBERS,
    PARTITION_KEYS,
    POOLS,
    QOS_KEYS,
    REPORT_WORDS,
    REPORTS,
    RESERVATION_KEYS,
    SHOWS,
    USER_KEYS,
    USERS,
)
from understudy.commands.shared.options import NONE, OPTIONAL, Option
from understudy.tool.manual.catalogue import Command, fixed_values


@cache
def command(name: str) -> Command:
    return Command(name)


@cache
def _fields(name: str) -> list[tuple[str, str, str]]:
    fields = command(name).fields
    return [each for each in fields if each[1].split(", ")[0].lower() not in LEFT_OUT_FIELDS]


@cache
def drawn_options(name: str) -> tuple[Option, ...]:
    return tuple(
        option for option in command(name).options.options
        if option.long and option.help and option.long not in LEFT_OUT and option.short != "v"
    )  # fmt: skip


class Drawing:
    """One sequence, as it is drawn."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sequence = Sequence([], seed)

    def _pick(self, values):  # type: ignore[no-untyped-def]
        return self.random.choice(values)

    def _add(self, run: str, *, changes: bool = False, user: str = "", **more) -> None:  # type: ignore[no-untyped-def]
        self.sequence.steps.append(Step(run=run, user=user, changes=changes, **more))

    def draw(self) -> Sequence:
        areas = ("submit", "submit", "list", "list", "jobs", "cancel", "nodes", "partitions",
                 "reservations", "accounts", "wrong")  # fmt: skip
        area = self._pick(areas)
        self.sequence.areas.add(area)
        getattr(self, f"_{area}")()
        return self.sequence

    def _value(self, name: str, option: Option) -> str:
        if option.long in ("format", "Format"):
            return self._format(name, option.long)
        if name == "sinfo" and option.long == "states":
            return str(self._pick(NODE_STATES))
        pool = POOLS.get(option.long) or fixed_values(option)
        if pool and self.random.random() < 0.9:
            return str(self._pick(pool))
        return str(
            self._pick(NUMBERS if "per" in option.long or "ntasks" in option.long else NAMES)
        )

    def _format(self, name: str, long: str) -> str:
        fields = _fields(name)
        picked = self.random.sample(fields, min(len(fields), self.random.randint(1, 4)))
        if long == "format" and name in ("squeue", "sinfo", "sprio"):
            sizes = ("", "", "10", ".8", "0", ".", "3")
            letters = [f"%{self._pick(sizes)}{each[0]}" for each in picked if each[0]]
            return str(self._pick((" ", "|", ""))).join(letters) or "%i"
        sizes = (
            ("", ":20", ":.9", ":5", ":x")
            if name in ("squeue", "sinfo")
            else ("", "", "%20", "%-12", "%x")
        )
        words = [each[1].split(", ")[0] + str(self._pick(sizes)) for each in picked]
        if name == "sacct" and not any(word.lower().startswith("jobid") for word in words):
            words.insert(0, "JobID")  # by which the jobs of earlier sequences are known
        return ",".join([*words, *(["nosuch"] if self.random.random() < 0.1 else [])])

    def _options(self, name: str, most: int) -> tuple[list[str], list[tuple[str, str]], list[str]]:
        """Words, variables, and the same option as #SBATCH lines, for what was drawn."""
        words: list[str] = []
        env: list[tuple[str, str]] = []
        lines: list[str] = []
        for _ in range(self.random.randint(0, most)):
            option = self._pick(drawn_options(name))
            value = "" if option.value == NONE else self._value(name, option)
            if name == "sacct" and option.long in ("starttime", "endtime") and not value:
                continue
            form = self.random.random()
            if option.env and form < 0.15:
                env.append((self._pick(option.env), value or "1"))
                continue
            if option.value == NONE or (option.value == OPTIONAL and not value):
                word = [f"-{option.short}" if option.short and form < 0.5 else f"--{option.long}"]
            elif option.short and form < 0.5 and option.value != OPTIONAL:
                word = [f"-{option.short}", value]
            else:
                word = [f"--{option.long}={value}"]
            if name == "sbatch" and form > 0.8:
                lines.append("#SBATCH " + " ".join(word))
            else:
                words += word
        return words, env, lines

    def _typed(self, *words: str) -> str:
        return " ".join(word if word.startswith("@") else shlex.quote(word) for word in words)

    def _job(self, name: str, kind: str, *more: str, user: str = "") -> None:
        body = JOB_SCRIPTS.get(kind, "sleep 600")
        words = {
            "held": ["-H"], "later": ["--begin=now+1hour"], "array": ["--array=1-3"],
            "wide": ["-N4", "--exclusive"], "dependent": [f"--dependency=afterok:{name}"],
        }.get(kind, [])  # fmt: skip
        options = self._typed("-o", "/dev/null", "-J", f"job{name[-1]}", *words, *more)
        self._add(f"sbatch {options} --wrap '{body}'", saves=name, changes=True, user=user)

    def _some_jobs(self, most: int = 2) -> None:
        kinds = ("run", "run", "end", "fail", "held", "later", "array", "wide")
        for number in range(1, self.random.randint(1, most) + 1):
            self._job(f"j{number}", self._pick(kinds), user=self._pick(USERS))
        if self.random.random() < 0.15:
            self._add("scontrol suspend @j1", changes=True)
        elif self.random.random() < 0.1:
            self._add("scancel @j1", changes=True)

    def _submit(self) -> None:
        if self.random.random() < 0.4:
            self._job("j1", self._pick(("run", "held", "end")))
        for number in range(2, self.random.randint(2, 4) + 1):
            words, env, lines = self._options("sbatch", 3)
            kind = self._pick(("wrap", "wrap", "script"))
            body = self._pick(("sleep 600", "sleep 600", "true", "exit 2"))
            if kind == "wrap" and not lines:
                run = f"sbatch -o /dev/null {self._typed(*words)} --wrap '{body}'"
                self._add(
                    run, changes=True, saves=f"j{number}", env=tuple(env), user=self._pick(USERS)
                )
                continue
            script = "\n".join(["#!/bin/bash", "#SBATCH -o /dev/null", *lines, body]) + "\n"
            self._add(f"sbatch {self._typed(*words)} job.sh", changes=True, saves=f"j{number}",
                      env=tuple(env), script=script, user=self._pick(USERS))  # fmt: skip
        self._add("scontrol show job @j2")

    def _list(self) -> None:
        if self.random.random() < 0.8:
            self._some_jobs(3)
        for _ in range(self.random.randint(6, 16)):
            name = self._pick(LISTING)
            if name == "scontrol":
                flags = self._pick(("", "", "-o", "-d", "-a", "-Q", "--oneliner", "-dd"))
                self._add(f"scontrol {flags} show {self._pick(SHOWS)}".replace("  ", " ").strip(),
                          user=self._pick(USERS))  # fmt: skip
                continue
            if name == "sreport":
                report, more = self._pick(REPORTS), self._pick(REPORT_WORDS)
                words = (more, report) if more.startswith("-") else (report, more)
                self._add(" ".join(("sreport", *words)).strip())
                continue
            words, env, _ = self._options(name, 3)
            operands = [self._pick(JOBS)] if self.random.random() < 0.08 else []
            self._add(
                f"{name} {self._typed(*words, *operands)}".strip(),
                env=tuple(env),
                user=self._pick(USERS),
            )

    def _jobs(self) -> None:
        self._some_jobs()
        for _ in range(self.random.randint(1, 3)):
            job = self._pick(
                ("@j1", "@j1", "@j2", "99999", "@j1_1", "abc", "@j1_[1-2]", "@j1,@j2", "0")
            )
            if self.random.random() < 0.55:
                drawn = [self._pick(JOB_KEYS) for _ in range(self.random.randint(1, 2))]
                keys = " ".join(shlex.quote(f"{key}={self._pick(pool)}") for key, pool in drawn)
                run = f"scontrol update JobId={job} {keys}"
            else:
                run = "scontrol " + self._pick(DUTIES).format(job)
            if "wait_job" in run:
                continue
            self._add(run, changes=True, user=self._pick(USERS))

    def _cancel(self) -> None:
        self._some_jobs(3)
        for _ in range(self.random.randint(1, 3)):
            words, env, _ = self._options("scancel", 2)
            jobs = [self._pick(JOBS) for _ in range(self.random.randint(0, 2))]
            self._add(f"scancel {self._typed(*words, *jobs)}".strip(), env=tuple(env), changes=True,
                      user=self._pick(USERS))  # fmt: skip

    def _pairs(self, table, most: int = 2) -> str:  # type: ignore[no-untyped-def]
        drawn = [self._pick(table) for _ in range(self.random.randint(1, most))]
        return " ".join(shlex.quote(f"{key}={self._pick(pool)}") for key, pool in drawn)

    def _nodes(self) -> None:
        if self.random.random() < 0.5:
            self._some_jobs(1)
        for _ in range(self.random.randint(1, 3)):
            node = self._pick(("n4", "n[3-4]", "n1", "n9", "ALL", "n[1-"))
            self._add(f"scontrol update NodeName={node} {self._pairs(NODE_KEYS)}", changes=True,
                      user=self._pick(USERS))  # fmt: skip
        self._add(
            self._pick(("sinfo", "sinfo -R", "sinfo -N -l", "scontrol show node n4", "sinfo -s"))
        )

    def _partitions(self) -> None:
        if self.random.random() < 0.5:
            self._some_jobs(1)
        for _ in range(self.random.randint(1, 3)):
            verb, name = self._pick((
                ("update", "debug"), ("update", "batch"), ("create", "p1"),
                ("update", "nosuch"), ("create", "debug"), ("delete", "p1"),
            ))  # fmt: skip
            keys = "" if verb == "delete" else self._pairs(PARTITION_KEYS)
            self._add(f"scontrol {verb} PartitionName={name} {keys}".strip(), changes=True,
                      user=self._pick(USERS))  # fmt: skip
        self._add(self._pick(("sinfo", "sinfo -s", "scontrol show partition", "squeue")))

    def _reservations(self) -> None:
        full = "StartTime=now Duration=60 Users=root Nodes=n4"
        for _ in range(self.random.randint(1, 3)):
            verb, name = self._pick(
                (("create", "r1"), ("create", "r1"), ("update", "r1"), ("delete", "r1"))
            )
            keys = "" if verb == "delete" else self._pairs(RESERVATION_KEYS, 3)
            if verb == "create" and self.random.random() < 0.7:
                keys = f"{full} {keys if self.random.random() < 0.6 else ''}"
            self._add(f"scontrol {verb} ReservationName={name} {keys}".strip(), changes=True,
                      user=self._pick(USERS))  # fmt: skip
        self._add(self._pick(("sinfo -T", "scontrol show reservation", "sinfo")))

    def _accounts(self) -> None:
        tables = {
            "account": ("a1", ACCOUNT_KEYS),
            "user": ("daemon", USER_KEYS),
            "qos": ("q1", QOS_KEYS),
        }
        if self.random.random() < 0.6:
            self._add("sacctmgr -i add account a1", changes=True)
        for _ in range(self.random.randint(1, 4)):
            kind = self._pick(tuple(tables))
            name, keys = tables[kind]
            name = self._pick((name, name, name, "nosuch", "bin"))
            some = " ".join(self._pick(keys) for _ in range(self.random.randint(0, 2)))
            run = self._pick(ACCOUNTING_VERBS).format(
                kind=kind, name=name, some=some, field=self._pick(keys).partition("=")[0]
            )
            self._add(
                f"sacctmgr -i {run}".strip(), changes=True, user=self._pick(("", "", "", "daemon"))
            )
        self._add(f"sacctmgr -i {self._pick(ACCOUNTING_SHOWS)}")

    def _wrong(self) -> None:
        """Words that are no options, abbreviations, options without values, --usage."""
        for _ in range(16):
            name = self._pick(ALL_COMMANDS)
            options = [option for option in command(name).options.options if option.long]
            option = self._pick(options)
            beginning = option.long[: self.random.randint(1, len(option.long))]
            bad = self._pick((
                "--usage", "--nosuch", "-^", f"--{beginning}", f"--{option.long}=", "--usage x",
                f"-{option.short or 'x'}", "--nosuch=1", "-", "--", "nosuch", "",
            ))  # fmt: skip
            if option.long in LEFT_OUT and option.long[:3] in bad and "usage" not in bad:
                continue
            if (
                name in ("scontrol", "sacctmgr", "sreport") and bad in ("", "-", "--")
            ) or "verb" in bad:
                continue
            if name == "salloc" and "nosuch" not in bad[2:] and not bad.startswith("--u"):
                continue  # it would begin
            if name == "srun" and bad in ("-", "nosuch"):
                continue  # a job, which is listed or not
            if option.long in ("json", "yaml") and bad.startswith(f"--{beginning}"):
                continue
            self._add(f"{name} {bad}".strip())


def drawn(seed: int) -> Sequence:
    """The sequence of a seed."""
    while True:
        sequence = Drawing(seed).draw()
        if sequence.steps:
            return sequence
        seed += 1_000_000_007


def each_value(name: str, option: Option) -> tuple[str, ...]:
    """All values that are tried of an option."""
    if option.value == NONE:
        return ("",)
    if name == "sinfo" and option.long == "states":
        return NODE_STATES
    if option.long in ("format", "Format"):
        fields = _fields(name)
        if option.long == "format" and name in ("squeue", "sinfo", "sprio"):
            return tuple(f"%{size}{each[0]}" for each in fields if each[0] for size in ("", ".7"))
        return tuple(each[1].split(", ")[0] for each in fields)
    pool = POOLS.get(option.long) or tuple(fixed_values(option))
    return tuple(pool) or (*NUMBERS[:8], *NAMES[:4])


def each_option(name: str, size: int = 12) -> list[Sequence]:
    """Sequences in which each option has each of its values, alone, long and short in turns; of
    `update job`, `update partition`, and `update node` each key.
    """
    tables = {"job": JOB_KEYS, "partition": PARTITION_KEYS, "node": NODE_KEYS}
    named = {"job": "JobId=@j1", "partition": "PartitionName=debug", "node": "NodeName=n4"}
    job = Step("sbatch -H -o /dev/null -J job1 --wrap 'sleep 600'", saves="j1", changes=True)
    steps: list[Step] = []
    if name in tables:
        words = [shlex.quote(f"{key}={value}") for key, pool in tables[name] for value in pool]
        runs = [f"scontrol update {named[name]} {word}" for word in words]
        steps = [Step(run, changes=True, settles=False) for run in runs]
    else:
        for option in drawn_options(name):
            for number, value in enumerate(each_value(name, option)):
                if option.value == NONE or (option.value == OPTIONAL and not value):
                    word = f"--{option.long}"
                elif option.short and number % 2 and option.value != OPTIONAL:
                    word = f"-{option.short} {shlex.quote(value)}"
                else:
                    word = shlex.quote(f"--{option.long}={value}")
                word = word.replace("'--dependency=afterok:@j1'", "--dependency=afterok:@j1")
                if name == "sbatch":
                    run = f"sbatch -H -o /dev/null {word} --wrap 'sleep 600'"
                    steps.append(Step(run, changes=True, settles=False))
                else:
                    steps.append(Step(f"{name} {word}", changes=name == "scancel"))
    found = []
    for at in range(0, len(steps), size):
        some = steps[at : at + size]
        found.append(Sequence([job, *some], -1 - at, {f"each {name}"}))
    return found
