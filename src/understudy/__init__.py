"""Understudy: an emulated Slurm cluster of real daemons, real messages and real commands.

What is public is named here and in docs/python.md. It is imported when it is first used, as every
command begins with this file.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.api.clock import Clock as Clock
    from understudy.api.cluster import Cluster as Cluster
    from understudy.api.errors import UnderstudyError as UnderstudyError
    from understudy.api.questions import compare as compare
    from understudy.api.questions import sweep as sweep
    from understudy.api.questions import why as why
    from understudy.api.records import Job as Job
    from understudy.api.records import Node as Node
    from understudy.api.replay import ReplayResult as ReplayResult
    from understudy.api.replay import replay as replay

# name -> module of the API
_PUBLIC = {
    "Clock": "clock",
    "Cluster": "cluster",
    "Job": "records",
    "Node": "records",
    "ReplayResult": "replay",
    "UnderstudyError": "errors",
    "compare": "questions",
    "replay": "replay",
    "sweep": "questions",
    "why": "questions",
}


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.api.{_PUBLIC[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
