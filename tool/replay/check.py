"""A preview of the run: what the controller says of the jobs that are about to be submitted, asked
in the run's own cluster before its zero.

Place: under traces.py and scenarios.py; the questions. The answers are counted in
understudy.experiments.preview, and the rules are the controller's
(understudy.controller.requests.foresee). Jobs that ask for the same are asked about once.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from understudy.controller.jobs.site_rules import missing
from understudy.controller.scheduling.registry import declared_words
from understudy.experiments.preview import Answer, Preview
from understudy.experiments.replay import UNREACHABLE, submission
from understudy.model.conf_check import not_emulated, strange_words
from understudy.model.scheduler_parameters import complaints
from understudy.protocol.messages import Failure, ForeseeJob, Foreseen, Message, SubmitJob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from understudy.experiments.replay import ReplayOptions
    from understudy.experiments.trace import Pool, TraceJob
    from understudy.model.conf import SlurmConfig
    from understudy.tool.cluster.cluster_run import Participant

_Kind = TypeVar("_Kind")
# of the ordinary user to whom jobs belong that are nobody's: root may not submit everywhere
USER_ID: Final = 19_999
USER: Final = "replay"
_FIRST_GROUP_ID: Final = 30_000
# kinds of jobs that are asked about at the head of a run; `--check` asks about all
AT_ONCE: Final = 2_000
_TRIED: Final = 50  # of the most frequent kinds, to find a partition for them
_LEAD_S: Final = 0.5  # ours: before the zero, when all nodes have long registered
MESSAGES: Final = 8  # one after the other, that a preview may take, and so may nodes that register
_TIMEOUT_S: Final = 600.0  # ours: of real time, for an answer


class PreviewError(Exception):
    """The controller does not answer."""


def allowed_groups(config: SlurmConfig) -> dict[str, int]:
    """The groups that partitions admit, with numbers: who ran his jobs there was in them."""
    names = sorted(
        {group for partition in config.partitions for group in partition.allow_groups or ()}
    )
    return {name: _FIRST_GROUP_ID + number for number, name in enumerate(names)}


def machine_preview(config: SlurmConfig) -> Preview:
    """A preview of nothing but the machine. Nodes of the future do not exist yet."""
    nodes = [node for node in config.nodes if node.state != "FUTURE"]
    preview = Preview(
        len(nodes), sum(node.cpus for node in nodes), without_effect=not_emulated(config)
    )
    preview.without_effect += [
        f"JobSubmitPlugins={name}" for name in missing(config.words("JobSubmitPlugins"))
    ]
    preview.notes += complaints(config.text("SchedulerParameters"))
    preview.notes += [finding.message for finding in strange_words(config, declared_words(config))]
    return preview


async def preview_trace(
    participant: Participant,
    jobs: Sequence[TraceJob],
    options: ReplayOptions,
    config: SlurmConfig,
    *,
    whole: bool,
) -> tuple[Preview, ReplayOptions]:
    """Preview all jobs of a trace, and find a partition for them where nobody named one and the
    default one can have none of them.

    Returns:
        What was found, and the options with that partition.

    Raises:
        PreviewError: the controller does not answer.
    """
    assert options.zero is not None
    if (
        lead := options.zero
        - _LEAD_S
        - MESSAGES * participant.cluster.latency_s
        - participant.time.now()
    ) > 0:
        await asyncio.sleep(lead)
    found = machine_preview(config)
    kinds = _kinds(jobs, options)
    answers = await _answers(
        participant, jobs, kinds, options, config, most=None if whole else AT_ONCE
    )
    if not options.partition and jobs and not any(answer.can_run for answer in answers.values()):
        chosen, found.elsewhere = await _chosen_partition(participant, jobs, options, config)
        if chosen:
            why = _why(answers.values())
            default = config.default_partition
            where = (
                f"the default partition {default.name}"
                if default
                else "a cluster without a default partition"
            )
            found.notes.append(
                f"no job could run in {where} ({why}): they go to {chosen} (--partition "
                "names another)"
            )
            options = replace(options, partition=chosen)
            answers = await _answers(
                participant, jobs, kinds, options, config, most=None if whole else AT_ONCE
            )
    unknown = 0
    for job, kind in zip(jobs, kinds, strict=True):
        answer = answers.get(kind)
        unknown += answer is None
        found.add(str(job.id), job.submit, min(job.raw_run, job.req), job.procs, answer or Answer())
    if unknown:
        found.notes.append(
            f"{unknown:,} jobs of rare kinds were not looked at (--check looks at all)"
        )
    return found, options


def _kinds(jobs: Sequence[TraceJob], options: ReplayOptions) -> list[tuple[object, ...]]:
    """What of each job the answer depends on."""
    step, pools = options.limit_step_s, options.licenses
    if options.owners:
        return [
            (job.procs, job.user, job.group, job.queue, _exceeds(job, pools), -(-job.req // step))
            for job in jobs
        ]
    return [(job.procs, _exceeds(job, pools), -(-job.req // step)) for job in jobs]


def _exceeds(job: TraceJob, pools: Sequence[Pool]) -> bool:
    """Whether it asks for more of a licence than there is; how much it asks for does not matter
    otherwise.
    """
    return any(
        count > pool.capacity for pool, count in zip(pools, job.units(len(pools)), strict=True)
    )


async def _answers(
    participant: Participant,
    jobs: Sequence[TraceJob],
    kind_of: Sequence[tuple[object, ...]],
    options: ReplayOptions,
    config: SlurmConfig,
    *,
    most: int | None,
) -> dict[tuple[object, ...], Answer]:
    """What the controller says of each kind of job; of the `most` frequent ones.

    Limits of time are bounds: of jobs that are the same otherwise all can run where the longest
    can, and where the shortest and the longest are told the same, so are those between them. A
    site's own rules on submissions may be of any kind.
    """
    examples = dict(zip(reversed(kind_of), reversed(jobs), strict=True))
    kinds = [kind for kind, _ in Counter(kind_of).most_common(most)]
    groups: dict[tuple[object, ...], list[tuple[object, ...]]] = {}
    for kind in kinds:
        groups.setdefault(kind[:-1], []).append(kind)

    async def ask(some: Iterable[tuple[object, ...]]) -> dict[tuple[object, ...], Answer]:
        return await _ask_all(
            participant, list(dict.fromkeys(some)), lambda kind: submission(examples[kind], options)
        )

    plugins = config.words("JobSubmitPlugins")
    if len(missing(plugins)) < len(plugins):
        return await ask(kinds)
    longest = {key: max(group, key=_limit) for key, group in groups.items()}
    told = await ask(longest.values())
    shortest = {
        key: min(groups[key], key=_limit) for key, last in longest.items() if not told[last].can_run
    }
    told |= await ask(kind for kind in shortest.values() if kind not in told)
    left = [
        kind
        for key, first in shortest.items()
        if told[first] != told[longest[key]]
        for kind in groups[key]
        if kind not in told
    ]
    of_group = {kind: told[longest[key]] for key, group in groups.items() for kind in group}
    return of_group | told | await ask(left)


def _limit(kind: tuple[object, ...]) -> int:
    limit = kind[-1]
    assert isinstance(limit, int)
    return limit


async def _ask_all(
    participant: Participant, kinds: Sequence[_Kind], message: Callable[[_Kind], SubmitJob]
) -> dict[_Kind, Answer]:
    call = participant.messenger.call
    answers = await asyncio.gather(
        *(call("controller", ForeseeJob(message(kind)), _TIMEOUT_S) for kind in kinds)
    )
    return dict(zip(kinds, map(understood, answers), strict=True))


def understood(message: Message) -> Answer:
    """What the controller answered.

    Raises:
        PreviewError: it did not.
    """
    if isinstance(message, Foreseen):
        return Answer(stuck=message.reason, cpus=message.cpus, tasks=message.tasks)
    if not isinstance(message, Failure) or message.code in UNREACHABLE:
        raise PreviewError(f"the controller does not say what would become of the jobs: {message}")
    return Answer(refused="; ".join(message.text.split("\n")))


def _why(answers: Iterable[Answer]) -> str:
    return next((answer.refused or answer.stuck for answer in answers), "")


async def _chosen_partition(
    participant: Participant, jobs: Sequence[TraceJob], options: ReplayOptions, config: SlurmConfig
) -> tuple[str, str]:
    """The partition in which most of the jobs can run, of equals the first of the file; "" if none
    can run anywhere.

    Then what keeps them from running in the one that comes nearest, which takes the most of them at
    least, of those that are not the default one.
    """
    kinds = _kinds(jobs, options)
    tried = dict(Counter(kinds).most_common(_TRIED))
    examples = dict(zip(reversed(kinds), reversed(jobs), strict=True))
    best, chosen = 0, ""
    most_taken, nearest = -1, ""
    for partition in config.partitions:
        named = replace(options, partition=partition.name)
        answers = await _ask_all(
            participant,
            list(tried),
            lambda kind, named=named: submission(examples[kind], named),  # type: ignore[misc]
        )
        runnable = sum(tried[kind] for kind, answer in answers.items() if answer.can_run)
        if runnable > best:
            best, chosen = runnable, partition.name
        taken = sum(tried[kind] for kind, answer in answers.items() if not answer.refused)
        if partition is not config.default_partition and taken > most_taken:
            most_taken, nearest = (
                taken,
                f"the partition {partition.name} comes nearest ({_why(answers.values())})",
            )
    return chosen, "" if chosen else nearest


def show(preview: Preview) -> None:
    """The line at the head of a run, and what should not pass without one of its own."""
    print(preview.line(), flush=True)
    for text in preview.warnings:
        print(f"warning: {text}", file=sys.stderr, flush=True)
