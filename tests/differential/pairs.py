"""Every option of a command with every other one, in both orders, each with a few of its values:
which of two is complained of, and what both together show. Many command lines are typed by one
shell, so that thousands take minutes.
"""

from __future__ import annotations

import random
import re
import shlex
from typing import TYPE_CHECKING

from differential.compare import Difference, compare
from differential.grammar import drawn_options, each_value
from differential.sequence import Step
from differential.sides import RECORDED_S, RECORDS
from understudy.commands.shared.options import NONE, OPTIONAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from differential.sides import Pair, Side

LONGEST_S = 5  # what waits for nodes that never come is ended
AT_ONCE = 25  # command lines for one shell
# of jobs that are submitted; more than are labelled
NUMBER = re.compile(r"(?m)((?:[Jj]ob |allocation |JobId=)|^)\d+(?=\s|$)")
MARK = "=====8<====="
# What surrounds the options, of commands that need more
FORMS = {
    "sbatch": "sbatch -H -o /dev/null {} --wrap true",
    "srun": "srun {} true",
    "salloc": "salloc {} true",
    "scancel": "scancel {} 99999",
}
# What ends the jobs that the command lines left behind
LEFT_BEHIND = {
    "sbatch": "--state=PENDING --name=wrap",
    "srun": "--name=true",
    "salloc": "--name=true",
}
JOBS = (
    "sbatch -o /dev/null -J job1 --wrap 'sleep 600'",
    "sbatch -H -o /dev/null -J job2 --array=1-3 --wrap true",
)


def words_of(name: str, chosen: random.Random, most: int) -> list[list[str]]:
    """For each option the words that give it one of some values."""
    found = []
    for option in drawn_options(name):
        values = [value for value in each_value(name, option) if "@" not in value]
        words = []
        for value in chosen.sample(values, min(most, len(values))):
            if option.value == NONE or (option.value == OPTIONAL and not value):
                words.append(f"--{option.long}")
            elif option.short and option.value != OPTIONAL and chosen.random() < 0.4:
                words.append(f"-{option.short} {shlex.quote(value)}")
            else:
                words.append(shlex.quote(f"--{option.long}={value}"))
        found.append(words)
    return found


def lines_of(name: str, seed: int, most: int = 2) -> Iterator[str]:
    """The command lines; each pair of options once in each order, with values by the seed."""
    chosen = random.Random(seed)
    words = words_of(name, chosen, most)
    form = FORMS.get(name, f"{name} {{}}")
    for first in words:
        for second in words:
            if first and second:
                both = f"{chosen.choice(first)} {chosen.choice(second)}"
                yield form.replace("{}", both)


def typed(side: Side, lines: list[str]) -> list[tuple[str, str, int]]:
    """Output, errors and exit code of each, by one shell."""
    script = "".join(
        f"o=$(timeout {LONGEST_S} {line} 2>$e </dev/null); c=$?; echo \"$o\"; echo '{MARK}'; "
        f"cat $e; echo '{MARK}'; echo $c; echo '{MARK}'; "
        for line in lines
    )
    out, _, _ = side.shell(f"e=$(mktemp); {script} rm -f $e", limit_s=300)
    parts = out.split(f"{MARK}\n")
    return [
        (
            *(NUMBER.sub(r"\1NUMBER", text) for text in parts[at : at + 2]),
            int(parts[at + 2] or -1),
        )
        for at in range(0, len(parts) - 2, 3)
    ]  # type: ignore[misc]


def try_pairs(pair: Pair, name: str, seed: int, most: int) -> tuple[int, list[Difference]]:
    """How many command lines were typed at both, and what differs. `most`: so many of the pairs, by
    chance; 0: all.
    """
    pair.play([])
    for line in JOBS:
        pair.both(lambda side, run=line: side.raw(Step(run)))
    pair.settle()
    pair.settle(RECORDS, RECORDED_S)
    lines = list(lines_of(name, seed))
    if 0 < most < len(lines):
        lines = random.Random(seed).sample(lines, most)
    found = []
    for at in range(0, len(lines), AT_ONCE):
        some = lines[at : at + AT_ONCE]
        slurm, ours = pair.both(lambda side, some=some: typed(side, some))
        for number, (line, one, other) in enumerate(zip(some, slurm, ours, strict=False)):
            seen = [
                side.seen(*each, line) for side, each in zip(pair.sides, (one, other), strict=True)
            ]
            difference = compare(*seen, at + number, line)
            if difference is not None:
                found.append(difference)
        if name in LEFT_BEHIND:
            pair.both(lambda side: side.shell(f"scancel {LEFT_BEHIND[name]}"))
    return len(lines), found
