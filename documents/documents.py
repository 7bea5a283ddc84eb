"""JSON and YAML documents as Slurm 22.05's serialisers write them, and the part that all of them
begin with.

A text that is not set is "" here: JSON shows it as such, YAML as null.

Place: documents; pure.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

VERSION = "22.05.8"  # the Slurm whose behaviour the commands follow, as `--version` says


def head(*errors: "dict[str, Any]") -> "dict[str, Any]":
    """What says who wrote the document, and the errors."""
    major, minor, micro = VERSION.split(".")
    plugin = {"type": "openapi/v0.0.38", "name": "Slurm OpenAPI v0.0.38"}
    version = {"major": int(major), "micro": int(micro), "minor": int(minor)}
    return {
        "meta": {"plugin": plugin, "Slurm": {"version": version, "release": VERSION}},
        "errors": list(errors),
    }


def write_document(
    kind: str,
    key: str,
    records: "Iterable[dict[str, Any]]",
    write: "Callable[[str], Any]",
    *errors: "dict[str, Any]",
) -> None:
    """Write the head and, under `key`, a list of records; one after the other, as there may be
    many.
    """
    if kind == "json":
        start = _json({**head(*errors), key: []}, "")
        write(start[: start.rindex("\n  ]")])
        separator = "\n    "
        for record in records:
            write(separator + _json(record, "    "))
            separator = ",\n    "
        write("\n  ]\n}")
        return
    write("%YAML 1.1\n--- !!map\n" + "".join(_yaml_lines(head(*errors), "")))
    first = True
    for record in records:
        write(f"!!str {key}: !!seq\n" if first else "")
        first = False
        write("- !!map\n" + "".join(_yaml_lines(record, "  ")))
    write((f"!!str {key}: !!seq []\n" if first else "") + "...\n\n")


def _json(value: "Any", indent: str) -> str:
    """In json-c's pretty form: an empty list takes two lines, and slashes are escaped."""
    inner = indent + "  "
    if isinstance(value, dict):
        if not value:
            return "{\n" + indent + "}"
        return (
            "{\n"
            + ",\n".join([f'{inner}"{key}": {_json(item, inner)}' for key, item in value.items()])
            + "\n"
            + indent
            + "}"
        )
    if isinstance(value, list):
        if not value:
            return "[\n" + indent + "]"
        return (
            "[\n" + ",\n".join([inner + _json(item, inner) for item in value]) + "\n" + indent + "]"
        )
    return _scalar(value)


def _scalar(value: "Any") -> str:
    if isinstance(value, str):
        return '"' + (value if value.isalnum() and value.isascii() else _escaped(value)) + '"'
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    return repr(value)


_SHORT_ESCAPES = {
    "\b": "\\b",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\f": "\\f",
    '"': '\\"',
    "\\": "\\\\",
    "/": "\\/",
}
_ESCAPES = {number: f"\\u{number:04x}" for number in range(32)} | {
    ord(letter): text for letter, text in _SHORT_ESCAPES.items()
}


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)


def _yaml_lines(mapping: "dict[str, Any]", indent: str) -> "Iterable[str]":
    for key, value in mapping.items():
        yield f"{indent}!!str {key}: {_yaml(value, indent)}"


def _yaml(value: "Any", indent: str) -> str:
    """The value behind its key, with the lines below it."""
    if isinstance(value, dict):
        return "!!map\n" + "".join(_yaml_lines(value, indent + "  ")) if value else "!!map {}\n"
    if isinstance(value, list):
        if not value:
            return "!!seq []\n"
        items = [f"{indent}- {_yaml(each, indent)}" for each in value]
        return "!!seq\n" + "".join(items)
    return _tagged(value)


def _tagged(value: "Any") -> str:
    if value is None or value == "":
        return "!!null null\n"
    if value is True or value is False:
        return f"!!bool {'true' if value else 'false'}\n"
    if isinstance(value, float):
        return f"!!float {value:.6f}\n"
    return f"!!{'int' if isinstance(value, int) else 'str'} {value}\n"
