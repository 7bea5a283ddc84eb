"""The node daemon's core: the jobs on its nodes, each with a phase, and what must be done about
every message and event. No I/O, no time.

Place: `daemon.py` hands in messages and events and carries out the effects that come back;
executors run the scripts. It must not know sockets, processes or clocks. Follows:
`../docs/architecture.md` on a job's life.

A batch job's run is known by its key, (job id, restart count): news of an earlier run of a requeued
job never touches a later one. Every request may come twice, since whoever got no answer asks again;
a second one is answered as the first and has no effect.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.model.hostlist import compress, expand
from understudy.noded.faults import FaultTable
from understudy.noded.steps import NodeSteps, StepKey
from understudy.protocol.messages import (
    BatchComplete,
    EpilogComplete,
    Failure,
    LaunchBatch,
    LaunchProlog,
    LaunchTasks,
    Message,
    Ok,
    PrologComplete,
    SignalJob,
    SignalTasks,
    StepComplete,
    TerminateJob,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from understudy.auth.credential import Credential, StepCredential

Key = tuple[int, int]  # job id, restart count

OK: Final = Ok()
INVALID_JOB: Final = 2017
ALREADY_DONE: Final = 2021
INVALID_CREDENTIAL: Final = 2026

# ended runs that are remembered, to recognise late copies of their messages
_PAST_RUNS: Final = 10_000
_CACHED_PARTS: Final = 4096
_NOBODY: Final = -1  # the user of a job that was not launched here


class Phase(Enum):
    """Where a run is in its life on the node."""

    RUNNING = "running"
    ENDED = "ended"  # the script has ended by itself; the controller has yet to say TerminateJob
    TERMINATING = "terminating"  # the script is being killed
    EPILOG = "epilog"


class Event(Enum):
    """What can happen to a run."""

    SCRIPT_ENDED = "script ended"
    TERMINATED = "terminated"


TRANSITIONS: Final[Mapping[tuple[Phase, Event], Phase]] = {
    (Phase.RUNNING, Event.SCRIPT_ENDED): Phase.ENDED,
    (Phase.RUNNING, Event.TERMINATED): Phase.TERMINATING,
    (Phase.TERMINATING, Event.SCRIPT_ENDED): Phase.EPILOG,
    (Phase.ENDED, Event.TERMINATED): Phase.EPILOG,
}


class NodeJob(msgspec.Struct):
    """One run of a job. `nodes`: those of its nodes for which this daemon stands; `first_node`:
    where its script runs.
    """

    key: Key
    nodes: str
    first_node: str
    user_id: int
    phase: Phase = Phase.RUNNING
    epilogs: int = 0  # how many groups of nodes are still in their epilog
    program_environment: list[str] = []  # for the epilog
    why: str = ""  # it is ended
    lingers: bool = False  # on a node of another daemon its script is being killed

    def advance(self, event: Event) -> None:
        """Move the run. An event that cannot happen in its phase is a bug."""
        after = TRANSITIONS.get((self.phase, event))
        assert after is not None, f"{event.value} while {self.phase.value}: {self}"
        self.phase = after


# --- effects --------------------------------------------------------------------------------------


class StartScript(msgspec.Struct):
    """Have the executor run the script; its end comes back as `script_ended`."""

    launch: LaunchBatch


@dataclass(slots=True)
class SignalScript:
    """Have the executor send a signal to the job's processes, or to the script alone."""

    key: Key
    signal: int
    batch_only: bool


@dataclass(slots=True)
class KillScript:
    """Have the executor end the script and all processes of the job; its end comes back as
    `script_ended`. `why`: what its output says.
    """

    key: Key
    why: str = ""


@dataclass(slots=True)
class RunEpilog:
    """Run the epilog on the nodes, taking at least `delay_s`; its end comes back as
    `epilog_done`.
    """

    job: NodeJob
    nodes: str
    delay_s: float


@dataclass(slots=True)
class RunProlog:
    """Run the prolog on the nodes, for nothing but itself; its end comes back as `prolog_done`."""

    key: Key
    nodes: str
    program_environment: list[str]


class Report(msgspec.Struct):
    """Tell the controller, until it acknowledges. `node` speaks."""

    message: BatchComplete | EpilogComplete | PrologComplete | StepComplete
    node: str


@dataclass(slots=True)
class Forget:
    """Nothing is left of the run: reports of its script's end need not be repeated, and its files
    may go.
    """

    key: Key


@dataclass(slots=True)
class StartTasks:
    """Have the executor run a step's tasks on these of its nodes, which are own nodes; their end
    comes back as `step_ended`.
    """

    launch: LaunchTasks
    nodes: str


