"""Reading command lines as getopt_long does, with its error texts, from one table of options per
command.

Place: commands alone; pure. argparse would cost each command 11 ms and says other things. The same
table reads the command line, the environment variables and `#SBATCH` lines. Follows getopt_long(3):
clusters of short options, values attached or apart, `--name=value`, abbreviations as long as they
are unambiguous, `--` ends the options.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NONE, REQUIRED, OPTIONAL = 0, 1, 2


class OptionError(Exception):
    """A command line that getopt_long would refuse. The text has a name in front when printed: the
    program's, or that of the part of the line which getopt_long read.
    """

    program = ""


class Option:
    """One option. `value`: NONE, REQUIRED or OPTIONAL. `env`: variables that give it, the first set
    counts. `dest`: its name in the command; `env_dest`: that of what its variables give, where it
    has a form of its own.
    """

    __slots__ = ("by_variable", "dest", "env", "help", "long", "short", "value")

    def __init__(
        self,
        long: str,
        short: str,
        value: int,
        help: str,  # noqa: A002
        *,
        env: str = "",
        dest: str = "",
        env_dest: str = "",
    ) -> None:
        self.long = long
        self.short = short
        self.value = value
        self.help = help  # "METAVAR: what it does", or "what it does"; "" hides it
        self.env = env.split()
        self.dest = dest or long.replace("-", "_")
        own = env_dest not in {"", self.dest}
        self.by_variable = Option(long, short, value, "", dest=env_dest) if own else self


class OptionTable:
    """All options of a command, in the order in which ambiguities are listed."""

    __slots__ = ("by_long", "by_short", "options")

    def __init__(self, options: "Sequence[Option]") -> None:
        self.options = options
        self.by_short = {option.short: option for option in options if option.short}
        self.by_long = {option.long: option for option in options if option.long}

    def find_long(self, name: str) -> Option:
        """The option of this name or unambiguous abbreviation.

        Raises:
            OptionError: none, or several that mean different things.
        """
        exact = self.by_long.get(name)
        if exact is not None:
            return exact
        found = [option for option in self.options if option.long.startswith(name)]
        if not found:
            raise OptionError(f"unrecognized option '--{name}'")
        if any(option.dest != found[0].dest or option.value != found[0].value for option in found):
            # not the first one's other names
            named = [found[0], *(option for option in found if option.dest != found[0].dest)]
            raise OptionError(
                f"option '--{name}' is ambiguous; possibilities: "
                + " ".join(f"'--{option.long}'" for option in named)
            )
        return found[0]

    def parse(
        self, arguments: "Sequence[str]", *, permute: bool = True
    ) -> "tuple[list[tuple[Option, str | None]], list[str]]":
        """The options in their order with their values, and the operands. Without `permute` the
        first operand ends the options.

        Raises:
            OptionError: as getopt_long refuses.
        """
        given, operands, refused = self.read(arguments, permute=permute)
        if refused is not None:
            raise refused
        return given, operands

    def read(
        self, arguments: "Sequence[str]", *, permute: bool = True
    ) -> "tuple[list[tuple[Option, str | None]], list[str], OptionError | None]":
        """As `parse`, for who looks at options where they stand: how getopt_long refuses comes
        third, with the options before it, and no operands.
        """
        given: list[tuple[Option, str | None]] = []
        try:
            return given, self._parse(arguments, given, permute=permute), None
        except OptionError as error:
            return given, [], error

    def _parse(
        self, arguments: "Sequence[str]", given: "list[tuple[Option, str | None]]", *, permute: bool
    ) -> list[str]:
        """Put the options into `given`. Returns the operands."""
        operands: list[str] = []
        index, count = 0, len(arguments)
        while index < count:
            argument = arguments[index]
            index += 1
            if argument == "--":
                operands += arguments[index:]
                break
            if argument.startswith("--"):
                name, equals, attached = argument[2:].partition("=")
                try:
                    option = self.find_long(name)
                except OptionError as error:
                    if equals:
                        raise OptionError(
                            str(error).replace(f"'--{name}'", f"'{argument}'", 1)
                        ) from None
                    raise
                value: str | None = attached if equals else None
                if equals and option.value == NONE:
                    raise OptionError(f"option '--{option.long}' doesn't allow an argument")
                if option.value == REQUIRED and not equals:
                    if index == count:
                        raise OptionError(f"option '--{option.long}' requires an argument")
                    value = arguments[index]
                    index += 1
                given.append((option, value))
            elif argument.startswith("-") and argument != "-":
                at = 1
                while at < len(argument):
                    letter = argument[at]
                    at += 1
                    found = self.by_short.get(letter)
                    if found is None:
                        raise OptionError(f"invalid option -- '{letter}'")
                    value = None
                    if found.value != NONE and at < len(argument):
                        value = argument[at:]
                        at = len(argument)
                    elif found.value == REQUIRED:
                        if index == count:
                            raise OptionError(f"option requires an argument -- '{letter}'")
                        value = arguments[index]
                        index += 1
                    given.append((found, value))
            else:
                operands.append(argument)
                if not permute:
                    operands += arguments[index:]
                    break
        return operands

    def from_environment(self, environ: "Mapping[str, str]") -> list[tuple[Option, str | None]]:
        """The options that environment variables give, in the table's order."""
        given: list[tuple[Option, str | None]] = []
        for option in self.options:
            for name in option.env:
                if name in environ:
                    given.append((option.by_variable, environ[name]))
                    break
        return given


def last_values(given: "Iterable[tuple[Option, str | None]]") -> "dict[str, str | None]":
    """The value of each option that was given, by `dest`; the last one counts."""
    return {option.dest: value for option, value in given}


def let_last_parsable_count(
    given: "Iterable[tuple[Option, str | None]]", options: "dict[str, str | None]"
) -> None:
    """Of --parsable and --parsable2 the last one says whether lines end with a |."""
    named = [option.dest for option, _ in given if option.dest in {"parsable", "parsable2"}]
    if named:
        options.pop("parsable" if named[-1] == "parsable2" else "parsable2", None)


def is_written_out(name: str, arguments: "list[str]") -> bool:
    """Whether a long option was given, as `--name` or a beginning of it."""
    words = [word[2:].partition("=")[0] for word in arguments if word.startswith("--")]
    return any(word and name.startswith(word) for word in words)
