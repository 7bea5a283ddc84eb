"""scancel: end or signal jobs. Follows scancel(1) of 22.05."""

import os

from understudy.commands.client import VERSION, Context, RefusedError, UsageError, run
from understudy.commands.options import NONE, REQUIRED, Option, OptionError, OptionTable, last_values
from understudy.commands.states import COMPLETED, COMPLETING, PENDING, RUNNING, SUSPENDED

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
        Option("me", "", NONE, "only my own jobs"),
        Option("name", "n", REQUIRED, "NAME: only jobs of this name", env="SCANCEL_NAME"),
        Option("nodelist", "w", REQUIRED, "HOSTS: only jobs on these nodes"),
        Option("partition", "p", REQUIRED, "NAME: only jobs in this partition", env="SCANCEL_PARTITION"),
        Option("qos", "q", REQUIRED, "NAME: only jobs of this quality of service", env="SCANCEL_QOS"),
        Option("quiet", "Q", NONE, "say nothing of jobs that have ended"),
        Option("reservation", "R", REQUIRED, "NAME: only jobs in this reservation"),
        Option("sibling", "", REQUIRED, ""),
        Option("signal", "s", REQUIRED, "SIGNAL: send it instead of ending the job"),
        Option("state", "t", REQUIRED, "STATE: only jobs PENDING, RUNNING or SUSPENDED", env="SCANCEL_STATE"),
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

_STATES = {"PENDING": PENDING, "PD": PENDING, "RUNNING": RUNNING, "R": RUNNING, "SUSPENDED": SUSPENDED, "S": SUSPENDED}
_TEXT_FILTERS = (
    ("account", "account"),
    ("name", "name"),
    ("partition", "partition"),
    ("qos", "qos"),
    ("reservation", "reservation"),
    ("wckey", "wckey"),
)

INVALID_JOB_ID, ALREADY_DONE, CONNECT_FAILED = 2017, 2021, 1005
_NOT_WORTH_A_WORD = frozenset((INVALID_JOB_ID, ALREADY_DONE))  # unless --verbose: what was to end has ended


class _RefusedLineError(Exception):
    """The command line makes no sense; what to say has been said."""


