"""Host list expressions: `rack[0-3]n[00-15],login1` to names and back, and the same for node sets
held as bitmaps.

Place: the vocabulary, used by every daemon and command; imports nothing heavy. Follows scontrol(1)
"show hostlist", "hostlistsorted" and "hostnames" as observed in 22.05:

- a range keeps the width of its first number; a range holds at most 65,536 names;
- of several brackets the last varies fastest, then the first, the second and so on;
- only a number at a name's end is compressed: `a1b,a2b` stays; `n9,n10` is `n[9-10]`, `n09,n10` is
  `n[09-10]`, `n09,n010` cannot be joined;
- sorting compares the part before the number naturally (rack2n before rack10n), then the number's
  width, then its value.

One thing is taken that 22.05 refuses: text behind the last bracket (`n[1-3]-ib`), which slurm.conf
files use.
"""

from __future__ import annotations

from itertools import product

from understudy.model import bits

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Sequence

RANGE_LIMIT = 65_536
# Of a whole expression: four times the largest cluster of which a range can speak, so that a slip
# of the pen does not fill the memory.
LIMIT = 4 * RANGE_LIMIT
MOST_LETTERS = 1 << 27  # ours: of all names of a list; a short text could ask for gigabytes

_WORD = r"(?:[^\s,\[\]]|\[[^\[\]]*\])+"
_NUMBER_IN_NAME = r"[0-9]+|."
_PATTERNS: dict[str, re.Pattern[str]] = {}
_DIGITS = "0123456789"
_LONGEST_NUMBER = 18  # a longer run of digits is taken as part of the text


def _pattern(text: str) -> re.Pattern[str]:
    """Compiled at its first use: most lists need none, and a command would pay for `re` as much as
    for the rest of its start.
    """
    found = _PATTERNS.get(text)
    if found is None:
        import re  # noqa: PLC0415

        found = _PATTERNS[text] = re.compile(text, re.DOTALL)
    return found


