"""Packages prepared in a browser: by keyboard, with rules of accessibility kept, and news without a reload."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from support.browsers import PHONE, Site, choice, serving, violations
from support.package_index import PackageIndex, only_index

from skillkit import SkillManager
from skillkit.core.values.policy import GUARDED
from skillkit.testing import skill_folder

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SCRIPT = '# /// script\n# dependencies = ["zebra", "reqeusts"]\n# ///\nimport zebra, lion; print(zebra.VERSION)\n'


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    """Everything in it is young, and one name is near to a common one."""
    with only_index(monkeypatch) as served:
        served.age_days = 3
        for name in ("zebra", "lion", "reqeusts"):
            served.add(name, "1.0")
        yield served


@pytest.fixture
def site(browser: Browser, index: PackageIndex, tmp_path: Path) -> Iterator[Site]:
    """A run that waits, of a skill that lacks three packages."""
    assert index.packages
    skill_folder(tmp_path / "skills", "animals", {"scripts/run.py": SCRIPT})
    with (
        SkillManager("", "", [], [tmp_path / "skills"], policy=GUARDED, state_dir=tmp_path / "state") as manager,
        serving(browser, tmp_path, manager) as made,
    ):
        prepared = manager.prepare_skill_script("animals", "run")
        assert prepared.request is not None
        made.world.open(prepared.request, expires_in=600)
        yield made


def looked_at(page: Page, name: str) -> None:
    """Nothing against the rules, and nothing wider than the screen; a picture for who wants to see it."""
    page.wait_for_load_state()  # before it has its style, links stand on the browser's own dark
    expect(page.locator("button[disabled]")).to_have_count(0)
    if folder := os.environ.get("SKILLKIT_PICTURES"):
        page.screenshot(path=f"{folder}/packages-{name}.png", full_page=True)
    assert violations(page) == [], name
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), name


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_from_the_runs_question_to_its_packages(site: Site, index: PackageIndex, look: str) -> None:
    settings = {"viewport": PHONE} if look == "phone" else {"color_scheme": look}
    (waiting,) = site.world.pending()
    page = site.tab(f"/requests/{waiting.id}", **settings)
    index.hangs = True
    page.get_by_role("button", name="Prepare its packages").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Preparing packages")
    looked_at(page, f"{look}-looking")
    index.hangs = False
    index.stopping.set()
    link = page.get_by_role("link", name="Look at the list and answer")
    expect(link).to_be_visible()
    looked_at(page, f"{look}-asked")
    link.press("Enter")
    expect(page.get_by_text("This is code that nobody here has read.")).to_be_visible()
    looked_at(page, f"{look}-question")
    boxes = page.get_by_role("checkbox")
    expect(boxes).to_have_count(4)  # all of the page is there
    assert [boxes.nth(at).is_checked() for at in range(boxes.count())] == [False] * 4, (
        "a guess, and three that are young"
    )
    for at in range(boxes.count()):
        boxes.nth(at).press("Space")
    expect(choice(page, "Yes, install them")).not_to_have_attribute("aria-disabled", "true")  # it was just shown
    choice(page, "Yes, install them").press("Enter")
    expect(page).to_have_url(re.compile("/packages/animals$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Packages are prepared", timeout=60_000)
    looked_at(page, f"{look}-done")


def test_an_index_that_is_away_is_said_and_can_be_tried_again(site: Site, index: PackageIndex) -> None:
    index.packages.clear()
    page = site.tab("/packages/animals")
    looked_at(page, "begin")
    page.get_by_role("button", name="Look up its packages").click()
    expect(page.get_by_role("alert")).to_contain_text("has no package")
    looked_at(page, "failed")
    index.add("zebra", "1.0")
    index.add("reqeusts", "1.0")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text(re.compile("code that nobody here has read|Look at the list"))).to_be_visible(
        timeout=60_000
    )
