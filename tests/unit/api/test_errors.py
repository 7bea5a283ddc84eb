"""What goes wrong below, as the API says it."""

import pytest

from understudy import UnderstudyError
from understudy.api.errors import in_our_words
from understudy.commands.shared.client import RefusedError
from understudy.model.errors import ConfigError
from understudy.tool.cluster.run_dir import LaunchError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RefusedError(2000, "Invalid partition"), "Invalid partition"),
        (LaunchError("the cluster is already running"), "the cluster is already running"),
        (ConfigError("no such key", "slurm.conf", 3), "slurm.conf"),
        (FileNotFoundError(2, "No such file or directory", "x"), "^x: No such file or directory$"),
        (OSError("no words of the system"), "^no words of the system$"),
    ],
)
def test_it_is_one_kind_of_error_with_the_same_words(error, text):
    with pytest.raises(UnderstudyError, match=text) as caught, in_our_words():
        raise error
    assert caught.value.__cause__ is error


def test_a_time_that_is_over_and_a_mistake_of_the_caller_stay_what_they_are():
    for error in (TimeoutError("too long"), ValueError("not ours")):
        with pytest.raises(type(error)), in_our_words():
            raise error
