"""`python -m understudy.noded --run-dir DIR --name noded0`: one node daemon."""

import sys

from understudy.noded.main import main

if __name__ == "__main__":
    sys.exit(main())