@dataclass(slots=True)
class SendToTasks:
    """Have the executor send a signal to a step's tasks; `ends`: it is to end the step, which those
    who read its output are told.
    """

    key: StepKey
    signal: int
    ends: bool


@dataclass(slots=True)
class EndTasks:
    """Have the executor end a step: gently first, by force after KillWait. `why`: what its output
    says.
    """

    key: StepKey
    why: str = ""


Effect = (
    StartScript
    | SignalScript
    | KillScript
    | RunProlog
    | RunEpilog
    | Report
    | Forget
    | StartTasks
    | SendToTasks
    | EndTasks
)
# the answer (None: none, as if the node were dead) and what to do after it was sent
Step = tuple[Message | None, list[Effect]]


class OwnNodes:
    """The nodes for which a daemon stands. `is_all`: there are no others in the cluster, so every
    job's nodes are own nodes.
    """

    def __init__(self, expression: str, *, is_all: bool) -> None:
        self.expression, self.is_all = expression, is_all
        self.names = dict.fromkeys(expand(expression))
        self._parts: dict[str, tuple[str, str]] = {}

    def __contains__(self, node: str) -> bool:
        return node in self.names

    def part(self, expression: str) -> tuple[str, str]:
        """Those of the nodes that are own nodes, and the first of all."""
        found = self._parts.get(expression)
        if found is None:
            if self.is_all:
                found = expression, _first(expression)
            else:
                names = expand(expression)
                found = (
                    compress([name for name in names if name in self.names]),
                    names[0] if names else "",
                )
            if len(self._parts) >= _CACHED_PARTS:
                self._parts.clear()
            self._parts[expression] = found
        return found


def _first(expression: str) -> str:
    head, bracket, rest = expression.partition("[")
    if bracket and "," not in head and rest.count("]") == 1 and rest.endswith("]"):
        return head + rest.partition(",")[0].partition("-")[0].rstrip("]")
    names = expand(expression)
    return names[0] if names else ""


