"""`python -m understudy.controller --run-dir DIR`."""

import sys

from understudy.model.vectors import import_numpy

import_numpy()

from understudy.controller.edge.main import main  # noqa: E402  what it imports has numpy

sys.exit(main())