class UnknownHostError(ValueError):
    """A name that is not one of the cluster's nodes."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"Invalid node name {name}")


# --- reading --------------------------------------------------------------------------------------


def _words(expression: str) -> list[str]:
    """The parts between commas or blanks outside brackets."""
    if "[" not in expression and "]" not in expression:
        return expression.replace(",", " ").split()
    if expression.count("[") == expression.count("]") == 1 and expression.index(
        "["
    ) < expression.index("]"):
        before, _, behind = _pieces(expression)
        if not before + behind or [before + behind] == (before + behind).replace(",", " ").split():
            return [expression]
    words, at = [], 0
    for match in _pattern(_WORD).finditer(expression):
        _must_be_separator(expression, at, match.start())
        words.append(match.group())
        at = match.end()
    _must_be_separator(expression, at, len(expression))
    return words


def _pieces(word: str) -> list[str]:
    """Text, what stands between brackets, text, ..., text."""
    pieces = []
    while True:
        text, bracket, rest = word.partition("[")
        pieces.append(text)
        if not bracket:
            return pieces
        inside, _, word = rest.partition("]")
        pieces.append(inside)


def _must_be_separator(expression: str, start: int, end: int) -> None:
    stray = expression[start:end].replace(",", " ").strip()
    if stray:
        raise ValueError(f"Invalid hostlist: {_shortened(expression)}: unbalanced '{stray[0]}'")


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _is_number(text: str) -> bool:
    return len(text) <= _LONGEST_NUMBER and text.isascii() and text.isdigit()


def _ranges(inside: str) -> list[tuple[int, int, int]]:
    """What stands between two brackets, as (first, last, width)."""
    found = []
    for part in inside.split(","):
        first, dash, last = part.partition("-")
        if not (_is_number(first) and (not dash or _is_number(last))):
            raise ValueError(f"Invalid range: '{_shortened(part)}' in [{_shortened(inside)}]")
        low = int(first)
        high = int(last) if dash else low
        if high < low:
            raise ValueError(f"Invalid range: '{part}' in [{_shortened(inside)}]")
        if high - low >= RANGE_LIMIT:
            raise ValueError(
                f"Too many hosts in range '{part}': {high - low + 1}, the limit is {RANGE_LIMIT}"
            )
        found.append((low, high, len(first)))
    return found


def _numbers(inside: str) -> list[str]:
    texts: list[str] = []
    for low, high, width in _ranges(inside):
        # Without a leading zero, no number of the range is shorter than the first: nothing to pad.
        if len(str(low)) == width:
            texts += map(str, range(low, high + 1))
        else:
            texts += [f"{number:0{width}d}" for number in range(low, high + 1)]
    return texts


def _check_total(total: int, expression: str) -> None:
    if total > LIMIT:
        raise ValueError(
            f"Too many hosts in {_shortened(expression)}: {total}, the limit is {LIMIT}"
        )


def _count_word(word: str) -> int:
    total = 1
    for inside in _pieces(word)[1::2]:
        total *= sum(high - low + 1 for low, high, _ in _ranges(inside))
    return total


def count(expression: str) -> int:
    """How many names the expression stands for.

    Raises:
        ValueError: not a host list.
    """
    total = sum(_count_word(word) if "[" in word else 1 for word in _words(expression))
    _check_total(total, expression)
    return total


def expand(expression: str) -> list[str]:
    """The names in their order, each as often as it is given.

    Raises:
        ValueError: not a host list, or too many names; says which part.
    """
    words = _words(expression)
    if "[" not in expression:
        return words
    count(expression)
    names: list[str] = []
    letters = 0
    for word in words:
        if "[" in word:
            letters += _longest_name(word) * _count_word(word)
            if letters > MOST_LETTERS:
                raise ValueError(f"Too long names in {_shortened(expression)}")
            names += _expand_word(word)
        else:
            names.append(word)
    return names


def _longest_name(word: str) -> int:
    """How many letters the longest of its names has."""
    pieces = _pieces(word)
    numbers = (max(map(len, inside.replace("-", ",").split(","))) for inside in pieces[1::2])
    return sum(map(len, pieces[0::2])) + sum(numbers)


def _expand_word(word: str) -> list[str]:
    pieces = _pieces(word)
    if len(pieces) == 3:
        prefix, inside, suffix = pieces
        return [f"{prefix}{number}{suffix}" for number in _numbers(inside)]
    axes = [_numbers(inside) for inside in pieces[1::2]]
    texts = pieces[0::2]
    last = axes.pop()
    names = []
    # product() varies its last argument fastest; the brackets before the last one run the other way
    # round.
    for outer in product(*reversed(axes)):
        prefix = (
            "".join(text + number for text, number in zip(texts, reversed(outer), strict=False))
            + texts[-2]
        )
        names += [f"{prefix}{number}{texts[-1]}" for number in last]
    return names


def expand_typed(expression: str) -> list[str]:
    """As `expand`, of what somebody typed: what stands before a bracket that is left open is a
    name that ends in `]`, and so is a `]` without a bracket before it part of a name.
    """
    opened, tail = expression.rfind("["), []
    if opened > expression.rfind("]"):
        comma = expression.rfind(",", expression.rfind("]") + 1, opened)
        before = expression[comma + 1 : opened]
        tail = [f"{before}]" if before else ""]
        expression = expression[: comma + 1]
    if "[" in expression:
        return expand(expression) + tail
    return expression.replace(",", " ").split() + tail


# --- writing --------------------------------------------------------------------------------------


def _split_name(name: str) -> tuple[str, str]:
    """A name as the text before its number, and the number's digits ("" if it has none)."""
    prefix = name.rstrip(_DIGITS)
    digits = name[len(prefix) :]
    if len(digits) > _LONGEST_NUMBER:
        return name, ""
    return prefix, digits


def _natural_key(text: str) -> tuple[tuple[int, int], ...]:
    """Orders texts so that numbers within count as numbers."""
    return tuple(
        (48, int(part[:300])) if part[0] in _DIGITS else (ord(part), 0)
        for part in _pattern(_NUMBER_IN_NAME).findall(text)
    )


def sort_key(name: str) -> tuple[tuple[tuple[int, int], ...], int, str]:
    """The key by which Slurm orders names."""
    prefix, digits = _split_name(name)
    return _natural_key(prefix), len(digits), digits


def counting(names: Sequence[str]) -> tuple[str, int] | None:
    """The text before the numbers and the first number, if the names count upwards by one and
    without leading zeros, as those of most clusters do: they are in every order then.
    """
    prefix, digits = _split_name(names[0]) if names else ("", "")
    if not digits or (digits[0] == "0" and len(digits) > 1):
        return None
    first = int(digits)
    behind = first + len(names)
    if len(str(behind)) > _LONGEST_NUMBER:
        return None
    following = [f"{prefix}{number}" for number in range(first, behind)]
    return (prefix, first) if following == list(names) else None