class NodeCore:
    """All runs on the daemon's nodes.

    `reports_killed`: a script that TerminateJob ended is reported, too, because only its end tells
    how (a script may catch SIGTERM and exit with a code of its own); an emulated one ends as the
    controller expects, and the message is saved.

    `cleans_up_at_once`: an emulated script leaves nothing behind, so where all of a job's nodes are
    own nodes its end and its epilog are one message.

    `past_runs`: how many ended ones are remembered.
    """

    def __init__(
        self,
        own: OwnNodes,
        faults: FaultTable | None = None,
        *,
        reports_killed: bool = False,
        cleans_up_at_once: bool = False,
        past_runs: int = _PAST_RUNS,
    ) -> None:
        self.own, self._past_runs = own, past_runs
        self.cleans_up_at_once = cleans_up_at_once and own.is_all
        self.faults = faults if faults is not None else FaultTable()
        self.reports_killed = reports_killed
        self.jobs: dict[Key, NodeJob] = {}
        self.steps = NodeSteps()
        # epilogs that wait for the ends of steps
        self._held: dict[Key, list[tuple[NodeJob, str]]] = {}
        # whether it was launched here before it was over
        self._past: OrderedDict[Key, bool] = OrderedDict()

    @property
    def running_jobs(self) -> list[Key]:
        """The runs of which something is left on the nodes."""
        return sorted(self.jobs)

    @property
    def jobs_of_steps(self) -> list[Key]:
        """Runs of which only steps are here."""
        return sorted(key for key in self.steps.by_job if key not in self.jobs)

    # --- messages ---------------------------------------------------------------------------------

    def launch(self, message: LaunchBatch, credential: Credential | None) -> Step:
        """LaunchBatch, with what its credential says.

        None where nothing is run for anybody, and the word of the controller's connection is
        enough.
        """
        key = message.job_id, message.restart
        if credential is not None and (
            credential.job_id,
            credential.restart,
            credential.user_id,
            credential.nodes,
        ) != (
            *key,
            message.user_id,
            message.nodes,
        ):
            return Failure(
                INVALID_CREDENTIAL,
                f"the credential of job {credential.job_id} is not for this launch of job "
                f"{message.job_id}",
            ), []
        nodes, first = self.own.part(message.nodes)
        if self.faults:
            fault = self.faults.of(first)
            if fault.silent:
                return None, []
            if fault.launch_code:
                return Failure(fault.launch_code, fault.launch_text), []
        if key in self.jobs:
            return OK, []
        if key in self._past:
            return (
                OK
                if self._past[key]
                else Failure(
                    ALREADY_DONE, f"job {message.job_id} was terminated before its launch arrived"
                )
            ), []
        if first not in self.own:
            return Failure(
                INVALID_CREDENTIAL,
                f"job {message.job_id} begins on {first}, which is not one of this daemon's nodes",
            ), []
        self.jobs[key] = NodeJob(key, nodes, first, message.user_id)
        return OK, [StartScript(message)]

    def launch_failed(self, key: Key) -> None:
        """A launch that was taken cannot be carried out after all, and the controller is told
        so.
        """
        del self.jobs[key]

    def launch_prolog(self, message: LaunchProlog) -> Step:
        """LaunchProlog."""
        key = message.job_id, message.restart
        if self._is_ending(key):
            return Failure(
                ALREADY_DONE, f"job {message.job_id} was terminated before its prolog was asked for"
            ), []
        return OK, [RunProlog(key, self.own.part(message.nodes)[0], message.program_environment)]

    def terminate(self, message: TerminateJob, nodes: str = "") -> Step:
        """TerminateJob. `nodes`: own nodes that are asked, where the message came down the tree (""
        otherwise).
        """
        key = message.job_id, message.restart
        job = self.jobs.get(key)
        if job is None or job.user_id == _NOBODY:
            return self._terminate_unknown(
                key,
                job,
                nodes or (self.own.part(message.nodes)[0] if message.nodes else ""),
                message,
            )
        job.program_environment, job.why = message.program_environment, message.why
        if self.faults and not self._audible(job.nodes):
            return None, []
        if job.phase is Phase.RUNNING:
            job.advance(Event.TERMINATED)
            return OK, [
                KillScript(key, job.why),
                *(EndTasks(step, job.why) for step in self.steps.of(key)),
            ]
        if job.phase is Phase.ENDED:
            job.advance(Event.TERMINATED)
            return OK, self._begin_epilog(job, job.nodes)
        return OK, []

    def _terminate_unknown(
        self, key: Key, job: NodeJob | None, nodes: str, order: TerminateJob
    ) -> Step:
        """Part of a job whose script runs elsewhere, or long over: all the same the controller
        waits for the nodes. They may come in parts.
        """
        nodes = nodes or self.own.expression
        if self.faults and not self._audible(nodes):
            return None, []
        if job is None:
            self._remember(key, launched=self._past.get(key, False))
            job = self.jobs[key] = NodeJob(
                key,
                nodes,
                "",
                _NOBODY,
                Phase.EPILOG,
                program_environment=order.program_environment,
                why=order.why,
            )
        else:
            known = set(expand(job.nodes))
            nodes = compress([node for node in expand(nodes) if node not in known])
            if not nodes:
                return OK, []
            job.nodes = f"{job.nodes},{nodes}"
        job.lingers = order.lingers and not self._past.get(key, False)
        return OK, self._begin_epilog(job, nodes)

    def signal(self, message: SignalJob) -> Step:
        """SignalJob."""
        key = message.job_id, message.restart
        job = self.jobs.get(key)
        if job is None or job.phase is not Phase.RUNNING:
            return Failure(INVALID_JOB, "Invalid job id specified"), []
        if self.faults and self.faults.of(job.first_node).silent:
            return None, []
        return OK, [SignalScript(key, message.signal, message.batch_only)]

    def launch_tasks(self, message: LaunchTasks, credential: StepCredential) -> Step:
        """LaunchTasks, with what its credential says."""
        key = message.job_id, message.restart
        step: StepKey = (*key, message.step_id)
        if (credential.job_id, credential.restart, credential.step_id, credential.nodes) != (
            *step,
            message.nodes,
        ):
            return Failure(
                INVALID_CREDENTIAL,
                f"the credential is not for step {message.job_id}.{message.step_id}",
            ), []
        nodes, _ = self.own.part(message.nodes)
        if not nodes:
            return Failure(
                INVALID_CREDENTIAL,
                f"step {message.job_id}.{message.step_id} is not for this daemon's nodes",
            ), []
        if self.faults and not self._audible(nodes):
            return None, []
        if step in self.steps:
            return OK, []
        if self._is_ending(key):
            return Failure(ALREADY_DONE, "Job/step already completing or completed"), []
        self.steps.add(step, nodes, credential.user_id)
        return OK, [StartTasks(message, nodes)]

    def signal_tasks(self, message: SignalTasks) -> Step:
        """SignalTasks."""
        step = message.job_id, message.restart, message.step_id
        if step not in self.steps:
            return Failure(INVALID_JOB, "Invalid job id specified"), []
        if self.faults and not self._audible(self.steps.nodes_of(step)):
            return None, []
        return OK, [SendToTasks(step, message.signal, message.ends)]

    def end_unknown(self, runs: Iterable[Key]) -> list[Effect]:
        """The controller knows nothing of these runs: end them."""
        wanted = set(runs)
        effects: list[Effect] = []
        for job in [
            job for key, job in self.jobs.items() if key in wanted and job.phase is not Phase.EPILOG
        ]:
            effects += self.terminate(TerminateJob(*job.key))[1]
        for key in [key for key in self.jobs_of_steps if key in wanted]:
            effects += self.terminate(
                TerminateJob(*key),
                compress(
                    expand(",".join(self.steps.nodes_of(step) for step in self.steps.of(key)))
                ),
            )[1]
        return effects

    # --- events -----------------------------------------------------------------------------------

    def script_ended(
        self,
        key: Key,
        exit_code: int,
        signal: int,
        *,
        timed_out: bool = False,
        usage: dict[str, int] | None = None,
        fault: str = "",
    ) -> list[Effect]:
        """The executor has seen the script's end."""
        job = self.jobs[key]
        if (
            self.cleans_up_at_once
            and job.phase is Phase.RUNNING
            and not self.faults
            and key not in self.steps.by_job
        ):
            del self.jobs[key]
            self._remember(key, launched=True)
            return [
                Report(
                    BatchComplete(
                        key[0],
                        key[1],
                        exit_code,
                        signal,
                        timed_out,
                        job.first_node,
                        job.nodes,
                        fault=fault,
                    ),
                    job.first_node,
                )
            ]
        job.advance(Event.SCRIPT_ENDED)
        effects: list[Effect] = []
        if job.phase is Phase.ENDED or self.reports_killed:
            message = BatchComplete(
                key[0],
                key[1],
                exit_code,
                signal,
                timed_out,
                job.first_node,
                usage=usage or {},
                fault=fault,
            )
            effects.append(Report(message, job.first_node))
        if job.phase is Phase.EPILOG:
            effects += self._begin_epilog(job, job.nodes)
        return effects

    def step_ended(
        self, step: StepKey, exit_code: int, signal: int, usage: dict[str, int], fault: str = ""
    ) -> list[Effect]:
        """The executor has seen the end of a step's tasks."""
        nodes = self.steps.remove(step)
        key = step[:2]
        effects: list[Effect] = [
            Report(
                StepComplete(*step, nodes, exit_code, signal, usage, fault),
                "" if not self.faults else _first(nodes),
            )
        ]
        if key not in self.steps.by_job:
            for job, held in self._held.pop(key, ()):
                effects += self._begin_epilog(job, held)
        return effects

    def prolog_done(self, key: Key, nodes: str, failed: str) -> list[Effect]:
        """The prolog has ended on these nodes."""
        return [Report(PrologComplete(*key, nodes, failed), "")]

    def epilog_done(self, job: NodeJob, nodes: str, failed: str = "") -> list[Effect]:
        """The executor has run the epilog on these nodes."""
        job.epilogs -= 1
        effects: list[Effect] = [
            Report(
                EpilogComplete(job.key[0], job.key[1], nodes, failed),
                "" if not self.faults else _first(nodes),
            )
        ]
        if job.epilogs == 0:
            effects += self._forget(job)
        return effects

    def adopt(self, message: LaunchBatch, *, terminating: bool) -> None:
        """A run of an earlier life of this daemon goes on."""
        key = message.job_id, message.restart
        nodes, first = self.own.part(message.nodes)
        self.jobs[key] = NodeJob(
            key, nodes, first, message.user_id, Phase.TERMINATING if terminating else Phase.RUNNING
        )

    # --- the rest ---------------------------------------------------------------------------------

    def _is_ending(self, key: Key) -> bool:
        job = self.jobs.get(key)
        return key in self._past or (job is not None and job.phase is not Phase.RUNNING)

    def _begin_epilog(self, job: NodeJob, nodes: str) -> list[Effect]:
        if job.key in self.steps.by_job:
            self._held.setdefault(job.key, []).append((job, nodes))
            return [EndTasks(step, job.why) for step in self.steps.of(job.key)]
        if not self.faults:
            job.epilogs += 1
            return [RunEpilog(job, nodes, 0.0)]
        # Silent nodes are a group of their own: nobody hears that they are done until they are
        # heard again.
        groups: dict[tuple[float, bool], list[str]] = {}
        for node in expand(nodes):
            fault = self.faults.of(node)
            groups.setdefault((fault.epilog_s, fault.silent), []).append(node)
        job.epilogs += len(groups)
        return [RunEpilog(job, compress(groups[kind]), kind[0]) for kind in sorted(groups)]

    def _forget(self, job: NodeJob) -> list[Effect]:
        del self.jobs[job.key]
        self._remember(job.key, launched=job.user_id != _NOBODY or self._past.get(job.key, False))
        return [Forget(job.key)]

    def _remember(self, key: Key, *, launched: bool) -> None:
        self._past[key] = launched
        if len(self._past) > self._past_runs:
            self._past.popitem(last=False)

    def _audible(self, nodes: str) -> bool:
        return any(not self.faults.of(node).silent for node in expand(nodes))
