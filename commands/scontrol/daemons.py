"""scontrol's keywords that concern daemons, nodes' processes and files rather than records: ping,
setdebug, write, wait_job ... Follows scontrol(1).

Place: under scontrol, read when one of them is typed.
"""

import contextlib
import os

from understudy.commands.scontrol.words import leading_job
from understudy.commands.shared.client import CONNECT_FAILED_TEXT, RefusedError
from understudy.commands.shared.texts import timestamp
from understudy.model.debug_flags import LEVELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.scontrol.session import Session

_RUNNING, _SUSPENDED = 1, 2
_CONFIGURING, _COMPLETING = 0x4000, 0x8000
_WAIT_S = 3.0  # ours: between two looks whether nodes have booted


def ping(session: "Session", _words: list[str]) -> int:
    """Whether the controllers answer: 0 if any does."""
    found = controllers(session)
    for role, host, is_up in found:
        session.context.print(f"Slurmctld({role}) at {host} is {'UP' if is_up else 'DOWN'}")
    are_up = [is_up for _, _, is_up in found]
    if not all(are_up):
        stars = "*" * 41
        session.context.print(f"{stars}\n** RESTORE SLURMCTLD DAEMON TO SERVICE **\n{stars}")
    return 0 if any(are_up) else 1


def controllers(session: "Session") -> "list[tuple[str, str, bool]]":
    """The role and host of each controller, the primary first, and whether it answers."""
    location = session.context.client.location
    here = os.uname().nodename.partition(".")[0]
    if not location.backups:
        return _only_controller(session, here)
    hosts = [location.controller_host or here, *(each[0] for each in location.backups)]
    roles = ["primary", "backup"]
    if len(hosts) > len(roles):
        roles[1:] = [f"backup{number}" for number in range(1, len(hosts))]
    return [
        (role, host, any(_answers(session, address) for address in addresses))
        for role, host, addresses in zip(roles, hosts, location.controllers, strict=True)
    ]


def _only_controller(session: "Session", here: str) -> "list[tuple[str, str, bool]]":
    client = session.context.client
    client.waits = False
    try:
        return [(role, host, True) for host, role in client.query("ping", ["host", "role"]).rows]
    except RefusedError:
        return [("primary", here, False)]
    finally:
        client.waits = True


def _answers(session: "Session", address: str) -> bool:
    other = session.context.client.another(address)
    try:
        other.call("Ping")
    except RefusedError:
        return False
    finally:
        other.close()
    return True


def reconfigure(session: "Session", _words: list[str]) -> int:
    """Have the daemons read slurm.conf again."""
    return _call(session, "slurm_reconfigure error", "Reconfigure")


def shutdown(session: "Session", words: list[str]) -> int:
    """End the controller and the node daemons, or with `slurmctld` or `controller` the controller
    alone.
    """
    if words and not any(name.startswith(words[0].lower()) for name in ("slurmctld", "controller")):
        session.context.complain(f"invalid shutdown argument:{words[0]}")
        return 1
    return _shut_down(session, alone=bool(words))


def abort(session: "Session", _words: list[str]) -> int:
    return _shut_down(session, alone=True)


def _shut_down(session: "Session", *, alone: bool) -> int:
    """End who leads, and those that stand by."""
    client = session.context.client
    client.waits = False
    code = _call(session, "slurm_shutdown error", "Shutdown", alone)
    if code == 0 and client.location.backups:
        for addresses in client.location.controllers:
            for address in addresses[:1]:
                other = client.another(address)
                with contextlib.suppress(RefusedError):  # who has led has ended by now
                    other.call("Shutdown", True)
                other.close()
    return code


def _call(
    session: "Session", failing: str, message: str, *fields: object, aloud: bool = False
) -> int:
    """`aloud`: a refusal is told of though it is to be quiet."""
    try:
        session.context.client.call(message, *fields)
    except RefusedError as error:
        (session.context if aloud else session).complain(f"{failing}: {error.text}")
        return 1
    finally:
        session.context.client.waits = True
    return 0


