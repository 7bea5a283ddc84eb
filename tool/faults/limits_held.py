"""Counted anew from the running jobs: nobody has more than the limits of associations and qualities
of service allow, whenever a job has started.

sacctmgr(1) and Slurm's page on resource limits say which limit counts: of the partition's QOS, the
job's QOS, the association and those above it the first that says something of a kind; Grp limits of
associations hold at each level.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from understudy.model.states import JobFlag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job
    from understudy.model.associations import Association
    from understudy.model.qos import Qos

LEFT_BY_DECAY = 0.95  # at least, of what was used within a schedule


class Payer(NamedTuple):
    """Who answers for a job: its user, account, the partition that it runs in, associations from
    its own to the root, and qualities of service, the partition's first.
    """

    user: str
    account: str
    partition: str
    chain: tuple[Association, ...]
    qos: tuple[Qos, ...]

    @property
    def groups(self) -> Iterator[str]:
        """All groups with use of their own that the job counts in."""
        yield from (f"association {each.id}" for each in self.chain)
        for each in self.qos:
            yield from (
                f"qos {each.name}",
                f"qos {each.name} user {self.user}",
                f"qos {each.name} account {self.account}",
            )


class LimitsHeld:
    """Looks at one controller's jobs, and remembers what those that are over have used."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self._runs: dict[tuple[int, int], tuple[Job, int, Payer, dict[str, int]]] = {}
        self._submitted = set(core.tables.jobs)
        # started under another controller, whose tables this one has taken over
        self._taken_over = {(job.job_id, job.restarts) for job in core.tables.running.values()}
        # by group and resource, "" for time
        self._used_s: defaultdict[tuple[str, str], float] = defaultdict(float)
        # that wait for their nodes to boot, which is no use
        self._booting: set[tuple[int, int]] = set()

    def check(self) -> None:
        """Raise AssertionError if a job has started, or was submitted, that a limit ought to have
        kept out.
        """
        core = self.core
        enforced = core.tables.limits
        if not enforced.enforced or not core.settings.enforced.limits:
            return
        running = {(job.job_id, job.restarts): job for job in core.tables.running.values()}
        for key in [key for key in self._runs if key not in running]:
            run = self._runs.pop(key)
            if key not in self._booting:
                self._end(*run)
        self._booting = {key for key, job in running.items() if job.flags & JobFlag.CONFIGURING}
        for key, (job, start, payer, held) in self._runs.items():
            if job.start_time != start:  # its nodes have booted
                assert job.start_time is not None
                self._runs[key] = (job, job.start_time, payer, held)
        started = [key for key in running if key not in self._runs]
        for key in started:
            job = running[key]
            assert job.start_time is not None
            found = self._payer(job)
            if found is None and key in self._taken_over:
                continue  # accounting has not told yet
            assert found is not None, f"runs, and has no association: {job.story}"
            self._runs[key] = (job, job.start_time, found, self._held(job))
        for key in started:
            if key not in self._taken_over:
                self._started(running[key])
        self._submissions()

    def _end(self, job: Job, start: int, payer: Payer, held: dict[str, int]) -> None:
        if job.suspended_s or not payer.chain:
            return
        now = self._payer(job, payer.partition)
        if now is not None and now.qos != payer.qos:  # who paid is not known
            return
        end = job.end_time if job.is_finished and job.end_time is not None else self.core.time.now()
        for group in payer.groups:
            for tres, amount in {**held, "": 1}.items():
                self._used_s[group, tres] += amount * max(int(end) - start, 0)

    def _payer(self, job: Job, in_partition: str = "") -> Payer | None:
        """In the partition that is named, or that it has now."""
        core, state = self.core, self.core.associations
        name = in_partition or job.partition
        user = core.users.user_name(job.user_id)
        account = job.spec.account or state.default_account(user) or ""
        own = state.find(account, user, name)
        if own is None:
            return None
        partition = core.tables.partitions.get(name)
        of_partition = (
            state.qos.get(partition.qos) if partition is not None and partition.qos else None
        )
        found = [
            each
            for each in (of_partition, state.qos.get(job.spec.qos or state.default_qos(own)))
            if each is not None
        ]
        if len(found) > 1 and found[1].has("OverPartQOS"):
            found.reverse()
        return Payer(
            user,
            account,
            name,
            tuple(state.chain(own)),
            tuple({each.name: each for each in found}.values()),
        )

    def _held(self, job: Job) -> dict[str, int]:
        assert job.allocation is not None
        held = {"cpu": job.allocation.cpus}
        for share in job.allocation.shares:
            parts = {"node": 1, "mem": share.memory_mb if self.core.selector.consumes_memory else 0}
            for each in share.gres:
                parts[f"gres/{each.name}"] = parts.get(f"gres/{each.name}", 0) + each.amount
            for name, amount in parts.items():
                held[name] = held.get(name, 0) + amount
        return held

    # --- who starts -------------------------------------------------------------------------------

    def _started(self, job: Job) -> None:
        state = self.core.associations
        payer = self._payer(job)
        assert payer is not None
        own = state.effective(payer.chain[0])
        said: set[tuple[str, str]] = set()
        for qos in payer.qos:
            whole, user, account = (
                f"qos {qos.name}",
                f"qos {qos.name} user {payer.user}",
                f"qos {qos.name} account {payer.account}",
            )
            tests: list[tuple[str, str, Mapping[str, int] | int | None, Callable[..., None]]] = [
                ("jobs", whole, qos.grp_jobs, self._jobs),
                ("user jobs", user, qos.max_jobs_per_user, self._jobs),
                ("account jobs", account, qos.max_jobs_per_account, self._jobs),
                ("wall", whole, qos.max_wall, self._wall),
                ("grp wall", whole, qos.grp_wall, self._used),
                ("grp", whole, qos.grp_tres, self._sum),
                ("per user", user, qos.max_tres_per_user, self._sum),
                ("per account", account, qos.max_tres_per_account, self._sum),
                ("per job", whole, qos.max_tres_per_job, self._per_job),
                ("per node", whole, qos.max_tres_per_node, self._per_node),
                ("least", whole, qos.min_tres_per_job, self._least),
                ("run mins", whole, qos.grp_tres_run_mins, self._run_mins),
                ("job mins", whole, qos.max_tres_mins_per_job, self._job_mins),
                ("grp mins", whole, qos.grp_tres_mins, self._used),
            ]
            now_said: set[tuple[str, str]] = set()
            for form, group, limits, test in tests:
                for tres, limit in _limits(limits):
                    if (form, tres) not in said:
                        now_said.add((form, tres))
                        test(job, group, tres, limit, form)
            said |= now_said
        for place, each in enumerate(payer.chain):
            group = f"association {each.id}"
            of_level: list[tuple[str, Mapping[str, int] | int | None, Callable[..., None]]] = [
                ("jobs", each.grp_jobs, self._jobs),
                ("grp wall", each.grp_wall, self._used),
                ("grp", each.grp_tres, self._sum),
                ("run mins", each.grp_tres_run_mins, self._run_mins),
                ("grp mins", each.grp_tres_mins, self._used),
            ]
            if not place:
                of_level += [
                    ("user jobs", own.max_jobs, self._jobs),
                    ("wall", own.max_wall, self._wall),
                    ("per job", own.max_tres_per_job, self._per_job),
                    ("per node", own.max_tres_per_node, self._per_node),
                    ("job mins", own.max_tres_mins_per_job, self._job_mins),
                ]
            for form, limits, test in of_level:
                for tres, limit in _limits(limits):
                    if (form, tres) not in said:
                        test(job, group, tres, limit, form)

    def _in(self, group: str, last: Job) -> list[tuple[Job, dict[str, int]]]:
        """The running jobs, up to the last one that started, that count in the group as it is now,
        with what they hold.
        """
        found = []
        for job in self.core.tables.running.values():
            payer = self._payer(job)
            if payer is not None and group in payer.groups:
                found.append((job, self._held(job)))
            if job is last:
                break
        return found

    def _jobs(self, job: Job, group: str, _tres: str, limit: int, form: str) -> None:
        count = len(self._in(group, job))
        assert count <= limit, f"{count} jobs of {group}, at most {limit} ({form}): {job.story}"

    def _sum(self, job: Job, group: str, tres: str, limit: int, form: str) -> None:
        if tres in job.lifted or not self._held(job).get(tres):
            return
        inside = self._in(group, job)
        if tres == "node":
            nodes = 0
            for each, _ in inside:
                assert each.allocation is not None
                nodes |= each.allocation.nodes
            amount = nodes.bit_count()
        else:
            amount = sum(held.get(tres, 0) for _, held in inside)
        assert amount <= limit, f"{amount} {tres} of {group}, at most {limit} ({form}): {job.story}"

    def _per_job(self, job: Job, group: str, tres: str, limit: int, _form: str) -> None:
        amount = self._held(job).get(tres, 0)
        assert tres in job.lifted or amount <= limit, (
            f"{amount} {tres} of one job of {group}, at most {limit}: {job.story}"
        )

    def _per_node(self, job: Job, group: str, tres: str, limit: int, _form: str) -> None:
        assert job.allocation is not None
        amount = self._held(job).get(tres, 0) // job.allocation.node_count  # as Slurm counts it
        assert tres in job.lifted or amount <= limit, (
            f"{amount} {tres} of one node of a job of {group}, at most {limit}: {job.story}"
        )

    def _least(self, job: Job, group: str, tres: str, limit: int, _form: str) -> None:
        amount = self._held(job).get(tres, 0)
        assert tres in job.lifted or amount >= limit, (
            f"{amount} {tres} of one job of {group}, at least {limit}: {job.story}"
        )

    def _wall(self, job: Job, group: str, _tres: str, limit: int, _form: str) -> None:
        is_within = job.time_limit_s is not None and job.time_limit_s <= limit * 60
        assert is_within or "time" in job.lifted, (
            f"{job.time_limit_s} s of one job of {group}, at most {limit} minutes: {job.story}"
        )

    def _job_mins(self, job: Job, group: str, tres: str, limit: int, _form: str) -> None:
        minutes = self._held(job).get(tres, 0) * ((job.time_limit_s or 0) // 60)
        assert tres in job.lifted or minutes <= limit, (
            f"{minutes} minutes of {tres} of one job of {group}, at most {limit}: {job.story}"
        )

    def _run_mins(self, job: Job, group: str, tres: str, limit: int, _form: str) -> None:
        if tres in job.lifted or not self._held(job).get(tres):
            return
        now, seconds = int(self.core.time.now()), 0
        for each, held in self._in(group, job):
            assert each.start_time is not None
            seconds += held.get(tres, 0) * max(
                (each.time_limit_s or 0) - (now - each.start_time), 0
            )
        assert seconds < (limit + 1) * 60, (
            f"{seconds} seconds of {tres} to come of {group}, at most {limit} minutes: {job.story}"
        )

    def _used(self, job: Job, group: str, tres: str, limit: int, _form: str) -> None:
        limits = self.core.job_limits
        if limit and limits is not None and not limits.counts_use:
            return
        used = self._used_s[group, tres] * LEFT_BY_DECAY
        assert tres in job.lifted or used < limit * 60, (
            f"{used:.0f} seconds of {tres or 'time'} used by {group}, at most {limit} "
            f"minutes: {job.story}"
        )

    # --- who is submitted -------------------------------------------------------------------------

    def _submissions(self) -> None:
        jobs = self.core.tables.jobs
        fresh = [job for job_id, job in jobs.items() if job_id not in self._submitted]
        for job in fresh:
            is_task = job.array is not None and job.array.job_id in self._submitted
            self._submitted.add(job.job_id)
            payer = self._payer(job)
            if is_task or payer is None or job.is_finished:
                continue
            said: set[str] = set()
            for qos in payer.qos:
                limits = {
                    "all": (f"qos {qos.name}", qos.grp_submit_jobs),
                    "user": (f"qos {qos.name} user {payer.user}", qos.max_submit_jobs_per_user),
                    "account": (
                        f"qos {qos.name} account {payer.account}",
                        qos.max_submit_jobs_per_account,
                    ),
                }
                for form, (group, limit) in limits.items():
                    if limit is not None and form not in said:
                        self._count_submitted(job, group, limit)
                said |= {form for form, (_, limit) in limits.items() if limit is not None}
            for each in payer.chain:
                if each.grp_submit_jobs is not None and "all" not in said:
                    self._count_submitted(job, f"association {each.id}", each.grp_submit_jobs)
            most = self.core.associations.effective(payer.chain[0]).max_submit_jobs
            if most is not None and "user" not in said:
                self._count_submitted(job, f"association {payer.chain[0].id}", most)

    def _count_submitted(self, job: Job, group: str, limit: int) -> None:
        count = 0
        for each in self.core.tables.jobs.values():
            payer = None if each.is_finished else self._payer(each)
            if payer is not None and group in payer.groups:
                count += each.array_tasks.bit_count() or 1
        assert count <= limit, f"{count} jobs of {group} submitted, at most {limit}: {job.story}"


def _limits(limits: Mapping[str, int] | int | None) -> Iterable[tuple[str, int]]:
    if limits is None:
        return ()
    return [("", limits)] if isinstance(limits, int) else limits.items()
