"""smap: jobs, partitions and reservations on a map of the nodes, live in the terminal or once on
the command line (-c).

Place: the edge to the terminal; what is shown is made by understudy.commands.smap.view.
"""

import os

from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.options import NONE, REQUIRED, Option, OptionTable, last_values
from understudy.commands.shared.texts import date_line
from understudy.commands.smap.view import (
    JOB_COLUMNS,
    NODE_COLUMNS,
    PARTITION_COLUMNS,
    RESERVATION_COLUMNS,
    View,
    jobs_view,
    map_lines,
    node_marks,
    partitions_view,
    reservations_view,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_QUERIES = {
    "j": ("jobs", JOB_COLUMNS, jobs_view),
    "s": ("partitions", PARTITION_COLUMNS, partitions_view),
    "r": ("reservations", RESERVATION_COLUMNS, reservations_view),
}
_TITLES = {"j": "jobs", "s": "partitions", "r": "reservations"}
_COMMAND_LINE_WIDTH = 80
_KEYS_HELP = "j jobs  s partitions  r reservations  h hidden  up/down scroll  q quit"
OPTIONS = OptionTable(
    [
        Option("commandline", "c", NONE, "print once, without a map on the screen"),
        Option("display", "D", REQUIRED, "KIND: j (jobs), s (partitions) or r (reservations)"),
        Option("noheader", "h", NONE, "no header line"),
        Option("show_hidden", "H", NONE, "show hidden partitions and their jobs"),
        Option("help", "", NONE, "print this text"),
        Option("iterate", "i", REQUIRED, "SECONDS: read again at this interval"),
        Option("clusters", "M", REQUIRED, "NAME: the cluster to ask"),
        Option("nodes", "n", REQUIRED, "HOSTS: only what is on these nodes"),
        Option("quiet", "Q", NONE, "accepted"),
        Option("usage", "", NONE, "print a short summary of the options"),
        Option("verbose", "v", NONE, "accepted"),
        Option("version", "V", NONE, "print the version"),
    ]
)
USAGE = "Usage: smap [-chHQV] [-D jrs] [-i seconds] [-n nodes] [-M cluster]"


def smap(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code."""
    given, _operands = OPTIONS.parse(arguments)
    options = last_values(given)
    if context.tells(OPTIONS, options, USAGE):
        return 0
    kind = options.get("display") or "j"
    if kind not in _QUERIES:
        context.error(f"Invalid display type: {kind}")
        return 1
    seconds = options.get("iterate")
    if seconds is not None and (not seconds.isdigit() or not int(seconds)):
        context.error(f"Invalid interval: {seconds}")
        return 1
    if context.refuses_clusters(options.get("clusters")):
        return 1
    try:
        source = _Source(context, hidden="show_hidden" in options, only=options.get("nodes"))
        if "commandline" in options or not context.stdout.isatty():
            return _print(
                source,
                kind,
                None if seconds is None else int(seconds),
                context,
                header="noheader" not in options,
            )
        return _live(source, kind, int(seconds or 0))
    except ValueError:
        context.error(f"Invalid node name {options['nodes']}")
    except RefusedError as error:
        context.complain(f"smap: {error.text}")
    return 1


class _Source:
    """Reads what is to be shown."""

    def __init__(self, context: Context, *, hidden: bool, only: str | None) -> None:
        from understudy.model.hostlist import expand

        self._context = context
        self.hidden = hidden
        self._only = set(expand(only)) if only else None

    def read(self, kind: str) -> "tuple[View, str, float]":
        """The table, the map, and when that was."""
        table, columns, make = _QUERIES[kind]
        client = self._context.client
        answer = client.query(table, columns, all_partitions=self.hidden or os.geteuid() == 0)
        rows, nodes = answer.dicts(), client.query("nodes", NODE_COLUMNS).dicts()
        if self._only is not None:
            rows = [row for row in rows if self._is_on(row["nodes"])]
            nodes = [node for node in nodes if node["name"] in self._only]
        view = make(rows)
        return view, node_marks(nodes, view), answer.now

    def _is_on(self, nodes: str) -> bool:
        from understudy.model.hostlist import expand

        assert self._only is not None
        return bool(nodes) and not self._only.isdisjoint(expand(nodes))


def _print(
    source: _Source, kind: str, interval: int | None, context: Context, *, header: bool
) -> int:
    """The map and the table as text; again and again where an interval is given."""
    import time

    while True:
        view, marks, now = source.read(kind)
        if header:
            context.print(date_line(now))
            for line in map_lines(marks, _COMMAND_LINE_WIDTH):
                context.print(line)
            context.print(view.header_line())
        for line in view.lines():
            context.print(line)
        if interval is None:
            return 0
        context.stdout.flush()
        time.sleep(interval)


def _live(source: _Source, kind: str, interval: int) -> int:
    """The terminal's whole screen, until `q`."""
    import curses

    curses.wrapper(_Screen(source, kind, interval).loop)
    return 0


class _Screen:
    """The live display: what is shown of it, and the keys. Without an interval it is read again at
    every key.
    """

    def __init__(self, source: _Source, kind: str, interval: int) -> None:
        self._source, self._kind, self._interval = source, kind, interval
        self._first = 0  # the first line of the table that is shown

    def loop(self, window: "Any") -> None:
        import curses

        curses.curs_set(0)
        if curses.has_colors():
            curses.use_default_colors()
            for number in range(1, 7):
                curses.init_pair(number, number, -1)
        window.timeout(self._interval * 1000 if self._interval else -1)
        while True:
            self._draw(window)
            if not self._pressed(window.getch()):
                return

    def _pressed(self, key: int) -> bool:
        """Do what a key says; whether to go on."""
        import curses

        letter = chr(key) if 0 <= key < 256 else ""
        if letter == "q":
            return False
        if letter in _QUERIES:
            self._kind, self._first = letter, 0
        elif letter == "h":
            self._source.hidden = not self._source.hidden
        elif key == curses.KEY_DOWN:
            self._first += 1
        elif key == curses.KEY_UP:
            self._first = max(self._first - 1, 0)
        return True

    def _draw(self, window: "Any") -> None:
        view, marks, now = self._source.read(self._kind)
        height, width = window.getmaxyx()
        window.erase()
        lines = view.lines()
        rows = map_lines(marks, width - 3)[: max(height // 2 - 2, 1)]
        self._first = min(self._first, max(len(lines) - 1, 0))
        for number, row in enumerate(rows):
            for column, mark in enumerate(row):
                _put(window, number, column + 1, mark, _colour(mark))
        top = len(rows)
        _put(window, top, 0, f"{date_line(now)}  {_TITLES[self._kind]}  {_KEYS_HELP}", 0)
        _put(window, top + 1, 0, view.header_line(), 0)
        for offset, entry in enumerate(
            view.entries[self._first : self._first + max(height - top - 2, 0)]
        ):
            _put(window, top + 2 + offset, 0, lines[self._first + offset], _colour(entry.mark))
        window.refresh()


def _colour(mark: str) -> int:
    """Of the six pairs the one of a mark; 0 for none."""
    return ord(mark) % 6 + 1 if mark.isalnum() else 0


def _put(window: "Any", line: int, column: int, text: str, pair: int) -> None:
    """Write, cut to the screen; its last corner cannot be written."""
    import curses

    height, width = window.getmaxyx()
    room = width - column - (line == height - 1)
    if 0 <= line < height and room > 0:
        window.addstr(line, column, text[:room], curses.color_pair(pair) if pair else 0)


def main() -> int:
    """Run as a program; does not return."""
    return run("smap", smap)


if __name__ == "__main__":
    main()
