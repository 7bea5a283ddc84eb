"""Keys of slurm.conf whose values are lists of words: which words there are, which of them have an
effect here, and what is to be said of others.

Place: the vocabulary. Slurm passes over most words that it does not know: `bf_windw=3` changes
nothing and nobody is told. Here they are named. Where slurmctld 22.05.8 does not start with a word,
that is an error; one that another version knew or knows is a warning in either case. Words that
plug-ins read are declared by them (`parameter_words` of a policy or selector) and handed in.

Follows: slurm.conf(5) of 22.05 and of other versions, and what slurmctld 22.05.8 logs.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final, NamedTuple

from understudy.model.conf_keys import GLOBAL_KEYS
from understudy.model.conf_scan import ERROR, WARNING, Finding
from understudy.model.debug_flags import FLAG_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from understudy.model.conf import SlurmConfig


class Words(NamedTuple):
    """The words of one key, in lower case and without what stands behind `=`.

    `acts`: those with an effect here; `idle`: those of 22.05 without; `foreign`: those of other
    versions. `refusal`: what slurmctld says to another one before it ends, "" where it passes over
    it.
    """

    acts: frozenset[str]
    idle: frozenset[str] = frozenset()
    foreign: frozenset[str] = frozenset()
    refusal: str = ""


def _set(text: str) -> frozenset[str]:
    return frozenset(text.lower().split())


_LIMITS: Final = "all none as core cpu data fsize memlock nofile nproc rss stack"

WORDS: Final[dict[str, Words]] = {
    "schedulerparameters": Words(
        _set("""assoc_limit_stop batch_sched_delay bf_busy_nodes bf_continue
            bf_hetjob_immediate bf_hetjob_prio bf_interval
            bb_array_stage_cnt bf_max_job_array_resv bf_max_job_assoc bf_max_job_part
            bf_max_job_start
            bf_max_job_test bf_max_job_user bf_max_job_user_part bf_max_time
            bf_min_age_reserve bf_min_prio_reserve bf_node_space_size bf_one_resv_per_job
            bf_resolution bf_running_job_reserve bf_window bf_window_linear bf_yield_interval
            bf_yield_sleep default_queue_depth defer enable_user_top max_rpc_cnt
            max_sched_time max_switch_wait pack_serial_at_end partition_job_depth
            preempt_reorder_count preempt_strict_order preempt_youngest_first sched_interval
            sched_max_job_start sched_min_interval understudy_cost_main_us
            understudy_cost_backfill_us"""),
        _set("""allow_zero_lic
            bf_job_part_count_reserve bf_licenses build_queue_timeout
            correspond_after_task_cnt delay_boot disable_job_shrink disable_hetjob_steps
            enable_hetjob_steps ignore_numa ignore_prefer_validation max_array_tasks
            max_script_size no_backup_scheduling no_env_cache nohold_on_prolog_fail
            permit_job_expansion reduce_completing_frag requeue_setup_env_fail
            salloc_wait_nodes sbatch_wait_nodes
            spec_cores_first step_retry_count step_retry_time whole_hetjob"""),
        _set("""assoc_limit_continue bf_allow_magnetic_slot bf_topopt_enable
            bf_topopt_iterations default_gbytes defer_batch disable_user_top
            extra_constraints inventory_interval interval
            kill_invalid_depend max_depend_depth max_job_bf max_submit_line_size
            rl_bucket_size rl_enable rl_log_freq rl_refill_period rl_refill_rate rl_table_size
            switch_wait time_min_as_soft_limit whole_pack bf_pack_immediate
            unavail_job_weights enable_job_state_cache"""),
    ),
    "slurmctldparameters": Words(
        # rl_*: of 23.02
        _set("""power_save_interval preempt_send_user_signal understudy_boot_s rl_bucket_size
            rl_enable rl_log_freq rl_refill_period rl_refill_rate rl_table_size"""),
        _set("""allow_user_triggers cloud_dns cloud_reg_addrs enable_configless
            idle_on_node_suspend max_dbd_msg_action node_reg_mem_percent
            power_save_min_interval reboot_from_controller user_resv_delete"""),
        _set("""conmgr_max_connections conmgr_threads disable_triggers enable_job_state_cache
            enable_stepmgr enable_rpc_queue ignore_constraint_validation max_powered_nodes
            no_quick_restart validate_nodeaddr_threads no_backup_scheduling requeue_delay"""),
    ),
    "priorityflags": Words(
        _set("""accrue_always calculate_running depth_oblivious no_fair_tree incr_only
            max_tres no_normal_all no_normal_assoc no_normal_part no_normal_qos no_normal_tres
            small_relative_to_time fair_tree"""),  # fair_tree: the default, and once a word
        foreign=_set("ticket_based max_tres_gres"),
    ),
    "launchparameters": Words(
        frozenset(),
        _set("""batch_step_set_cpu_freq cray_net_exclusive disable_send_gids enable_nss_slurm
            lustre_no_flush mem_sort mpir_use_nodeaddr slurmstepd_memlock
            slurmstepd_memlock_all test_exec use_interactive_step"""),
        _set("send_gids ulimit_pam_adopt"),
    ),
    "selecttypeparameters": Words(
        _set("""cr_cpu cr_cpu_memory cr_core cr_core_memory cr_socket cr_socket_memory
            cr_memory cr_lln cr_one_task_per_core cr_pack_nodes cr_core_default_dist_block"""),
        _set("other_cons_res other_cons_tres cr_allocate_full_socket"),
        _set("""ll_shared_gres multiple_sharing_gres_pj enforce_binding_gres
            one_task_per_sharing_gres disable_binding_gres cr_no_cons cr_vcpu nhc_no
            nhc_absolutely_no nhc_no_steps"""),
        # nhc_*: of Crays; built for other systems, 22.05.8 ends with them
        "Bad SelectTypeParameter: {word}",
    ),
    "slurmdparameters": Words(
        frozenset(),
        _set("config_overrides l3cache_as_socket numa_node_as_socket shutdown_on_reboot"),
        _set("allow_ecores contain_spank conmgr_max_connections conmgr_threads"),
    ),
    "communicationparameters": Words(
        frozenset(),
        _set("""block_null_hash checkghalquiesce disableipv4 enableipv6 keepaliveinterval
            keepaliveprobes keepalivetime noaddrcache noctldinaddrany noinaddrany"""),
        _set("disable_http host_unreach_retry_count getnameinfo_cache_timeout"),
    ),
    "dependencyparameters": Words(
        _set("kill_invalid_depend max_depend_depth"), _set("disable_remote_singleton")
    ),
    "topologyparam": Words(
        _set("topooptional"),
        _set("dragonfly noctldinaddrany noinaddrany"),
        _set("routetree routepart switchasnoderank topomaxsizeunroll blockasnoderank"),
    ),
    "jobacctgatherparams": Words(
        _set("overmemorykill"),
        _set("usepss noshared"),
        foreign=_set("noovermemorykill disablegpuacct energyfreq"),
    ),
    "accountingstoreflags": Words(
        _set("job_comment job_env job_script"), foreign=_set("job_extra no_stdio")
    ),
    "accountingstorageenforce": Words(
        _set(
            "none associations association assoc limits qos safe wckeys wckey nojobs nosteps "
            "all 0 1 2"
        ),
        foreign=_set("limit"),  # versions that looked for the words they knew passed over it
        refusal="Invalid parameter for AccountingStorageEnforce: {word}",
    ),
    "privatedata": Words(
        _set("none accounts cloud events jobs nodes partitions reservations usage users")
    ),
    "taskpluginparam": Words(
        frozenset(),
        _set("none cores sockets threads slurmdoffspec verbose autobind"),
        _set("sched cpusets boards ldoms rr oomkillstep"),
        "Bad TaskPluginParam: {word}",
    ),
    "propagateresourcelimits": Words(_set(_LIMITS), refusal="Bad rlimit name: {word}"),
    "propagateresourcelimitsexcept": Words(_set(_LIMITS), refusal="Bad rlimit name: {word}"),
    "reconfigflags": Words(
        frozenset(),
        _set("keeppartinfo keeppartstate"),
        _set("keeppowersavesettings keepnodestateflag"),
    ),
    "healthchecknodestate": Words(
        _set("alloc any cycle idle mixed"), foreign=_set("nondrained_idle start_only")
    ),
    "preemptmode": Words(
        _set("off cancel gang requeue suspend within on"),
        foreign=_set("checkpoint priority"),
        refusal="PreemptMode={word} invalid",
    ),
    "debugflags": Words(
        frozenset(),
        frozenset(FLAG_NAMES),
        _set("""bgblockalgo bgblockalgodeep bgblockpick bgblockwires bgblocks cpu_bind
            db_event db_transactions filesystem infiniband interconnect jobacctgather
            jobaccount keep_alive noconfhash pack reservations selecttypes stepmgr sackd tls
            time_cray wiki conmgr thread switch cron authenticat auditrpc namespace metrics
            data"""),
        "Invalid DebugFlag: {word}",
    ),
    "scronparameters": Words(
        _set("enable disable explicit_scancel"), foreign=_set("explicit_scancel")
    ),
    "priorityusageresetperiod": Words(
        _set("none now daily weekly monthly quarterly yearly"),
        refusal='Bad value "{word}" for PriorityUsageResetPeriod',
    ),
    "federationparameters": Words(frozenset(), _set("fed_display")),
    "x11parameters": Words(
        frozenset(), _set("home_xauthority"), _set("local_xauthority use_raw_hostname")
    ),
}


# Former words of SchedulerParameters of which there is more to say.
_FORMER: Final = {
    "assoc_limit_continue": (
        "is a former word: 22.05.8 passes over it, and goes on so where assoc_limit_stop is not set"
    ),
    "max_job_bf": (
        "is a former word, without effect here: 22.05.8 stops there (Invalid parameter max_job_bf. "
        "The option is no longer supported, please use bf_max_job_test instead.)"
    ),
}


def _given(config: SlurmConfig) -> Iterator[tuple[str, str, str]]:
    """(key, word as written, word to look for) of all lists in the file."""
    for key in WORDS:
        value = config.values.get(key)
        for written in value.split(",") if value else ():
            word = written.strip().strip('"').lstrip("=")  # Slurm finds what follows a second `=`
            if word:
                yield (
                    key,
                    word,
                    word.partition("=")[0].partition(":")[0].strip().lower(),
                )


def findings(
    config: SlurmConfig, declared: Mapping[str, frozenset[str]] | None = None
) -> list[Finding]:
    """What there is to say of words that 22.05 does not know. `declared`: words that plug-ins read,
    by key in lower case.
    """
    found = []
    slurms_selector = config.text("SelectType").rpartition("/")[2].lower() in (
        "linear",
        "cons_res",
        "cons_tres",
        "cray_aries",
    )
    for key, written, word in _given(config):
        words = WORDS[key]
        if word in words.acts or word in words.idle or word in (declared or {}).get(key, ()):
            continue
        name = GLOBAL_KEYS[key].name
        severity, kind = WARNING, "unknown_word"
        if word in words.foreign:
            kind = "foreign_word"
            message = f"{name}: {written} {_of_another_version(key, written, word, words)}"
        elif words.refusal and (key != "selecttypeparameters" or slurms_selector):
            severity, message = ERROR, words.refusal.format(word=written)
        else:
            message = f"{name} has no word {written}{_meant(word, words)}: it has no effect"
        found.append(finding(config, key, written, kind, severity, message))
    return found


def _of_another_version(key: str, written: str, word: str, words: Words) -> str:
    if key == "schedulerparameters" and word in _FORMER:
        return _FORMER[word]
    if words.refusal:
        stops = words.refusal.format(word=written)
        return f"is a word of another version, without effect here: 22.05.8 stops there ({stops})"
    return "is a word of another version, without effect here"


def finding(
    config: SlurmConfig, key: str, word: str, kind: str, severity: str, message: str
) -> Finding:
    """What there is to say of a word (with its value or without) of a key in lower case."""
    line = next(
        (
            line
            for line in reversed(config.lines)
            if line.key == key and word.lower() in line.value.lower()
        ),
        None,
    )
    return Finding(
        kind,
        severity,
        line.file if line else config.path,
        line.line if line else 0,
        config.values.get(key) or "",
        message,
        GLOBAL_KEYS[key].name,
    )


def _meant(word: str, words: Words) -> str:
    close = difflib.get_close_matches(word, sorted(words.acts | words.idle), 1, 0.75)
    return f" (is {close[0]} meant?)" if close else ""


def idle_words(config: SlurmConfig) -> list[str]:
    """The words of 22.05 in the file that have no effect here, as
    `SchedulerParameters=bf_licenses`.
    """
    return [
        f"{GLOBAL_KEYS[key].name}={written}"
        for key, written, word in _given(config)
        if word in WORDS[key].idle and GLOBAL_KEYS[key].emulated
    ]
