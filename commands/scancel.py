"""scancel: end or signal jobs. Follows scancel(1) of 22.05."""

import os
import re

from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.options import (
    NONE,
    REQUIRED,
    Option,
    OptionTable,
    last_values,
)
from understudy.documents.states import (
    COMPLETED,
    COMPLETING,
    PENDING,
    SPECIAL_EXIT,
    job_state_from,
    job_state_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OPTIONS = OptionTable(
    [
        Option("account", "A", REQUIRED, "NAME: only jobs of this account", env="SCANCEL_ACCOUNT"),
        Option("batch", "b", NONE, "signal the batch script alone", env="SCANCEL_BATCH"),
        Option("ctld", "", NONE, "", env="SCANCEL_CTLD"),
        Option("cluster", "", REQUIRED, "", dest="clusters"),
        Option("clusters", "M", REQUIRED, "LIST: clusters to ask", env="SLURM_CLUSTERS"),
        Option("full", "f", NONE, "signal the batch script and all steps", env="SCANCEL_FULL"),
        Option("help", "", NONE, "print this text"),
        Option("hurry", "H", NONE, "stage nothing out", env="SCANCEL_HURRY"),
        Option("interactive", "i", NONE, "ask before each job", env="SCANCEL_INTERACTIVE"),
        Option("jobname", "", REQUIRED, "", dest="name"),
        Option("me", "", NONE, "only my own jobs"),
        Option("name", "n", REQUIRED, "NAME: only jobs of this name", env="SCANCEL_NAME"),
        Option("nodelist", "w", REQUIRED, "HOSTS: only jobs on these nodes"),
        Option(
            "partition", "p", REQUIRED, "NAME: only jobs in this partition", env="SCANCEL_PARTITION"
        ),
        Option(
            "qos", "q", REQUIRED, "NAME: only jobs of this quality of service", env="SCANCEL_QOS"
        ),
        Option("quiet", "Q", NONE, "say nothing of jobs that have ended"),
        Option("reservation", "R", REQUIRED, "NAME: only jobs in this reservation"),
        Option("sibling", "", REQUIRED, "CLUSTER: accepted; in no federation"),
        Option("signal", "s", REQUIRED, "SIGNAL: send it instead of ending the job"),
        Option(
            "state",
            "t",
            REQUIRED,
            "STATE: only jobs PENDING, RUNNING or SUSPENDED",
            env="SCANCEL_STATE",
        ),
        Option("usage", "", NONE, "print a short summary of the options"),
        Option("user", "u", REQUIRED, "NAME: only jobs of this user", env="SCANCEL_USER"),
        Option("verbose", "v", NONE, "say what is done", env="SCANCEL_VERBOSE"),
        Option("version", "V", NONE, "print the version"),
        Option("wckey", "", REQUIRED, "KEY: only jobs of this key", env="SCANCEL_WCKEY"),
    ]
)
USAGE = """Usage: scancel [-A account] [--batch] [--full] [--interactive] [-n job_name]
               [-p partition] [-Q] [-q qos] [-R reservation] [-s signal | integer]
               [-t PENDING | RUNNING | SUSPENDED] [--usage] [-u user_name]
               [--hurry] [-V] [-v] [-w hosts...] [--wckey=wckey]
               [job_id[_array_id][.step_id]]"""
# though others are taken, too
_VALID_STATES = "Valid job states are PENDING, RUNNING, and SUSPENDED"
# Job id with component, task, tasks or all tasks; its number; the list of tasks; step.
_JOB = re.compile(r"((\d+)(?:\+\d*|_(?:\d+|\*|\[([^]]*)\])|_?))(?:\.(\d*))?(?=,|$)")
_TASKS = re.compile(r"(\d+)(?:-(\d*))?")
_NO_TASK = re.compile(r"_(?=\.|$)")
_NUMBER = re.compile(r"\s*[+-]?[0-9]+")
_OFFSET = re.compile(r"\+\d*")  # of a component of a heterogeneous job
_TEXT_FILTERS = (
    ("account", "account"),
    ("name", "name"),
    ("partition", "partition"),
    ("qos", "qos"),
    ("reservation", "reservation"),
    ("wckey", "wckey"),
)
INVALID_JOB_ID, IN_TRANSITION, ALREADY_DONE, CONNECT_FAILED, NOT_FEDERATED = (
    2017,
    2020,
    2021,
    1005,
    2239,
)
_INVALID_USER = 2010
_ANY_TASK = 1 << 26
_MOST_STEP = 0xFFFFFFFF  # numbers of steps are kept in 32 bits
_PAUSES_S = range(5, 15)  # between ten further attempts, as 22.05.8 makes them
# unless --verbose: what was to end has ended
_NOT_WORTH_A_WORD = frozenset((INVALID_JOB_ID, ALREADY_DONE))


class _RefusedLineError(Exception):
    """The command line makes no sense; what to say has been said."""


def scancel(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code: that of the last refusal, as Slurm's error number in
    eight bits, or 0.
    """
    try:
        environment = _environment(context)
    except _RefusedLineError:
        return 1
    given, operands, refused = OPTIONS.read(arguments)
    if refused is not None:
        if _has_wrong_value(given, context):
            return 1
        raise refused
    line = _line(given)
    if context.tells(OPTIONS, line, USAGE):
        return 0
    options = {**environment, **line}
    if "quiet" in options:
        options.pop("verbose", None)
    if context.refuses_clusters(options.get("clusters")):
        return 1
    if _has_wrong_value(given, context):  # before the jobs
        return 1
    try:
        jobs = [each for operand in operands for each in _job_ids(operand, context)]
        signal = _signal(options.get("signal"), context)
        where, states = _filters(options, context)
    except _RefusedLineError:
        return 1
    _say_options(
        [*environment, *(option.dest for option, _ in given)], options, signal, where, jobs, context
    )
    has_filters = bool(where or states is not None or options.get("nodelist") is not None)
    if not jobs and not has_filters:
        context.error("No job identification provided")
        return 1
    is_plain = not (
        has_filters
        or signal is not None
        or {"interactive", "batch"} & options.keys()
        or any("." in job for job in jobs)
    )
    try:
        if is_plain:
            return _cancel(jobs, None, options, context)
        missing, ahead, is_list = 0, frozenset[int](), bool(jobs)
        if is_list:
            jobs, missing, ahead = _only_active(jobs, options, context)
        code = missing
        for each in _matching(jobs if is_list else None, ahead, where, states, options, context):
            code = _cancel(each, signal, options, context, states) or code
    except RefusedError as error:
        if is_plain:
            context.error(f"Kill job error on job id {jobs[0]}: {error.text}")
            return 8 if error.code == CONNECT_FAILED else error.code & 0xFF
        context.complain(f"slurm_load_jobs error: {error.text}")
        return 1
    return code


def _line(given: "list[tuple[Option, str | None]]") -> "dict[str, str | None]":
    """What the line asks for; --me is --user with one's own number."""
    values = last_values(given)
    of_users = [each for each in given if each[0].dest in ("me", "user")]
    if of_users:
        option, value = of_users[-1]
        values["user"] = str(os.getuid()) if option.dest == "me" else value
    return values


def _has_wrong_value(given: "list[tuple[Option, str | None]]", context: Context) -> bool:
    """Whether one of the options does, in their order; it has been told of."""
    try:
        for option, text in given:
            if option.dest == "signal":
                _signal(text, context)
            elif option.dest == "state":
                _states(text, context)
    except _RefusedLineError:
        return True
    return False


def _say_options(
    given: list[str],
    options: "dict[str, str | None]",
    signal: int | None,
    where: "dict[str, list[Any]]",
    jobs: list[str],
    context: Context,
) -> None:
    """What was asked for, if -v is given three times. `given`: names of variables and options."""
    if "verbose" not in options:
        return
    times = given.count("verbose")
    if times < 3:
        return
    from understudy.commands.shared.verbose import scancel_options

    state = job_state_name(options.get("state") or "")
    for entry in scancel_options(
        options, times, signal, state, where["user_id"][0] if "user_id" in where else None, jobs
    ):
        context.complain(f"{context.program}: {entry}")


def _environment(context: Context) -> "dict[str, str | None]":
    """What SCANCEL_* variables ask for; switches are `true` or `false`."""
    found = last_values(OPTIONS.from_environment(context.environ))
    for name in ("batch", "full", "interactive", "verbose"):
        word = (found.get(name) or "").lower()
        if name in found and not (word and "true".startswith(word)):
            if not (word and "false".startswith(word)):
                context.error(f"Unrecognized SCANCEL_{name.upper()} value: {found[name]}")
            del found[name]
    if found.get("state") is not None and job_state_from(found["state"] or "") is None:
        context.complain(f"Unrecognized SCANCEL_STATE value: {found['state']}\n{_VALID_STATES}")
        raise _RefusedLineError
    return found


def _job_ids(operand: str, context: Context) -> list[str]:
    """The jobs that an operand names, lists in commas too. Behind a list of tasks nothing comes."""
    found: list[str] = []
    while True:
        match = _JOB.match(operand)
        if match is None or not int(match[2]):
            raise _no_job(operand, context)
        job, _, tasks, step = match.groups()
        if tasks is not None:
            for part in tasks.split(","):
                bounds = _TASKS.fullmatch(part)
                if bounds is None or int(bounds[2] or bounds[1]) < int(bounds[1]):
                    context.error(f"_parse_single_range: Invalid range: `{part}'")
                    raise _no_job(operand, context)
            job = job.replace("-]", "]").replace("-,", ",")
            if match.end() != len(operand) or step is not None:
                raise _no_job(operand, context)
        found.append(job if step is None else f"{job}.{int(step or 0) & _MOST_STEP}")
        if match.end() == len(operand):
            return found
        operand = operand[match.end() + 1 :]


def _no_job(text: str, context: Context) -> _RefusedLineError:
    context.error(f"Invalid job id {text}")
    return _RefusedLineError()


def _signal(text: str | None, context: Context) -> int | None:
    if text is None:
        return None
    from understudy.model.times import parse_signal

    try:
        if not _NUMBER.fullmatch(text):
            return parse_signal(text)
        if number := int(text) & 0xFFFF:  # so much of it is sent
            return number
        raise ValueError(text)
    except ValueError:
        context.complain(f"Unknown job signal: {text}")
        raise _RefusedLineError from None


def _filters(
    options: "dict[str, str | None]", context: Context
) -> "tuple[dict[str, list[Any]], list[tuple[int, int]] | None]":
    """(values by column, states as of states.job_state_from)."""
    where: dict[str, list[Any]] = {
        column: [options[name]] for name, column in _TEXT_FILTERS if options.get(name) is not None
    }
    if options.get("user") is not None:
        where["user_id"] = [_user_id(options["user"] or "", context)]
    return where, _states(options.get("state"), context)


def _states(text: str | None, context: Context) -> "list[tuple[int, int]] | None":
    if text is None:
        return None
    state = job_state_from(text)
    if state is None:
        context.complain(f"Invalid job state specified: {text}\n{_VALID_STATES}")
        raise _RefusedLineError
    return [state]


def _user_id(word: str, context: Context) -> int:
    import pwd

    try:
        return pwd.getpwuid(int(word)).pw_uid if word.isdigit() else pwd.getpwnam(word).pw_uid
    except (KeyError, OverflowError):
        if word.isdigit() and (
            int(word) == os.getuid()
            or context.client.query("jobs", ["job_id"], {"user_id": [int(word)]}).rows
        ):
            return int(word)  # an emulated cluster has users whom this host does not know
        context.error(f"Invalid user name: {word}")
        raise _RefusedLineError from None


_COLUMNS = [
    *(
        "job_id",
        "array_job_id",
        "array_task_id",
        "array_task_expression",
        "array_max_tasks",
        "het_job_id",
        "het_job_offset",
        "state",
        "flags",
    ),
    "nodes",
]


def _is_active(job: "dict[str, Any]") -> bool:
    return job["state"] < COMPLETED and not job["flags"] & COMPLETING


def _by_number(jobs: "list[dict[str, Any]]") -> "dict[str, list[dict[str, Any]]]":
    """The records of each number, that of a job or of the array whose task it is."""
    found: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        for number in {job["job_id"], job["array_job_id"] or job["job_id"]}:
            found.setdefault(str(number), []).append(job)
    return found


def _meant(name: str, records: "dict[str, list[dict[str, Any]]]") -> "list[dict[str, Any]]":
    """The records that a name on the command line means, or means a part of. Who names a component
    of a heterogeneous job means the first.
    """
    number, _, tasks = name.partition(".")[0].partition("+")[0].partition("_")
    return [job for job in records.get(number, ()) if _has_tasks(job, tasks)]


def _has_tasks(job: "dict[str, Any]", tasks: str) -> bool:
    """Whether some of these tasks of its array are in the record; "" for any record."""
    if not tasks:
        return True
    if not job["array_job_id"]:
        return False
    if tasks == "*":
        return True
    from understudy.model.task_numbers import parse_tasks

    try:
        wanted = parse_tasks(tasks.strip("[]").partition("%")[0], _ANY_TASK)
        own = (
            1 << job["array_task_id"]
            if job["array_task_id"] is not None
            else parse_tasks(job["array_task_expression"], _ANY_TASK)
        )
    except ValueError:
        return False
    return bool(wanted & own)


def _listed(
    columns: list[str], where: "dict[str, list[Any]] | None", context: Context
) -> "list[dict[str, Any]]":
    """Jobs that have not ended, in the order of Slurm's list."""
    from understudy.documents.job_texts import in_places

    rows = in_places(context.client.query("jobs", columns, where).rows, columns)
    jobs = (dict(zip(columns, row, strict=True)) for row in rows)
    return [job for job in jobs if _is_active(job)]


def _only_active(
    jobs: list[str], options: "dict[str, str | None]", context: Context
) -> tuple[list[str], int, frozenset[int]]:
    """Those of the jobs that have not ended; 1 if others were named, which has been said; and the
    numbers of all that are listed before one that waits.
    """
    known = _listed(_COLUMNS, None, context)
    records = _by_number(known)
    found, code = [], 0
    for name in (_NO_TASK.sub("_0", job) for job in jobs):
        missing = [each for each in _tasks(name) if not _meant(each, records)]
        if missing != _tasks(name):
            found.append(name)
        code = code or bool(missing)
        for each in missing if "quiet" not in options else ():
            kind = "job step id" if "." in each else "job id"
            context.error(
                f"Kill job error on {kind} {_OFFSET.sub('', each)}: Invalid job id specified"
            )
    last = max((at for at, job in enumerate(known) if job["state"] == PENDING), default=0)
    return found, int(code), frozenset(job["job_id"] for job in known[:last])


def _tasks(name: str) -> list[str]:
    """Each task of a list by itself."""
    if "[" not in name:
        return [name]
    from understudy.documents.job_texts import task_numbers

    array, _, rest = name.partition("_[")
    expression, _, step = rest.partition("]")
    return [f"{array}_{task}{step}" for task in task_numbers(expression.partition("%")[0])]


def _texts(options: "dict[str, str | None]") -> "list[str | None]":
    """What the filters that are texts ask for."""
    return [options.get(name) for name in (*(name for name, _ in _TEXT_FILTERS), "nodelist")]


def _matching(
    jobs: list[str] | None,
    ahead: frozenset[int],
    where: "dict[str, list[Any]]",
    states: "list[tuple[int, int]] | None",
    options: "dict[str, str | None]",
    context: Context,
) -> tuple[list[str], list[str]]:
    """Those of the jobs (of all, if None) that match all filters, and that the user confirms: first
    those that wait, then the others. Steps of jobs `ahead` are among both.
    """
    found: list[dict[str, Any]] = []
    hosts: set[str] | None = None
    if options.get("nodelist"):
        from understudy.model.hostlist import expand

        try:
            hosts = set(expand(options["nodelist"] or ""))
        except ValueError:
            hosts = set()
    listed = _listed([*_COLUMNS, "name", "partition"], where, context)
    for job in listed if "" not in _texts(options) else ():  # no job matches an empty one
        if states is not None and not any(
            job["state"] == state if not flag else job["flags"] & flag & ~SPECIAL_EXIT
            for state, flag in states
        ):
            continue
        if hosts is not None:
            from understudy.model.hostlist import expand

            if not job["nodes"] or hosts.isdisjoint(expand(job["nodes"])):
                continue
        found.append(job)
    if "verbose" in options and not (found and jobs != []) and _said(where, states, options):
        context.error(
            f"No active jobs match ALL job filters, including: {_said(where, states, options)}"
        )
    leads = {job["job_id"] for job in found}
    chosen = (
        [
            (_name(job), _name(job), job)
            for job in found
            if not job["het_job_offset"] or job["het_job_id"] not in leads
        ]
        if jobs is None
        else _named(jobs, found)
    )
    waiting = [each for each in chosen if _is_early(*each, ahead)]
    others = [each for each in chosen if each[2]["state"] != PENDING]
    if "interactive" in options:
        early = [each for each in waiting if _confirmed(each[1], each[2], context)]
        left = [each for each in others if each in early or each not in waiting]
        waiting, others = early, [each for each in left if _confirmed(each[1], each[2], context)]
    return [each[0] for each in waiting], [each[0] for each in others]


def _is_early(name: str, _shown: str, job: "dict[str, Any]", ahead: frozenset[int]) -> bool:
    """Whether it is ended among those that wait. Steps of what waits are not."""
    return job["job_id"] in ahead if "." in name else job["state"] == PENDING


def _named(
    jobs: list[str], found: "list[dict[str, Any]]"
) -> "list[tuple[str, str, dict[str, Any]]]":
    """What the names stand for: how it is called, how it is called in a question, and its job. A
    record goes as a whole, whatever part of it was named, and once; steps go as often as they are
    named, and not beside their job.
    """
    chosen: list[tuple[str, str, dict[str, Any]]] = []
    records, seen = _by_number(found), set()
    whole = {_name(job) for name in jobs if "." not in name for job in _meant(name, records)}
    for name in jobs:
        number, dot, step = name.partition(".")
        # one step, of the task that has the array's number
        own = [job for job in records.get(number, ()) if dot and str(job["job_id"]) == number]
        for job in own or _meant(name, records):
            shown = _name(job)
            if dot and shown in whole:
                continue
            if dot:
                chosen.append((f"{job['job_id']}.{step}", f"{shown}.{step}", job))
            elif shown not in seen:
                seen.add(shown)
                chosen.append((shown, shown, job))
    return chosen


def _said(
    where: "dict[str, list[Any]]",
    states: "list[tuple[int, int]] | None",
    options: "dict[str, str | None]",
) -> str:
    """The filters, as Slurm lists them."""
    words = []
    for name, column in (
        *(
            ("account", "account"),
            ("job_name", "name"),
            ("nodelist", ""),
            ("partition", "partition"),
            ("qos", "qos"),
            ("reservation", "reservation"),
        ),
        *(("state", ""), ("user_name", "user_id"), ("wckey", "wckey")),
    ):
        if name == "nodelist" and options.get("nodelist") is not None:
            words.append(f"nodelist={options['nodelist']} ")
        elif name == "state" and states is not None:
            words.append(f"state={job_state_name(options['state'] or '')} ")
        elif name == "user_name" and "user_id" in where:
            words.append(f"user_name={options['user']} ")
        elif column in where:
            words.append(f"{name}={where[column][0]} ")
    return "".join(words)


def _name(job: "dict[str, Any]") -> str:
    """The job as the controller is to understand it: of an array only the tasks that the record
    stands for.
    """
    if not job["array_job_id"]:
        return str(job["job_id"])
    expression, most = job["array_task_expression"], job["array_max_tasks"]
    if not expression:
        return f"{job['array_job_id']}_{job['array_task_id']}"
    return f"{job['array_job_id']}_[{expression}{f'%{most}' if most else ''}]"


def _confirmed(name: str, job: "dict[str, Any]", context: Context) -> bool:
    """Ask until the answer begins as yes or no does; the end of the input is no."""
    while True:
        context.stdout.write(
            f"Cancel {'step' if '.' in name else 'job'}_id={name} name={job['name']} "
            f"partition={job['partition']} [y/n]? "
        )
        context.stdout.flush()
        answer = context.stdin.readline()
        if not answer or answer[0] in "yYnN":
            return answer[:1] in {"y", "Y"}


def _cancel(
    jobs: list[str],
    signal: int | None,
    options: "dict[str, str | None]",
    context: Context,
    states: "list[tuple[int, int]] | None" = None,
) -> int:
    """Ask the controller, and say what it refused. What has left the state (as of
    states.job_state_from) by now is left alone.
    """
    if not jobs:
        return 0
    verbose = "verbose" in options
    if verbose:
        reach = "full job" if "full" in options else "batch job" if "batch" in options else "job"
        for job in jobs:
            name = f"{'step' if '.' in job else reach} {job}"
            context.complain(
                f"{context.program}: "
                + (f"Terminating {name}" if signal is None else f"Signal {signal} to {name}")
            )
    if "sibling" in options:
        rows = context.client.query("jobs", ["job_id", "array_job_id"]).rows
        known = {str(number) for row in rows for number in row}
        theirs = [job for job in jobs if "." not in job and re.split("[_+]", job)[0] in known]
        for job in theirs:
            context.error(f"Kill job error on job id {job}: Not a valid federated job")
        return NOT_FEDERATED & 0xFF if theirs else 0
    where = (
        {"state": [state for state, flag in states if not flag]}
        if states and not states[0][1]
        else {}
    )
    switches = "batch" in options, "full" in options, "hurry" in options
    (results,) = context.client.call("CancelJobs", jobs, signal, where, *switches)
    for pause in _PAUSES_S:  # who waits for its start may have begun by then, and gets the signal
        waiting = [job for job, error, _ in results if error == IN_TRANSITION]
        if not waiting:
            break
        if verbose:
            context.complain(
                "\n".join(
                    [f"{context.program}: Job is in transitional state, retrying"] * len(waiting)
                )
            )
        context.client.sleep(pause)
        again = {
            each[0]: each
            for each in context.client.call("CancelJobs", waiting, signal, where, *switches)[0]
        }
        results = [again.get(each[0], each) for each in results]
    code = 0
    for job, error, text in results:
        base, is_step, _ = job.partition(".")
        if not error or (error in _NOT_WORTH_A_WORD and not verbose and not is_step):
            continue
        if is_step:
            is_known = error in (*_NOT_WORTH_A_WORD, _INVALID_USER)
            if signal is not None and is_known and "ctld" not in options:
                continue
            context.error(f"Kill job error on job step id {base if is_known else job}: {text}")
        else:
            context.error(f"Kill job error on job id {job}: {text}")
        if error not in _NOT_WORTH_A_WORD or is_step:
            code = error
    return code & 0xFF


def main() -> int:
    """Run as a program; does not return."""
    return run("scancel", scancel)


if __name__ == "__main__":
    main()
