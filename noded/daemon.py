"""The node daemon's edge: requests to the core, its effects to the executor, the controller and
other node daemons.

Place: between the messenger, the cluster's time, an executor and the core. It decides nothing about
jobs. In the emulated path a request costs no task, no timer of its own and no disk write.

The answer to a request is sent before its effects are carried out, so the controller hears Ok to
TerminateJob before EpilogComplete.
"""

from __future__ import annotations

from functools import partial
from signal import SIGKILL
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.auth.credential import CredentialError, order_expires
from understudy.model.errors import ERROR_TEXT
from understudy.model.hostlist import compress, expand
from understudy.noded.core import (
    ALREADY_DONE,
    INVALID_CREDENTIAL,
    OK,
    Effect,
    EndTasks,
    Forget,
    KillScript,
    NodeCore,
    NodeJob,
    Report,
    RunEpilog,
    RunProlog,
    SendToTasks,
    SignalScript,
    StartScript,
    StartTasks,
    Step,
)
from understudy.noded.leader import NOT_LEADING
from understudy.noded.registration import Registration
from understudy.noded.reports import CONTROLLER, Reports
from understudy.protocol.messages import (
    BATCH_STEP,
    AnyMessage,
    AttachTasks,
    BatchComplete,
    CheckHealth,
    EpilogComplete,
    Failure,
    FindJobs,
    Forward,
    JobsFound,
    LaunchBatch,
    LaunchProlog,
    LaunchTasks,
    Lead,
    Message,
    NodeReplies,
    NodeReply,
    NotifyTasks,
    Ping,
    PrologComplete,
    Reconfigure,
    RegisterNodes,
    SendFile,
    Shutdown,
    SignalJob,
    SignalTasks,
    StatTasks,
    StepComplete,
    TaskStatistics,
    TerminateJob,
)
from understudy.protocol.tree import (
    TIMED_OUT,
    UNKNOWN_NODE,
    WELL,
    ForwardTree,
    Outcome,
    Routes,
    Send,
    Target,
    budget_s,
    merged,
)

if TYPE_CHECKING:
    import asyncio
    import logging
    from collections.abc import Callable, Sequence

    from understudy.auth.credential import StepCredential, Verifier
    from understudy.clock.timekeeper import Timekeeper
    from understudy.noded.core import Key
    from understudy.noded.executor import Executor, StepRunner
    from understudy.noded.files import FileReceiver
    from understudy.noded.health import HealthCheck
    from understudy.noded.journal import Journal
    from understudy.noded.leader import FollowedLeader
    from understudy.noded.steps import StepKey
    from understudy.protocol.messenger import Messenger
    from understudy.protocol.mishaps import Mishaps
    from understudy.protocol.requests import Request

ACCESS_DENIED: Final = 2002
# with a credential in it; by itself, or in a Forward
OF_COMMANDS: Final = (LaunchTasks, SignalTasks, AttachTasks, StatTasks, SendFile)
UNEXPECTED: Final = 1000
# ours: a boot is told in whole seconds, and worked out of the time since
_BOOT_TIME_S: Final = 2.0
_LONGEST_FORWARD_S: Final = 3600.0  # ours: for a node's answer; nobody's MessageTimeout is longer
NO_SPACE: Final = 4010
PROLOG_FAILED: Final = 4022
NO_SPACE_TEXT: Final = ERROR_TEXT[NO_SPACE]
_decode: Final = msgspec.msgpack.Decoder(AnyMessage).decode


