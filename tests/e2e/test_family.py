"""The processes of a job: what a child that is about to become a script hears.

Covers: noded/family.
"""

from __future__ import annotations

import os
import signal
import time

from understudy.noded import family


def test_a_signal_that_comes_before_the_child_has_handlers_of_its_own_is_not_lost() -> None:
    """Nor is it the parent's handler's, which the child has until then."""
    before = signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    try:
        child = family.fork()
        if child == 0:
            time.sleep(0.2)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            family.listen()
            time.sleep(60)
            os._exit(0)
        os.kill(child, signal.SIGTERM)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM
        os.kill(os.getpid(), signal.SIGTERM)  # the parent hears as before
    finally:
        signal.signal(signal.SIGTERM, before)
