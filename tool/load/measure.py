"""Counts and latencies of requests, by stream, and how they are put together from several
processes.

Place: tool/load, between the processes that ask and the report. Latencies are HdrHistograms: three
digits of each, from a microsecond to an hour, added without loss (docs/adr/0024).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hdrh.histogram import HdrHistogram

if TYPE_CHECKING:
    from collections.abc import Mapping

_LEAST_US: Final = 1
_MOST_US: Final = 3_600_000_000
_DIGITS: Final = 3
PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9, 100.0)


def histogram() -> HdrHistogram:
    """An empty one, of microseconds."""
    return HdrHistogram(_LEAST_US, _MOST_US, _DIGITS)


def record(latencies: HdrHistogram, seconds: float) -> None:
    """Add one latency; what is longer than an hour counts as an hour."""
    latencies.record_value(min(max(round(seconds * 1e6), _LEAST_US), _MOST_US))


@dataclass(slots=True)
class Tally:
    """What became of the requests of one stream. Latencies count from when each was due."""

    sent: int = 0
    answered: int = 0  # refusals too
    acknowledged: int = 0  # jobs
    latencies: HdrHistogram = field(default_factory=histogram)
    refusals: Counter[str] = field(default_factory=Counter)  # that belong to the load, by text
    errors: Counter[str] = field(default_factory=Counter)  # by text

    def add(self, other: Tally) -> None:
        """Add what another has counted."""
        self.sent += other.sent
        self.answered += other.answered
        self.acknowledged += other.acknowledged
        self.latencies.add(other.latencies)
        self.refusals += other.refusals
        self.errors += other.errors

    def packed(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "sent": self.sent,
            "answered": self.answered,
            "acknowledged": self.acknowledged,
            "latencies": self.latencies.encode().decode() if self.answered else "",
            "refusals": self.refusals,
            "errors": self.errors,
        }

    @classmethod
    def unpacked(cls, values: Mapping[str, Any]) -> Tally:
        """The reverse of `packed`."""
        encoded = values["latencies"]
        return cls(
            values["sent"],
            values["answered"],
            values["acknowledged"],
            HdrHistogram.decode(encoded.encode()) if encoded else histogram(),
            Counter(values["refusals"]),
            Counter(values["errors"]),
        )

    def percentile_ms(self, percentile: float) -> float:
        """The latency, in milliseconds, within which so many percent were answered; 0 if none
        was.
        """
        return percentile_ms(self.latencies, percentile)

    def figures(self, seconds: float) -> dict[str, Any]:
        """What a table shows of the stream, of a load that took so many seconds."""
        return {
            "sent": self.sent,
            "answered": self.answered,
            "acknowledged": self.acknowledged,
            "per_second": round(self.answered / seconds, 2) if seconds else 0.0,
            "mean_ms": round(self.latencies.get_mean_value() / 1000, 3) if self.answered else 0.0,
            **{name_of(each): self.percentile_ms(each) for each in PERCENTILES},
            "refusals": dict(self.refusals.most_common()),
            "errors": dict(self.errors.most_common()),
        }


def name_of(percentile: float) -> str:
    """Of a percentile's figure: `p99_9_ms`; the last is `max_ms`."""
    return "max_ms" if percentile == 100 else f"p{percentile:g}_ms".replace(".", "_")


def percentile_ms(latencies: HdrHistogram, percentile: float) -> float:
    """The latency, in milliseconds, that so many percent do not exceed; 0 if there is none."""
    if not latencies.get_total_count():
        return 0.0
    return round(float(latencies.get_value_at_percentile(percentile)) / 1000, 3)
