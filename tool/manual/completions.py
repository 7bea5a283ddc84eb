"""Shell completion for all commands, from their declarations: what `understudy completion bash`
prints.

Place: the tool. Options and their fixed values are in the script; jobs, partitions, nodes and
reservations are asked of the cluster when the key is pressed, with a time limit, so that a cluster
that does not answer costs a second and no message.
"""

from understudy.commands.shared.options import NONE, OPTIONAL, Option
from understudy.tool.manual.catalogue import (
    Command,
    commands,
    fixed_values,
    live_values,
    value_name,
)

SHELLS = ("bash", "zsh", "fish")
# What is run for values that live in the cluster: one a line.
LIVE = {
    "jobs": "timeout 1 squeue -h -o %i",
    "nodes": "timeout 1 sinfo -h -N -o %N",
    "partitions": "timeout 1 sinfo -h -o %R",
    "reservations": "timeout 1 sinfo -h -T",
    "users": "getent passwd",
}
_FILTER = {
    "nodes": "sort -u",
    "partitions": "sort -u",
    "reservations": "cut -d' ' -f1",
    "users": "cut -d: -f1",
    "jobs": "cat",
}


def script(shell: str) -> str:
    """The script for a shell, to be sourced.

    Raises:
        KeyError: none of SHELLS.
    """
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]()


def _ask(kind: str) -> str:
    return f"{LIVE[kind]} 2>/dev/null | {_FILTER[kind]}"


def _names(option: Option) -> "list[str]":
    return [f"-{option.short}"] * bool(option.short) + [f"--{option.long}"] * bool(option.long)


def _operands(command: Command) -> "list[str]":
    """Fixed words that the command takes."""
    return [word for _, words in command.words for word in words if " " not in word]


def _bash() -> str:
    parts = [
        "# bash completion: source <(understudy completion bash)",
        "_understudy_live() {",
        "    case $1 in",
        *[f"        {kind}) {_ask(kind)} ;;" for kind in sorted(LIVE)],
        "    esac",
        "}",
        # The word and what is before it, whether or not `=` separates words; lists complete their
        # last part.
        "_understudy_complete() {",
        (
            "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} opts=$1 "
            "operands=$2 live=$3 kind values head="
        ),
        (
            "    if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then "
            "prev=${COMP_WORDS[COMP_CWORD-2]}; fi"
        ),
        '    kind=$("$4" "$prev")',
        "    if [[ -z $kind && $cur == -* ]]; then",
        '        COMPREPLY=($(compgen -W "$opts" -- "$cur"))',
        "        [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace",
        "        return",
        "    fi",
        "    [[ -z $kind ]] && kind=${live:-words:$operands}",
        '    if [[ $kind == files ]]; then COMPREPLY=($(compgen -f -- "$cur")); return; fi',
        (
            "    if [[ $kind == words:* ]]; then values=${kind#words:}; else "
            'values=$(_understudy_live "$kind"); fi'
        ),
        "    if [[ $cur == *,* ]]; then head=${cur%,*},; fi",
        '    COMPREPLY=($(compgen -P "$head" -W "$values" -- "${cur##*,}"))',
        "}",
    ]
    for command in commands():
        function = f"_understudy_{command.name}"
        parts += [f"{function}_kind() {{", "    case $1 in"]
        for option in command.listed:
            kind = _kind(option)
            if kind:
                parts.append(f"        {'|'.join(_names(option))}) echo '{kind}' ;;")
        options = " ".join(
            f"--{option.long}" + ("=" if option.value not in {NONE, OPTIONAL} else "")
            for option in command.listed
            if option.long
        )
        parts += [
            "        *) ;;",
            "    esac",
            "}",
            (
                f'{function}() {{ _understudy_complete "{options}" '
                f'"{" ".join(_operands(command))}" "{command.live_operands}" {function}_kind; }}'
            ),
            f"complete -F {function} {command.name}",
        ]
    return "\n".join(parts) + "\n"


def _kind(option: Option) -> str:
    """How its value is completed, `words:A B` or a key of LIVE; a value of which nothing is known
    completes to nothing.
    """
    if option.value == NONE:
        return ""
    values = fixed_values(option)
    return (
        "words:" + " ".join(values)
        if values
        else live_values(option) or ("words:" if option.value != OPTIONAL else "")
    )


def _zsh() -> str:
    parts = [
        "# zsh completion: source <(understudy completion zsh), after compinit",
        "_understudy_live() {",
        "    local -a values",
        "    case $1 in",
        *[f'        {kind}) values=(${{(f)"$({_ask(kind)})"}}) ;;' for kind in sorted(LIVE)],
        "    esac",
        "    _values -s , $1 $values",
        "}",
    ]
    for command in commands():
        parts += [f"_understudy_{command.name}() {{", "    _arguments -s -S \\"]
        for option in command.listed:
            metavar, what = value_name(option)
            text = _zsh_text(what or option.long)
            action = ""
            if option.value != NONE:
                values = fixed_values(option)
                live = live_values(option)
                how = (
                    f"({' '.join(values)})"
                    if values
                    else "_files"
                    if live == "files"
                    else f"_understudy_live {live}"
                    if live
                    else ""
                )
                colons = "::" if option.value == OPTIONAL else ":"
                action = f"{colons}{_zsh_text(metavar or 'value')}:{how}"
            equals = "" if option.value == NONE else "=-" if option.value == OPTIONAL else "="
            if option.long:
                parts.append(f"        '--{option.long}{equals}[{text}]{action}' \\")
            if option.short:
                plus = "" if option.value == NONE else "-" if option.value == OPTIONAL else "+"
                parts.append(f"        '-{option.short}{plus}[{text}]{action}' \\")
        words, live = _operands(command), command.live_operands
        how = (
            "_files"
            if live == "files"
            else f"_understudy_live {live}"
            if live
            else f"({' '.join(words)})"
            if words
            else ""
        )
        parts += [
            f"        '*:word:{how}'",
            "}",
            f"compdef _understudy_{command.name} {command.name}",
        ]
    return "\n".join(parts) + "\n"


def _zsh_text(text: str) -> str:
    for special in "\\[]:":
        text = text.replace(special, "\\" + special)
    return text.replace("'", "'\\''")


def _fish() -> str:
    parts = ["# fish completion: understudy completion fish | source"]
    for command in commands():
        words, live = _operands(command), command.live_operands
        if live != "files":
            values = f"({_ask(live)})" if live else " ".join(words)
            parts.append(f"complete -c {command.name} -f" + (f' -a "{values}"' if values else ""))
        for option in command.listed:
            _, what = value_name(option)
            line = f"complete -c {command.name}" + (f" -l {option.long}" if option.long else "")
            line += f" -s {option.short}" if option.short else ""
            if option.value not in {NONE, OPTIONAL}:
                kind = _kind(option)
                line += " -r" if kind == "files" else " -x"
                if kind.startswith("words:") and kind != "words:":
                    line += f' -a "{kind.removeprefix("words:")}"'
                elif kind and kind not in {"files", "words:"}:
                    line += f' -a "({_ask(kind)})"'
            parts.append(line + " -d '" + what.replace("\\", "\\\\").replace("'", "\\'") + "'")
    return "\n".join(parts) + "\n"
