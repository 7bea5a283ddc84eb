"""`--mem-bind`: whether its words are some. Follows srun(1) of 22.05.

Place: under sbatch, salloc and srun; read where one asks for it.
"""

from understudy.commands.submission.job import BadOptionError

_MEMORY_BINDINGS = {
    "none",
    "no",
    "rank",
    "local",
    "map_mem",
    "mask_mem",
    "sort",
    "nosort",
    "prefer",
    "p",
    "quiet",
    "q",
    "verbose",
    "v",
}


def check(value: str) -> None:
    """See to it that each word says something.

    Raises:
        BadOptionError: a word that is none, or without its list; of `help`, what there is.
    """
    words = value.split(",")
    while words:
        word = words.pop(0)
        name, _, listed = word.partition(":")
        name = name.lower()
        if name == "help":
            from understudy.commands.shared.option_help import MEMORY_BINDINGS

            raise BadOptionError("", 255, help=MEMORY_BINDINGS)
        is_list = name in {"map_mem", "mask_mem"}
        if name not in _MEMORY_BINDINGS or (":" in word and not is_list):
            raise BadOptionError(f'unrecognized --mem-bind argument "{word}"')
        if not is_list:
            continue
        if not listed:
            raise BadOptionError(f'missing list for "--mem-bind={name}:<list>"')
        numbers = [listed]
        while words and words[0][:1].isdigit():
            numbers.append(words.pop(0))
        for each in numbers:
            digits = each[2:] if each[:2].lower() == "0x" else each
            if wrong := digits.lstrip("0123456789abcdefABCDEF")[:1]:
                raise BadOptionError(
                    f"Failed to validate number: {each}, the offending character is {wrong}"
                )
