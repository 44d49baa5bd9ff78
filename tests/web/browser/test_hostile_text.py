"""What a skill writes stays text in a real browser: no element, no script, no button, no hidden direction."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page
from support.browsers import Site, choice
from support.terminals import script_prompt

from skillkit import Option
from skillkit.core.values.questions import FileChange, Prompt, PromptCommand, RiskFlag

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MARKUP = (
    "</code></pre></main><script>window.attacked = 1</script><img src=x onerror='window.attacked = 1'>"
    "<form action='/requests/request-1/answer' method=post><button id=planted>Yes once</button></form>"
    "<style>body { display: none }</style><meta http-equiv=refresh content='0;url=https://example.invalid/'>"
    "<base href='https://example.invalid/'><iframe srcdoc='x'></iframe><svg onload='window.attacked = 1'>"
    "<a href='javascript:window.attacked = 1' id=link>x</a>&lt;b&gt;\"'`${1}"
)
HIDDEN = "a\u202etxt.exe\u202c\u2066b\u2069 \x1b[31mred\x1b[0m \x1b]0;title\x07 zero\u200bwidth \x00\x08 nul"
PLANTED = "script:not([src]), img, iframe, base, style, #planted, #link, main form form, [onload], [onerror]"


def hostile_prompt(text: str) -> Prompt:
    return script_prompt(
        skill=text,
        origin=f"/tmp/{text}",
        reasons=(text,),
        risks=(RiskFlag(text, text, text, 1),),
        changes=(FileChange("changed", text, f"@@ -1 +1 @@\n-{text}\n+{text}\n"),),
        commands=(PromptCommand(text, (text, ""), json.dumps({text: [text]}), f"{text}\n{text}\n"),),
        walls=(text,),
        digest=text,
    )


def require_harmless(page: Page) -> None:
    page.get_by_role("main").wait_for()
    assert page.locator(PLANTED).count() == 0, page.locator(PLANTED).first.evaluate("e => e.outerHTML")
    assert page.evaluate("window.attacked") is None


@pytest.mark.parametrize("text", [MARKUP, HIDDEN], ids=["markup", "hidden"])
def test_in_every_view_it_is_text(site: Site, text: str) -> None:
    site.open(prompt=hostile_prompt(text), title=text, message=text, session_id="session <b>")
    page = site.tab()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.reload()
    require_harmless(page)
    page.goto(site.at("/requests/request-1"))
    require_harmless(page)
    assert page.get_by_role("button").count() == 3
    if text is MARKUP:
        assert text in str(page.get_by_role("main").inner_text())
    choice(page, "No").click()
    page.wait_for_url("**/?answered=*")
    require_harmless(page)
    page.goto(site.at("/history"))
    require_harmless(page)
    assert problems == []


def test_characters_that_hide_are_made_visible(site: Site) -> None:
    site.open(prompt=hostile_prompt(HIDDEN), title=HIDDEN, message=HIDDEN)
    page = site.tab()
    for path in ("/", "/requests/request-1"):
        page.goto(site.at(path))
        shown = page.content()
        raw = sorted({f"U+{ord(each):04X}" for each in shown if each in HIDDEN and not each.isprintable()})
        assert raw == [], f"{path} sends characters that nobody sees"
    assert "202e" in page.get_by_role("main").inner_text().lower()


def test_a_question_of_any_program_is_shown_with_its_own_options_and_as_text(site: Site) -> None:
    options = (Option("blue", "<b>Blue</b>"), Option("green", "Green"))
    site.open(title=MARKUP, message=MARKUP, options=options, context={MARKUP: MARKUP})
    page = site.tab("/requests/request-1")
    require_harmless(page)
    assert [button.inner_text() for button in page.get_by_role("button").all()] == ["<b>Blue</b>", "Green"]
    page.wait_for_timeout(800)
    choice(page, "Green").click()
    page.wait_for_url("**/?answered=*")
    assert site.outcome("request-1") == ("green", "web")


def test_ten_thousand_lines_can_be_read_to_the_last_and_the_page_stays_light(site: Site) -> None:
    source = "".join(f"print({number}, 'some words of a line')\n" for number in range(1, 10_001))
    site.open(prompt=script_prompt(commands=(PromptCommand("scripts/long.py", (), "", source),)))
    page = site.tab("/requests/request-1")
    assert page.locator("*").count() < 10_000
    assert "10,000 lines" in page.get_by_role("main").inner_text()
    page.get_by_role("link", name="Show the other").click()
    last = page.url.rpartition("start=")[0] + "start=10000"
    page.goto(last)
    assert "print(10000, 'some words of a line')" in page.get_by_role("main").inner_text()