def version_keys(names: Iterable[str]) -> list[tuple[tuple[int, int, int], ...]]:
    """The keys that order names as versions are: numbers count as numbers, but one with leading
    zeros as digits behind a decimal point.
    """
    heads: dict[str, tuple[tuple[int, int, int], ...]] = {}  # most names differ in their end only
    keys = []
    for name in names:
        prefix = name.rstrip(_DIGITS)
        head = heads.get(prefix)
        if head is None:
            parts = _pattern(_NUMBER_IN_NAME).findall(prefix)
            head = heads[prefix] = tuple(key for part in parts for key in _version_part(part))
        digits = name[len(prefix) :]
        if not digits:
            keys.append(head)
        elif digits[0] != "0":  # as _version_part has it
            keys.append((*head, (48, 0, int(digits[:300]))))
        else:
            keys.append((*head, *_version_part(digits)))
    return keys


def _version_part(part: str) -> list[tuple[int, int, int]]:
    if part[0] not in _DIGITS:
        return [(ord(part), 0, 0)]
    if part[0] != "0":
        return [(48, 0, int(part[:300]))]
    rest = part.lstrip("0")
    return [(48, len(rest) - len(part), int(not rest)), *((ord(digit), 0, 0) for digit in rest)]


def _bracketed(prefix: str, ranges: list[str], *, single: bool) -> str:
    return f"{prefix}{ranges[0]}" if single else f"{prefix}[{','.join(ranges)}]"


def numbered(prefix: str, count: int) -> str:
    """The names from PREFIX1 on, as many as `count`, as an expression that can be read: a range has
    no more than RANGE_LIMIT.
    """
    if count == 1:
        return f"{prefix}1"
    ranges = (
        f"{first}-{last}" if (last := min(first + RANGE_LIMIT - 1, count)) > first else f"{first}"
        for first in range(1, count + 1, RANGE_LIMIT)
    )
    return f"{prefix}[{','.join(ranges)}]"


def compress(names: Iterable[str], *, sort: bool = True, widest: int = RANGE_LIMIT) -> str:
    """The shortest expression that Slurm would print for the names; every name as often as given.

    sort: True as `scontrol show hostlistsorted` (and all node lists that Slurm prints), False as
    `scontrol show hostlist`, which keeps the order. `widest`: how many names a range has at most;
    one with more than RANGE_LIMIT cannot be read again.
    """
    return ",".join(
        _compress_sorted(names, widest) if sort else _compress_in_order(list(names), widest)
    )


def _compress_sorted(names: Iterable[str], widest: int) -> list[str]:
    groups: dict[str, dict[int, list[str]]] = {}
    for name in names:
        prefix, digits = _split_name(name)
        groups.setdefault(prefix, {}).setdefault(len(digits), []).append(digits)
    out: list[str] = []
    for prefix in sorted(groups, key=_natural_key) if len(groups) > 1 else groups:
        widths = groups[prefix]
        out += [prefix] * len(widths.pop(0, ()))
        if not widths:
            continue
        ranges: list[str] = []
        lone = True
        start, width, end = 0, 0, -2
        for length in sorted(widths):
            texts = widths[length]
            texts.sort()
            # Numbers of this width that begin with 0 continue only a range which is padded to it;
            # one that grew to it (9, 10) takes any other.
            for digits in texts:
                number = int(digits)
                if number == end + 1 and (length == width or (length > width and digits[0] != "0")):
                    end = number
                    lone = False
                    continue
                if width:
                    ranges.append(_range_text(start, end, width, widest))
                    lone = False
                start, end, width = number, number, length
        ranges.append(_range_text(start, end, width, widest))
        out.append(_bracketed(prefix, ranges, single=lone))
    return out


def _range_text(start: int, end: int, width: int, widest: int) -> str:
    if end - start >= widest:
        rest = _range_text(start + widest, end, width, widest)
        return f"{_range_text(start, start + widest - 1, width, widest)},{rest}"
    return f"{start:0{width}d}" if start == end else f"{start:0{width}d}-{end:0{width}d}"


