"""docs/options.md: every option and field of every command, and whether it has an effect. `make
options` writes it; a test holds that it is current.

Place: the tool; run by developers.
"""

from pathlib import Path

from understudy.tool.manual.catalogue import (
    EMULATED,
    NOT_THERE,
    WITHOUT_EFFECT,
    Command,
    commands,
    spelled,
    value_name,
)

TARGET = Path(__file__).resolve().parents[2] / "docs" / "options.md"
_HEAD = f"""# Options and fields

Written by `make options` from the commands' own declarations; not to be edited.

- **{EMULATED}**: does what Slurm 22.05's does. Where something is
  known to differ, [differences.md](differences.md) says so.
- **{WITHOUT_EFFECT}**: taken, and kept and shown where Slurm shows it, but nothing follows from it.
- **{NOT_THERE}**: Slurm has it; here it is an error.

Fields are emulated, unless their column says nothing here, as the energy that nobody measures.
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "".join("\n" + section(command) for command in commands())


def section(command: Command) -> str:
    """One command."""
    lines = [
        f"## {command.name}",
        "",
        f"{command.summary[:1].upper()}{command.summary[1:]}.",
        "",
        "| option | what | |",
        "| --- | --- | --- |",
    ]
    for option in command.listed:
        _, what = value_name(option)
        others = command.other_names(option)
        also = f" (also `--{'`, `--'.join(others)}`)" if others else ""
        lines.append(
            f"| `{_cell(spelled(option))}` | {_cell(what)}{also} | {command.effect(option)} |"
        )
    lines += [f"| `--{name}` | | {NOT_THERE} |" for name in command.refused]
    if command.variables:
        lines += [
            "",
            "Variables: "
            + ", ".join(f"`{name}` (--{option})" for name, option in command.variables)
            + ".",
        ]
    fields = command.fields
    if any(letter for letter, _, _ in fields):
        lines += ["", "| letter | names | header |", "| --- | --- | --- |"]
        lines += [
            f"| {f'`{letter}`' if letter else ''} | {_cell(names)} | {_cell(header)} |"
            for letter, names, header in fields
        ]
    elif fields:
        lines += ["", "Fields: " + ", ".join(f"`{names}`" for _, names, _ in fields) + "."]
    for title, words in command.words:
        lines += ["", f"{title}: " + ", ".join(f"`{word}`" for word in words) + "."]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    TARGET.write_text(page())
