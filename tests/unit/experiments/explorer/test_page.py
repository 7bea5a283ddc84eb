"""The parts of the page: what the scripts look for is there, and the library is the one that was
chosen.
"""

import hashlib
import re
from pathlib import Path

import understudy.experiments.explorer.page as explorer
from understudy.experiments.explorer.packing import Run
from understudy.experiments.report import STYLE

FOLDER = Path(explorer.__file__).parent
SCRIPTS = {path.name: path.read_text() for path in FOLDER.glob("*.js")}


def test_each_script_is_in_the_page_once():
    text = explorer.scripts([Run("A", [], 1)])
    assert len(SCRIPTS) == 7
    assert all(text.count(script) == 1 for script in SCRIPTS.values())


def test_elements_that_the_scripts_ask_for_are_there():
    page = explorer.section() + explorer.THEME + explorer.scripts([Run("A", [], 1)])
    asked = set(re.findall(r"\bel\('(\w+)'\)", "".join(SCRIPTS.values()))) - {"tip"}
    assert sorted(each for each in asked if f'id="{each}"' not in page) == []


def test_colours_that_the_scripts_ask_for_are_there_by_day_and_by_night():
    asked = set(re.findall(r"'(--\w+)'", "".join(SCRIPTS.values())))
    assert len(asked) >= 6
    assert sorted(each for each in asked if STYLE.count(f"{each}:") != 3) == []


def test_nothing_is_fetched_and_nothing_can_end_the_script():
    text = explorer.scripts([Run("</script><b>", [], 1)]) + explorer.style()
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket|\beval\(", text)
    assert text.count("</script>") == 3


def test_the_library_is_the_file_that_the_decision_names():
    page = (Path(__file__).parents[4] / "docs" / "adr" / "0046-the-page-of-a-run.md").read_text()
    for path in sorted(FOLDER.glob("vendor/uPlot-1*")):
        assert hashlib.sha256(path.read_bytes()).hexdigest() in page, path.name
    assert "Leon Sorokin" in explorer.scripts([])
