"""From the configuration to what devices each node has: a node line's Gres, with files, types and
cores of the lines of gres.conf for that node.

Place: tables, pure. Follows slurm.conf(5) Gres, gres.conf(5). Where gres.conf says
more than the node line, the node line counts; it may leave out what gres.conf says of types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.tables.gres import DeviceGroup, GresTable, Layout
from understudy.model import hostlist, nodeset
from understudy.model.gres import GPU, SHARED, read_configured

if TYPE_CHECKING:
    from understudy.controller.tables.node import Node
    from understudy.model.conf import GresConf, SlurmConfig
    from understudy.model.gres import GresCount


class Layouts:
    """Makes layouts; nodes with the same get the same one."""

    def __init__(self, config: SlurmConfig) -> None:
        self.names = tuple(dict.fromkeys(config.words("GresTypes")))
        self._lines = [
            (line, frozenset(hostlist.expand(line.nodes)))
            for line in config.gres
            if line.name in self.names
        ]
        self._known: dict[tuple[str, tuple[int, ...]], Layout] = {}
        self._lacks: dict[tuple[str, tuple[int, ...]], str] = {}
        # nodes that look for GPUs themselves, an empty set for all
        self._detecting = [
            frozenset(hostlist.expand(line.nodes))
            for line in config.gres
            if line.auto_detect.lower() not in ("", "off")
        ]
        self._groups: dict[Layout, Layout] = {}

    def of(self, name: str, text: str) -> Layout:
        """The devices of the node with that name and that Gres. What cannot be read, or is of no
        type of GresTypes, is left out.
        """
        if not text or not self.names:
            return ()
        mine = tuple(
            place for place, (_, nodes) in enumerate(self._lines) if not nodes or name in nodes
        )
        known = self._known.get((text, mine))
        if known is None:
            try:
                words = read_configured(text)
            except ValueError:
                words = ()
            lines = [self._lines[place][0] for place in mine]
            made = _layout([word for word in words if word.name in self.names], lines)
            known = self._known[text, mine] = self._groups.setdefault(made, made)
        return known

    def lack(self, name: str, text: str) -> str:
        """What is said of a node with that name and that Gres for which gres.conf names fewer GPUs;
        "" where it names no file of one, or has the node look for them.
        """
        mine = tuple(
            place
            for place, (line, nodes) in enumerate(self._lines)
            if line.name == GPU and line.files and (not nodes or name in nodes)
        )
        if not mine or any(not nodes or name in nodes for nodes in self._detecting):
            return ""
        known = self._lacks.get((text, mine))
        if known is None:
            lines = [self._lines[place][0] for place in mine]
            known = self._lacks[text, mine] = _lack(text, lines)
        return known

    def has_devices_for(self, name: str, words: tuple[GresCount, ...]) -> bool:
        """Whether of what gres.conf gives the node with that name files for, the words name just as
        many devices, if any.
        """
        for word in dict.fromkeys(each.name for each in words if each.name not in SHARED):
            lines = [
                line
                for line, nodes in self._lines
                if line.name == word and (not nodes or name in nodes)
            ]
            devices = sum(line.count for line in lines)
            if (
                any(line.files for line in lines)
                and sum(each.count for each in words if each.name == word) != devices
            ):
                return False
        return True


def _lack(text: str, lines: list[GresConf]) -> str:
    try:
        words = [word for word in read_configured(text) if word.name == GPU]
    except ValueError:
        return ""
    found = sum(
        min(word.count, sum(line.count for line in lines if word.type in ("", line.type)))
        for word in words
    )
    wanted = sum(word.count for word in words)
    if found >= wanted:
        return ""
    return f"gres/{GPU} count reported lower than configured ({found} < {wanted})"


def build_gres(config: SlurmConfig, nodes: list[Node]) -> GresTable | None:
    """The table; None for a cluster without generic resources."""
    layouts = Layouts(config)
    made = [layouts.of(node.name, node.gres) for node in nodes]
    return GresTable(layouts.names, made, layouts) if layouts.names and any(made) else None


def _layout(words: list[GresCount], lines: list[GresConf]) -> Layout:
    groups: list[DeviceGroup] = []
    first: dict[str, int] = {}
    for word in words:
        if word.name in SHARED and any(other.name == GPU for other in words):
            continue
        left = word.count
        fitting = [
            line
            for line in lines
            if line.name == word.name and (line.type == word.type or not word.type or not line.type)
        ]
        for line in fitting:
            count = min(line.count, left)
            if count <= 0:
                continue
            has_files = bool(line.files) and line.count <= _MOST_DEVICES
            groups.append(
                _group(word, word.type or line.type, count, line, first, has_files=has_files)
            )
            left -= count
        if left:
            groups.append(_group(word, word.type, left, None, first, has_files=False))
    gpus = [group for group in groups if group.name == GPU]
    if gpus:
        for word in words:
            if word.name in SHARED:
                groups += _divided(word, gpus, lines)
    return tuple(groups)


def _divided(word: GresCount, gpus: list[DeviceGroup], lines: list[GresConf]) -> list[DeviceGroup]:
    """Parts of GPUs: as many of each as the lines say for its file, else the same number of
    each.
    """
    kinds = [group.type for group in gpus for _ in range(group.count)]
    files = [file for line in lines if line.name == GPU for file in hostlist.expand(line.files)]
    parts = [0] * len(kinds)
    for line in (line for line in lines if line.name == word.name and line.files):
        own = [files.index(file) for file in hostlist.expand(line.files) if file in files]
        for gpu in own:
            if gpu < len(parts):
                parts[gpu] += line.count // len(own)
    if not any(parts):
        each, more = divmod(word.count, len(kinds))
        parts = [each + (gpu < more) for gpu in range(len(kinds))]
    found = []
    for kind in dict.fromkeys(kinds):
        if word.type in ("", kind):
            of_kind = tuple(count if kinds[gpu] == kind else 0 for gpu, count in enumerate(parts))
            found.append(DeviceGroup(word.name, kind, sum(of_kind), parts=of_kind))
    return found


_MOST_DEVICES = 1024


def _group(
    word: GresCount,
    kind: str,
    count: int,
    line: GresConf | None,
    first: dict[str, int],
    *,
    has_files: bool,
) -> DeviceGroup:
    start = first.get(word.name, 0)
    if has_files:
        first[word.name] = start + count
    is_consumed = word.is_consumed and (line is None or "no_consume" not in line.flags.lower())
    cores = read_cores(line.cores) if line is not None and has_files else 0
    return DeviceGroup(
        word.name, kind, count, start if has_files else 0, has_files, is_consumed, cores
    )


def read_cores(text: str) -> int:
    """`0-3,7` as a bit mask; what is no number is left out, the reader of the file has
    complained.
    """
    mask = 0
    for part in text.replace("[", "").replace("]", "").split(","):
        low, _, high = part.strip().partition("-")
        if low.isdecimal() and (not high or high.isdecimal()):
            last = int(high or low)
            mask |= nodeset.mask(last + 1) & ~nodeset.mask(int(low))
    return mask


def gres_text(text: str, layout: Layout, cores_per_socket: int, sockets: int) -> str:
    """A node's Gres as commands show it: with the sockets to which devices are near."""
    try:
        words = read_configured(text)
    except ValueError:
        return text
    shown = []
    for word, written in zip(words, [part for part in text.split(",") if part], strict=False):
        near = 0
        for group in layout:
            if group.name == word.name and word.type in ("", group.type):
                near |= group.cores
        bare = ":".join(
            part for part in written.partition("(")[0].split(":") if part != "no_consume"
        )
        kinds = [
            group.type for group in layout if group.name == word.name and group.parts and group.type
        ]
        if kinds and not word.type:
            bare = ",".join(
                f"{word.name}:{group.type}:{group.count}"
                for group in layout
                if group.name == word.name
            )
        on = nodeset.from_positions(
            socket
            for socket in range(sockets)
            if near >> socket * cores_per_socket & nodeset.mask(cores_per_socket)
        )
        shown.append(f"{bare}(S:{ranges(on)})" if on else bare)
    return ",".join(shown)


def ranges(mask: int) -> str:
    """A bit mask as `0-3,7`."""
    return ",".join(
        str(first) if length == 1 else f"{first}-{first + length - 1}"
        for first, length in nodeset.runs(mask)
    )
