"""numpy, imported without threads of its own.

Place: model; called by programs of which vectors are a part, before anything of them is imported.
The library for linear algebra that comes with numpy starts a thread for each CPU as it is imported,
and these look for work for a tenth of a second of CPU time before they sleep. There is none for
them here: nothing multiplies matrices.
"""

from __future__ import annotations

import os
import sys
from typing import Final

_THREADS: Final = "OPENBLAS_NUM_THREADS"


def import_numpy() -> None:
    """Import it. The environment is afterwards what it was, as programs of users inherit it; where
    it says how many threads there are to be, there are as many.
    """
    if "numpy" in sys.modules or _THREADS in os.environ:
        return
    os.environ[_THREADS] = "1"
    try:
        import numpy as np  # noqa: PLC0415  when the environment says so

        del np
    finally:
        del os.environ[_THREADS]
