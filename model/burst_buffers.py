"""What is asked of burst buffers: sizes, and the lines of a script, or of --bb, that ask.

Place: the vocabulary; pure. Follows Slurm's guide to burst buffers and what slurmctld 22.05.8 with
burst_buffer/lua was seen to take and to refuse; of burst_buffer/datawarp the guide alone.

A request is the text of its lines, from which all else is read again: `#BB_LUA pool=a capacity=1G`
with lua, `#DW jobdw ...`, `#DW persistentdw ...`, `#BB create_persistent ...` and their like with
datawarp. Sizes are in bytes; what a pool of lua counts is up to the site.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LUA: Final = "lua"
DATAWARP: Final = "datawarp"
MEBIBYTE: Final = 1 << 20
DIRECTIVE: Final = "BB_LUA"  # of lua, where burst_buffer.conf names none
# What a buffer goes through, in its order: the lua plug-in's functions of those names, less slurm_
STAGES: Final = ("setup", "data_in", "pre_run", "post_run", "data_out", "teardown")
_LETTERS: Final = "KMGTP"
# the order in which units are tried when a size is shown
_UNITS: Final = tuple(
    (f"{letter}{'iB' if base == 1024 else 'B'}", base ** (_LETTERS.index(letter) + 1))
    for letter in reversed(_LETTERS)
    for base in (1024, 1000)
)
_SIZE: Final = re.compile(r"(\d+)\s*([a-zA-Z]*)", re.ASCII)
_NODES: Final = frozenset(("n", "node", "nodes"))
_CREATES: Final = "create_persistent"
_DESTROYS: Final = "destroy_persistent"


class InvalidRequestError(ValueError):
    """The lines ask for what cannot be; says why."""


@dataclass(frozen=True, slots=True)
class Persistent:
    """A buffer that stays when its job is over, as a job asks for it."""

    name: str
    size: int
    pool: str  # "": the default one
    access: str = ""
    type: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """`sizes`: [(pool, amount)] as asked, pool "" is the default one; `swap` is for each node.

    `seconds` and `fails` are ours: how long a stage of an emulated buffer takes beside what
    burst_buffer.conf says, and which of them fails.
    """

    text: str
    kind: str = LUA
    sizes: tuple[tuple[str, int], ...] = ()
    swap: int = 0
    creates: tuple[Persistent, ...] = ()
    destroys: tuple[tuple[str, bool], ...] = ()  # (name, hurry)
    uses: tuple[str, ...] = ()  # persistent ones
    seconds: Mapping[str, float] | None = None
    fails: frozenset[str] = frozenset()

    @property
    def mebibytes(self) -> int:
        """As accounting counts it, under `bb/KIND`: less than one counts for nothing."""
        return (sum(size for _, size in self.sizes) + self.swap) // MEBIBYTE


def size_of(text: str) -> int:
    """A size in bytes. K, KiB and the like are powers of 1024, KB and the like of 1000; N, node and
    nodes count as they are.

    Raises:
        ValueError: it is no size.
    """
    match = _SIZE.fullmatch(text.strip())
    factor = None if match is None else _factor(match[2])
    if match is None or factor is None:
        raise ValueError(text)
    return int(match[1]) * factor


def _factor(unit: str) -> int | None:
    letter, rest = unit[:1].upper(), unit[1:].lower()
    if not unit or unit.lower() in _NODES:
        return 1
    if letter not in _LETTERS or rest not in ("", "ib", "b"):
        return None
    base, power = 1000 if rest == "b" else 1024, _LETTERS.index(letter) + 1
    return int(base**power)


def size_text(size: int) -> str:
    """As Slurm shows it: with the largest unit that divides it, else plain."""
    if size > 0:
        for unit, factor in _UNITS:
            if size % factor == 0:
                return f"{size // factor}{unit}"
    return str(size)


def directives(script: str, starts: Iterable[str]) -> list[str]:
    """The lines at the script's top that begin with one of the words; the first line that is no
    comment ends the search.
    """
    words = tuple(f"#{word}" for word in starts)
    found = []
    for line in script.split("\n"):
        if line and not line.startswith("#"):
            break
        if line.startswith(words):
            found.append(line.rstrip("\r"))
    return found


def reserved_space(text: str, kind: str, default_pool: str) -> dict[str, int]:
    """Pool -> amount of a reservation's `[plugin:][pool:]#[units]`, several at commas. What cannot
    be read reserves nothing, as in 22.05.8.
    """
    found: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        *names, amount = part.strip().split(":")
        if len(names) == 2 and names[0] == kind:
            del names[0]
        try:
            size = size_of(amount)
        except ValueError:
            continue
        if len(names) < 2:
            pool = names[0] if names and names[0] != kind else default_pool
            found[pool] = found.get(pool, 0) + size
    return found


def with_symbols(line: str, symbols: Mapping[str, str]) -> str:
    """The line with `%j` and its like replaced; `%%` is a percent sign, and what is not known stays
    as it is.
    """
    return re.sub(
        r"%(.)",
        lambda match: "%" if match[1] == "%" else symbols.get(match[1], match[0]),
        line,
    )


def read_lua(lines: Iterable[str], pools: Iterable[str], *, emulated: bool = True) -> Request:
    """The request of lua's directive lines; words of ours are a script's own, if not `emulated`.

    Raises:
        InvalidRequestError: capacity without a pool, no size, a pool that is not there.
    """
    kept = list(lines)
    sizes: list[tuple[str, int]] = []
    seconds: dict[str, float] = {}
    fails: set[str] = set()
    known = frozenset(pools)
    for line in kept:
        given = _pairs(line.split()[1:])
        if emulated:
            _read_emulation(given, seconds, fails)
        pool, capacity = given.get("pool"), given.get("capacity")
        if pool is not None and pool not in known:
            raise InvalidRequestError(f"there is no pool {pool}")
        if capacity is None:
            continue
        if pool is None:
            raise InvalidRequestError(f"capacity={capacity}: of which pool?")
        sizes.append((pool, _capacity(capacity)))
    return Request("\n".join(kept), LUA, tuple(sizes), seconds=seconds, fails=frozenset(fails))


def read_datawarp(lines: Iterable[str], pools: Iterable[str], default_pool: str) -> Request:
    """The request of `#DW` and `#BB` lines.

    Raises:
        InvalidRequestError: as `read_lua`; a word or value that is not known.
    """
    kept = list(lines)
    seconds: dict[str, float] = {}
    fails: set[str] = set()
    request, known = Request("\n".join(kept), DATAWARP), frozenset(pools)
    for line in kept:
        words = line.split()
        if len(words) < 2:
            continue
        given = _pairs(words[2:])
        _read_emulation(given, seconds, fails)
        pool = given.get("pool", "") or default_pool
        if words[0] == "#BB":
            request = _persistent(request, words, given, pool, known)
        elif words[0] == "#DW":
            request = _of_job(request, words, given, pool, known)
    return replace(request, seconds=seconds, fails=frozenset(fails))


def datawarp_line(text: str) -> str:
    """What --bb says to datawarp in short, `capacity=1G access=striped type=scratch`, as the line
    that it stands for; lines stay as they are.
    """
    if text.lstrip().startswith("#"):
        return text
    found = _pairs(re.split(r"[\s,]+", text.strip()))
    job: list[str] = []
    lines: list[str] = []
    if "capacity" in found:
        size = found["capacity"]
        job.append(f"capacity={size + 'iB' if size[-1:].upper() in _LETTERS else size}")
    if "access" in found or "access_mode" in found:
        job.append(f"access_mode={found.get('access', found.get('access_mode', ''))}")
    job += [f"{word}={found[word]}" for word in ("type", "pool") if word in found]
    if job:
        lines.append("#DW jobdw " + " ".join(job))
    if "swap" in found:
        lines.append(f"#DW swap {found['swap']}")
    return "\n".join(lines)


def _of_job(
    request: Request, words: list[str], given: dict[str, str], pool: str, pools: frozenset[str]
) -> Request:
    """A `#DW` line."""
    match words[1]:
        case "jobdw":
            if given.get("access_mode", "striped") not in ("striped", "private", "ldbalance"):
                raise InvalidRequestError(f"access_mode={given['access_mode']}")
            if given.get("type", "scratch") not in ("scratch", "cache"):
                raise InvalidRequestError(f"type={given['type']}")
            size = _in_pool(given, pool, pools)
            return replace(request, sizes=(*request.sizes, (pool, size)))
        case "persistentdw":
            return replace(request, uses=(*request.uses, _name(given)))
        case "swap":
            text = words[2] if len(words) > 2 else ""
            # a number alone counts GiB
            size = _capacity(text + "GiB" if text.isdecimal() else text)
            _check_pool(pool, pools)
            return replace(request, swap=request.swap + size)
        case "stage_in" | "stage_out":
            if not given.get("source") or not given.get("destination"):
                raise InvalidRequestError(f"{words[1]} needs a source and a destination")
            return request
        case word:
            raise InvalidRequestError(f"#DW {word}")


def _persistent(
    request: Request, words: list[str], given: dict[str, str], pool: str, pools: frozenset[str]
) -> Request:
    """A `#BB` line."""
    if words[1] == _CREATES:
        made = Persistent(
            _name(given),
            _in_pool(given, pool, pools),
            pool,
            given.get("access", given.get("access_mode", "")),
            given.get("type", ""),
        )
        return replace(request, creates=(*request.creates, made))
    if words[1] == _DESTROYS:
        gone = _name(given), "hurry" in words[2:]
        return replace(request, destroys=(*request.destroys, gone))
    raise InvalidRequestError(f"#BB {words[1]}")


def _name(given: dict[str, str]) -> str:
    name = given.get("name", "")
    if not name or name[0].isdigit():
        raise InvalidRequestError(f"name={name}: the name of a buffer begins with no digit")
    return name


def _in_pool(given: dict[str, str], pool: str, pools: frozenset[str]) -> int:
    if "capacity" not in given:
        raise InvalidRequestError("a buffer needs a capacity")
    size = _capacity(given["capacity"])
    _check_pool(pool, pools)
    return size


def _check_pool(pool: str, pools: frozenset[str]) -> None:
    if pool not in pools:
        raise InvalidRequestError(f"there is no pool {pool}" if pool else "no pool is named")


def _capacity(text: str) -> int:
    """A size as jobs give it: what follows the digits and is no unit counts for nothing, as 22.05.8
    has it (`1.5G` is 1, `12x` is 12).
    """
    match = re.match(r"-?\d+", text, re.ASCII)
    # what is less than nothing is taken for as much more than there can be
    size = (
        0 if match is None else int(match[0]) * (_factor(text[match.end() :].strip()) or 1) % 2**64
    )
    if not size:
        raise InvalidRequestError(f"capacity={text}: a buffer needs a size")
    return size


def _pairs(words: Iterable[str]) -> dict[str, str]:
    return {key: value for key, equals, value in (each.partition("=") for each in words) if equals}


def _read_emulation(given: dict[str, str], seconds: dict[str, float], fails: set[str]) -> None:
    """Words of ours that stand for what a site's script does with this job."""
    for stage in STAGES:
        try:
            seconds[stage] = float(given[stage]) if stage in given else seconds.get(stage, 0.0)
        except ValueError:
            raise InvalidRequestError(f"{stage}={given[stage]} is no number of seconds") from None
        if not 0 <= seconds[stage] < float("inf"):
            raise InvalidRequestError(f"{stage}={given[stage]} is no number of seconds")
    wrong = [stage for stage in given.get("fail", "").split(",") if stage and stage not in STAGES]
    if wrong:
        raise InvalidRequestError(f"fail={wrong[0]}: there is no such stage")
    fails.update(filter(None, given.get("fail", "").split(",")))
