"""The controller as a daemon: reads the configuration, builds core and edge, comes back from the
saved state, and serves.

Place: the top of the controller. `start` is given a `Daemon` by understudy.clock.daemon, or by a
replay that has all daemons in one process. The state lies in RUN_DIR/state, whatever
StateSaveLocation says: a site's file must not lead to the site's own state, nor two clusters to the
same; or where cluster.json says, for controllers of several hosts.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time as real_time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.auth.credential import Signer
from understudy.auth.keys import Keys
from understudy.clock.daemon import Daemon, load_cluster, run_daemon
from understudy.clock.logs import VERBOSE
from understudy.controller.accounting.link import AccountingLink, NotingJournal
from understudy.controller.accounting.queue import LEAST_BOUND, RecordQueue
from understudy.controller.accounting.records import kept_of
from understudy.controller.core.agents import Agents
from understudy.controller.core.core import Core
from understudy.controller.core.fan_out import FanOut
from understudy.controller.core.locks import Locks
from understudy.controller.core.lookups import known_nodes
from understudy.controller.edge.build import build_settings, build_tables
from understudy.controller.edge.burst_buffers import set_runner
from understudy.controller.edge.leadership import LONGEST_LOOK_S, Leadership
from understudy.controller.edge.limits import make_limits
from understudy.controller.edge.passes import Passes
from understudy.controller.edge.programs import Programs, is_executable, run_alone
from understudy.controller.edge.rate_limit import RateLimit
from understudy.controller.edge.reactions import connect
from understudy.controller.edge.reconfigure import take_over
from understudy.controller.edge.server import Server
from understudy.controller.edge.state_files import KeptQueue, open_lease, state_place
from understudy.controller.edge.users import HostUsers, user_id_of
from understudy.controller.jobs.gang import set_gang
from understudy.controller.jobs.site_rules import load_plugins
from understudy.controller.jobs.start import Planning
from understudy.controller.nodes.events import heard_of, start_pinging
from understudy.controller.nodes.health import start_checking
from understudy.controller.nodes.power import Power, set_plan
from understudy.controller.notices.job_completion import FILE_TEXT, CompletionLog
from understudy.controller.notices.mail import Mailer
from understudy.controller.ports import Journal, NoJournal, Wire
from understudy.controller.priority import registry as priority_registry
from understudy.controller.priority.accounts import AccountsOf
from understudy.controller.priority.basic import BasicPriority
from understudy.controller.priority.options import read_options
from understudy.controller.saved.database import (
    DatabaseError,
)
from understudy.controller.saved.records import StateError
from understudy.controller.saved.recover import recover
from understudy.controller.saved.store import Commits, Dirty, HeldWire, Store
from understudy.controller.scheduling import registry
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.power_plan import PowerPlan
from understudy.controller.tables.preemption import Preemption, Rules
from understudy.model.cluster import CONTROLLER
from understudy.model.conf import SlurmConfig, load
from understudy.model.conf_check import GOES_ON, not_emulated, strange_words
from understudy.model.conf_copy import copy_configuration, has_changed
from understudy.model.errors import ConfigError, ErrorCode, SlurmError
from understudy.model.scheduler_parameters import number
from understudy.protocol.messages import Lead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from understudy.controller.edge.leadership import Elsewhere
    from understudy.controller.saved.lease import Lease
    from understudy.controller.scheduling.api import SchedulingPolicy
    from understudy.controller.tables.settings import Settings
    from understudy.model.cluster import Hops
    from understudy.model.metrics import Family
    from understudy.protocol.messages import Message
    from understudy.protocol.requests import Request

    # carries out the first, and then calls the second with None or what went wrong
    Writer = Callable[[Callable[[], None], Callable[[BaseException | None], None]], None]

NAME = CONTROLLER


class Controller:
    """The parts of a running controller."""

    def __init__(
        self,
        daemon: Daemon,
        config: SlurmConfig,
        lease: Lease | None = None,
        write_elsewhere: Writer | None = None,
        clock: Callable[[], float] = real_time.perf_counter,
    ) -> None:
        """`lease`: under which the state is written; None: it is kept in memory."""
        self.daemon, self.config, self.lease = daemon, config, lease
        self._write_elsewhere = write_elsewhere
        cluster = daemon.cluster
        settings = build_settings(config, cluster, user_id_of)
        self.store: Store | None = None
        self.dirty: Dirty | None = None
        wire: Wire = daemon.messenger
        journal: Journal = NoJournal()
        held: HeldWire | None = None
        if lease is not None:
            self.store = Store(
                state_place(daemon), daemon.name, one_host=bool(cluster.controller_unix)
            )
            self.store.fence = lease.fence
            journal = self.dirty = Dirty()
            wire = held = HeldWire(daemon.messenger)
        self._noting = noting = NotingJournal(journal)
        # A replay must not write its jobs into the site's own record of jobs.
        writes_completions = (
            config.text("JobCompType").lower() == FILE_TEXT and "replay" not in cluster.participants
        )
        if cluster.keeps_accounting or writes_completions or settings.mail_program:
            journal = noting
        self.core = core = self._build_core(settings, wire, journal)
        connect(core)
        self._add_rules(settings, noting)
        loop = asyncio.get_running_loop()
        self.locks = Locks()
        self.passes = Passes(core, self.locks, soon=loop.call_soon, clock=clock)
        parameters = registry.policy_parameters(config.text("SchedulerParameters"))
        self.passes.most_requests = number(parameters, "max_rpc_cnt", 0, most=1000)
        self.commits = None if held is None else self._commits_to_disk(held, loop)
        self.server = Server(
            core,
            self.locks,
            self.passes,
            self.commits,
            soon=loop.call_soon,
            clock=clock,
        )
        self.server.limit(RateLimit.of(config.words("SlurmctldParameters")))
        self.accounting: AccountingLink | None = None
        if cluster.keeps_accounting:
            self.accounting = self._link_to_accounting(wire, noting, loop)
        self.completions: CompletionLog | None = None
        if writes_completions:
            self.completions = CompletionLog(core, self._append_completion)
            noting.listeners.append(self.completions.note)
        if settings.mail_program:
            core.mailer = Mailer(core)
            noting.listeners.append(core.mailer.note)
        set_gang(core)
        if (plan := PowerPlan.of(config)) is not None:
            core.power = Power(core, plan)
        self._give_surroundings(loop)

    def _build_core(self, settings: Settings, wire: Wire, journal: Journal) -> Core:
        """The core with its tables, without rules on who may run when."""
        daemon, config, cluster = self.daemon, self.config, self.daemon.cluster
        tables, names = build_tables(config)
        agents = Agents(
            wire, daemon.time, timeout_s=settings.message_timeout_s, tree_width=settings.tree_width
        )
        signer = None
        if cluster.key_folder:
            keys = Keys(daemon.name, Path(cluster.key_folder))
            signer = Signer(keys, settings.credential_lifetime_s)
            agents.sign = partial(signer.order, daemon.time.now)
        if cluster.hops is not None:
            self._take_hops(agents, wire, settings, cluster.hops)
        core = Core(
            tables=tables,
            names=names,
            settings=settings,
            time=daemon.time,
            agents=agents,
            journal=journal,
            users=HostUsers(cluster.users, cluster.groups),
            signer=None if settings.emulates_jobs else signer,
            selector=registry.selector(
                config.text("SelectType"), frozenset(config.words("SelectTypeParameters"))
            ),
        )
        core.launch_s = cluster.job_launch_s
        core.step_signer = signer
        agents.on_response = lambda name, responds: heard_of(core, name, responds=responds)
        return core

    def _take_hops(self, agents: Agents, wire: Wire, settings: Settings, hops: Hops) -> None:
        """Nodes are hops of their own."""
        from understudy.protocol.hops import hop_links  # noqa: PLC0415  only here

        daemon = self.daemon
        links = hop_links(asyncio.get_running_loop(), daemon.name, daemon.cluster, hops)
        daemon.messenger.hops = links
        daemon.at_exit.append(links.close)

        def after_event() -> None:
            agents.after_event()  # as it is then

        agents.fan_out = FanOut(
            wire,
            daemon.time,
            width=settings.tree_width,
            timeout_s=settings.message_timeout_s,
            at_most=links.at_most,
            after_event=after_event,
            sign=agents.sign,
        )

    def _add_rules(self, settings: Settings, noting: NotingJournal) -> None:
        """Priorities, limits, preemption, and the policy that decides by them."""
        core, config, cluster = self.core, self.config, self.daemon.cluster
        tables = core.tables
        self._accounts = accounts = AccountsOf(lambda: core.associations, core.users.user_name)
        priorities = priority_registry.priority(config.text("PriorityType"))
        core.priorities = priorities(tables, read_options(config), accounts, core.start_time)
        parameters = registry.policy_parameters(config.text("SchedulerParameters"))
        self._expect(settings, parameters)
        if settings.enforced.associations and cluster.keeps_accounting:
            core.job_limits = tables.limits = limits = make_limits(
                core, read_options(config), counts_use=priorities is not BasicPriority
            )
            noting.listeners.append(lambda job_id: limits.note(job_id, core.time.now()))
        self._set_preemption(settings, parameters)
        core.policy = self._make_policy(config)

    def _make_policy(self, config: SlurmConfig) -> SchedulingPolicy:
        core = self.core
        policy = registry.scheduler(config.text("SchedulerType"))(
            core.tables,
            core.selector,
            Planning(core),
            registry.policy_parameters(config.text("SchedulerParameters")),
        )
        policy.plans_when_asked = self.daemon.cluster.plans_when_asked and core.time.is_virtual
        return policy

    def exchange_policy(self, config: SlurmConfig) -> None:
        """Have the policy decide from now on that another SchedulerType names, if it does, as if
        the controller had been started again with it. Slurm itself wants to be started again;
        `reconfigure` takes over all else.

        Raises:
            ConfigError: nobody offers it, or it cannot read its parameters.
            SlurmError: it has other rules for jobs that are here already, or a pass is under way.
        """
        core, before = self.core, self.core.policy
        if config.text("SchedulerType") == self.config.text("SchedulerType"):
            return
        policy = self._make_policy(config)
        rules = {"time limits": "exact_limits", "burst buffers": "stages_buffers"}
        for what, rule in rules.items():
            if getattr(policy, rule) != getattr(before, rule):
                raise SlurmError(
                    ErrorCode.RESTART_FOR_SCHEDULER,
                    f"{policy.name} cannot take over from {before.name} while the controller "
                    f"runs: it has other rules for {what}",
                )
        if self.passes.is_running:
            raise SlurmError(ErrorCode.RESTART_FOR_SCHEDULER)
        core.policy = policy
        policy.note(Note.START, core.time.now())
        self.config = replace(
            self.config,
            values=self.config.values | {"schedulertype": config.text("SchedulerType")},
        )

    def _commits_to_disk(self, held: HeldWire, loop: asyncio.AbstractEventLoop) -> Commits:
        """What writes the state: `held` keeps messages back until it is on disk."""
        assert self.store is not None
        assert self.dirty is not None
        run = self._write_elsewhere or _write_in_thread(loop)
        if self.daemon.time.is_virtual:
            run = _write_here
        commits = held.commits = Commits(
            self.core,
            self.dirty,
            self.store,
            run=run,
            soon=loop.call_soon,
            failed=self._cannot_write,
        )
        return commits

    def _link_to_accounting(
        self, wire: Wire, noting: NotingJournal, loop: asyncio.AbstractEventLoop
    ) -> AccountingLink:
        """The link over which records go to accounting, which follows the journal."""
        daemon, config, cluster = self.daemon, self.config, self.daemon.cluster
        saved = None
        if self.lease is not None:
            saved = KeptQueue(daemon, self.lease, self._cannot_write)
        nodes = len(self.core.tables.nodes.nodes)
        link = AccountingLink(
            self.core,
            wire,
            RecordQueue(max(LEAST_BOUND, 2 * config.count("MaxJobCount") + 4 * nodes)),
            saved,
            cluster=self.core.settings.cluster_name,
            host="127.0.0.1",
            port=int(cluster.controller.rpartition(":")[2] or config.controller_ports[0]),
            kept=kept_of(config),
            slurm_user=user_id_of(config.text("SlurmUser")) or 0,
            soon=loop.call_soon,
        )
        noting.note_nodes = link.note_nodes
        noting.note_reservation = link.note_reservation
        noting.listeners.append(link.note)
        return link

    def _give_surroundings(self, loop: asyncio.AbstractEventLoop) -> None:
        """What the core may ask of the daemon: programs, plug-ins, the configuration, its end."""
        core, daemon = self.core, self.daemon
        core.shut_down, core.failed, core.pauses = daemon.stop, daemon.fail, daemon.pauses
        programs = Programs(loop, daemon.time, daemon.run_dir, may_run=self._may_act)
        core.run_program, core.run_script, core.is_executable = (
            programs.run,
            programs.run_script,
            is_executable,
        )
        daemon.at_exit.append(programs.close)
        if core.tables.burst_buffers:
            set_runner(core, programs, daemon.run_dir / "burst_buffers")
        core.job_submit = load_plugins(self.config.words("JobSubmitPlugins"))
        core.measure_daemon = self.measure
        core.show_configuration = self.show
        core.read_configuration = self.reconfigure
        core.change_configuration = self.change

    def _expect(self, settings: Settings, parameters: dict[str, str]) -> None:
        self.core.selector.expect(
            overrun_s=settings.kill_wait_s + (settings.over_time_limit_s or 0),
            linear_window_s=number(parameters, "bf_window_linear", 0),
            packs_serial="pack_serial_at_end" in parameters,
            spares_idle="bf_busy_nodes" in parameters,
        )

    def _set_preemption(self, settings: Settings, parameters: dict[str, str]) -> None:
        tables = self.core.tables
        rules = Rules.read(settings.preempt_type, settings.preempt_mode, settings.preempt_exempt_s)
        tables.preemption = (
            Preemption(
                tables.partitions,
                tables.running,
                rules,
                parameters,
                self._accounts.qos_record,
                whole_nodes=self.core.selector.whole_nodes,
            )
            if rules.kind
            else None
        )

    def start(self, *, in_full: bool = False) -> None:
        """Come back from the saved state, of which `in_full` takes what is slurm.conf's otherwise,
        and serve.
        """
        core, daemon = self.core, self.daemon
        self._set_logs()
        daemon.log.info(
            "slurmctld version %s started on cluster %s",
            core.settings.version,
            core.settings.cluster_name,
        )
        for noded in daemon.cluster.nodeds:
            nodes, _ = known_nodes(core, noded.nodes)
            core.add_daemon(noded.name, noded.address, nodes)
            if not daemon.cluster.is_open:
                core.stands_for[noded.name] = nodes
        if self.store is not None and self.dirty is not None:
            jobs = self.store.read(core, in_full=in_full)
            self.dirty.scripts_are_saved(set(core.scripts))
            recover(core, jobs)
        else:
            recover(core, ())
        if self.completions is not None:
            self.completions.known()
        if core.mailer is not None:
            core.mailer.known(core.tables.jobs.values())
        start_pinging(core)
        start_checking(core)
        daemon.messenger.set_handler(self.server.handle)
        daemon.figures.append(self.figures)
        self._end_run, daemon.on_failure = daemon.on_failure, self._failed
        daemon.at_exit.append(self.close)
        if self.accounting is not None:
            self.accounting.start(daemon.cluster.accounting_unix or daemon.cluster.accounting)
        self.server.after_event()
        self._complain()
        daemon.log.info("Running as primary controller")
        unused = not_emulated(self.config)
        if unused:
            daemon.log.log(VERBOSE, "accepted, but without effect here: %s", ", ".join(unused))

    def figures(self) -> Iterator[Family | None]:
        """What Prometheus is told."""
        from understudy.controller.views.metrics import figures  # noqa: PLC0415  few ask for it
        from understudy.model.metrics import gauge  # noqa: PLC0415

        yield from figures(self.core)
        if self.accounting is not None:
            text = "Records that wait for the accounting daemon."
            yield gauge("slurm_scheduler_dbd_queue_size", text, self.accounting.waiting)

    def _failed(self) -> None:
        """The run is over; who follows it is told what became of jobs before."""
        following, time = self.core.following, self.daemon.time
        if following is None:
            self._end_run()
            return
        following.end()
        cluster = self.daemon.cluster
        time.call_at(
            time.now() + 2 * cluster.latency_s + max(cluster.link_latency.values(), default=0.0),
            self._end_run,
        )

    def _may_act(self) -> bool:
        """Whether what is done now is done by who leads the cluster."""
        return self.lease is None or self.lease.may_act()

    def tell_nobody_outside(self) -> None:
        """In a copy of a cluster: no mail, no lines in the site's record of completed jobs."""
        for note in (self.completions, self.core.mailer):
            if note is not None and note.note in self._noting.listeners:
                self._noting.listeners.remove(note.note)
        self.core.mailer = None

    def _append_completion(self, text: str) -> None:
        if not self._may_act():
            return
        try:
            with Path(self.config.text("JobCompLoc")).open(
                "a", encoding="utf-8", errors="surrogateescape"
            ) as file:
                file.write(text)
        except OSError as error:
            self.daemon.log.warning(
                "job completion log %s: %s", self.config.text("JobCompLoc"), error.strerror
            )

    def _set_logs(self) -> None:
        if self.daemon.logs is not None:
            self.daemon.logs.configure(
                self.config.text("SlurmctldDebug"), self.config.text("LogTimeFormat")
            )

    def _complain(self) -> None:
        for finding in self.config.findings:
            if finding.kind in GOES_ON:
                self.daemon.log.error("%s", finding.message)
        for finding in strange_words(self.config, registry.declared_words(self.config)):
            self.daemon.log.warning("%s", finding.message)

    async def close(self) -> None:
        """Write what is left to write."""
        self.daemon.log.info("Saving all slurm state")
        if self.accounting is not None:
            self.accounting.close()
        if self.store is None or self.commits is None:
            return
        idle = asyncio.Event()
        self.commits.due()
        self.commits.when_idle(idle.set)
        await idle.wait()
        self.commits.close()
        self.store.close()

    def measure(self) -> dict[str, int]:
        """What the daemon itself is like, by name: its locks, its connections."""
        locks, messenger = self.locks.statistics(), self.daemon.messenger
        return {
            "lock_waits": locks.granted_after_waiting,
            "lock_waiting": locks.waiting,
            "lock_longest_queue": locks.longest_queue,
            "requests_waiting": self.passes.requests,
            "requests_backed_off": self.core.counters.backed_off,
            "connections": messenger.connections,
            "bytes_received": messenger.traffic.received,
            "bytes_sent": messenger.traffic.sent,
        }

    def show(self) -> list[tuple[str, str]]:
        """What `scontrol show config` prints."""
        core = self.core
        boot = real_time.strftime("%Y-%m-%dT%H:%M:%S", real_time.localtime(core.start_time))
        slurm_user = user_id_of(self.config.text("SlurmUser"))
        shown = self.config.show(
            boot_time=boot,
            next_job_id=str(core.next_job_id),
            slurm_version=core.settings.version,
            user_id_of=str(slurm_user if slurm_user is not None else 0),
            host=core.settings.controller_host,
        )
        return [
            (name, self.daemon.cluster.conf or value if name == "SLURM_CONF" else value)
            for name, value in shown
        ]

    def change(self, changes: dict[str, str]) -> None:
        """Other values of some keys, until the file is read again."""
        self.config = replace(
            self.config,
            values=self.config.values | {key.lower(): value for key, value in changes.items()},
        )
        if "SlurmctldDebug" in changes:
            if self.daemon.logs is not None:
                self.daemon.logs.set_level(changes["SlurmctldDebug"])
            self.daemon.log.info("Set debug level to '%s'", changes["SlurmctldDebug"])
        if "DebugFlags" in changes:
            self.daemon.log.info("Set DebugFlags to %s", changes["DebugFlags"] or "none")
        if "FairShareDampeningFactor" in changes:
            self.core.priorities.reconfigure(read_options(self.config), self.core.time.now())

    def reconfigure(self) -> None:
        """Read slurm.conf again: settings and partitions are taken over; nodes that come, go or
        change their size need a restart, as in Slurm.

        Raises:
            SlurmError: the file has errors, or would need a restart; nothing is changed then.
        """
        source, run_dir = Path(self.daemon.cluster.conf), self.daemon.run_dir
        is_new = has_changed(source, run_dir)
        self.config = take_over(
            self.core, source if is_new else run_dir / "slurm.conf", self.config, self._reread
        )
        if is_new:
            copy_configuration(source, run_dir)
        self._set_logs()
        parameters = registry.policy_parameters(self.config.text("SchedulerParameters"))
        self._expect(self.core.settings, parameters)
        self.passes.most_requests = number(parameters, "max_rpc_cnt", 0, most=1000)
        self.server.limit(RateLimit.of(self.config.words("SlurmctldParameters")))
        self._set_preemption(self.core.settings, parameters)
        try:
            self.core.policy.reconfigure(parameters)
        except ConfigError as error:  # a word that it cannot read: it goes on with those it has
            self.daemon.log.error("%s", error)  # noqa: TRY400 - it is the administrator's
        set_gang(self.core)
        self._complain()
        set_plan(self.core, PowerPlan.of(self.config))
        options, now = read_options(self.config), self.core.time.now()
        self.core.priorities.reconfigure(options, now)
        if self.core.job_limits is not None:
            self.core.job_limits.reconfigure(
                options.half_life_s, options.reset_period, options.calc_period_s, now
            )
        self.core.job_submit = load_plugins(self.config.words("JobSubmitPlugins"))
        if self.accounting is not None:
            self.accounting.kept = kept_of(self.config)

    def _reread(self, config: SlurmConfig) -> Settings:
        return build_settings(config, self.daemon.cluster, user_id_of)

    def _cannot_write(self, error: BaseException) -> None:
        """Answer nothing any more, and leave the cluster to another controller if there is one."""
        self.daemon.log.critical("cannot save the state, ending: %s", error)
        if self.commits is not None:
            self.commits.close()
        self.daemon.failure = error
        if self.lease is not None:
            self.lease.lose()
        self.daemon.begins_again = bool(self.daemon.cluster.backups)
        self.daemon.stop()

    def serve(self, request: Request) -> Message | None:
        """The messenger's handler."""
        return self.server.handle(request)

    def note(self, event: str) -> None:
        """An event of which triggers are to hear."""
        self.core.triggers.note(event)

    def tell_who_leads(self) -> None:
        """It leads in place of another, and node daemons are to follow."""
        assert self.lease is not None
        for name in self.core.daemons:
            self.core.agents.send(name, Lead(self.lease.fence), wanted=self.lease.may_act)


