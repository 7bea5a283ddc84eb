"""A preview of a scenario: its submissions go through sbatch, as in the run, and the
controller is asked what would become of them.

Place: under scenarios.py, beside check.py, which does the same for traces. Submissions of
the same options and user are asked about once. What the administrator's commands will change
(reservations, partitions that open ...) has not happened yet; jobs for reservations that they make
are looked at as jobs without.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.commands.sbatch import sbatch
from understudy.experiments.preview import Answer
from understudy.experiments.scenario import with_job_ids
from understudy.protocol.messages import (
    Emulation,
    Failure,
    ForeseeJob,
    Foreseen,
    Message,
    SubmitJob,
)
from understudy.tool.replay.check import machine_preview, understood
from understudy.tool.replay.in_time import run_command, submitted_as

if TYPE_CHECKING:
    from understudy.experiments.preview import Preview
    from understudy.experiments.scenario import Scenario, Submission
    from understudy.model.conf import SlurmConfig
    from understudy.tool.cluster.cluster_run import Participant

# kinds of submissions that are asked about at the head of a run; `--check` asks about all
AT_ONCE: Final = 200
_REGISTERED_S: Final = 1.0  # ours: after which all nodes have registered
_NEEDED_S: Final = 3.0  # ours: before the scenario's zero, beside what questions and answers take
SCRIPT: Final = "#!/bin/sh\n"


async def preview_scenario(
    participant: Participant, scenario: Scenario, config: SlurmConfig, *, whole: bool
) -> Preview:
    """Preview all submissions. Not `whole`: the most frequent kinds, if there is time for it
    before the zero.

    Raises:
        PreviewError: the controller does not answer.
    """
    found = machine_preview(config)
    kinds = Counter(_kind(each) for each in scenario.submissions)
    wanted = dict(kinds.most_common(None if whole else AT_ONCE))
    cluster = participant.cluster
    if (
        not whole
        and cluster.zero - participant.time.now() < _NEEDED_S + 2 * len(wanted) * cluster.latency_s
    ):
        found.notes.append("there is no time to look at the jobs before they begin (--check does)")
        return found
    await asyncio.sleep(_REGISTERED_S)
    made = _reservations(scenario)
    answers: dict[tuple[str, ...], Answer] = {}
    unknown = 0
    for each in scenario.submissions:
        kind = _kind(each)
        if kind not in wanted:
            unknown += 1
            continue
        if kind not in answers:
            answers[kind] = await _ask(participant, scenario, each, made)
        answer = answers[kind]
        run_s = sum(each.run.values()) if isinstance(each.run, dict) else each.run * answer.tasks
        found.add(each.id, each.at, run_s, answer.cpus, answer)
    if unknown:
        found.notes.append(
            f"{unknown:,} jobs of rare kinds were not looked at (--check looks at all)"
        )
    return found


def _kind(each: Submission) -> tuple[str, ...]:
    return (each.user, *each.options)


def _reservations(scenario: Scenario) -> frozenset[str]:
    """Those that commands of the scenario make."""
    words = [word.partition("=") for event in scenario.events for word in event.command]
    return frozenset(
        value for key, _, value in words if key.lower() in ("reservation", "reservationname")
    )


async def _ask(
    participant: Participant, scenario: Scenario, each: Submission, made: frozenset[str]
) -> Answer:
    def as_submitted(message: SubmitJob) -> SubmitJob:
        spec = (
            message.spec
            if message.spec.reservation not in made
            else msgspec.structs.replace(message.spec, reservation="")
        )
        return msgspec.structs.replace(message, spec=spec, emulation=Emulation(1.0))

    submitted = submitted_as(
        participant.cluster.users[each.user], scenario.group_of(each.user), as_submitted
    )

    def change(message: Message) -> Message:
        changed = submitted(message)
        return ForeseeJob(changed) if isinstance(changed, SubmitJob) else changed

    options = [with_job_ids(word, {}) for word in each.options]
    outcome = await run_command(
        participant.messenger,
        participant.cluster.name,
        "sbatch",
        sbatch,
        [f"--job-name={each.name or each.id}", "--chdir=/", "--output=/dev/null", *options],
        stdin=SCRIPT,
        environ={"HOME": "/", "USER": each.user},
        change=change,
    )
    said = next((answer for answer in outcome.answers if isinstance(answer, Foreseen)), None)
    failure = next(
        (answer for answer in reversed(outcome.answers) if isinstance(answer, Failure)), None
    )
    if said is None and failure is None:  # sbatch itself refuses it
        return Answer(
            refused="; ".join(
                (outcome.err.strip() or outcome.out.strip() or "sbatch refuses it").split("\n")
            )
        )
    return understood(said or failure or Failure(0, ""))