def _compress_in_order(names: list[str], widest: int) -> list[str]:
    if (plain := counting(names)) is not None:
        prefix, number = plain
        text = _range_text(number, number + len(names) - 1, len(str(number)), widest)
        return [_bracketed(prefix, [text], single=len(names) == 1)]
    out: list[str] = []
    ranges: list[str] = []
    current: str | None = None
    lone = True
    start, width, end = 0, 0, -2
    for name in names:
        prefix, digits = _split_name(name)
        if digits and prefix == current:
            number = int(digits)
            if number == end + 1 and (
                len(digits) == width or (len(digits) > width and digits[0] != "0")
            ):
                end = number
            else:
                ranges.append(_range_text(start, end, width, widest))
                start, end, width = number, number, len(digits)
            lone = False
            continue
        if current is not None:
            ranges.append(_range_text(start, end, width, widest))
            out.append(_bracketed(current, ranges, single=lone))
        current, ranges, lone = None, [], True
        if digits:
            current, start, end, width = prefix, int(digits), int(digits), len(digits)
        else:
            out.append(name)
    if current is not None:
        ranges.append(_range_text(start, end, width, widest))
        out.append(_bracketed(current, ranges, single=lone))
    return out


# --- node sets ------------------------------------------------------------------------------------


class NodeNames:
    """The names of all nodes in the order of the node table, to say a bitmap as an expression and
    the reverse.

    The table is cut into stretches of names that count upwards by one, each sorting directly behind
    its predecessor; a run of bits within a stretch is then one range, written without looking at
    the names between its ends. One range of `n[1-16384]` takes a microsecond or two.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """names: all different."""
        self.names = list(names)
        self.index_of = {name: index for index, name in enumerate(self.names)}
        if len(self.index_of) != len(self.names):
            raise ValueError("a node's name is given twice")
        self.all = bits.mask(len(self.names))
        plain = counting(self.names)
        if plain is None:
            self._look_at_each()
        else:
            prefix, first = plain
            count = len(self.names)
            self._prefixes = [prefix] * count
            self._digits = list(map(str, range(first, first + count)))
            self._mixed = set[str]()
            self._stretch_end = [count] * count
            self._is_sorted = True
            self._place = list(range(count))
        self._expressions: dict[int, str] = {0: ""}
        self._bitmaps: dict[str, int] = {"": 0}

    def _look_at_each(self) -> None:
        """Find stretches and the order of any names."""
        split = [_split_name(name) for name in self.names]
        self._prefixes = [prefix for prefix, _ in split]
        self._digits = [digits for _, digits in split]
        # With padded and plain numbers behind one prefix, n09 sorts between n9 and n10: a stretch
        # then ends where the width changes.
        self._mixed = {prefix for prefix, digits in split if len(digits) > 1 and digits[0] == "0"}
        # For each node the index of the first behind its stretch.
        self._stretch_end = [0] * len(split)
        end = len(split)
        numbers = [int(digits) if digits else -2 for _, digits in split]
        for index in range(len(split) - 1, -1, -1):
            if index + 1 < len(split) and not (
                numbers[index + 1] == numbers[index] + 1 and self._follows(index)
            ):
                end = index + 1
            self._stretch_end[index] = end
        heads = {prefix: _natural_key(prefix) for prefix in set(self._prefixes)}
        keys = [(heads[prefix], len(digits), digits) for prefix, digits in split]
        order = sorted(range(len(split)), key=keys.__getitem__)
        widths = {(prefix, len(digits)) for prefix, digits in split if prefix in self._mixed}
        self._is_sorted = order == list(range(len(split))) and len(widths) == len(self._mixed)
        self._place = [0] * len(split)
        for place, index in enumerate(order):
            self._place[index] = place

    def __len__(self) -> int:
        return len(self.names)

    def _follows(self, index: int) -> bool:
        """Whether the name behind `index`, whose number is the next, counts on from it."""
        digits, following = self._digits[index], self._digits[index + 1]
        return self._prefixes[index] == self._prefixes[index + 1] and (
            len(following) == len(digits)
            or (len(following) > len(digits) and self._prefixes[index] not in self._mixed)
        )

    def to_expression(self, bitmap: int) -> str:
        """The nodes of the bitmap as Slurm prints them, sorted.

        Raises:
            IndexError: a bit beyond the last node.
        """
        known = self._expressions.get(bitmap)
        if known is not None:
            return known
        expression = self._write(bitmap)
        if len(self._expressions) >= _CACHED:
            self._expressions = {0: ""}
        self._expressions[bitmap] = expression
        return expression

    def _write(self, bitmap: int) -> str:
        stretch_end = self._stretch_end
        pieces: list[tuple[int, int]] = []  # (first, last) within one stretch
        for start, length in bits.runs(bitmap):
            at, end = start, start + length
            while at < end:
                cut = min(stretch_end[at], at + RANGE_LIMIT)
                if cut >= end:
                    pieces.append((at, end - 1))
                    break
                pieces.append((at, cut - 1))
                at = cut
        if not self._is_sorted:
            pieces = self._sorted(pieces)
        prefixes, digits = self._prefixes, self._digits
        out: list[str] = []
        count = len(pieces)
        position = 0
        while position < count:
            first, last = pieces[position]
            position += 1
            prefix = prefixes[first]
            if position == count or prefixes[pieces[position][0]] != prefix or not digits[first]:
                # A prefix with one range only: the common case, without lists.
                out.append(
                    self.names[first]
                    if first == last
                    else f"{prefix}[{digits[first]}-{digits[last]}]"
                )
                continue
            ranges = [digits[first] if first == last else f"{digits[first]}-{digits[last]}"]
            while position < count and prefixes[pieces[position][0]] == prefix:
                first, last = pieces[position]
                ranges.append(digits[first] if first == last else f"{digits[first]}-{digits[last]}")
                position += 1
            out.append(f"{prefix}[{','.join(ranges)}]")
        return ",".join(out)

    def _sorted(self, pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Pieces in the order of their names, joined where one counts on from the other."""
        place = self._place
        joined: list[tuple[int, int]] = []
        for first, last in sorted(pieces, key=lambda piece: place[piece[0]]):
            if joined and self._joins(joined[-1][1], first, joined[-1][0]):
                joined[-1] = (joined[-1][0], last)
            else:
                joined.append((first, last))
        return joined

    def _joins(self, last: int, first: int, start: int) -> bool:
        before, after = self._digits[last], self._digits[first]
        return (
            before != ""
            and after != ""
            and self._prefixes[last] == self._prefixes[first]
            and int(after) == int(before) + 1
            and int(after) - int(self._digits[start]) < RANGE_LIMIT
            and (
                len(after) == len(self._digits[start])
                or (len(after) >= len(before) and after[0] != "0")
            )
        )

    def to_bitmap(self, expression: str) -> int:
        """The nodes of an expression.

        Raises:
            UnknownHostError: a name that is not one of the nodes.
            ValueError: not a host list.
        """
        index = self.index_of.get(expression)
        if index is not None:
            return 1 << index
        known = self._bitmaps.get(expression)
        if known is not None:
            return known
        bitmap = 0
        singles: list[int] = []
        for word in _words(expression):
            index = self.index_of.get(word)
            if index is not None:
                singles.append(index)
            elif "[" in word:
                bitmap |= self._read_word(word)
            else:
                raise UnknownHostError(word)
        bitmap |= bits.from_positions(singles)
        if len(self._bitmaps) >= _CACHED:
            self._bitmaps = {"": 0}
        self._bitmaps[expression] = bitmap
        return bitmap

    def _read_word(self, word: str) -> int:
        pieces = _pieces(word)
        if len(pieces) != 3 or pieces[2]:
            if _count_word(word) > RANGE_LIMIT:
                raise ValueError(f"Too many hosts in {_shortened(word)}")
            return bits.from_positions([self.index(name) for name in _expand_word(word)])
        bitmap = 0
        prefix = pieces[0]
        for low, high, width in _ranges(pieces[1]):
            first = self.index(f"{prefix}{low:0{width}d}")
            last = self.index(f"{prefix}{high:0{width}d}")
            if last - first == high - low and self._stretch_end[first] > last:
                bitmap |= bits.span(first, high - low + 1)
            else:
                bitmap |= bits.from_positions(
                    [self.index(f"{prefix}{number:0{width}d}") for number in range(low, high + 1)]
                )
        return bitmap

    def index(self, name: str) -> int:
        """A node's place in the table.

        Raises:
            UnknownHostError: there is no such node.
        """
        index = self.index_of.get(name)
        if index is None:
            raise UnknownHostError(name)
        return index


# Expressions and bitmaps remembered; a job's nodes are asked for some ten times in its life, those
# of a few hundred jobs at a time.
_CACHED = 2048
