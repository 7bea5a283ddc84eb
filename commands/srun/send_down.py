"""Send a message from a command to node daemons: to some of them, who hand it on.

Place: under srun, sattach and sbcast. Follows the forwarding tree of `understudy.protocol.tree`, of
which a command is the top.
"""

from understudy.commands.shared.client import Client, RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# who was to be told did not hear it, or nobody knows
UNREACHABLE = frozenset((104, 1001, 1002, 1005, 1006, 1007, 5004, 5005))


def send_down(
    client: Client,
    message: "list[Any]",
    daemons: "list[list[str]]",
    width: int,
    *,
    codes: bool = False,
) -> list[str]:
    """Send a message to node daemons: at most `width` get it from us and hand it on. What went
    wrong, a text a node, with `codes` a number first.
    """
    parts = _split(daemons, width)
    asked: list[tuple[Client, list[list[str]]]] = []
    bad: list[str] = []

    def note(code: int, nodes: str, text: str) -> None:
        bad.append(f"{code} {nodes}: {text}" if codes else f"{nodes}: {text}")

    for whole in parts:
        part = whole
        while part:
            name, address, nodes = part[0]
            is_node = name == nodes  # one that shares the address
            daemon = client.another(address, "" if is_node else name)
            try:
                if len(part) == 1 and not is_node:
                    daemon.send(message)
                else:
                    from understudy.commands.shared.packing import pack as pack_bytes

                    nodes = ",".join(each[2] for each in part)
                    daemon.begin("Forward", pack_bytes(message), nodes, width, 10.0)
                asked.append((daemon, part))
                break
            except RefusedError as error:
                note(error.code, part[0][2], error.text)
                part = part[1:]
    for daemon, part in asked:
        try:
            name, answer = daemon.finish()
        except RefusedError as error:
            note(error.code, part[0][2], error.text)
            continue
        finally:
            daemon.close()
        if name == "Failure":
            note(answer[0], part[0][2], answer[1])
        elif name == "NodeReplies":
            for _tag, nodes, code, text in answer[0]:
                if code:
                    note(code, nodes, text)
    return bad


def _split(daemons: "list[list[str]]", width: int) -> "list[list[list[str]]]":
    count = max(min(width, len(daemons)), 1)
    size, more = divmod(len(daemons), count)
    parts, at = [], 0
    for index in range(count):
        end = at + size + (index < more)
        parts.append(daemons[at:end])
        at = end
    return parts
