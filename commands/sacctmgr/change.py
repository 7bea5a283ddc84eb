"""sacctmgr add, modify, delete: the words are read into a request, and the entity's own module
carries it out.

Place: under sacctmgr. Only the module of the entity at hand is loaded.
"""

from understudy.commands.sacctmgr.request import read_addition, read_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.commands.sacctmgr.request import Request
    from understudy.commands.sacctmgr.session import Session


def change(session: "Session", action: str, entity: str, words: list[str]) -> int:
    """Carry out a change. The exit code."""
    request = (
        read_addition(session, entity, words)
        if action == "add"
        else read_words(session, entity, words, sets=action == "modify")
    )
    if action == "modify" and "raw_usage" in request.set and request.is_well:
        from understudy.commands.sacctmgr.raw_usage import reset_use

        return reset_use(session, entity, request)
    module = __import__(f"understudy.commands.sacctmgr.{entity}", fromlist=("",))
    function: Callable[[Session, Request], int] = getattr(module, f"{action}_{entity}")
    return function(session, request)
