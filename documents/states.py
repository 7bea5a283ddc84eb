"""The names of job and node states as commands print and read them.

Place: documents. The numbers are those of understudy.model.states, written out because
importing enum would cost every `squeue` 8 ms; a test keeps the two in step. Follows squeue(1) "JOB
STATE CODES" and sinfo(1) "NODE STATE CODES" of 22.05.
"""

# --- jobs -----------------------------------------------------------------------------------------

(
    PENDING,
    RUNNING,
    SUSPENDED,
    COMPLETED,
    CANCELLED,
    FAILED,
    TIMEOUT,
    NODE_FAIL,
    PREEMPTED,
    BOOT_FAIL,
    DEADLINE,
    OUT_OF_MEMORY,
) = range(12)
REQUEUE, REQUEUE_HOLD, SPECIAL_EXIT, RESIZING = 0x0400, 0x0800, 0x1000, 0x2000
CONFIGURING, COMPLETING, STOPPED, STAGE_OUT, RESV_DEL_HOLD = (
    0x4000,
    0x8000,
    0x10000,
    0x40000,
    0x200000,
)
JOB_STATES: tuple[tuple[str, str], ...] = (
    ("PENDING", "PD"),
    ("RUNNING", "R"),
    ("SUSPENDED", "S"),
    ("COMPLETED", "CD"),
    ("CANCELLED", "CA"),
    ("FAILED", "F"),
    ("TIMEOUT", "TO"),
    ("NODE_FAIL", "NF"),
    ("PREEMPTED", "PR"),
    ("BOOT_FAIL", "BF"),
    ("DEADLINE", "DL"),
    ("OUT_OF_MEMORY", "OOM"),
)
# What is shown in place of the base state, the first that is set. 0: known by name, but never set
# by this controller.
JOB_FLAGS: tuple[tuple[int, str, str], ...] = (
    (COMPLETING, "COMPLETING", "CG"),
    (STAGE_OUT, "STAGE_OUT", "SO"),
    (CONFIGURING, "CONFIGURING", "CF"),
    (RESIZING, "RESIZING", "RS"),
    (REQUEUE, "REQUEUED", "RQ"),
    (0, "REQUEUE_FED", "RF"),
    (REQUEUE_HOLD, "REQUEUE_HOLD", "RH"),
    (SPECIAL_EXIT, "SPECIAL_EXIT", "SE"),
    (STOPPED, "STOPPED", "ST"),
    (0, "REVOKED", "RV"),
    (RESV_DEL_HOLD, "RESV_DEL_HOLD", "RD"),
    (0, "SIGNALING", "SI"),
)


def job_state(state: int, flags: int) -> str:
    """A job's state in full."""
    if flags:
        for bit, name, _ in JOB_FLAGS:
            if flags & bit:
                return name
    return JOB_STATES[state][0]


def job_state_code(state: int, flags: int) -> str:
    """A job's state in short."""
    if flags:
        for bit, _, code in JOB_FLAGS:
            if flags & bit:
                return code
    return JOB_STATES[state][1]


def job_state_from(text: str) -> tuple[int, int] | None:
    """The (base state, 0) or (-1, flag) that a user names, in full or in short and in any case;
    None if there is no such state.
    """
    wanted = text.upper()
    for number, names in enumerate(JOB_STATES):
        if wanted in names:
            return number, 0
    for bit, name, code in JOB_FLAGS:
        if wanted in {name, code}:
            return -1, bit
    return None


def job_state_name(text: str) -> str:
    """The state that a user names, in full; "" if there is no such state."""
    wanted = text.upper()
    names = [*JOB_STATES, *((full, code) for _, full, code in JOB_FLAGS)]
    return next((full for full, code in names if wanted in (full, code)), "")


# --- nodes ----------------------------------------------------------------------------------------

