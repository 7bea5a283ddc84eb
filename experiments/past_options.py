"""What a past job asked for, as options of sbatch: from its submission line where there is one, and
from the columns for what the line leaves unsaid.

Place: pure; past_scenario uses it. The line is what the user typed, the columns are what became of
the job: options in the script and defaults, and what was changed later, are in the columns alone.
So the line has the word on the shape of the job (tasks, GPUs, constraints), and the columns on
where and for whom it ran, and how long it might.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from understudy.experiments.past import PARTITION_LIMIT, UNLIMITED, Count
from understudy.experiments.past_memory import as_it_got, memory_of, of_each_cpu
from understudy.experiments.sacct_words import tres, whole
from understudy.model.times import parse_limit

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Mapping

    from understudy.experiments.past import PastJob

    Said = Mapping[str, str | None]
    Defaults = Mapping[str, "Default"]  # of each partition

# Options of a submission line that say nothing on when or where a job runs: files, folders, the
# environment, how sbatch itself behaves, and what is the administrator's alone.
UNUSED: Final = frozenset(
    {
        "acctg_freq",
        "chdir",
        "cluster",
        "cluster_constraint",
        "clusters",
        "container",
        "context",
        "error",
        "export",
        "export_file",
        "get_user_env",
        "gid",
        "help",
        "ignore_pbs",
        "input",
        "job_name",
        "mail_type",
        "mail_user",
        "nodefile",
        "open_mode",
        "output",
        "parsable",
        "power",
        "profile",
        "propagate",
        "quiet",
        "reboot",
        "test_only",
        "uid",
        "usage",
        "verbose",
        "version",
        "wait",
        "wrap",
    }
)
_KEPT: Final = 10_000  # kinds of jobs that are remembered
KINDS: Final = (
    "partition",
    "account",
    "qos",
    "user",
    "node",
    "feature",
    "reservation",
    "gres",
    "license",
)
_GRES: Final = (
    "gres",
    "gpus",
    "gpus_per_node",
    "gpus_per_socket",
    "gpus_per_task",
    "ntasks_per_gpu",
)
_SHAPE_ALSO: Final = (
    "exclusive",
    "extra_node_info",
    "overcommit",
    "ntasks_per_core",
    "ntasks_per_socket",
    "threads_per_core",
    "hint",
    "core_spec",
)


@dataclass(frozen=True, slots=True)
class Mapped:
    """Names of the history and what they are called in the configuration:
    `names["partition"]["old"] == "new"`; "" leaves the option out.
    """

    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    partition: str = ""  # of all jobs

    def one(self, kind: str, name: str) -> str:
        return self.names[kind].get(name, name) if kind in self.names else name

    def listed(self, kind: str, text: str) -> str:
        """Names at commas."""
        if kind not in self.names:
            return text
        found = (self.one(kind, name) for name in text.split(","))
        return ",".join(name for name in found if name)

    def words(self, kind: str, text: str) -> str:
        """Names within an expression: features `a&b|c`, GRES `gpu:a100:2`."""
        if kind not in self.names:
            return text
        return re.sub(r"[\w.\-]+", lambda match: self.one(kind, match[0]), text)

    def nodes(self, text: str, expand: Callable[[str], list[str]]) -> str:
        """A host list."""
        if "node" not in self.names or not text:
            return text
        return ",".join(name for name in (self.one("node", host) for host in expand(text)) if name)


class Choices(NamedTuple):
    """What the user says of a history's files."""

    columns: str = ""  # of sacct's rows, at commas, where the file has no header (`--noheader`)
    cluster: str = ""  # the one whose jobs are wanted, where there are several
    mapped: Mapped = Mapped()


NO_CHOICES: Final = Choices()


class Default(NamedTuple):
    """What a partition gives to who does not ask for it."""

    memory: frozenset[tuple[int, str]] = frozenset()  # MB of each CPU ("c") or node ("n")
    unit_cpus: int = 2  # CPUs are given so many at a time: of a core or a node
    most_cpus: float = math.inf  # of all its nodes, as far as it allows them (MaxCPUsPerNode)
    is_limited: bool = False  # the accounts limit resources (GrpTRES, MaxTRESPerUser ...)
    # CPUs of a socket, where these are given whole and all of its nodes are alike
    socket_cpus: int = 0
    most_memory_mb: int | None = None  # of a job on each node (MaxMemPerNode)


NO_DEFAULT: Final = Default()  # of a partition that no configuration tells of


