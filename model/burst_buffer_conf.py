"""burst_buffer.conf, which lies beside slurm.conf: who may have burst buffers, timeouts, and what a
site's script or DataWarp would tell: pools, and how long stages take.

Place: a part of understudy.model.conf. Follows burst_buffer.conf(5) of 22.05; keys of ours stand
for what is not in the file there (docs/burst-buffers.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from understudy.model.burst_buffers import DIRECTIVE, LUA, STAGES, size_of
from understudy.model.conf_scan import ERROR, ConfLine, Finding, Scan

if TYPE_CHECKING:
    from collections.abc import Callable

LUA_SCRIPT: Final = "burst_buffer.lua"  # a site's, beside slurm.conf
NEEDED: Final = f"{LUA_SCRIPT} needs lupa, which is not installed: pip install 'understudy[lua]'"
LONGEST_TIMEOUT_S: Final = 2_073_600  # of a stage with lua, as burst_buffer.conf(5) has it
_FLAGS: Final = (
    "DisablePersistent",
    "EmulateCray",
    "EnablePersistent",
    "PrivateData",
    "TeardownFailure",
)
_TIMEOUTS: Final = {
    "StageInTimeout": 86_400,
    "StageOutTimeout": 86_400,
    "ValidateTimeout": 5,
    "OtherTimeout": 300,
}
# key: the stage whose fixed seconds it tells
_TIMES: Final = dict(
    zip(
        ("SetupTime", "StageInTime", "PreRunTime", "PostRunTime", "StageOutTime", "TeardownTime"),
        STAGES,
        strict=True,
    )
)
_RATES: Final = {"StageInRate": "data_in", "StageOutRate": "data_out"}
_TEXTS: Final = ("Directive", "DefaultPool", "GetSysState", "GetSysStatus", "Program")
_KNOWN: Final[dict[str, str]] = {
    name.lower(): name
    for name in (
        *_TEXTS,
        *_TIMEOUTS,
        *_TIMES,
        *_RATES,
        "AllowUsers",
        "DenyUsers",
        "Flags",
        "Granularity",
        "Pools",
    )
}


@dataclass(frozen=True, slots=True)
class PoolConf:
    """A pool: what there is of it, and in what steps it is given, in the pool's units."""

    name: str
    total: int
    granularity: int = 1


@dataclass(slots=True)
class BurstBufferConf:
    """The file's values. `allow` and `deny` hold users' names or numbers; `rates` are bytes a
    second (0: no time), `seconds` what a stage takes beside that; `program` runs each stage of real
    jobs.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    default_pool: str = ""
    directive: str = DIRECTIVE
    flags: tuple[str, ...] = ()
    get_sys_state: str = ""
    get_sys_status: str = ""
    timeouts_s: dict[str, int] = field(default_factory=lambda: dict(_TIMEOUTS))
    pools: tuple[PoolConf, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    program: str = ""
    script: str = ""  # the site's burst_buffer.lua, where there is one

    @property
    def lacks_lua(self) -> bool:
        """Whether its script cannot run here."""
        return bool(self.script) and not self.program and find_spec("lupa") is None

    @property
    def about_script(self) -> str:
        """What is to be known of the site's script, "" where there is none."""
        if not self.script:
            return ""
        if self.program:
            return f"{LUA_SCRIPT} is not run: burst_buffer.conf has a Program for that"
        if self.lacks_lua:
            return NEEDED
        return (
            f"{LUA_SCRIPT} runs where jobs really run (--executor real); where they are emulated, "
            "the pools and times of burst_buffer.conf stand for it"
        )

    def shown_flags(self, kind: str) -> tuple[str, ...]:
        """As `scontrol show burstbuffer` names them; with lua, which has no persistent buffers,
        22.05.8 was seen to show what EnablePersistent says as its contrary.
        """
        if kind == LUA:
            said = ("DisablePersistent", "EnablePersistent")
            is_off = not self.flags or any(flag in self.flags for flag in said)
            shown = [flag for flag in ("PrivateData", "TeardownFailure") if flag in self.flags]
            return ("DisablePersistent", *shown) if is_off else tuple(shown)
        persistent = "EnablePersistent" in self.flags
        own = tuple(flag for flag in self.flags if not flag.endswith("Persistent"))
        return ("EnablePersistent" if persistent else "DisablePersistent", *own)


