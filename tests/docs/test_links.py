"""Every link leads somewhere, every page can be reached, and what pages name is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
import yaml
from support.doc_pages import ROOT, pages

FENCES = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
NAMED_TEST = re.compile(r"`(tests/[\w/.-]+?\.py)(?:::(\w+))?`")


@cache
def text_of(page: str) -> str:
    return CODE.sub("", FENCES.sub("", (ROOT / page).read_text(encoding="utf-8")))


@cache
def anchors_of(page: Path) -> set[str]:
    """As GitHub and mkdocs make them of headings: words in small letters with hyphens between."""
    headings = re.findall(r"^#+ (.+)$", FENCES.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"\s+", "-", words) for words in plain}


@pytest.mark.parametrize("page", [*pages(), "CHANGELOG.md"])
def test_every_link_leads_somewhere(page: str) -> None:
    for link in LINK.findall(text_of(page)):
        if link.startswith(("https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), f"{page}: {link}"
        assert not anchor or anchor in anchors_of(target.resolve()), f"{page}: no heading for {link}"


def test_every_picture_is_there_and_is_told_in_words() -> None:
    found = [(page, *picture) for page in pages() for picture in PICTURE.findall(text_of(page))]
    assert {page for page, *_ in found} >= {"README.md", "docs/index.md"}
    for page, told, picture in found:
        assert ((ROOT / page).parent / picture).is_file(), f"{page}: {picture}"
        assert len(told) > len("a picture"), f"{page}: {picture}"


def test_every_page_is_in_the_navigation_once() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r"[\w/-]+\.md", str(yaml.safe_load(navigation)))
    assert sorted(listed) == sorted(page.removeprefix("docs/") for page in pages() if page.startswith("docs/"))


def test_every_page_can_be_reached_from_the_first_one() -> None:
    """By links alone, as on GitHub, where there is no navigation."""
    seen: set[Path] = set()
    open_pages = [ROOT / "docs/index.md"]
    while open_pages:
        page = open_pages.pop()
        seen.add(page)
        links = LINK.findall(text_of(str(page.relative_to(ROOT))))
        found = {(page.parent / link.partition("#")[0]).resolve() for link in links if "://" not in link}
        open_pages += [path for path in found - seen if path.suffix == ".md" and path.is_file()]
    missing = {ROOT / page for page in pages() if page.startswith("docs/")} - seen
    assert not missing


@pytest.mark.parametrize("page", pages())
def test_tests_that_a_page_names_exist(page: str) -> None:
    for file, name in NAMED_TEST.findall((ROOT / page).read_text(encoding="utf-8")):
        assert (ROOT / file).is_file(), f"{page}: {file}"
        assert not name or f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{page}: {file}::{name}"
