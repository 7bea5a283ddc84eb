"""Pages that are generated are current. Apart from the unit tests, as every change of an option
needs the page to be written again.
"""

from __future__ import annotations

from understudy.tool.manual.option_page import TARGET, page


def test_the_page_of_options_is_current():
    assert TARGET.read_text() == page(), (
        "run `make options` (python -m understudy.tool.manual.option_page) and commit "
        "docs/options.md"
    )
