"""`python -m understudy.accounting --run-dir DIR`."""

import sys

from understudy.accounting.main import main

sys.exit(main())