def takeover(session: "Session", words: list[str]) -> int:
    """[INDEX]: have a backup controller lead, the first if none is named."""
    context = session.context
    if len(words) > 1:
        context.complain("takeover: too many arguments")
        return 1
    index = int(words[0]) if words and words[0].isdigit() else 0
    backups = context.client.location.controllers[1:]
    if words and not 1 <= index <= len(backups):
        context.complain(f"takeover: invalid backup controller index ({index})")
        return 1
    if not backups:
        context.error("slurm_get_port: Address family '0' not supported")
        context.error("Error connecting, bad data: family = 0, port = 0")
        session.complain(f"slurm_takeover error: {CONNECT_FAILED_TEXT}")
        return 1
    for address in backups[max(index, 1) - 1]:
        other = context.client.another(address)
        try:
            other.call("TakeOver")
        except RefusedError as error:
            text = error.text
        else:
            return 0
        finally:
            other.close()
    session.complain(f"slurm_takeover error: {text}")
    return 1


def debug_level(session: "Session", words: list[str]) -> int:
    return set_level(session, words[0], "slurm_set_debug_level error")


def set_level(session: "Session", word: str, failing: str) -> int:
    """How much the controller writes into its log: a number or a name."""
    level = level_of(word)
    if level is None:
        session.complain(f"invalid debug level: {word}")
        return 1
    return _call(session, failing, "SetConfiguration", {"SlurmctldDebug": level})


def level_of(word: str) -> str | None:
    """The name of a level."""
    if word.isdigit():
        return LEVELS[int(word)] if int(word) < len(LEVELS) else None
    return word.lower() if word.lower() in LEVELS else None


def debug_flags(session: "Session", words: list[str]) -> int:
    """Flags of the log, added with `+` or taken away with `-`."""
    from understudy.model.debug_flags import FLAG_NAMES

    word = words[0]
    if word[0] not in "+-":
        session.complain(f"invalid debug flag: {word}")
        session.complain("Usage: setdebugflags [+|-]NAME")
        return 1
    for name in word[1:].split(","):
        if name.lower() not in FLAG_NAMES:
            session.context.error(f"Invalid DebugFlag: {name}")
            session.complain(f"invalid debug flag: {word}")
            return 1
    return _call(session, "slurm_set_debug_flags error", "SetConfiguration", {"DebugFlags": word})


def schedule_log_level(session: "Session", words: list[str]) -> int:
    level = {"0": "0", "1": "1", "disable": "0", "enable": "1"}.get(words[0].lower())
    if level is None:
        session.complain(f"invalid schedlog level: {words[0]}")
        return 1
    return _call(
        session, "slurm_set_schedlog_level error", "SetConfiguration", {"SlurmSchedLogLevel": level}
    )


def dampening_factor(session: "Session", words: list[str]) -> int:
    if not words[0].isdigit() or not 0 < int(words[0]) < 65536:
        session.complain(f"invalid dampening factor: {words[0]}")
        return 0
    return _call(
        session,
        "slurm_set_fs_dampeningfactor error",
        "SetConfiguration",
        {"FairShareDampeningFactor": words[0]},
    )


def reboot(session: "Session", words: list[str]) -> int:
    """[ASAP] [nextstate=RESUME|DOWN] [reason=TEXT] ALL|NODES."""
    asap, after, reason = False, "", ""
    words = list(words)
    while words:
        key, equals, value = words[0].partition("=")
        if not equals and key.upper() == "ASAP":
            asap = True
        elif equals and key.lower() == "nextstate":
            after = value.upper()
            if after not in {"DOWN", "RESUME"}:
                session.context.complain(f"Invalid state: {value}\nValid states: DOWN, RESUME")
                return 1
        elif equals and key.lower() == "reason":
            reason = value
        else:
            break
        words.pop(0)
    if not words:
        session.context.complain("Missing node list. Specify ALL|<NodeList>")
        return 1
    if len(words) > 1:
        session.context.complain("too many arguments for keyword:reboot")
        return 1
    try:
        shown = dict(
            session.context.client.query(
                "config", ["name", "value"], {"name": ["RebootProgram"]}
            ).rows
        )
    except RefusedError as error:
        session.complain(f"scontrol_reboot_nodes error: {error.text}")
        return 1
    if shown.get("RebootProgram", "(null)") == "(null)":
        session.context.error("RebootProgram isn't defined")
        session.complain("scontrol_reboot_nodes error: Unspecified error")
        return 1
    return _call(
        session, "scontrol_reboot_nodes error", "RebootNodes", words[0], asap, after, reason
    )


