"""Files that the pages for developers name are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/architecture.md",
    "docs/glossary.md",
    "docs/policies.md",
)
FILES = [
    f"/{path.relative_to(ROOT)}"
    for path in ROOT.rglob("*.*")
    if not path.relative_to(ROOT).parts[0].startswith((".venv", ".git", "src", "build"))
]


@pytest.mark.parametrize("page", PAGES)
def test_modules_that_a_page_names_are_there(page):
    named = set(re.findall(r"\w[\w/]*\.py\b", (ROOT / page).read_text()))
    missing = [
        name
        for name in sorted(named)
        if not re.search(r"[A-Z]{2}", name)  # it stands for any
        and not any(file.endswith(f"/{name}") for file in FILES)
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_a_name_that_a_page_puts_into_a_module_is_in_it(page):
    text = (ROOT / page).read_text()
    asked = re.findall(r"((?:`[\w.]+`(?:, | and ))*`[\w.]+`) (?:of|in|by) `(\w[\w/]*\.py)`", text)
    missing = [
        (name, module)
        for names, module in asked
        for name in re.findall(r"[\w.]+", names.replace(" and ", " "))
        if not any(
            re.search(rf"\b{name.rpartition('.')[2]}\b", (ROOT / file[1:]).read_text())
            for file in FILES
            if file.endswith(f"/{module}")
        )
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page):
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []
    headings = {
        re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines()
        if line.startswith("#")
    }
    asked = set(re.findall(r"CONTRIBUTING\.md#([\w-]+)", text))
    assert asked <= headings
