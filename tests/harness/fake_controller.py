"""A controller for tests of commands: records in memory, every question kept."""

from __future__ import annotations

import io
import time
from typing import Any

from understudy.commands.shared.client import RefusedError, Rows
from understudy.commands.shared.context import Context, guarded
from understudy.commands.shared.locate import Location
from understudy.model.records import TABLES
from understudy.protocol.wire_table import WIRE

NOW = 1_800_000_000.0

_ZERO = {str: "", int: 0, bool: False, float: 0.0}


def record(table: str, **values: Any) -> dict[str, Any]:
    """A record with all columns of the table, those that are not given empty."""
    assert values.keys() <= TABLES[table].keys(), values.keys() - TABLES[table].keys()
    empty = {
        name: None if column.optional else [] if column.kind is list else _ZERO[column.kind]
        for name, column in TABLES[table].items()
    }
    return {**empty, **values}


class FakeClient:
    """Answers queries from records; other messages from `answers` (name: fields of the answer, or
    an error).
    """

    has_accounting = False
    waits = True

    @staticmethod
    def sleep(seconds: float) -> None:
        time.sleep(seconds)

    def __init__(self, **tables: list[dict[str, Any]]) -> None:
        self.tables = tables
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Any] = {}
        self.cluster_name = "test"
        self.location = Location(name="test")

    def query(
        self,
        table: str,
        columns: list[str],
        where: dict[str, list[Any]] | None = None,
        *,
        all_partitions: bool = True,
    ) -> Rows:
        del all_partitions
        error = self.answers.get("Query")
        if error is not None:
            raise error
        unknown = set(columns) - TABLES[table].keys()
        assert not unknown, unknown
        kept = [
            each
            for each in self.tables.get(table, [])
            if all(each[name] in values for name, values in (where or {}).items())
        ]
        return Rows(columns, [[each[name] for name in columns] for each in kept], NOW)

    def call(self, message: str, *fields: Any) -> list[Any]:
        _, names, defaults = WIRE[message]
        given = (
            [*fields, *defaults[len(defaults) - (len(names) - len(fields)) :]]
            if len(fields) < len(names)
            else list(fields)
        )
        self.asked.append((message, dict(zip(names, given, strict=True))))
        answer = self.answers.get(message, [])
        if isinstance(answer, RefusedError):
            raise answer
        return list(answer)

    submit = insist = call


class Outcome:
    """What a command printed and returned."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def run_command(
    command: Any,
    *arguments: str,
    client: FakeClient,
    environ: dict[str, str] | None = None,
    stdin: str = "",
    usage_exit: int = 1,
) -> Outcome:
    """Run a command against the records."""
    out, err = io.StringIO(), io.StringIO()
    context = Context(
        command.__name__,
        client=client,
        environ=environ or {},
        stdin=io.StringIO(stdin),
        stdout=out,
        stderr=err,
    )
    code = guarded(context, command, list(arguments), usage_exit)
    return Outcome(code, out.getvalue(), err.getvalue())