UNKNOWN, DOWN, IDLE, ALLOCATED, ERROR, MIXED, FUTURE = range(7)
NODE_DRAIN, NODE_COMPLETING, NO_RESPOND, POWERED_DOWN, NODE_FAILING, POWERING_UP, MAINT = (
    0x0200,
    0x0400,
    0x0800,
    0x1000,
    0x2000,
    0x4000,
    0x8000,
)
REBOOT_REQUESTED, POWERING_DOWN, PLANNED, RESERVED, INVALID_REG, REBOOT_ISSUED = (
    0x10000,
    0x40000,
    0x80000,
    0x100000,
    0x400000,
    0x800000,
)
CLOUD, POWER_DOWN, POWER_UP = 0x0080, 0x1000000, 0x2000000
NODE_STATES: tuple[tuple[str, str], ...] = (
    ("unknown", "unk"),
    ("down", "down"),
    ("idle", "idle"),
    ("allocated", "alloc"),
    ("error", "error"),
    ("mixed", "mix"),
    ("future", "futr"),
)
# In the order in which scontrol and sinfo's StateComplete name them behind the base state.
NODE_FLAGS: tuple[tuple[int, str], ...] = (
    (CLOUD, "CLOUD"),
    (MAINT, "MAINTENANCE"),
    (RESERVED, "RESERVED"),
    (NODE_DRAIN, "DRAIN"),
    (INVALID_REG, "INVALID_REG"),
    (NODE_COMPLETING, "COMPLETING"),
    (NODE_FAILING, "FAIL"),
    (REBOOT_REQUESTED, "REBOOT_REQUESTED"),
    (REBOOT_ISSUED, "REBOOT_ISSUED"),
    (POWER_DOWN, "POWER_DOWN"),
    (POWER_UP, "POWER_UP"),
    (POWERED_DOWN, "POWERED_DOWN"),
    (NO_RESPOND, "NOT_RESPONDING"),
    (POWERING_UP, "POWERING_UP"),
    (POWERING_DOWN, "POWERING_DOWN"),
    (PLANNED, "PLANNED"),
)
_LONG, _SHORT = 0, 1
_STATE_WORDS = {
    "maint": ("maint", "maint"),
    "draining": ("draining", "drng"),
    "drained": ("drained", "drain"),
    "failing": ("failing", "failg"),
    "fail": ("fail", "fail"),
    "completing": ("completing", "comp"),
    "planned": ("planned", "plnd"),
    "reserved": ("reserved", "resv"),
    "reboot": ("reboot", "boot"),
}


def node_state(state: int, flags: int) -> str:
    """A node's state in full, with its suffix (`*`: does not respond)."""
    return _node_state(state, flags, _LONG)


def node_state_code(state: int, flags: int) -> str:
    """A node's state in short, with its suffix."""
    return _node_state(state, flags, _SHORT)


def _node_state(state: int, flags: int, form: int) -> str:
    if not flags:
        return NODE_STATES[state][form]
    if flags & INVALID_REG:
        return "inval"
    in_use = state in {ALLOCATED, MIXED} or bool(flags & NODE_COMPLETING)
    if flags & MAINT and not flags & NODE_DRAIN and state not in {ALLOCATED, DOWN, MIXED}:
        word, flags = "maint", flags & ~MAINT
    elif flags & REBOOT_REQUESTED and state in {IDLE, DOWN}:
        return _STATE_WORDS["reboot"][form]
    elif flags & REBOOT_ISSUED:
        return _STATE_WORDS["reboot"][form] + "^"
    elif flags & NODE_DRAIN and state not in {DOWN, FUTURE}:
        word = "draining" if in_use else "drained"
    elif flags & NODE_DRAIN and state == DOWN:
        word = "drained"
    elif flags & NODE_FAILING:
        # not where it is in use in part
        word = "failing" if state == ALLOCATED or flags & NODE_COMPLETING else "fail"
        flags &= NO_RESPOND  # of the rest nothing is said
    elif flags & NODE_COMPLETING and state == IDLE:
        word = "completing"
    elif flags & RESERVED and state == IDLE:
        word = "reserved"
    elif flags & PLANNED and state == IDLE:
        word = "planned"
    else:
        return NODE_STATES[state][form] + _suffix(flags)
    return _STATE_WORDS[word][form] + _suffix(flags)


def _suffix(flags: int) -> str:
    if flags & POWERING_UP:
        return "#"
    if flags & POWERING_DOWN:
        return "%"
    if flags & POWERED_DOWN:
        return "~"
    if flags & POWER_DOWN:
        return "!"
    if flags & NO_RESPOND:
        return "*"
    if flags & MAINT:
        return "$"
    if flags & REBOOT_REQUESTED:
        return "@"
    return ""


