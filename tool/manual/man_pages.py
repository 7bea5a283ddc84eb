"""Short manual pages of our own, from the commands' declarations: as plain text for `understudy
man`, as roff for `man` itself.

Place: the tool. What Slurm's long pages explain is not repeated: the pages say what there is,
and what has no effect.
"""

import textwrap
from pathlib import Path

from understudy.documents.documents import VERSION
from understudy.tool.manual.catalogue import (
    NOT_THERE,
    WITHOUT_EFFECT,
    Command,
    commands,
    fixed_values,
    spelled,
    value_name,
)

_WIDTH = 80


class _Block:
    """A heading with paragraphs, or with terms and what they mean."""

    def __init__(
        self, heading: str, *, text: str = "", terms: "list[tuple[str, str]] | None" = None
    ) -> None:
        self.heading = heading
        self.text = text
        self.terms = terms or []


def _blocks(command: Command) -> "list[_Block]":
    blocks = [
        _Block("NAME", text=f"{command.name} - {command.summary}"),
        _Block("SYNOPSIS", text=command.usage),
    ]
    options = []
    for option in command.listed:
        _, what = value_name(option)
        values = fixed_values(option)
        said = [what or "The same as Slurm's"]
        if values:
            said.append("one of " + ", ".join(values))
        said += [f"also --{name}" for name in command.other_names(option)]
        said += [f"variable {name}" for name in option.env]
        if command.effect(option) == WITHOUT_EFFECT and not option.help.startswith("accepted"):
            said.append(WITHOUT_EFFECT)
        options.append((spelled(option), "; ".join(said) + "."))
    options += [
        (f"--{name}", f"{NOT_THERE}: Slurm has it, this command does not.")
        for name in command.refused
    ]
    blocks.append(_Block("OPTIONS", terms=options))
    fields = command.fields
    if fields:
        blocks.append(
            _Block(
                "FIELDS",
                terms=[
                    (
                        f"%{letter}" if letter else names,
                        f"{names}; headed {header}." if letter else f"Headed {header}.",
                    )
                    for letter, names, header in fields
                ],
            )
        )
    blocks += [
        _Block(title.replace("`", "").upper(), text=", ".join(words))
        for title, words in command.words
    ]
    blocks.append(
        _Block(
            "SEE ALSO",
            text=f"understudy(1). The command follows {command.name}(1) of Slurm {VERSION}; "
            "docs/differences.md tells what is known to differ.",
        )
    )
    return blocks


def plain(command: Command) -> str:
    """The page for a terminal."""
    lines = []
    for block in _blocks(command):
        lines.append(block.heading)
        lines += (
            textwrap.wrap(block.text, _WIDTH, initial_indent="    ", subsequent_indent="    ")
            if block.text
            else []
        )
        for term, what in block.terms:
            lines.append(f"    {term}")
            lines += textwrap.wrap(
                what, _WIDTH, initial_indent=" " * 12, subsequent_indent=" " * 12
            )
        lines.append("")
    return "\n".join(lines)


def roff(command: Command) -> str:
    """The page for `man`."""
    lines = [f'.TH "{command.name}" 1 "" "Understudy" "Understudy commands"']
    for block in _blocks(command):
        lines.append(f'.SH "{block.heading}"')
        if block.text:
            lines.append(_escape(block.text))
        for term, what in block.terms:
            lines += [".TP", f"\\fB{_escape(term)}\\fR", _escape(what)]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def write(folder: Path) -> "list[Path]":
    """All pages, as `FOLDER/man1/NAME.1`."""
    target = folder / "man1"
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for command in commands():
        path = target / f"{command.name}.1"
        path.write_text(roff(command))
        written.append(path)
    return written


if __name__ == "__main__":
    import sys

    write(Path(sys.argv[1] if len(sys.argv) > 1 else "build/man"))