class FrontEnd:
    """One node daemon. `boot_time`: of its nodes, in the cluster's time. `stop` is called when the
    daemon is told to end. `shared`: of several front ends in one process.
    """

    def __init__(
        self,
        name: str,
        address: str,
        core: NodeCore,
        messenger: Messenger,
        time: Timekeeper,
        verifier: Verifier | None,
        routes: Routes,
        log: logging.Logger,
        *,
        boot_time: float,
        journal: Journal | None = None,
        step_verifier: Verifier | None = None,
        files: FileReceiver | None = None,
        stop: Callable[[], None] = lambda: None,
        shared: tuple[Registration, Reports] | None = None,
        leader: FollowedLeader | None = None,
    ) -> None:
        self.name, self.address, self.core = name, address, core
        self._messenger, self._time, self._verifier, self.routes, self._log = (
            messenger,
            time,
            verifier,
            routes,
            log,
        )
        self._boot_time, self._start_time = boot_time, time.now()
        self._journal, self._stop = journal, stop
        self._step_verifier, self.files = step_verifier, files
        self._obeyed: set[bytes] = set()  # orders that are good still
        # user and group of the steps that are about to run, or run
        self._owners: dict[StepKey, tuple[int, int]] = {}
        # steps that wait for a prolog: whether they are to be ended
        self._in_prolog: dict[StepKey, bool] = {}
        self.registration, self.reports = shared or (
            Registration(messenger, time, log, self._describe, self._registered),
            Reports(messenger, time, core.faults, log, journal, on_back=self.register),
        )
        self._is_one_of_many = shared is not None
        self._leader = leader
        self.mishaps: Mishaps | None = None
        self._handed_on = 0
        self.health: HealthCheck | None = None  # where jobs are real
        self.reconfigure: Callable[[], None] = lambda: None  # read slurm.conf again
        self.executor: Executor
        self.step_runner: StepRunner

    def start(
        self,
        executor: Executor,
        adopt: Callable[[LaunchBatch], None] | None = None,
        adopt_step: Callable[[LaunchTasks, str], None] | None = None,
    ) -> None:
        """Begin. The executor has `script_ended` as its `on_ended`; `adopt` is its way to look
        after scripts of the daemon's earlier life, `adopt_step` that of the step runner.
        """
        self.executor = executor
        if self._journal is not None and adopt is not None and adopt_step is not None:
            self._resume(self._journal.read(), adopt, adopt_step)
        self._messenger.set_handler(self.handle)
        self._messenger.on_peer_lost = self._lost
        self.register()

    # --- telling the controller -------------------------------------------------------------------

    def register(self) -> None:
        """Announce the nodes, until the controller has taken note."""
        self.registration.begin()

    @property
    def is_registered(self) -> bool:
        """Whether the controller has taken note."""
        return self.registration.is_done

    def _describe(self) -> RegisterNodes:
        return RegisterNodes(
            self.name,
            self.address,
            self.core.own.expression,
            self._boot_time,
            self._start_time,
            self.core.running_jobs,
            self.core.jobs_of_steps,
        )

    def _registered(self, unknown: list[tuple[int, int]]) -> None:
        self.reports.controller_is_back()
        if unknown:
            self._log.warning("the controller does not know jobs %s: ending them", unknown)
            self.do(self.core.end_unknown(unknown))

    def _lost(self, peer: str) -> None:
        """The connection to a peer has broken. A controller that comes back may be a new one, which
        knows neither us nor whether its last orders arrived; and nothing that we have to report may
        be there to make us notice it.
        """
        if peer == CONTROLLER:
            self.register()

    def script_ended(
        self,
        key: Key,
        exit_code: int,
        signal: int,
        *,
        timed_out: bool,
        usage: dict[str, int] | None = None,
        fault: str = "",
    ) -> None:
        """The executor's word that a script has ended."""
        if signal:
            self._log.debug("[%d.batch] get_exit_code task 0 died by signal: %d", key[0], signal)
        self._log.info("[%d.batch] done with job", key[0])
        self.do(
            self.core.script_ended(
                key, exit_code, signal, timed_out=timed_out, usage=usage, fault=fault
            )
        )

    def _resume(
        self,
        entries: Sequence[Message],
        adopt: Callable[[LaunchBatch], None],
        adopt_step: Callable[[LaunchTasks, str], None],
    ) -> None:
        """Take up what an earlier life of this daemon wrote in its journal."""
        ending = {
            (entry.job_id, entry.restart): entry
            for entry in entries
            if isinstance(entry, TerminateJob)
        }
        over = {
            (entry.job_id, entry.restart, entry.step_id)
            for entry in entries
            if isinstance(entry, StepComplete)
        }
        for entry in entries:
            if isinstance(entry, BatchComplete | EpilogComplete | PrologComplete | StepComplete):
                self.reports.send(entry, "")
            elif isinstance(entry, LaunchTasks):
                if (entry.job_id, entry.restart, entry.step_id) in over or not self._knows_again(
                    entry
                ):
                    assert self._journal is not None
                    self._journal.forget_step((entry.job_id, entry.restart, entry.step_id))
                else:
                    adopt_step(entry, self.core.own.part(entry.nodes)[0])
        for entry in entries:
            if isinstance(entry, LaunchBatch):
                key = entry.job_id, entry.restart
                is_ending = ending.pop(key, None) is not None
                self.core.adopt(entry, terminating=is_ending)
                adopt(entry)
                if is_ending:
                    self.executor.kill(key)
                    for step in self.core.steps.of(key):
                        self.step_runner.end(step)
        for order in ending.values():
            self.do(self.core.terminate(order)[1])

    def _knows_again(self, launch: LaunchTasks) -> bool:
        """Enter a step of an earlier life."""
        step = launch.job_id, launch.restart, launch.step_id
        try:
            credential = self._verified(launch.credential, or_formerly=True)
        except CredentialError as error:
            # no controller of this cluster has ever signed it: it is another cluster's
            self._log.warning("step %d.%d is not known any more: %s", step[0], step[2], error)
            return False
        self._owners[step] = credential.user_id, credential.group_id
        self.core.steps.add(step, self.core.own.part(launch.nodes)[0], credential.user_id)
        return True

    # --- being asked ------------------------------------------------------------------------------

    def handle(self, request: Request) -> Message | None:
        """Answer a request."""
        message = request.message
        of_controller = request.sender.is_controller
        if not of_controller and not isinstance(message, (Ping, Forward, *OF_COMMANDS)):
            return Failure(ACCESS_DENIED, "Access/permission denied")
        if self._leader is not None:
            if isinstance(message, Lead):
                return self._follow(self._leader, message, request.sender.name)
            if self._leader.refuses(request):
                return NOT_LEADING
        if isinstance(message, Forward):
            return _Forwarding(self, message, request).begin()
        if isinstance(message, StatTasks):
            return self._statistics(message, request.reply)
        if (
            isinstance(message, SignalTasks)
            and not of_controller
            and (refusal := self.refusal(message))
        ):
            return refusal
        try:
            answer, effects = self.step(message, "")
        except ValueError as error:  # a host list that is none
            return Failure(UNEXPECTED, f"malformed message: {error}")
        if isinstance(message, LaunchTasks) and effects and self.executor.has_prolog:
            self.after_prolog(message, effects, lambda outcomes: request.reply(_merged(outcomes)))
            return None
        if answer is not None and effects:
            request.reply(answer)
            self.do(effects)
            return None
        return answer

    def _follow(self, leader: FollowedLeader, message: Lead, name: str) -> Message:
        """A controller leads from now on: it may know neither us nor what has become of orders."""
        answer = leader.follow(message, name)
        if not isinstance(answer, Failure):
            self.register()
        return answer

    def step(self, message: Message, nodes: str) -> Step:
        """The answer to a message and what to do about it. `nodes`: own nodes that are asked, where
        the message came down the tree ("" otherwise).
        """
        match message:
            case LaunchBatch():
                return self._launch_batch(message)
            case LaunchProlog():
                return self.core.launch_prolog(message)
            case TerminateJob():
                return self._terminate(message, nodes)
            case SignalJob():
                return self.core.signal(message)
            case NotifyTasks():
                self.executor.notify((message.job_id, message.restart), message.text)
                return OK, []
            case LaunchTasks():
                return self._launch_tasks(message)
            case SignalTasks():
                return self.core.signal_tasks(message)
            case AttachTasks():
                if (refusal := self.refusal(message)) is not None:
                    return refusal, []
                self.step_runner.attach(
                    (message.job_id, message.restart, message.step_id),
                    message.io_address,
                    message.io_key,
                )
                return OK, []
            case SendFile():
                return self._take_file(message), []
            case FindJobs():
                return JobsFound(
                    [
                        run
                        for run in message.jobs
                        if run in self.core.jobs or self.reports.has_end_of(run)
                    ]
                ), []
            case CheckHealth():
                if self.health is not None:
                    self.health.check(expand(message.nodes))
                return OK, []
            case Ping():
                return OK, []
            case Reconfigure():
                self.reconfigure()
                if not self._is_one_of_many:
                    self.register()
                return OK, []
            case Shutdown():
                self._stop()
                return OK, []
            case _:
                return Failure(
                    UNEXPECTED, f"Unexpected message received: {type(message).__name__}"
                ), []

    def _launch_batch(self, message: LaunchBatch) -> Step:
        if message.boot_time and self._boot_time > message.boot_time + _BOOT_TIME_S:
            self._log.info("job %d was sent to a former life of this node", message.job_id)
            return None, []  # it was perhaps launched there; the registration tells of the boot
        credential = None
        try:
            # Without a time: an order that waited for this daemon to come back is still
            # good. A copy of it is known by its key.
            if self._verifier is not None:
                credential = self._verifier.verify(message.credential, or_formerly=True)
        except CredentialError as error:
            self._log.warning("launch of job %d refused: %s", message.job_id, error)
            return Failure(INVALID_CREDENTIAL, f"Invalid job credential: {error}"), []
        step = self.core.launch(message, credential)
        if step[1]:
            self._log.info("Launching batch job %d for UID %d", message.job_id, message.user_id)
        if self._journal is not None and step[1] and not self._journal.put(message):
            self.core.launch_failed((message.job_id, message.restart))
            return Failure(NO_SPACE, NO_SPACE_TEXT), []
        return step

    def _terminate(self, message: TerminateJob, nodes: str) -> Step:
        step = self.core.terminate(message, nodes)
        if self._journal is not None and (message.job_id, message.restart) in self.core.jobs:
            self._journal.put(message)
        return step

    def _launch_tasks(self, message: LaunchTasks) -> Step:
        try:
            step_credential = self._verified(message.credential, self._time.now())
        except CredentialError as error:
            self._log.warning(
                "launch of step %d.%d refused: %s", message.job_id, message.step_id, error
            )
            return Failure(INVALID_CREDENTIAL, f"Invalid job credential: {error}"), []
        step = self.core.launch_tasks(message, step_credential)
        if self._journal is not None and step[1] and not self._journal.put(message):
            self.core.steps.remove((message.job_id, message.restart, message.step_id))
            return Failure(NO_SPACE, NO_SPACE_TEXT), []
        if step[1]:
            self._log.info(
                "launch task StepId=%d.%d request from UID:%d GID:%d HOST:%s PORT:%s",
                *(
                    message.job_id,
                    message.step_id,
                    step_credential.user_id,
                    step_credential.group_id,
                ),
                *message.io_address.removeprefix("tcp:").rpartition(":")[::2],
            )
            self._owners[message.job_id, message.restart, message.step_id] = (
                step_credential.user_id,
                step_credential.group_id,
            )
        return step

    def _verified(
        self, credential: bytes, now: float | None = None, *, or_formerly: bool = False
    ) -> StepCredential:
        if self._step_verifier is None:
            raise CredentialError("this daemon has no key to check credentials with")
        return self._step_verifier.verify_step(credential, now, or_formerly=or_formerly)

    def is_order(self, message: Forward) -> bool:
        """Whether the controller has signed what somebody else hands on."""
        verifier = self._step_verifier
        return verifier is not None and verifier.is_order(
            message.order, message.inner, self._time.now()
        )

    def is_obeyed(self, order: bytes) -> bool:
        """Whether the order has come before, as far as it is still good; it is remembered."""
        now = self._time.now()
        self._obeyed = {each for each in self._obeyed if order_expires(each) >= now}
        if order in self._obeyed:
            return True
        self._obeyed.add(order)
        return False

    def refusal(self, message: SignalTasks | AttachTasks | StatTasks) -> Failure | None:
        """Why a command may not do this to the step; None if it may: it has the step's
        credential.
        """
        step = message.job_id, message.restart, message.step_id
        try:
            credential = self._verified(message.credential)
        except CredentialError as error:
            return Failure(INVALID_CREDENTIAL, f"Invalid job credential: {error}")
        if (credential.job_id, credential.restart, credential.step_id) != step:
            return Failure(ACCESS_DENIED, "Access/permission denied")
        is_there = (
            step[:2] in self.core.jobs if message.step_id == BATCH_STEP else step in self.core.steps
        )
        return None if is_there else Failure(2017, "Invalid job id specified")

    def _statistics(self, message: StatTasks, reply: Callable[[Message], None]) -> Message | None:
        refusal = self.refusal(message)
        if refusal is None and message.step_id == BATCH_STEP:
            return TaskStatistics(self.executor.statistics((message.job_id, message.restart)))
        if refusal is None:
            self.step_runner.statistics(
                (message.job_id, message.restart, message.step_id),
                lambda tasks: reply(TaskStatistics(tasks)),
            )
        return refusal

    def _take_file(self, message: SendFile) -> Message:
        """sbcast: a piece of a file for the nodes, which share this host's disks."""
        try:
            credential = self._verified(message.credential)
        except CredentialError as error:
            return Failure(INVALID_CREDENTIAL, f"Invalid job credential: {error}")
        if credential.job_id != message.job_id:
            return Failure(ACCESS_DENIED, "Access/permission denied")
        if self.files is None:
            return OK  # emulated nodes have no disks
        try:
            self.files.take(message, credential.user_id, credential.group_id)
        except OSError as error:
            return Failure(error.errno or UNEXPECTED, error.strerror or str(error))
        return OK

    def step_ended(
        self, step: StepKey, exit_code: int, signal: int, usage: dict[str, int], fault: str = ""
    ) -> None:
        """The step runner's word that a step's tasks have ended."""
        self._log.info("[%d.%d] done with job", step[0], step[2])
        self._owners.pop(step, None)
        self.do(self.core.step_ended(step, exit_code, signal, usage, fault))
        if self._journal is not None:
            self._journal.forget_step(step)

    def after_prolog(
        self,
        message: LaunchTasks,
        effects: list[Effect],
        tell: Callable[[dict[str, Outcome]], None],
    ) -> None:
        """Launch a step that the core has taken when the prolog has run on its nodes; `tell` gets
        each node's answer.
        """
        step = message.job_id, message.restart, message.step_id
        nodes = self.core.steps.nodes_of(step)
        told = self._verified(message.credential).program_environment
        self._in_prolog[step] = False

        def ended(failed: dict[str, int]) -> None:
            is_ended = self._in_prolog.pop(step)
            if not failed and not is_ended:
                tell(dict.fromkeys(expand(nodes), WELL))
                self.do(effects)
                return
            if failed:
                self.do(self.core.prolog_done(step[:2], ",".join(failed), ",".join(failed)))
                tell(
                    {
                        node: (PROLOG_FAILED, ERROR_TEXT[PROLOG_FAILED]) if node in failed else WELL
                        for node in expand(nodes)
                    }
                )
            else:
                tell(dict.fromkeys(expand(nodes), (ALREADY_DONE, ERROR_TEXT[ALREADY_DONE])))
            self.step_ended(step, 0, SIGKILL, {})

        self.executor.run_prolog(step[:2], nodes, told, ended)

    def do(self, effects: list[Effect]) -> None:
        """Carry out what the core wants."""
        for effect in effects:
            match effect:
                case Report():
                    self.reports.send(effect.message, effect.node)
                case StartScript():
                    self.executor.start(effect.launch)
                case RunProlog():
                    self.executor.run_prolog(
                        effect.key,
                        effect.nodes,
                        effect.program_environment,
                        partial(self._prolog_done, effect),
                    )
                case SendToTasks() | EndTasks() if effect.key in self._in_prolog:
                    self._in_prolog[effect.key] |= (
                        isinstance(effect, EndTasks) or effect.ends or effect.signal == SIGKILL
                    )
                case RunEpilog():
                    self.executor.run_epilog(
                        effect.job, effect.nodes, effect.delay_s, self._epilog_done
                    )
                case KillScript():
                    self.executor.kill(effect.key, effect.why)
                case SignalScript():
                    self.executor.signal(effect.key, effect.signal, batch_only=effect.batch_only)
                case StartTasks():
                    launch = effect.launch
                    user_id, group_id = self._owners[launch.job_id, launch.restart, launch.step_id]
                    self.step_runner.start(launch, effect.nodes, user_id, group_id)
                case SendToTasks():
                    self.step_runner.signal(effect.key, effect.signal, ends=effect.ends)
                case EndTasks():
                    self.step_runner.end(effect.key, effect.why)
                case Forget():
                    self.executor.forget(effect.key)
                    if self._journal is not None:
                        self._journal.forget(effect.key)

    def _prolog_done(self, effect: RunProlog, failed: dict[str, int]) -> None:
        self.do(self.core.prolog_done(effect.key, effect.nodes, ",".join(failed)))

    # --- what a Forward needs ---------------------------------------------------------------------

    def dies_after(self, heads: int) -> int | None:
        """To how many of its heads this node hands a message on before it dies with it; None: it
        lives.
        """
        if self.mishaps is None:
            return None
        self._handed_on += 1
        return self.mishaps.hands_on(self.name, self._handed_on, heads)

    def audible(self, nodes: list[str]) -> list[str]:
        """Those of the nodes that are not silent."""
        faults = self.core.faults
        return [node for node in nodes if not faults.of(node).silent] if faults else nodes

    def call_after_wait(
        self, delay_s: float, callback: Callable[..., None], *args: object
    ) -> asyncio.TimerHandle:
        return self._time.call_after_wait(delay_s, callback, *args)

    def send(
        self, peer: str, message: Message, on_reply: Callable[[Message], None], timeout_s: float
    ) -> None:
        self._messenger.send(peer, message, on_reply, timeout_s)

    def _epilog_done(self, job: NodeJob, nodes: str, failed: str = "") -> None:
        self.do(self.core.epilog_done(job, nodes, failed))


