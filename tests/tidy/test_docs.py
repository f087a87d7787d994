"""The docs say what the code says."""

from __future__ import annotations

import re
import tomllib

import pytest

from duetime import config, errors
from tests.tidy.source import PACKAGE, ROOT, read
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


# A path in a page: `engine/shell/shell.py`, `tests/golden/`.
PATH = re.compile(r"`((?:[\w.-]+/)*[\w.-]+(?:\.(?:py|md|toml|proto)|/))`")
PAGES_WITH_PATHS = ("CONTRIBUTING.md", "docs/architecture.md", "docs/dependencies.md")


@pytest.mark.parametrize("page", PAGES_WITH_PATHS)
def test_every_file_that_a_page_names_exists(page):
    named = PATH.findall(read(ROOT / page))
    gone = [path for path in named if not (PACKAGE / path).exists() and not (ROOT / path).exists()]
    assert named
    assert not gone, f"{page} names files that do not exist; have they moved? {gone}"


def packages() -> list[str]:
    """The packages of `src/duetime` and of its packages, and the modules beside them."""
    top = [path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" and "__" not in path.stem]
    inside = [path.parent for pattern in ("*", "*/*") for path in PACKAGE.glob(f"{pattern}/__init__.py")]
    return sorted([*top, *(path.relative_to(PACKAGE).as_posix() for path in inside)])


def rows_of_the_plan() -> list[list[str]]:
    """The names in the first column of the tables of packages, row by row."""
    section = read(ROOT / "CONTRIBUTING.md").split("## Packages")[1].split("\n## ")[0]
    return [re.findall(r"`([\w/]+)`", row) for row in re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)]


def test_the_plan_of_contributing_has_every_package():
    planned = sorted(name for row in rows_of_the_plan() for name in row)
    assert planned == packages()


def test_the_plan_of_contributing_is_in_the_order_of_the_import_contract():
    contracts = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    layer_of = {
        name.strip().removeprefix("duetime."): place
        for place, layer in enumerate(layers)
        for name in layer.split("|")
    }
    planned = [name for row in rows_of_the_plan() for name in row if name in layer_of]
    assert planned == sorted(planned, key=layer_of.__getitem__)
    assert layer_of.keys() <= set(planned)
