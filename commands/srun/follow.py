"""A step from its launch to its last task's end: who has ended and how, and what srun's signals do
to it.

Place: under srun. Follows srun(1), "SIGNALS AND ESCAPE SEQUENCES".
"""

import _signal  # type: ignore[import-not-found]  # as in client.py
import os
import select
import time

from understudy.commands.shared.client import RefusedError, pack
from understudy.commands.srun.io import Sink
from understudy.commands.srun.send_down import UNREACHABLE, send_down
from understudy.protocol.endings import OUT_OF_MEMORY
from understudy.protocol.task_frames import (
    ABORT,
    EXITED,
    MESSAGE,
    MPI_ABORT,
    PMI,
    PMIX,
    STARTED,
    WINDOW,
    frame,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.srun.step import Step

_STATUS_S = 1.0  # srun(1): two interrupts within one second end the step
_END_S = 10.0  # ours: how long the controller may take to hear of the end
_ASK_S = 5.0  # ours: how long daemons may take to be heard of before the controller is asked


class Progress:
    """How far the step is."""

    def __init__(self, step: "Step") -> None:
        self._step = step
        self.exits: dict[int, int] = {}
        # the highest exit code, and the signal that ended that task
        self.highest = self.ended_by = 0
        self.is_aborted = self.is_forced = self.is_terminated = self.is_silent = (
            self.is_ended_by_task
        ) = False
        self.first_exit_at = self.interrupted_at = self.give_up_at = 0.0
        self.interrupts = 0
        self.aborted_with: int | None = None  # what a task has told MPI_Abort
        self.gathered: list[bytes] = []
        self.pids: list[list[bytes]] = []  # of tasks that have started, for --debugger-test

    @property
    def missing(self) -> int:
        """How many tasks' ends are not known."""
        return self._step.size - len(self.exits)

    def catch_signals(self) -> None:
        reads, writes = os.pipe()
        os.set_blocking(reads, False)
        os.set_blocking(writes, False)
        _signal.set_wakeup_fd(writes)
        for each in (
            _signal.SIGINT,
            _signal.SIGTERM,
            _signal.SIGHUP,
            _signal.SIGQUIT,
            _signal.SIGUSR1,
            _signal.SIGUSR2,
            _signal.SIGCONT,
            _signal.SIGALRM,
        ):
            _signal.signal(each, lambda _number, _frame: None)
        for each in (_signal.SIGTTIN, _signal.SIGTTOU):
            _signal.signal(each, _signal.SIG_IGN)
        self.wake = reads
        self._step.io.watch(reads, self.signalled)

    def signalled(self) -> None:
        try:
            numbers = os.read(self.wake, 256)
        except BlockingIOError:
            return
        for each in numbers:
            if each == _signal.SIGINT:
                self.interrupted()
            elif each in (_signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT):
                self._step.say("forcing job termination")
                self.abort()
                self.terminate(_signal.SIGKILL)
            elif each in (_signal.SIGUSR1, _signal.SIGUSR2, _signal.SIGALRM):
                self.send_signal(each)
            elif each == _signal.SIGCONT:
                self._step.say("got SIGCONT")
            elif each == _signal.SIGWINCH:
                size = os.get_terminal_size(0)
                self._step.io.send_all(frame(WINDOW, 0, f"{size.lines} {size.columns}".encode()))

    def interrupted(self) -> None:
        now = time.monotonic()
        own = self._step.settings.own
        if "quit_on_interrupt" not in own and (
            not self.interrupted_at or now - self.interrupted_at > _STATUS_S
        ):
            self.interrupted_at = now
            if "disable_status" not in own:
                self._step.say("interrupt (one more within 1 sec to abort)")
                self.status()
                return
        self.interrupts += 1
        if self.interrupts == 1:
            self._step.say(f"sending Ctrl-C to StepId={self._step.job_id}.{self._step.step_id}")
            self.is_silent = True
            self.end_rest(_signal.SIGINT)
        self._step.say("forcing job termination")
        self.abort()
        self.terminate(_signal.SIGKILL)

    def status(self) -> None:
        from understudy.commands.srun.task_texts import tasks_text

        running = [each for each in range(self._step.size) if each not in self.exits]
        groups = [("running", running)]
        groups.append(("exited", [each for each, status in self.exits.items() if not status]))
        groups.append(
            ("exited abnormally", [each for each, status in self.exits.items() if status])
        )
        for text, numbers in groups:
            if numbers:
                self._step.say(
                    f"StepId={self._step.job_id}.{self._step.step_id} "
                    f"{tasks_text(sorted(numbers))}: {text}"
                )

    def abort(self) -> None:
        if not self.is_aborted:
            self.is_aborted = True
            for _ in self._step.shares:
                self._step.say(
                    f"Job step aborted: Waiting up to {self._step.kill_wait_s + 2} "
                    "seconds for job step to finish."
                )
            self.give_up_at = time.monotonic() + self._step.kill_wait_s + 2 + 10

    def terminate(self, signal: int) -> None:
        """Have the controller end the step."""
        if self._step.is_free:
            self.end_rest(signal)
            return
        try:
            self._step.context.client.another().call(
                "CancelJobs",
                [f"{self._step.job_id}.{self._step.step_id}"],
                None if signal == _signal.SIGKILL else int(signal),
                {},
            )
        except RefusedError:
            self.send_signal(signal)

    def send_signal(self, signal: int) -> None:
        if self._step.is_free:
            self.end_rest(signal, ends=False)
            return
        try:
            self._step.context.client.another().call(
                "CancelJobs", [f"{self._step.job_id}.{self._step.step_id}"], int(signal), {}
            )
        except RefusedError as error:
            self._step.error(f"Unable to signal the step: {error.text}")

    def take(self, kind: int, task: int, body: bytes) -> None:
        """A frame that is no output."""
        if kind == MESSAGE:
            Sink(2, 0).write(body)
        elif kind == EXITED:
            status, _, numbers = body.partition(b" ")
            self.ended(int(status), [int(each) for each in numbers.split(b",")])
        elif kind == ABORT:
            if not self.is_terminated:
                self.abort()
        elif kind == PMI:
            self.gathered.append(body)
            if len(self.gathered) == self._step.io.expected:
                merged = b"\n".join(each for each in self.gathered if each)
                self.gathered = []
                self._step.io.send_all(frame(PMI, 0, merged))
        elif kind == PMIX:
            self._step.io.pass_on(self._step.first_beside(task), frame(PMIX, task, body))
        elif kind == MPI_ABORT:
            if body:
                self.aborted_with = int(body) & 0xFF
            if not self.is_ended_by_task:
                self.is_ended_by_task = True
                self.terminate(_signal.SIGKILL)
        elif kind == STARTED:
            self.started(body)

    def started(self, body: bytes) -> None:
        if self._step.settings.verbose:
            from understudy.commands.srun import verbose

            verbose.started(self._step, body)
        if "debugger_test" in self._step.settings.own:
            self.pids += [each.split(b":") for each in body.split()]
            if len(self.pids) == self._step.size:
                for number, pid in sorted((int(number), int(pid)) for number, pid in self.pids):
                    self._step.say(
                        f"task:{number}, host:{self._step.node_of[number]}, pid:{pid}, "
                        f"executable:{self._step.settings.command[0]}"
                    )

    def ended(self, status: int, numbers: list[int]) -> None:
        for each in numbers:
            self.exits[each] = status
        self.first_exit_at = self.first_exit_at or time.monotonic()
        code = os.waitstatus_to_exitcode(status)
        value = 1 if code == -OUT_OF_MEMORY else 128 - code if code < 0 else code
        if value > self.highest:
            self.highest, self.ended_by = value, max(-code, 0)
        if self._step.settings.verbose:
            from understudy.commands.srun import verbose

            verbose.ended(self._step, status, numbers)
        if status and not self.is_silent:
            from understudy.commands.srun.task_texts import signal_text, tasks_text

            what = (
                f"Exited with exit code {code}"
                if code > 0
                else signal_text(-code, core=bool(status & 0x80))
            )
            for node, its in self._step.by_node(numbers).items():
                self._step.error(f"{node}: {tasks_text(its)}: {what}")
            if (
                code in (-_signal.SIGKILL, -_signal.SIGTERM)
                and not self.is_aborted
                and not self.is_forced
            ):
                self.is_forced = True
                self._step.say(f"Force Terminated StepId={self._step.job_id}.{self._step.step_id}")
            if (
                self.kills_on_bad_exit()
                and len(self.exits) < self._step.size
                and not self.is_terminated
            ):
                self.is_terminated = True
                self._step.say(
                    "launch/slurm: _step_signal: Terminating "
                    f"StepId={self._step.job_id}.{self._step.step_id}"
                )
                self.end_rest(_signal.SIGTERM)

    def kills_on_bad_exit(self) -> bool:
        return bool(self._step.settings.kill_on_bad_exit)

    def end_rest(self, signal: int, *, ends: bool = True) -> None:
        """A signal to the tasks that are left, by a word to the node daemons; one that ends them
        also tells those who read.
        """
        for share in self._step.shares:
            message = pack(
                "SignalTasks",
                share.job_id,
                share.restart,
                self._step.step_id,
                int(signal),
                ends,
                share.credential,
            )
            send_down(self._step.context.client, message, share.daemons, 32)

    def follow(self) -> None:
        """Until all parts are done."""
        io = self._step.io
        is_told = False
        ask_at = time.monotonic() + _ASK_S
        while not io.is_over and not (self.give_up_at and time.monotonic() > self.give_up_at):
            pause = None
            if io.known < io.expected:
                if time.monotonic() > ask_at:
                    self.ask_for_step()
                    ask_at = time.monotonic() + _ASK_S
                    continue
                pause = 1000
            wait_s = self._step.settings.wait_s
            if wait_s and self.first_exit_at and not is_told and len(self.exits) < self._step.size:
                left = self.first_exit_at + wait_s - time.monotonic()
                if left <= 0:
                    is_told = True
                    self._step.say(f"First task exited {wait_s}s ago")
                    self.status()
                    self._step.say(
                        "launch/slurm: _step_signal: Terminating "
                        f"StepId={self._step.job_id}.{self._step.step_id}"
                    )
                    self.end_rest(_signal.SIGKILL)
                else:
                    pause = min(pause or 1 << 30, int(left * 1000) + 1)
            if self.give_up_at:
                pause = min(pause or 1000, 1000)
            io.turn(pause)
        if self.missing and not self.is_aborted:
            self._step.error(
                f"{self.missing} tasks of StepId={self._step.job_id}.{self._step.step_id} were lost"
            )
            self.highest = self.highest or 1

    def await_end(self) -> None:
        """Until the controller knows of the end, so that the next step finds the CPUs of this one
        free, or a signal comes.
        """
        if self.missing:
            return
        until = time.monotonic() + _END_S
        for share in self._step.shares:
            waiting = self._step.context.client.another(waits=False)
            try:
                waiting.begin("AwaitStep", share.job_id, self._step.step_id)
                poll = select.poll()
                poll.register(waiting.fileno(), select.POLLIN)
                poll.register(self.wake, select.POLLIN)
                poll.poll(max(int((until - time.monotonic()) * 1000), 0))
            except RefusedError:
                pass  # a controller that is away is not waited for
            finally:
                waiting.close()

    def ask_for_step(self) -> None:
        """Some daemons have taken the launch and nothing was heard from them since. If the step is
        over, nothing ever will be.
        """
        for share in self._step.shares:
            try:
                self._step.context.client.another(waits=False).call(
                    "GetStep", share.job_id, self._step.step_id
                )
            except RefusedError as error:
                if error.code not in UNREACHABLE:
                    self._step.io.expected = self._step.io.known
