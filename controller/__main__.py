"""`python -m understudy.controller --run-dir DIR`."""

import sys

from understudy.controller.edge.main import main

sys.exit(main())
