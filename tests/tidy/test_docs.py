"""The docs say what the code says."""

from __future__ import annotations

import re
import tomllib

import pytest

from duetime import config, errors
from tests.tidy.source import ROOT, read
from tools.generate_docs import DOCS, PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_generated_page_is_current(page):
    assert (DOCS / page).exists(), f"docs/{page} is missing: run make docs"
    assert read(DOCS / page) == PAGES[page](), f"docs/{page} is not what the code says: run make docs"


@pytest.mark.parametrize("name", config.SETTINGS)
def test_every_setting_is_documented(name):
    setting = config.SETTINGS[name]
    section = read(DOCS / "reference/configuration.md").split(f"## [{setting.section}]")[1].split("\n## ")[0]
    assert f"| `{setting.key}` |" in section


@pytest.mark.parametrize("error", errors.EVERY, ids=lambda error: error.__name__)
def test_every_error_is_documented(error):
    assert f"| {error.code} | {error.status} | `{error.__name__}` |" in read(DOCS / "reference/errors.md")


def test_every_dependency_has_its_reason():
    project = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    page = read(DOCS / "dependencies.md")
    names = [re.split(r"[<>=\[;~! ]", requirement)[0] for requirement in wanted]
    missing = [name for name in names if f"**{name}**" not in page]
    assert not missing, f"docs/dependencies.md does not say what these are for: {missing}"


LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")


def test_no_link_is_broken():
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)} -> {link}"
        for page in pages
        for link in LINK.findall(page.read_text("utf-8"))
        if not (page.parent / link).exists()
    ]
    assert not broken, f"these links lead nowhere: {broken}"


CONTENTS = re.compile(r"^- \[(.+)\]\(#(.+)\)$", re.MULTILINE)


def anchor(heading: str) -> str:
    """Where a heading is found, as those who show Markdown make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_a_table_of_contents_is_true(page):
    before, *sections = re.split(r"^## ", read(page), flags=re.MULTILINE)
    listed = CONTENTS.findall(before)
    if listed:
        headings = [section.partition("\n")[0] for section in sections]
        assert listed == [(heading, anchor(heading)) for heading in headings]


def test_every_place_that_a_link_names_is_there():
    wrong = []
    for page in [*DOCS.rglob("*.md"), ROOT / "README.md"]:
        for name, place in re.findall(r"\]\((?!https?://)([^)#\s]*)#([^)\s]+)\)", read(page)):
            target = (page.parent / name).resolve() if name else page
            headings = re.findall(r"^#+ (.+)$", read(target), re.MULTILINE)
            if place not in map(anchor, headings):
                wrong.append(f"{page.name}: {name}#{place}")
    assert not wrong
