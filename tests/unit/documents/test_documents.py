"""JSON and YAML as Slurm's serialisers write them."""

from __future__ import annotations

import json

from understudy.documents.documents import write_document

RECORDS = [
    {
        "name": 'a/b "q"',
        "account": "",
        "owner": None,
        "load": 4.0,
        "flag": True,
        "count": 3,
        "list": ["x"],
        "none": [],
        "map": {"0": {"cores": []}},
    },
    {"name": "ü\n"},
]


def text(kind: str, records: list[dict[str, object]]) -> str:
    parts: list[str] = []
    write_document(kind, "jobs", records, parts.append)
    return "".join(parts)


def test_json_is_json_with_escaped_slashes_and_lists_that_are_empty_over_two_lines() -> None:
    written = text("json", RECORDS)
    assert json.loads(written)["jobs"] == RECORDS
    assert '"name": "a\\/b \\"q\\""' in written
    assert '  "errors": [\n  ],\n  "jobs": [\n    {\n      "name"' in written
    assert '      "none": [\n      ],\n' in written
    assert written.endswith("\n    }\n  ]\n}")


def test_json_without_records_has_an_empty_list() -> None:
    assert text("json", []).endswith('  "errors": [\n  ],\n  "jobs": [\n  ]\n}')


def test_yaml_tags_every_value_and_shows_unset_texts_as_null() -> None:
    assert text("yaml", RECORDS[:1]).splitlines()[12:] == [
        "!!str errors: !!seq []",
        "!!str jobs: !!seq",
        "- !!map",
        '  !!str name: !!str a/b "q"',
        "  !!str account: !!null null",
        "  !!str owner: !!null null",
        "  !!str load: !!float 4.000000",
        "  !!str flag: !!bool true",
        "  !!str count: !!int 3",
        "  !!str list: !!seq",
        "  - !!str x",
        "  !!str none: !!seq []",
        "  !!str map: !!map",
        "    !!str 0: !!map",
        "      !!str cores: !!seq []",
        "...",
        "",
    ]