class Asked(NamedTuple):
    """The columns of a record that tell what the job asked for. Many jobs ask for the same."""

    partition: str
    account: str
    qos: str
    reservation: str
    limit_min: int | None
    has_run: bool
    nodes: int | None
    cpus: int | None
    min_nodes: int | None
    req_cpus: int | None
    memory: str
    req_tres: str
    alloc_tres: str
    req_gres: str
    constraints: str
    wckey: str
    comment: str
    flags: str


asked: Final = attrgetter(*Asked._fields)  # of a record


class Options:
    """Options of sbatch for jobs, in long form. Left to the caller: --array, --dependency, --begin,
    --hold, the name.
    """

    def __init__(
        self,
        mapped: Mapped,
        counts: Count,
        expand: Callable[[str], list[str]],
        defaults: Defaults | None = None,
    ) -> None:
        self._mapped, self._counts, self._expand = mapped, counts, expand
        self._defaults = defaults or {}
        # with the notes that were made
        self._known: dict[tuple[object, ...], tuple[list[str], Counter[str]]] = {}

    def of(self, job: PastJob, said: Said | None) -> list[str]:
        """A new list. `said`: the submission line's by their names in sbatch's table; None: there
        is no line.
        """
        given = {name: value for name, value in said.items() if name not in UNUSED} if said else {}
        key = (asked(job), said is None, *given.items())
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            notes = Count()
            columns = Asked._make(asked(job))
            default = self._defaults.get(
                self._mapped.partition or self._mapped.one("partition", job.partition), NO_DEFAULT
            )
            if said is None:
                columns = as_it_got(columns, notes, default)
            if columns.cpus and columns.cpus > default.most_cpus:  # none could ask for so many
                columns = columns._replace(cpus=int(default.most_cpus))
            known = self._known[key] = (
                job_options(columns, given, self._mapped, notes, self._expand, default),
                notes.notes,
            )
        for note, number in known[1].items():
            self._counts.notes[note] += number
        return list(known[0])


def job_options(
    job: Asked,
    given: dict[str, str | None],
    mapped: Mapped,
    counts: Count,
    expand: Callable[[str], list[str]],
    default: Default = NO_DEFAULT,
) -> list[str]:
    """Options of one job. `given`: the submission line's that are used; it is changed. `default`:
    what its partition gives it where it asks for nothing.
    """
    found: list[str] = []
    is_of_one = "," not in (given.get("partition") or "")
    _where(job, given, mapped, found)
    _how_long(job, given, counts, found, is_of_one=is_of_one)
    _fewer_nodes(job, given, counts)
    if default.is_limited:
        _no_more_nodes(job, given, counts)
    memory = memory_of(job, given, default)
    _shape(job, given, found, default, of_each_cpu(given, memory, default))
    if memory is not None:
        found.append(memory.option)
    _gres(job, given, mapped, found)
    _licenses(job, given, mapped, found)
    _buffer(job, given, counts)
    # The column has what the job would rather have, too (--prefer).
    if "constraint" not in given and job.constraints and job.constraints != given.get("prefer"):
        found.append(f"--constraint={mapped.words('feature', job.constraints)}")
    if job.comment:  # of which the line has the first word
        given["comment"] = job.comment
    if job.wckey and "wckey" not in given:
        found.append(f"--wckey={job.wckey}")
    for name, value in given.items():
        text = _renamed(name, value, mapped, expand)
        if text == "" and value:
            continue
        found.append(f"--{name.replace('_', '-')}" + ("" if text is None else f"={text}"))
    return found


def _renamed(
    name: str, value: str | None, mapped: Mapped, expand: Callable[[str], list[str]]
) -> str | None:
    if not value:
        return value
    if name in ("constraint", "prefer", "batch"):
        return mapped.words("feature", value)
    if name in ("gres", "gpus", "gpus_per_node", "gpus_per_task", "gpus_per_socket"):
        return mapped.words("gres", value)
    if name == "licenses":
        return mapped.words("license", value)
    if name in ("nodelist", "exclude"):
        try:
            return mapped.nodes(value, expand)
        except ValueError:
            return value
    return value


def _where(job: Asked, given: dict[str, str | None], mapped: Mapped, found: list[str]) -> None:
    """Account, partition, QOS, reservation: as the columns say. Of several partitions the column
    has the one in which the job ran.
    """
    typed_in = (given.pop("partition", None) or "").split(",")
    ran_in = job.partition or ",".join(typed_in)
    names = ",".join(typed_in) if job.partition in typed_in else ran_in
    partition = mapped.partition or mapped.listed("partition", names)
    if partition:
        found.append(f"--partition={partition}")
    for name, kind, column in (
        ("account", "account", job.account),
        ("qos", "qos", job.qos),
        ("reservation", "reservation", job.reservation),
    ):
        typed = given.pop(name, None) or ""
        text = mapped.one(kind, column) if column else mapped.one(kind, typed)
        if text:
            found.append(f"--{name}={text}")


