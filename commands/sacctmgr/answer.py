"""What accounting said of a request."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Answer:
    """AccountingChanged, by name."""

    __slots__ = ("associations", "names", "problems", "wckeys")

    def __init__(self, fields: "list[Any]") -> None:
        self.names: list[str]
        self.associations: list[list[str]]
        self.names, self.associations, self.wckeys, self.problems = fields