def cancel_reboot(session: "Session", words: list[str]) -> int:
    if not words:
        session.context.complain("missing argument for keyword:cancel_reboot")
        return 1
    return _call(
        session,
        "slurm_update error",
        "UpdateNodes",
        words[0],
        {"state": "CANCEL_REBOOT"},
        aloud=True,
    )


def wait_job(session: "Session", words: list[str]) -> int:
    """Until the nodes of a job that runs are there."""
    import time

    context = session.context
    if not words[0].isdigit():
        context.complain(f"Invalid job_id {words[0]}")
        return 1
    said = False
    while True:
        try:
            rows = context.client.query(
                "jobs", ["state", "flags"], {"job_id": [int(words[0])]}
            ).rows
        except RefusedError:
            rows = []
        if not rows:
            context.complain(f"scontrol: Problem running job {words[0]}")
            return 1
        state, flags = rows[0]
        if state not in {_RUNNING, _SUSPENDED}:
            context.complain(f"scontrol: Job {words[0]} no longer running")
            return 1
        if not flags & _CONFIGURING:
            context.complain(f"scontrol: Nodes are ready for job {words[0]}")
            return 0
        if not said:
            context.complain("scontrol: Waiting for nodes to boot")
            said = True
        time.sleep(_WAIT_S)


def notify(session: "Session", words: list[str]) -> int:
    """A line of text into the output of a job, or of the command that waits for it."""
    number = leading_job(words[0])
    if not number:
        session.context.stderr.write(f"Invalid job_id {words[0]}")
        session.context.complain("job notify failure: No error")
        return 1
    text = " ".join(words[1:])
    return _call(session, "job notify failure", "NotifyJob", str(number), text, aloud=True)


def completing(session: "Session", _words: list[str]) -> int:
    """Jobs whose nodes are not all free of them."""
    context = session.context
    try:
        answer = context.client.query(
            "jobs", ["job_id", "flags", "end_time", "nodes", "completing_nodes"]
        )
    except RefusedError as error:
        session.complain(f"slurm_load_jobs error: {error.text}")
        return 1
    try:
        context.client.query("nodes", ["name"], {"name": []})  # which may be closed to the user
    except RefusedError as error:
        session.complain(f"slurm_load_nodes error: {error.text}")
        return 1
    for job_id, flags, end, nodes, left in answer.rows:
        if flags & _COMPLETING:
            minutes, seconds = divmod(max(int(answer.now) - int(end or answer.now), 0), 60)
            lasts = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
            context.print(
                f"JobId={job_id} EndTime={timestamp(end)} CompletingTime={lasts} "
                f"Nodes(COMPLETING)={left or nodes}"
            )
    return 0


def token(session: "Session", words: list[str]) -> int:
    """Tokens need another kind of authentication than the cluster's."""
    for word in words:
        key, equals, _ = word.partition("=")
        if not equals or key.lower() not in {"lifespan", "username"}:
            session.context.complain(f"Invalid option: `{word}`")
            return 1
    try:
        session.context.client.query("ping", ["host"])
        if os.geteuid() and any(word.lower().startswith("username=") for word in words):
            session.context.error("slurm_fetch_token: error with request: Invalid user id")
    except RefusedError as error:
        session.context.error(f"slurm_fetch_token: error receiving response: {error.text}")
    session.context.complain("Error fetching token")
    return 1


def write(session: "Session", words: list[str]) -> int:
    """batch_script JOB [FILE] or config [FILE]."""
    what = words[0].lower()
    if what.startswith("batch") and "batch_script".startswith(what):
        return _write_script(session, words[1:])
    if what == "config":
        from understudy.commands.scontrol.config import write_config

        return write_config(session, words[1:])
    session.context.complain(f"invalid write argument:{words[0]}")
    return 1


def _write_script(session: "Session", words: list[str]) -> int:
    context = session.context
    if not words:
        return 0
    job = leading_job(words[0])
    try:
        (text,) = context.client.call("GetScript", str(job))
    except RefusedError as error:
        context.complain(f"job script retrieval failed: {error.text}")
        return 0
    target = words[1] if len(words) > 1 else f"slurm-{job}.sh"
    if target == "-":
        context.stdout.write(text)
        return 0
    try:
        with open(target, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    except OSError as error:
        session.complain(f"failed to open file `{target}`: {error.strerror}")
        return 0
    session.say(f"batch script for job {job} written to {target}")
    return 0
