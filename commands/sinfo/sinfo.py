"""sinfo: partitions and nodes. Follows sinfo(1) of 22.05.

Nodes of a partition that agree in all fields that tell lines apart share a line; which fields do,
says sinfo_fields. Where the format names no property of the partition, nodes of several partitions
share one, too.
"""

import os
import time

from understudy.commands.shared import texts
from understudy.commands.shared.client import RefusedError, Rows
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.fields import Cell, Field, fitted, header_line
from understudy.commands.shared.in_order import EndedError, read_in_order
from understudy.commands.shared.options import NONE, REQUIRED, Option, OptionTable, last_values
from understudy.commands.shared.texts import date_line
from understudy.commands.sinfo.fields import FIELDS
from understudy.documents.states import (
    ALLOCATED,
    DOWN,
    FUTURE,
    MIXED,
    NO_RESPOND,
    NODE_DRAIN,
    NODE_FAILING,
    VALID_NODE_STATES,
    node_matches,
    node_sort_value,
    node_state_named,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Record = dict[str, Any]

# "#" is the width of the longest partition name or node list, at least this:
_LEAST_NAME_WIDTH = 9
OPTIONS = OptionTable(
    [
        Option("all", "a", NONE, "show hidden partitions, too", env="SINFO_ALL"),
        Option("dead", "d", NONE, "only nodes that do not respond"),
        Option("exact", "e", NONE, "nodes share a line only if their configuration is the same"),
        Option(
            "federation",
            "",
            NONE,
            "name the cluster, if it is in a federation",
            env="SINFO_FEDERATION",
        ),
        Option("Format", "O", REQUIRED, "FIELDS: what to print, by names", dest="long_format"),
        Option("format", "o", REQUIRED, "FORMAT: what to print, by letters", env="SINFO_FORMAT"),
        Option("help", "", NONE, "print this text"),
        Option("hide", "", NONE, "leave out hidden partitions (the default)"),
        Option("iterate", "i", REQUIRED, "SECONDS: repeat at this interval"),
        Option("json", "", NONE, "all nodes as JSON"),
        Option("local", "", NONE, "accepted; only this cluster is shown", env="SINFO_LOCAL"),
        Option("long", "l", NONE, "more about each partition"),
        Option("list-reasons", "R", NONE, "why nodes are down, drained or failing"),
        Option("cluster", "", REQUIRED, "", dest="clusters"),
        Option("clusters", "M", REQUIRED, "LIST: clusters to ask", env="SLURM_CLUSTERS"),
        Option("nodes", "n", REQUIRED, "HOSTS: only these nodes"),
        Option("noconvert", "", NONE, "leave sizes in the unit in which they are kept"),
        Option("Node", "N", NONE, "one line for each node and partition", dest="node_oriented"),
        Option("noheader", "h", NONE, "no header line"),
        Option("partition", "p", REQUIRED, "LIST: only these partitions", env="SINFO_PARTITION"),
        Option("responding", "r", NONE, "only nodes that respond"),
        Option("reservation", "T", NONE, "reservations instead of nodes"),
        Option("summarize", "s", NONE, "one line for each partition"),
        Option(
            "sort",
            "S",
            REQUIRED,
            "FIELDS: order by these letters, - before one reverses it",
            env="SINFO_SORT",
        ),
        Option("states", "t", REQUIRED, "LIST: only nodes in these states"),
        Option("usage", "", NONE, "print a short summary of the options"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
        Option("yaml", "", NONE, "all nodes as YAML"),
    ]
)
USAGE = """Usage: sinfo [-abdelNRrsTv] [-i seconds] [-t states] [-p partition] [-n nodes]
             [-S fields] [-o format] [-O Format] [--federation] [--local]"""


# What fields show of a partition without nodes.
_OF_NO_NODE = dict.fromkeys(
    ("features_act", "features", "gres", "comment", "extra", "gresused"), "(null)"
)


_OF_NO_NODE |= {
    "reason": "none",
    "timestamp": "Unknown",
    "user": "root",
    "userlong": "root(0)",
    "version": "N/A",
    "allocmem": "0",
    "statecomplete": "n/a",
}


class Group:
    """What one line is about: partitions (the first one's properties are shown) and nodes."""

    __slots__ = ("cluster", "nodes", "partition", "partition_index")

    def __init__(self, partition: "Record", partition_index: int) -> None:
        self.partition = partition
        self.partition_index = partition_index
        self.nodes: dict[str, Record] = {}
        self.cluster = "N/A"

    @property
    def count(self) -> int:
        return len(self.nodes)

    @property
    def node_list(self) -> str:
        if len(self.nodes) < 2:
            return "".join(self.nodes)
        from understudy.model.hostlist import compress

        return compress(self.nodes)

    @property
    def allocated(self) -> int:
        return sum(node["state"] in {ALLOCATED, MIXED} for node in self.nodes.values())

    @property
    def other(self) -> int:
        """Nodes that are neither in use nor can be used."""
        return sum(
            node["state"] not in {ALLOCATED, MIXED}
            and (node["state"] in {DOWN, 0, 6} or bool(node["flags"] & NODE_DRAIN))
            for node in self.nodes.values()
        )

    @property
    def idle(self) -> int:
        return self.count - self.allocated - self.other

    @property
    def node_counts(self) -> list[str]:
        return [str(number) for number in (self.allocated, self.idle, self.other, self.count)]

    @property
    def cpu_counts(self) -> list[str]:
        sums = [
            sum(node[column] for node in self.nodes.values())
            for column in ("alloc_cpus", "idle_cpus", "other_cpus", "cpus")
        ]
        return [str(number) for number in sums]

    def text(self, field: Field) -> str:
        """What the line shows in a field."""
        if field.merge == "partition":
            return field.make(*[self.partition[column] for column in field.columns])
        if field.merge == "group":
            return field.make(*[getattr(self, column) for column in field.columns])
        if field.merge == "node":
            for node in self.nodes.values():
                return field.make(*[node[column] for column in field.columns])
            return _OF_NO_NODE.get(field.names[0], "n/a" if field.letter in {"t", "T"} else "")
        if field.merge == "range":
            return ":".join(self._range(column) for column in field.columns)
        return self._spread(field)

    def _range(self, column: str) -> str:
        values = [node[column] for node in self.nodes.values()] or [0]
        least = min(values)
        return f"{least}+" if least != max(values) else str(least)

    def _spread(self, field: Field) -> str:
        values = [node[field.columns[0]] for node in self.nodes.values()]
        known = [value for value in values if value is not None]
        if not known:
            return "N/A"
        least, most = field.make(min(known)), field.make(max(known))
        return least if least == most else f"{least}-{most}"


def sinfo(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code."""
    try:
        options, times = _options(arguments, context)
        texts.convert_units(convert="noconvert" not in options)
        interval = _interval(options.get("iterate"), context)
        kind = "json" if "json" in options else "yaml" if "yaml" in options else ""
        if kind:
            _write_document(kind, context)
            return 0
        states = _states(options.get("states"), context)
        if "federation" in options and "local" not in options:
            options["federated_cluster"] = next(
                iter(context.client.query("federation", ["cluster"]).rows), [None]
            )[0]
        cells = _cells(options, context)
        if "verbose" in options:
            from understudy.commands.shared.verbose import sinfo_options

            context.print(sinfo_options(options, times, interval, default_format(options), cells))
        if "reservation" in options:
            try:
                _show_reservations(options, context)
            except RefusedError as error:
                context.complain(f"slurm_load_reservations: {error.text}")
                return 1
            return 0
        while True:
            _show(options, states, cells, context)
            if interval is None:
                return 0
            context.stdout.flush()
            time.sleep(interval)
            context.print("")
    except RefusedError as error:
        context.complain(f"slurm_load_partitions: {error.text}")
        return 1
    except EndedError as ended:
        return ended.code


def _options(arguments: list[str], context: Context) -> "tuple[dict[str, str | None], int]":
    """The options of line and environment, and how often -v was given.

    Raises:
        EndedError: one is wrong, or they exclude each other.
    """
    environment = last_values(OPTIONS.from_environment(context.environ))
    if {"all", "partition"} <= environment.keys():
        context.error(
            "Conflicting options, SINFO_ALL and SINFO_PARTITION, specified. Please choose "
            "one or the other."
        )
        raise EndedError

    def look(option: Option, value: str | None) -> None:
        if option.dest == "iterate":
            _interval(value, context)
        elif option.dest == "states":
            _states(value, context)

    given, _ignored = read_in_order(OPTIONS, arguments, USAGE, look, context)
    line = last_values(given)
    if not line.keys().isdisjoint({"long_format", "list_reasons", "node_oriented", "summarize"}):
        environment.pop("format", None)
    formats = [
        (option.dest, value) for option, value in given if option.dest in {"format", "long_format"}
    ]
    if formats and "long" in line:
        context.fatal(
            "Options -o(--format) and -l(--long) are mutually exclusive. Please remove "
            "one and retry."
        )
        raise EndedError
    if "all" in line and "partition" in line:
        context.error("Conflicting options, -a and -p, specified. Please choose one or the other.")
        raise EndedError
    if len({kind for kind, _ in formats}) > 1:  # the last one counts, and is read as one of -O
        del line["format"]
        line["long_format"] = formats[-1][1]
    if "all" in line:
        environment.pop("partition", None)
    return {**environment, **line}, sum(option.dest == "verbose" for option, _ in given)


def _write_document(kind: str, context: Context) -> None:
    """All nodes as JSON or YAML. That the controller did not answer, the document says."""
    from understudy.documents.documents import write_document
    from understudy.documents.nodes import COLUMNS, node_record
    from understudy.model.hostlist import sort_key

    nodes: list[Record] = []
    errors = []
    try:
        nodes += [
            node
            for node in context.client.query("nodes", COLUMNS).dicts()
            if node["state"] != FUTURE
        ]
    except RefusedError:
        errors.append({"error": "Unspecified error", "errno": -1})
    nodes.sort(key=lambda node: sort_key(node["name"]))
    write_document(kind, "nodes", map(node_record, nodes), context.stdout.write, *errors)


def _query_nodes(columns: list[str], context: Context) -> Rows:
    try:
        return context.client.query("nodes", columns)
    except RefusedError as error:
        context.complain(f"slurm_load_node: {error.text}")
        raise EndedError from None


def _show_reservations(options: "dict[str, str | None]", context: Context) -> None:
    """-T: one line for each. The column of names is as wide as the longest one only under a
    header.
    """
    columns = ["name", "is_active", "start_time", "end_time", "nodes"]
    answer = context.client.query("reservations", columns)
    rows = answer.rows
    if not options.keys().isdisjoint({"long", "verbose"}) and "noheader" not in options:
        context.print(date_line(answer.now))
    if not rows:
        context.print("No reservations in the system")
        return
    width = _LEAST_NAME_WIDTH
    if "noheader" not in options:
        width = max(width, *[len(row[0]) for row in rows])
        context.print(
            f"{'RESV_NAME':<{width}}  {'STATE':>8}  {'START_TIME':>19}  {'END_TIME':>19}  "
            f"{'DURATION':>11}  NODELIST"
        )
    for name, is_active, start, end, nodes in rows:
        state = "ACTIVE" if is_active else "INACTIVE"
        times = (
            f"{texts.timestamp(start):>19}  {texts.timestamp(end):>19}  "
            f"{texts.full_duration(end - start):>11}"
        )
        context.print(f"{name:<{width}}  {state:>8}  {times}  {nodes or '(null)'}")


def _interval(text: str | None, context: Context) -> int | None:
    if text is None:
        return None
    if not text.isdigit() or not int(text):
        context.error(f"Error: invalid entry for --iterate={text}")
        raise EndedError
    return int(text)


def _states(text: str | None, context: Context) -> list[list[str]] | None:
    """The states to show: a node must be in all of one of the inner lists. With one `&` it must be
    in all that are named.
    """
    if text is None:
        return None
    wanted = []
    for part in [text.replace(",", "&")] if "&" in text else text.split(","):
        names = []
        for name in filter(None, part.split("&")):
            try:
                names.append("all" if name.lower() == "all" else node_state_named(name))
            except KeyError:
                context.error(f'Bad state string: "{name}"')
                context.error(f"valid states: {VALID_NODE_STATES}")
                raise EndedError from None
        if names:
            wanted.append(names)
    return wanted


def default_format(options: "dict[str, str | None]") -> str:
    """The format that the other options ask for; "#" stands for a width that only the lines can
    tell.
    """
    if "summarize" in options:
        return "%#P %.5a %.10l %.16F %N"
    if "node_oriented" in options:
        return (
            "%#N %.6D %.#P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
            if "long" in options
            else "%#N %.6D %.#P %6t"
        )
    if "list_reasons" in options:
        return "%20E %12U %19H %6t %N" if "long" in options else "%20E %9u %19H %N"
    name = f"%#P{' %8V' if options.get('federated_cluster') else ''}"
    return (
        f"{name} %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
        if "long" in options
        else f"{name} %.5a %.10l %.6D %.6t %N"
    )


def _cells(options: "dict[str, str | None]", context: Context) -> list[Cell]:
    """The fields of a line; what is wrong with the format is said."""

    def unknown_letter(letter: str) -> None:
        context.complain(f"Invalid node format specification: {letter}")

    def unknown_name(name: str) -> None:
        context.error(f"Invalid job format specification: {name}")

    if options.get("long_format") is not None and "format" not in options:
        return FIELDS.parse_long(options["long_format"] or "", unknown_name, knows_all=True)
    template = options.get("format")
    return FIELDS.parse_short(
        default_format(options).replace("#", "0") if template is None else template, unknown_letter
    )


def _show(
    options: "dict[str, str | None]",
    states: list[list[str]] | None,
    cells: list[Cell],
    context: Context,
) -> None:
    """One listing."""
    keys = _sort_keys(options)
    groups, now = _load(options, states, cells, keys, context)
    if cluster := options.get("federated_cluster"):
        for group in groups:
            group.cluster = cluster
    for key, descending in reversed(keys):
        groups.sort(key=key, reverse=descending)
    if options.keys().isdisjoint({"format", "long_format"}) and "#" in default_format(options):
        _widen(cells, groups, options)
    if "noheader" not in options:
        if not options.keys().isdisjoint({"long", "iterate", "verbose"}):
            context.print(date_line(now))
        context.print_cluster()
        context.print(header_line(cells))
    for group in groups:
        context.print("".join([_cell_text(group, cell) for cell in cells]))


def _cell_text(group: Group, cell: Cell) -> str:
    if cell.field is None:
        return cell.suffix
    text = group.text(cell.field)
    if cell.field.letter == "P" and 0 < cell.width < len(text) and text.endswith("*"):
        text = text[: cell.width - 1] + "*"
    return fitted(
        "" if text == "(null)" and not cell.right and 0 < cell.width < len(text) else text, cell
    )


def _widen(cells: list[Cell], groups: list[Group], options: "dict[str, str | None]") -> None:
    """Give the name columns of the default formats the width of their longest text."""
    elastic = {"N", "P"} if "node_oriented" in options else {"P"}
    for cell in cells[:3]:
        if cell.field is not None and cell.field.letter in elastic and cell.width == 0:
            field = cell.field
            cell.width = max([_LEAST_NAME_WIDTH, *(len(group.text(field)) for group in groups)])


def _columns(fields: list[Field], *, with_reasons: bool) -> tuple[list[str], list[str]]:
    """(what is asked of partitions, what of nodes)."""
    partition_columns = dict.fromkeys(["name", "is_default", "node_indices", "hidden"])
    node_columns = dict.fromkeys(["index", "name", "state", "flags"])
    for field in fields:
        if field.merge == "partition":
            partition_columns.update(dict.fromkeys(field.columns))
        elif field.merge != "group":
            node_columns.update(dict.fromkeys(field.columns))
    if any(field.letter == "C" for field in fields):
        node_columns.update(dict.fromkeys(("alloc_cpus", "idle_cpus", "other_cpus", "cpus")))
    if with_reasons:
        node_columns["reason"] = None
    return list(partition_columns), list(node_columns)


def _load(
    options: "dict[str, str | None]",
    states: list[list[str]] | None,
    cells: list[Cell],
    keys: "list[tuple[_Key, bool]]",
    context: Context,
) -> tuple[list[Group], float]:
    """The lines in the order of partitions and nodes."""
    fields = list(
        dict.fromkeys(
            [cell.field for cell in cells if cell.field is not None]
            + [key.field for key, _ in keys if key.field is not None]
        )
    )
    partition_columns, node_columns = _columns(fields, with_reasons="list_reasons" in options)
    all_partitions = "all" in options or bool(options.get("partition")) or os.geteuid() == 0
    partitions = context.client.query(
        "partitions", partition_columns, all_partitions=all_partitions
    )
    nodes = _query_nodes(node_columns, context)
    keeps = _node_filter(options, states)
    records = [node for node in nodes.dicts() if node["state"] != FUTURE or "future" in options]
    kept = {node["index"]: node for node in records if keeps is None or keeps(node)}
    shown = {cell.field for cell in cells if cell.field is not None}
    is_exact = "exact" in options
    telling = [
        field
        for field in fields
        if field in shown and (field.merge == "node" or (field.merge == "range" and is_exact))
    ]
    of_partition = [field for field in fields if field in shown and field.merge == "partition"]
    with_names = "node_oriented" in options
    # observed at 22.05.8: no two nodes count as of one version then
    one_each = with_names or (is_exact and any("version" in field.names for field in shown))
    given = options.get("partition")
    wanted = None if given is None else set(given.split(","))
    shows_empty = not with_names and any(field.letter in {"P", "R"} for field in of_partition)
    tell = _teller(telling)
    # a node is told of in its first partition alone then
    shown_once = {"list_reasons", "summarize"} <= options.keys()
    groups: dict[Any, Group] = {}
    node_keys: dict[int, Any] = {}
    for position, partition in enumerate(partitions.dicts()):
        if wanted is not None and partition["name"] not in wanted:
            continue
        first = tuple(
            [field.make(*[partition[column] for column in field.columns]) for field in of_partition]
        )
        alike: dict[Any, Group] = {}
        for index in _indices(partition["node_indices"]):
            node = kept.get(index)
            if node is None or (shown_once and index in node_keys):
                continue
            key = node_keys.get(index)
            if key is None:
                key = node_keys[index] = (node["name"] if one_each else "", tell(node))
            group = alike.get(key)
            if group is None:
                place = (position if with_names else first, key)
                group = alike[key] = groups.setdefault(place, Group(partition, position))
            group.nodes[node["name"]] = node
        if not alike and shows_empty:
            place = (first, None if telling else ("", ()))
            groups.setdefault(place, Group(partition, position))
    return list(groups.values()), nodes.now


def _teller(fields: list[Field]) -> "Callable[[Record], tuple[str, ...]]":
    """What the fields say of a node; of nodes with the same values it is made once."""
    columns = [column for field in fields for column in field.columns]
    known: dict[Any, tuple[str, ...]] = {}

    def tell(node: "Record") -> tuple[str, ...]:
        values = tuple([node[column] for column in columns])
        try:
            told = known.get(values)
        except TypeError:  # lists
            return tuple([_text(field, node) for field in fields])
        if told is None:
            told = known[values] = tuple([_text(field, node) for field in fields])
        return told

    return tell


def _text(field: Field, node: "Record") -> str:
    if field.merge == "range":
        return ":".join(str(node[column]) for column in field.columns)
    return field.make(*[node[column] for column in field.columns])


def _indices(runs: "Iterable[list[int]]") -> "Iterable[int]":
    for first, count in runs:
        yield from range(first, first + count)


def _node_filter(
    options: "dict[str, str | None]", states: list[list[str]] | None
) -> "Callable[[Record], bool] | None":
    """Whether a node is to be shown; None: all are."""
    if states is None and options.keys().isdisjoint(
        {"nodes", "dead", "responding", "list_reasons"}
    ):
        return None
    names: set[str] | None = None
    if options.get("nodes") is not None:
        from understudy.model.hostlist import expand

        try:
            names = set(expand(options["nodes"] or ""))
        except ValueError:
            names = set()

    def keeps(node: "Record") -> bool:
        if names is not None and node["name"] not in names:
            return False
        if "dead" in options and not node["flags"] & NO_RESPOND:
            return False
        if "responding" in options and node["flags"] & NO_RESPOND:
            return False
        if states is not None:
            state, flags = node["state"], node["flags"]
            return any(
                all(name == "all" or node_matches(state, flags, name) for name in part)
                for part in states
            )
        if "list_reasons" in options:
            return bool(node["reason"]) and (
                node["state"] == DOWN or bool(node["flags"] & (NODE_DRAIN | NODE_FAILING))
            )
        return True

    return keeps


# --- order ----------------------------------------------------------------------------------------


class _Key:
    """What lines are compared by."""

    __slots__ = ("field", "letter")

    def __init__(self, letter: str) -> None:
        self.letter = letter
        self.field = FIELDS.by_letter.get(letter) if letter != "#P" else None

    def __call__(self, group: Group) -> "Any":
        letter, field = self.letter, self.field
        if letter == "#P":
            return group.partition_index
        if letter in {"t", "T"}:
            for node in group.nodes.values():
                return node_sort_value(node["state"], node["flags"])
            return 0
        if letter in {"N", "n"}:
            from understudy.model.hostlist import sort_key

            return (not group.nodes, sort_key(next(iter(group.nodes), "")))
        assert field is not None
        if field.merge in {"range", "spread"}:
            return min((node[field.columns[0]] or 0 for node in group.nodes.values()), default=0)
        if letter == "D":
            return group.count
        if field.merge == "partition" and letter in {"l", "L", "p", "I", "s", "B"}:
            value = group.partition[field.columns[0]]
            return (value is None, value or 0)
        return group.text(field)


def _sort_keys(options: "dict[str, str | None]") -> list[tuple[_Key, bool]]:
    """The keys: letters, each with "-" or "+" before it or not, or "#P" for the order of
    slurm.conf. What is no key says nothing.
    """
    text = options.get("sort") or ("N" if "node_oriented" in options else "#P,-t")
    keys: list[tuple[_Key, bool]] = []
    for at, letter in enumerate(text):
        before = text[at - 1] if at else ""
        if letter == "P" and before == "#":
            keys.append((_Key("#P"), False))
        elif letter in FIELDS.by_letter:
            keys.append((_Key(letter), before == "-"))
    return keys


def main() -> int:
    """Run as a program; does not return."""
    return run("sinfo", sinfo)


if __name__ == "__main__":
    main()
