"""The `understudy` command: its start. Its sub-commands are named in app.py, which takes a
moment to import.

Place: the outermost layer. Who presses Ctrl-C in that moment is no less done with it than later.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; the entry point of the `understudy` script."""
    try:
        from understudy.tool.understudy.app import app_with

        app_with(*sys.argv[1:2])()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
