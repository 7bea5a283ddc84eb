"""What the jobs of an association, a QOS, or one user or account within a QOS hold and have used:
the sums that limits are compared with.

Place: enforcement, pure. Kept up to date with each start and end, so that no test walks
over jobs.
"""

from __future__ import annotations


class Use:
    """`jobs` run, `submitted` are pending or running (tasks of arrays one by one), of `accruing`
    the age counts, `tres` is held.

    `run_s`: resource-seconds that running jobs may still use until their limits, by the QOS's
    UsageFactor, as of the last period. `used_s`: resource-seconds used, decayed; `wall_s` the same
    of time. `nodes`: those that its jobs are on, each once however many jobs share it; kept where
    `counts_nodes`. Whose use has grown is noted in `touched`, under its `key`.
    """

    __slots__ = (
        "_on",
        "_touched",
        "accruing",
        "as_of",
        "counts_nodes",
        "decays",
        "jobs",
        "key",
        "nodes",
        "run_s",
        "submitted",
        "tres",
        "used_s",
        "wall_s",
    )

    def __init__(
        self, *, decays: bool = True, key: str = "", touched: dict[str, Use] | None = None
    ) -> None:
        self._touched, self.key = touched, key
        self.jobs = self.submitted = self.accruing = 0
        self.tres: dict[str, int] = {}
        self.run_s: dict[str, float] = {}
        self.used_s: dict[str, float] = {}
        self.wall_s = 0.0
        self.as_of = 0
        self.decays = decays
        self.counts_nodes = False
        self.nodes = 0
        self._on: dict[int, int] = {}

    def take(self, job_id: int, tres: dict[str, int], nodes: int) -> None:
        """A job runs and holds this."""
        self.jobs += 1
        held = self.tres
        for name, amount in tres.items():
            held[name] = held.get(name, 0) + amount
        if self.counts_nodes:
            self._on[job_id] = nodes
            self.nodes |= nodes

    def give_back(self, job_id: int, tres: dict[str, int]) -> None:
        """The job runs no more."""
        self.jobs -= 1
        held = self.tres
        for name, amount in tres.items():
            held[name] -= amount
        if self._on.pop(job_id, 0):
            self.nodes = 0
            for nodes in self._on.values():
                self.nodes |= nodes

    def expect(self, tres: dict[str, int], seconds: float) -> None:
        """Running jobs may use that much longer (or, negative, less long) what they hold."""
        expected = self.run_s
        for name, amount in tres.items():
            expected[name] = expected.get(name, 0) + amount * seconds

    def charge(
        self, tres: dict[str, int], seconds: float, factor: float, when: int, decay: float
    ) -> None:
        """So much was held for that many seconds before `when`; `factor`: the QOS's UsageFactor.

        What is new decays, too, by as many seconds as are counted at once, a job's last ones as
        well.
        """
        self.bring(when, decay)
        if self._touched is not None:
            self._touched[self.key] = self
        used, counted = self.used_s, seconds * factor * (decay**seconds if self.decays else 1.0)
        for name, amount in tres.items():
            used[name] = used.get(name, 0.0) + amount * counted
        self.wall_s += counted

    def bring(self, when: int, decay: float) -> None:
        """Let what was used decay until then; `decay`: a second's factor."""
        if when <= self.as_of:
            return
        if self.decays and decay != 1.0 and (self.used_s or self.wall_s):
            factor = decay ** (when - self.as_of)
            for name in self.used_s:
                self.used_s[name] *= factor
            self.wall_s *= factor
        self.as_of = when

    def forget(self) -> None:
        """Nothing has been used."""
        self.lessen(dict(self.used_s), self.wall_s)

    def lessen(self, used_s: dict[str, float], wall_s: float) -> None:
        """So much less has been used."""
        self.used_s = {
            name: max(amount - used_s.get(name, 0.0), 0.0) for name, amount in self.used_s.items()
        }
        self.wall_s = max(self.wall_s - wall_s, 0.0)
        if self._touched is not None:
            self._touched[self.key] = self

    def inherit(self, before: Use) -> None:
        """Go on with what has been used."""
        self.used_s, self.wall_s, self.as_of = before.used_s, before.wall_s, before.as_of


class QosUse:
    """A QOS's use in all, and by user and account within it."""

    __slots__ = ("by_account", "by_user", "whole")

    def __init__(
        self, *, decays: bool, key: str = "", touched: dict[str, Use] | None = None
    ) -> None:
        self.whole = Use(decays=decays, key=key, touched=touched)
        self.by_user: dict[int, Use] = {}
        self.by_account: dict[str, Use] = {}

    def of_user(self, user_id: int) -> Use:
        found = self.by_user.get(user_id)
        if found is None:
            found = self.by_user[user_id] = Use()
        return found

    def of_account(self, account: str) -> Use:
        found = self.by_account.get(account)
        if found is None:
            found = self.by_account[account] = Use()
        return found
