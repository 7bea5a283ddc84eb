"""What the API raises where a caller can do something about it.

Place: under the modules of the API.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator


_Text = TypeVar("_Text", bound="str | os.PathLike[str]")


class UnderstudyError(Exception):
    """A cluster, a command or a replay could not do what it was asked for; the text says why, for
    a person, in words of the command line where one was run.
    """


def several(name: str, texts: Iterable[_Text]) -> tuple[_Text, ...]:
    """The texts of an argument that takes several.

    Raises:
        UnderstudyError: it is one text, whose letters would be taken for them.
    """
    if isinstance(texts, str):
        raise UnderstudyError(f"{name}={texts!r}: a list is expected, [{texts!r}]")
    return tuple(texts)


@contextlib.contextmanager
def in_our_words() -> Iterator[None]:
    """What goes wrong below is an `UnderstudyError`, with the same text.

    Raises:
        UnderstudyError: it did.
    """
    from understudy.commands.shared.client import RefusedError
    from understudy.commands.shared.locate import BadConfigurationError, NoClusterError
    from understudy.model.conf_edit import EditError
    from understudy.model.errors import ConfigError
    from understudy.tool.cluster.clock_client import ClockError
    from understudy.tool.cluster.run_dir import LaunchError

    try:
        yield
    except TimeoutError:  # an OSError, too; of who waits here
        raise
    except RefusedError as error:
        raise UnderstudyError(error.text) from error
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        raise UnderstudyError(f"{where}{error.strerror or error}") from error
    except (
        LaunchError,
        ConfigError,
        EditError,
        ClockError,
        NoClusterError,
        BadConfigurationError,
    ) as error:
        raise UnderstudyError(str(error)) from error