def read_burst_buffer(scan: Scan, report: Callable[[Finding], None]) -> BurstBufferConf:
    """The file's values; what is wrong is reported with its line and left out."""
    conf = BurstBufferConf()
    granularity, pools = 1, ""
    pools_line: ConfLine | None = None
    for line in scan.lines:
        for (key, value), written in zip(line.pairs, line.written, strict=True):
            name = _KNOWN.get(key)
            if name is None:
                _complain(report, line, written, written, f"unrecognized key: {written}")
                continue
            try:
                if name == "Granularity":
                    granularity = _amount(value)
                elif name == "Pools":
                    pools, pools_line = value, line
                else:
                    _set(conf, name, value)
            except ValueError as error:
                _complain(report, line, name, value, f"{name}={value}: {error}")
    if pools_line is not None:
        try:
            conf.pools = _pools(pools, granularity)
        except ValueError as error:
            _complain(report, pools_line, "Pools", pools, f"Pools={pools}: {error}")
    names = {pool.name for pool in conf.pools}
    if names and conf.default_pool and conf.default_pool not in names:
        line = next(each for each in reversed(scan.lines) if "defaultpool" in dict(each.pairs))
        text = f"DefaultPool={conf.default_pool}: Pools has {', '.join(sorted(names))}"
        _complain(report, line, "DefaultPool", conf.default_pool, text)
    if conf.allow and conf.deny:
        last = scan.lines[-1]
        text = "AllowUsers and DenyUsers cannot both be given"
        _complain(report, last, "DenyUsers", "DenyUsers", text)
    return conf


def _complain(
    report: Callable[[Finding], None], line: ConfLine, key: str, text: str, message: str
) -> None:
    kind = "unknown_key" if message.startswith("unrecognized") else "bad_value"
    report(Finding(kind, ERROR, line.file, line.line, text, message, key))


def _set(conf: BurstBufferConf, name: str, value: str) -> None:
    if name == "AllowUsers":
        conf.allow = tuple(filter(None, value.split(",")))
    elif name == "DenyUsers":
        conf.deny = tuple(filter(None, value.split(":")))
    elif name == "Flags":
        conf.flags = _flags(value)
    elif name in _TIMEOUTS:
        conf.timeouts_s[name] = _whole(value)
        if conf.timeouts_s[name] > LONGEST_TIMEOUT_S:
            raise ValueError(f"at most {LONGEST_TIMEOUT_S} seconds")
    elif name in _TIMES:
        conf.seconds[_TIMES[name]] = _number(value)
    elif name in _RATES:
        conf.rates[_RATES[name]] = _number(value) * (1 << 20)
    elif name == "Directive":
        conf.directive = value
    elif name == "DefaultPool":
        conf.default_pool = value
    elif name == "GetSysState":
        conf.get_sys_state = value
    elif name == "GetSysStatus":
        conf.get_sys_status = value
    else:
        conf.program = value


def _flags(value: str) -> tuple[str, ...]:
    spelled = {flag.lower(): flag for flag in _FLAGS}
    found = []
    for word in value.split(","):
        if word.strip().lower() not in spelled:
            raise ValueError(f"{word} is none of {', '.join(_FLAGS)}")
        found.append(spelled[word.strip().lower()])
    return tuple(dict.fromkeys(found))


def _pools(text: str, granularity: int) -> tuple[PoolConf, ...]:
    """`name:total[:granularity][,...]`."""
    found: dict[str, PoolConf] = {}
    for part in text.split(","):
        name, colon, rest = part.strip().partition(":")
        total, _, step = rest.partition(":")
        if not name or not colon:
            raise ValueError(f'"{part}" is not NAME:TOTAL')
        if name in found:
            raise ValueError(f"pool {name} is named twice")
        steps = _amount(step) if step else granularity
        size = _size(total) // steps * steps
        if not size and _size(total):
            raise ValueError(f"pool {name} is less than its granularity: NAME:TOTAL:GRANULARITY")
        found[name] = PoolConf(name, size, steps)
    return tuple(found.values())


def _size(text: str) -> int:
    """As `size_of`, with a text that tells what was wrong."""
    try:
        return size_of(text)
    except ValueError:
        raise ValueError(
            f'"{text}" is no size: a number, with K, M, G, T, P, KB ... or none'
        ) from None


def _amount(text: str) -> int:
    size = _size(text)
    if size < 1:
        raise ValueError("at least 1 is needed")
    return size


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f'"{text}" is no number of seconds')
    return int(text)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ValueError(f'"{text}" is no number of 0 or more')
    return number