def scancel(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code: that of the last refusal, as Slurm's error number in eight bits, or 0."""
    try:
        given, operands = OPTIONS.parse(arguments)
    except OptionError as error:
        raise UsageError(str(error)) from None
    line = last_values(given)
    if "help" in line:
        context.stdout.write(OPTIONS.help_text("scancel [OPTIONS...] [JOB[_TASK][.STEP]...]"))
        return 0
    if "usage" in line:
        context.print(USAGE)
        return 0
    if "version" in line:
        context.print(f"slurm {VERSION}")
        return 0
    options = {**last_values(OPTIONS.from_environment(context.environ)), **line}
    if context.refuses_clusters(options.get("clusters")):
        return 1
    try:
        jobs = [each for operand in operands for each in _job_ids(operand, context)]
        signal = _signal(options.get("signal"), context)
        where, states = _filters(options, context)
    except _RefusedLineError:
        return 1
    if not jobs and not where and states is None and not options.get("nodelist"):
        context.error("No job identification provided")
        return 1
    try:
        if where or states is not None or options.get("nodelist") or "interactive" in options:
            jobs = _matching(jobs, where, states, options, context)
        return _cancel(jobs, signal, options, context)
    except RefusedError as error:
        if jobs:
            context.error(f"Kill job error on job id {jobs[0]}: {error.text}")
            return 8 if error.code == CONNECT_FAILED else error.code & 0xFF
        context.error(f"slurm_load_jobs error: {error.text}")
        return 1


def _job_ids(operand: str, context: Context) -> list[str]:
    """The jobs that an operand names, lists in commas too. Commas within brackets part tasks."""
    found = []
    word, depth = "", 0
    for letter in operand + ",":
        if letter == "," and not depth:
            if word:
                found.append(word)
            word = ""
            continue
        depth += (letter == "[") - (letter == "]")
        word += letter
    for each in found:
        base, plus, offset = each.partition(".")[0].partition("+")
        number, _, task = base.partition("_")
        if plus and not offset.isdigit():
            number = ""
        inside = task.removeprefix("[").removesuffix("]")
        if not number.isdigit() or not int(number) or (task and not set(inside) <= set("0123456789,-:%")):
            context.error(f"Invalid job id {each}")
            raise _RefusedLineError
    return found


def _signal(text: str | None, context: Context) -> int | None:
    if text is None:
        return None
    from understudy.model.times import parse_signal

    try:
        return parse_signal(text)
    except ValueError:
        context.complain(f"Unknown job signal: {text}")
        raise _RefusedLineError from None


def _filters(options: "dict[str, str | None]", context: Context) -> "tuple[dict[str, list[Any]], list[int] | None]":
    """(values by column, base states)."""
    where: dict[str, list[Any]] = {column: [options[name]] for name, column in _TEXT_FILTERS if options.get(name)}
    if options.get("user"):
        where["user_id"] = [_user_id(options["user"] or "", context)]
    if "me" in options:
        where["user_id"] = [os.getuid()]
    states = None
    if options.get("state"):
        state = _STATES.get((options["state"] or "").upper())
        if state is None:
            context.complain(f"Invalid job state specified: {options['state']}\nValid job states are PENDING, RUNNING, and SUSPENDED")
            raise _RefusedLineError
        states = [state]
    return where, states


def _user_id(word: str, context: Context) -> int:
    if word.isdigit():
        return int(word)
    import pwd

    try:
        return pwd.getpwnam(word).pw_uid
    except KeyError:
        context.error(f"Invalid user name: {word}")
        raise _RefusedLineError from None


def _matching(
    jobs: list[str], where: "dict[str, list[Any]]", states: list[int] | None, options: "dict[str, str | None]", context: Context
) -> list[str]:
    """Those of the jobs (of all, if none are named) that match all filters, and that the user confirms."""
    columns = ["job_id", "array_job_id", "array_task_id", "array_task_expression", "state", "flags", "nodes", "name", "partition"]
    found: dict[str, dict[str, Any]] = {}
    hosts: set[str] | None = None
    if options.get("nodelist"):
        from understudy.model.hostlist import expand

        hosts = set(expand(options["nodelist"] or ""))
    for job in context.client.query("jobs", columns, where).dicts():
        if job["state"] >= COMPLETED or job["flags"] & COMPLETING:
            continue
        if states is not None and job["state"] not in states:
            continue
        if hosts is not None:
            from understudy.model.hostlist import expand

            if not job["nodes"] or hosts.isdisjoint(expand(job["nodes"])):
                continue
        found[str(job["job_id"])] = job
    chosen: dict[str, dict[str, Any]] = {}
    if jobs:
        for name in jobs:
            number, _, task = name.partition(".")[0].partition("_")
            for job in found.values():
                same = str(job["job_id"]) == number or str(job["array_job_id"]) == number
                if same and (not task or str(job["array_task_id"]) == task or job["array_task_id"] is None):
                    chosen[name] = job
    else:
        chosen = {_name(job): job for job in found.values()}
    if "interactive" in options:
        return [name for name, job in chosen.items() if _confirmed(name, job, context)]
    return list(chosen)


def _name(job: "dict[str, Any]") -> str:
    """The job as the controller is to understand it: of an array only the tasks that the record stands for."""
    if not job["array_job_id"]:
        return str(job["job_id"])
    expression = job["array_task_expression"]
    return f"{job['array_job_id']}_[{expression}]" if expression else f"{job['array_job_id']}_{job['array_task_id']}"


def _confirmed(name: str, job: "dict[str, Any]", context: Context) -> bool:
    context.stdout.write(f"Cancel job_id={name} name={job['name']} partition={job['partition']} [y/n]? ")
    context.stdout.flush()
    return context.stdin.readline().strip().lower().startswith("y")


def _cancel(jobs: list[str], signal: int | None, options: "dict[str, str | None]", context: Context) -> int:
    """Ask the controller, and say what it refused."""
    if not jobs:
        return 0
    verbose = "verbose" in options
    if verbose:
        for job in jobs:
            context.complain(f"{context.program}: " + (f"Terminating job {job}" if signal is None else f"Signal {signal} to job {job}"))
    (results,) = context.client.call("CancelJobs", jobs, signal, {}, "batch" in options, "full" in options, "hurry" in options)
    code = 0
    for job, error, text in results:
        if not error or (error in _NOT_WORTH_A_WORD and not verbose and "." not in job):
            continue
        if "quiet" in options and error in _NOT_WORTH_A_WORD:
            continue
        kind = "job step id" if "." in job else "job id"
        context.error(f"Kill job error on {kind} {job}: {text}")
        if error not in _NOT_WORTH_A_WORD or "." in job:
            code = error
    return code & 0xFF


def main() -> int:
    """Run as a program; does not return."""
    return run("scancel", scancel)


if __name__ == "__main__":
    main()