def _write_here(write: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
    try:
        write()
    except Exception as error:  # noqa: BLE001 - handed on
        done(error)
    else:
        done(None)


def _write_in_thread(loop: asyncio.AbstractEventLoop) -> Writer:
    def run(write: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        future = loop.run_in_executor(None, write)
        future.add_done_callback(lambda ended: done(ended.exception()))

    return run


async def start(
    daemon: Daemon,
    *,
    in_full: bool = False,
    write_elsewhere: Writer | None = None,
    clock: Callable[[], float] = real_time.perf_counter,
) -> Controller:
    """Start the only controller of a cluster on a daemon. `in_full`: see `Store.read`. Where time
    is not virtual, `write_elsewhere` carries out writes of the state in place of a thread, and
    `clock` says when it is the others' turn.

    Raises:
        ConfigError: slurm.conf cannot be used, or names a scheduler that nobody offers.
        StateError: the saved state cannot be read.
        DatabaseError: it cannot be written.
    """
    lease = None
    config = load(daemon.run_dir / "slurm.conf")
    if daemon.cluster.state == "disk":
        lease = open_lease(daemon, None)
        lease.belong_to(config.cluster_name)
        lease.take(lease.read())
        daemon.at_exit.append(lease.close)
    controller = Controller(daemon, config, lease, write_elsewhere, clock)
    controller.start(in_full=in_full)
    return controller


async def start_one_of_several(
    daemon: Daemon,
    *,
    in_full: bool = False,
    write_elsewhere: Writer | None = None,
    clock: Callable[[], float] = real_time.perf_counter,
    lease_of: Callable[[Daemon, float], Lease] = open_lease,
    elsewhere: Elsewhere | None = None,
    look_s: float = LONGEST_LOOK_S,
    leads: Callable[[Controller], None] | None = None,
) -> Leadership:
    """As `start`, for a cluster with backup controllers: it leads, or stands by until it does.
    `lease_of` opens its lease, `elsewhere` does something with it in place of a thread, and it is
    looked at every `look_s`, or more often if SlurmctldTimeout wants that; `leads` is told of the
    controller when it does, and has the site's programs left alone.
    """
    config = load(daemon.run_dir / "slurm.conf")
    cluster = daemon.cluster
    if daemon.logs is not None:
        daemon.logs.configure(config.text("SlurmctldDebug"), config.text("LogTimeFormat"))
    lease = lease_of(daemon, float(config.seconds("SlurmctldTimeout") or 120))
    lease.belong_to(config.cluster_name)

    def lead() -> Controller:
        config = load(daemon.run_dir / "slurm.conf")
        controller = Controller(daemon, config, lease, write_elsewhere, clock)
        controller.start(in_full=in_full)
        controller.tell_who_leads()
        if leads is not None:
            leads(controller)
        return controller

    slurm_user = user_id_of(config.text("SlurmUser")) or 0
    leadership = Leadership(
        daemon,
        lease,
        hosts={NAME: cluster.controller_host, **{each.name: each.host for each in cluster.backups}},
        lead=lead,
        programs=(
            ("", "")
            if leads is not None
            else (config.text("SlurmctldPrimaryOnProg"), config.text("SlurmctldPrimaryOffProg"))
        ),
        run=partial(run_alone, run_dir=daemon.run_dir),
        admins=frozenset((0, cluster.user_id, slurm_user)),
        elsewhere=elsewhere,
        look_s=look_s,
    )
    leadership.start()
    return leadership


def main(arguments: list[str] | None = None) -> int:
    """Run the controller of a cluster until told to end. The exit code."""
    parser = argparse.ArgumentParser(
        prog="understudy.controller", description="The controller of an emulated cluster."
    )
    parser.add_argument(
        "--run-dir",
        type=Path,
        required=True,
        help="the cluster's run directory, with cluster.json and slurm.conf",
    )
    parser.add_argument(
        "--listener", type=int, help="a socket that listens at the TCP address already"
    )
    parser.add_argument(
        "--verbose", action="count", default=0, help="log more; several times: still more"
    )
    parser.add_argument(
        "--recover",
        action="store_true",
        help="take partitions and features of nodes from the saved state, too",
    )
    parser.add_argument("--name", default=NAME, help="which of the cluster's controllers")
    options = parser.parse_args(arguments)
    cluster = load_cluster(options.run_dir)
    listen = [
        address
        for address in cluster.listening(options.name)
        if options.listener is None or not address.startswith("tcp:")
    ]

    async def start_and_forget(daemon: Daemon) -> None:
        if cluster.backups:
            await start_one_of_several(daemon, in_full=options.recover)
        else:
            await start(daemon, in_full=options.recover)

    try:
        return run_daemon(
            options.run_dir,
            options.name,
            listen,
            start_and_forget,
            verbose=options.verbose,
            listener=options.listener,
        )
    except (ConfigError, StateError, DatabaseError) as error:
        print(f"understudy.controller: {error}", file=sys.stderr)
        return 1