def _merged(outcomes: dict[str, Outcome]) -> Message:
    return (
        OK
        if set(outcomes.values()) == {WELL}
        else NodeReplies([NodeReply(node, *outcome) for node, outcome in outcomes.items()])
    )


class _Forwarding:
    """One `Forward` that is being served: the own nodes' answers, and the tree below."""

    def __init__(self, front_end: FrontEnd, message: Forward, request: Request) -> None:
        # the controller's order; what a command sends, or has others hand on, shows a credential
        self._is_trusted = request.sender.is_controller or front_end.is_order(message)
        self._front_end, self._message, self._request = front_end, message, request
        self._nodes: list[str] = []
        self._known: dict[str, Outcome] = {}
        self._tree: ForwardTree | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._waits_for_silent = self._waits_for_prolog = False
        self._is_done = False

    def begin(self) -> Message | None:
        """Do the own nodes' part and send on the rest. An answer only if the message makes no
        sense; otherwise it goes through `reply`.
        """
        front_end, message = self._front_end, self._message
        try:
            inner = _decode(message.inner)
            self._nodes = list(dict.fromkeys(expand(message.nodes)))
        except (msgspec.DecodeError, ValueError) as error:
            return Failure(UNEXPECTED, f"malformed message to forward: {error}")
        if message.width < 1 or not 0 <= message.timeout_s <= _LONGEST_FORWARD_S:
            return Failure(UNEXPECTED, "malformed message to forward: width or timeout")
        if not self._is_trusted and not isinstance(inner, OF_COMMANDS):
            return Failure(ACCESS_DENIED, "Access/permission denied")
        if (
            isinstance(inner, SignalTasks)
            and (not self._is_trusted or inner.credential)
            and (refusal := front_end.refusal(inner))
        ):
            return refusal
        if isinstance(inner, Reconfigure | Shutdown) and message.order:
            # of no run of a job, so it would have its effect whenever somebody sends it again
            is_again = front_end.is_obeyed(message.order)
            if is_again and not self._request.sender.is_controller:
                return Failure(ACCESS_DENIED, "Access/permission denied: an order of before")
        if isinstance(inner, Forward | LaunchBatch | StatTasks):
            return Failure(UNEXPECTED, f"{type(inner).__name__} is not for many nodes")
        own, rest, strangers = self._divide()
        self._known |= dict.fromkeys(strangers, (UNKNOWN_NODE, "Invalid node name specified"))
        effects: list[Effect] = []
        tree = self._tree = ForwardTree(
            message.inner, rest, message.width, message.timeout_s, order=message.order
        )
        sends = tree.start()
        if sends and (count := front_end.dies_after(len(sends))) is not None:
            self._die(sends[:count])
            return None
        if own:
            audible = front_end.audible(own)
            if not audible:
                return None  # a dead node neither answers nor forwards
            try:
                answer, effects = front_end.step(
                    inner, audible[0] if len(audible) == 1 else compress(audible)
                )
            except ValueError as error:  # of the message's own nodes
                answer = Failure(UNEXPECTED, f"malformed message: {error}")
            outcome = (answer.code, answer.text) if isinstance(answer, Failure) else WELL
            self._known |= dict.fromkeys(audible, outcome)
            if isinstance(inner, LaunchTasks) and effects and front_end.executor.has_prolog:
                self._waits_for_prolog = True
                front_end.after_prolog(inner, effects, self._prolog_ended)
                effects = []
            if len(audible) < len(own):
                self._waits_for_silent = True
                front_end.call_after_wait(
                    message.timeout_s,
                    self._give_up_silent,
                    [node for node in own if node not in self._known],
                )
        if sends:
            size = len(rest) + bool(own)
            self._deadline = front_end.call_after_wait(
                budget_s(size, message.width, message.timeout_s), self._expire
            )
            self._send(sends)
        self._finish_if_complete()
        front_end.do(effects)
        return None

    def _die(self, sends: list[Send]) -> None:
        """Hand the message to these alone, do no share of it, and break off. Who sent it sees the
        connection close; those who have it go on, and their answers find nobody.
        """
        self._is_done = True
        for each in sends:
            self._front_end.send(each.peer, each.message, lambda _answer: None, each.timeout_s)
        self._request.break_off()

    def _prolog_ended(self, outcomes: dict[str, Outcome]) -> None:
        self._waits_for_prolog = False
        self._known |= outcomes
        self._finish_if_complete()

    def _divide(self) -> tuple[list[str], list[Target], list[str]]:
        targets, strangers = self._front_end.routes.targets(self._nodes)
        own: list[str] = []
        rest: list[Target] = []
        for target in targets:
            if target.peer == self._front_end.name:
                own += target.nodes
            else:
                rest.append(target)
        return own, rest, strangers

    def _send(self, sends: list[Send]) -> None:
        for each in sends:
            self._front_end.send(
                each.peer, each.message, partial(self._answered, each.hop), each.timeout_s
            )

    def _answered(self, hop: int, answer: Message) -> None:
        assert self._tree is not None
        self._send(self._tree.answered(hop, answer))
        self._finish_if_complete()

    def _give_up_silent(self, nodes: list[str]) -> None:
        self._known |= dict.fromkeys(nodes, (TIMED_OUT, "no answer in time"))
        self._waits_for_silent = False
        self._finish_if_complete()

    def _expire(self) -> None:
        assert self._tree is not None
        self._deadline = None
        self._tree.expire()
        self._finish_if_complete()

    def _finish_if_complete(self) -> None:
        tree = self._tree
        if (
            tree is None
            or tree.result is None
            or self._waits_for_silent
            or self._waits_for_prolog
            or self._is_done
        ):
            return
        self._is_done = True
        if self._deadline is not None:
            self._deadline.cancel()
        for reply in tree.result.replies:
            self._known |= dict.fromkeys(expand(reply.nodes), (reply.code, reply.text))
        self._request.reply(merged({node: self._known[node] for node in self._nodes}))