def _how_long(
    job: Asked,
    given: dict[str, str | None],
    counts: Count,
    found: list[str],
    *,
    is_of_one: bool,
) -> None:
    """The limit: the column's, since limits are changed later; but the line's where the job could
    be content with less (--time-min), which backfill alone gives, and none where its deadline made
    it of its partition's, or where it was that of one of several partitions (not `is_of_one`),
    which others may not allow.
    """
    least = given.get("time_min")
    if least is not None and given.get("time"):
        is_changed = "SchedMain" in job.flags and job.limit_min is not None and job.limit_min > 0
        if not is_changed or (_minutes(least) or 0) > (job.limit_min or 0):
            return
    typed = given.pop("time", None)
    if typed is None and ("deadline" in given or not is_of_one):
        return
    if job.limit_min is None:
        if typed:
            found.append(f"--time={typed}")
        return
    if job.limit_min == PARTITION_LIMIT:
        return
    limit = "UNLIMITED" if job.limit_min == UNLIMITED else str(job.limit_min)
    found.append(f"--time={limit}")
    if typed and _minutes(typed) not in (None, job.limit_min):
        counts.notes[
            "another time limit in the columns than in the submission line: the columns' is taken"
        ] += 1


def _minutes(text: str) -> int | None:
    try:
        seconds = parse_limit(text)
    except ValueError:
        return None
    return UNLIMITED if seconds is None or seconds < 0 else -(-seconds // 60)


def _fewer_nodes(job: Asked, given: dict[str, str | None], counts: Count) -> None:
    """The line's nodes, but the column's where the job ran on fewer than the line says: they were
    changed while it waited.
    """
    typed = whole((given.get("nodes") or "").partition("-")[0])
    if typed and job.has_run and job.nodes and job.min_nodes and job.min_nodes <= job.nodes < typed:
        given["nodes"] = str(job.min_nodes)
        counts.notes[
            "fewer nodes in the columns than in the submission line: the columns' number is taken"
        ] += 1


def _no_more_nodes(job: Asked, given: dict[str, str | None], counts: Count) -> None:
    """No more nodes than it got, of a job that takes as many as happen to be free (a range of
    nodes, --spread-job): with more free ones it might wait for ever, as limits allow it so many
    alone.
    """
    if not job.has_run or not job.nodes:
        return
    typed = given.get("nodes")
    least, _, most = (typed or str(job.min_nodes or 1)).partition("-")
    is_range = (whole(most) or 0) > job.nodes
    is_spread = typed is None and "spread_job" in given
    if (is_range or is_spread) and 0 < (whole(least) or 0) <= job.nodes:
        given["nodes"] = f"{least}-{job.nodes}"
        counts.notes[
            "any number of nodes, some of which limits of accounts may forbid: no more are asked "
            "for than it got"
        ] += 1


def _shape(
    job: Asked,
    given: dict[str, str | None],
    found: list[str],
    default: Default,
    mb_of_cpu: int | None,
) -> None:
    """Nodes and tasks, as far as the line leaves them open: it does not show what the script
    says. `mb_of_cpu`: the memory that it has of each CPU, if that is how it is asked for.
    """
    wanted = tres(job.req_tres)
    asked_cpus = job.req_cpus or whole(wanted.get("cpu"))
    nodes, cpus = job.min_nodes or whole(wanted.get("node")), asked_cpus or job.cpus
    if nodes is None and job.req_cpus is None and "ntasks" not in given:
        nodes = job.nodes
    # One node is the least that anybody asks for: whether a job of several CPUs asked for exactly
    # one is seen from where it ran.
    is_told = nodes is not None and (
        (nodes > 1 and (job.nodes in (None, 0, nodes) or not job.has_run))
        or (job.has_run and (cpus or 1) > 1 and nodes == job.nodes)
    )
    # More nodes than tasks are what its partition gives at least (MinNodes).
    is_least = nodes is not None and nodes > (whole(given.get("ntasks")) or cpus or nodes)
    # fewer than --ntasks-per-node wants were given all the same (select/linear)
    per_node = whole(given.get("ntasks_per_node") or given.get("tasks_per_node"))
    is_less = per_node is not None and (nodes or 0) * per_node < (whole(given.get("ntasks")) or 0)
    # With so many CPUs on so few nodes it would have been refused.
    is_too_much = (
        default.most_memory_mb is not None
        and mb_of_cpu is not None
        and mb_of_cpu * (cpus or 1) > default.most_memory_mb * (nodes or 1)
    )
    if "nodes" not in given and is_told and not (is_least or is_less or is_too_much):
        found.append(f"--nodes={nodes}")
    if not cpus or any(
        name in given
        for name in (*_SHAPE_ALSO, "mincpus", "cpus_per_gpu", "ntasks_per_gpu", "gpus_per_task")
    ):
        return
    tasks, each = whole(given.get("ntasks")), whole(given.get("cpus_per_task"))
    least_nodes = whole((given.get("nodes") or "").partition("-")[0]) or nodes or 1
    if tasks is None and per_node is not None:
        tasks = per_node * least_nodes
    if tasks is None and each is None:
        sockets = _sockets(job, cpus, default)
        if sockets:
            found += [f"--ntasks={sockets}", f"--cpus-per-task={default.socket_cpus}"]
        elif cpus != least_nodes:
            found.append(f"--ntasks={cpus}")
    elif tasks is None:
        assert each is not None
        if each and cpus % each == 0 and cpus // each not in (1, least_nodes):
            found.append(f"--ntasks={cpus // each}")
    elif each is None and tasks and asked_cpus and cpus % tasks == 0 and cpus // tasks > 1:
        found.append(f"--cpus-per-task={cpus // tasks}")


def _sockets(job: Asked, cpus: int, default: Default) -> int:
    """So many whole sockets were enough for a job that asked for no less than it got: tasks of one
    CPU each might be dealt out to more. 0: sockets are not given whole, or tell nothing.
    """
    each = default.socket_cpus
    if not each or not job.has_run or job.cpus != cpus or cpus % each:
        return 0
    return cpus // each if cpus // each >= (job.nodes or 1) else 0


def _gres(job: Asked, given: dict[str, str | None], mapped: Mapped, found: list[str]) -> None:
    """Devices: of the whole job in TRES (`gres/gpu:a100=4`), of each node in the ReqGRES of older
    versions (`gpu:2`).
    """
    if any(name in given for name in _GRES):
        return
    if job.req_gres and "=" not in job.req_gres and "PER_" not in job.req_gres.upper():
        text = ",".join(word.removeprefix("gres:") for word in job.req_gres.split(","))
        if text not in ("0", "(null)", "none"):
            found.append(f"--gres={mapped.words('gres', text)}")
        return
    wanted, got = tres(job.req_tres), tres(job.alloc_tres)
    nodes = whole(wanted.get("node")) or job.min_nodes or 1
    named = {
        name.removeprefix("gres/"): whole(amount) or 0
        for name, amount in wanted.items()
        if name.startswith("gres/")
    }
    of_types: dict[str, int] = {}
    for name, amount in named.items():
        kind, _, model = name.partition(":")
        if model:
            of_types[kind] = of_types.get(kind, 0) + amount
    per_node, per_job = [], []
    for name, amount in named.items():
        kind, _, model = name.partition(":")
        if (
            not amount
            or kind.startswith(("gpumem", "gpuutil"))
            or (not model and of_types.get(kind, 0) >= amount)
        ):
            continue
        # of nodes, more nodes than were asked for would have got more
        given_out = whole(got.get(f"gres/{name}"))
        is_of_job = (
            kind == "gpu"
            and given_out is not None
            and given_out * nodes < amount * (job.nodes or 0)
        )
        if amount % nodes == 0 and not is_of_job:
            per_node.append(f"{name}:{amount // nodes}")
        elif kind == "gpu":
            per_job.append(f"{model}:{amount}" if model else str(amount))
        else:
            per_node.append(f"{name}:{-(-amount // nodes)}")
    if per_node:
        found.append(f"--gres={mapped.words('gres', ','.join(per_node))}")
    if per_job:
        found.append(f"--gpus={mapped.words('gres', ','.join(per_job))}")


def _licenses(job: Asked, given: dict[str, str | None], mapped: Mapped, found: list[str]) -> None:
    """Of which TRES tells where AccountingStorageTRES names them (`license/matlab=2`)."""
    named = [
        f"{name.removeprefix('license/')}:{amount}"
        for name, amount in tres(job.req_tres).items()
        if name.startswith("license/") and whole(amount)
    ]
    if named and "licenses" not in given:
        found.append(f"--licenses={mapped.words('license', ','.join(named))}")


def _buffer(job: Asked, given: dict[str, str | None], counts: Count) -> None:
    """Burst buffers: --bb is as it was typed; of others no directive has been kept."""
    if given.pop("bbf", None) is not None:
        counts.notes["--bbf, a file that the history does not have: no burst buffer"] += 1
    elif "bb" not in given and "bb/" in job.req_tres:
        counts.notes["a burst buffer (ReqTRES) that the script alone describes: left out"] += 1