def node_state_flags(state: int, flags: int) -> str:
    """A node's base state and all its flags, in capitals, joined by `+`, as scontrol shows them."""
    return "+".join(
        [NODE_STATES[state][_LONG].upper(), *(name for bit, name in NODE_FLAGS if flags & bit)]
    )


def node_state_complete(state: int, flags: int) -> str:
    """The same as sinfo shows it: what is in use in part and drains is allocated."""
    return node_state_flags(ALLOCATED if state == MIXED and flags & NODE_DRAIN else state, flags)


def node_sort_value(state: int, flags: int) -> int:
    """The number by which sinfo orders states: Slurm's own bits, where RESERVED is a low one."""
    if flags & RESERVED:
        flags = flags & ~RESERVED | 0x20
    return flags | state


# What `sinfo -t` knows: a base state or a flag. Names may be cut short; the first that fits is
# meant. "drained" and "draining" differ by whether the node is in use.
_DRAINED, _DRAINING, _NEVER = -1, -2, -3
NODE_STATE_NAMES: dict[str, tuple[int | None, int]] = {
    "unknown": (UNKNOWN, 0),
    "down": (DOWN, 0),
    "idle": (IDLE, 0),
    "allocated": (ALLOCATED, 0),
    "mixed": (MIXED, 0),
    "future": (FUTURE, 0),
    "drain": (None, NODE_DRAIN),
    "drained": (None, _DRAINED),
    "draining": (None, _DRAINING),
    "drng": (None, _DRAINING),
    "no_respond": (None, NO_RESPOND),
    "reserved": (None, RESERVED),
    "resv": (None, RESERVED),
    "perfctrs": (None, _NEVER),
    "npc": (None, _NEVER),
    "cloud": (None, CLOUD),
    "completing": (None, NODE_COMPLETING),
    "powering_down": (None, POWERING_DOWN),
    "powered_down": (None, POWERED_DOWN),
    "power_down": (None, POWER_DOWN),
    "powering_up": (None, POWERING_UP),
    "fail": (None, NODE_FAILING),
    "maint": (None, MAINT),
    "planned": (None, PLANNED),
    "plnd": (None, PLANNED),
    "reboot": (None, REBOOT_REQUESTED),
    "reboot^": (None, REBOOT_ISSUED),
    "unk": (UNKNOWN, 0),
    "alloc": (ALLOCATED, 0),
    "mix": (MIXED, 0),
    "futr": (FUTURE, 0),
    "comp": (None, NODE_COMPLETING),
}
VALID_NODE_STATES = (
    "unknown,down,idle,allocated,?,mixed,future,drain,drained,draining,no_respond,reserved,"
    "perfctrs,cloud,completing,powering_down,"
    "powered_down,power_down,powering_up,fail,maint,reboot,reboot^,unknown"
)


def node_state_named(text: str) -> str:
    """The state that a user names, maybe cut short, in any case.

    Raises:
        KeyError: there is no such state.
    """
    wanted = text.lower()
    if wanted in NODE_STATE_NAMES:
        return wanted
    for name in NODE_STATE_NAMES:
        if wanted and name.startswith(wanted):
            return name
    raise KeyError(text)


def node_matches(state: int, flags: int, wanted: str) -> bool:
    """Whether a node is in a state of NODE_STATE_NAMES."""
    in_use = state in {ALLOCATED, MIXED} or bool(flags & NODE_COMPLETING)
    base, bit = NODE_STATE_NAMES[wanted]
    if bit == _DRAINING:
        return bool(flags & NODE_DRAIN) and in_use
    if bit == _DRAINED:
        return bool(flags & NODE_DRAIN) and not in_use
    if bit == _NEVER:
        return False  # states that no node of this controller has
    if base is None:
        return bool(flags & bit)
    if base == IDLE and flags & NODE_COMPLETING:
        return False
    if base == ALLOCATED:
        return state in {ALLOCATED, MIXED}
    return state == base and not (base == MIXED and flags & NODE_DRAIN)
