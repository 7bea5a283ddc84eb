"""What tasks are told of --cpu-bind and --mem-bind: the word of each kind in full, its list, and
whether it is to be said.

Place: under srun; loaded only where a binding is asked for. Follows: srun(1), SLURM_CPU_BIND and
SLURM_MEM_BIND in what tasks were seen to get.
"""

from understudy.model.environment import SRUN, binding, told

_FULL = {
    "no": "none",
    "thread": "threads",
    "core": "cores",
    "socket": "sockets",
    "ldom": "ldoms",
    "board": "boards",
}
_SAID = frozenset(("v", "verbose", "q", "quiet"))
AUTOMATIC = frozenset(("threads", "cores", "sockets", "ldoms", "boards"))


def words_of(text: str) -> list[str]:
    """The words between commas; a list of numbers belongs to the word before it."""
    found: list[str] = []
    for word in text.split(",") if text else []:
        if found and ":" in found[-1] and word[:1].isdigit():
            found[-1] += f",{word}"
        else:
            found.append(word.lower())
    return found


def cpu_variables(text: str, implied: str) -> dict[str, str]:
    """SLURM_CPU_BIND and its kin. `implied`: the kind where the option names none.

    Of a kind that leaves the CPUs to the nodes the list is the option itself, until they put masks
    there.
    """
    words = words_of(text)
    kinds = [word for word in words if word and word not in _SAID]
    kind, colon, values = (kinds[-1] if kinds else implied).partition(":")
    kind = _FULL.get(kind, kind)
    if kinds and kind in AUTOMATIC:
        values = text
    elif kind.startswith("mask_"):
        values = ",".join(each.removeprefix("0x") for each in values.split(","))
    return binding("CPU", _loud(words), kind + colon, values) if kind else {}


def memory_variables(text: str) -> dict[str, str]:
    """SLURM_MEM_BIND and its kin."""
    words = words_of(text)
    kinds = [
        word
        for word in words
        if word and word not in _SAID and word not in {"sort", "nosort", "prefer", "p"}
    ]
    kind, colon, values = (kinds[-1] if kinds else "").partition(":")
    if kind.startswith("mask_"):
        values = ",".join(each.removeprefix("0x") for each in values.split(","))
    prefers = not {"p", "prefer"}.isdisjoint(words)
    found = binding(
        "MEM", _loud(words), _FULL.get(kind, kind) + colon, values, "prefer" if prefers else ""
    )
    facts = {
        "mem_bind_prefer": "prefer" if prefers else "",
        "mem_bind_sort": "sort" if "sort" in words else "",
    }
    return found | told(SRUN, facts)


def _loud(words: list[str]) -> str:
    return "quiet" if {"v", "verbose"}.isdisjoint(words) else "verbose"
