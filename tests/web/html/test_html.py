"""HTML that is made of templates and values: what the maker refuses, and what no template may hold."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from jinja2 import TemplateError

from skillkit.web.html import FILTERS, _environment

TEMPLATES = {each.name: each.read_text() for each in (files("skillkit.web") / "html").iterdir() if ".html" in each.name}
ELEMENTS = frozenset(
    "a body br button code dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 head header html input kbd label "
    "legend li link main mark meta nav noscript ol option p path pre progress rect script section select small span strong "
    "summary svg table tbody td th thead time title tr ul".split()
)
FORBIDDEN = re.compile(r"on.*|style|srcdoc|http-equiv")
ADDRESSES = ("action", "formaction", "href", "src")


def made(template: str, **values: object) -> str:
    return _environment().from_string(template).render(values)


class Tags(HTMLParser):
    """The tags of a template; what it computes stands there as one word."""

    def __init__(self, template: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, str, str]] = []
        code = re.compile(r"\{#.*?#\}|\{%.*?%\}", re.DOTALL)
        quoted = re.sub(r"\{\{(.*?)\}\}", lambda found: "{{" + found[1].replace('"', "'") + "}}", template)
        self.feed(code.sub(" ", quoted))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags += [(tag, name, value or "") for name, value in attrs] or [(tag, "", "")]


def test_text_is_escaped_and_made_visible() -> None:
    page = made(
        '<p class="{{ kind }}">{{ text }}{{ nothing }}{{ 5 }}</p>', kind='"x"', nothing=None, text="a < b & \u202e\x1b"
    )
    assert page == '<p class="&#34;x&#34;">a &lt; b &amp; \\u202e\\x1b5</p>'


def test_what_a_form_sends_back_is_what_it_was_given() -> None:
    assert made('<input value="{{ text|exact }}">', text='a"\u202e') == '<input value="a&#34;\u202e">'


def test_line_breaks_of_a_template_are_not_shown_and_those_of_a_text_are() -> None:
    assert made("<pre>\n  {{ text }}\n</pre>\n", text="a\n  b") == "<pre>a\n  b</pre>"


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "//evil.example",
        "/\\evil.example",
        "/\t/evil.example",
        "https://evil.example",
        " /x",
        "/é",
    ],
)
def test_an_address_that_leaves_the_page_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="no address on this page"):
        made('<a href="{{ address|address }}">', address=address)
    assert made('<a href="{{ address|address }}">', address="/x?y=1#z") == '<a href="/x?y=1#z">'


@pytest.mark.parametrize("filter_name", ["safe", "tojson", "join", "format", "replace", "e", "escape", "forceescape"])
def test_what_could_make_markup_of_text_does_not_exist(filter_name: str) -> None:
    with pytest.raises(TemplateError, match="No filter named"):
        made(f"{{{{ '<b>'|{filter_name} }}}}")


@pytest.mark.parametrize("value", [1.5, b"<b>", ["<b>"], {"<b>": 1}, object()])
def test_what_is_neither_text_nor_number_is_not_shown_by_accident(value: object) -> None:
    with pytest.raises(TypeError, match="shows text and whole numbers"):
        made("{{ value }}", value=value)


def test_a_name_that_nobody_gave_is_an_error() -> None:
    with pytest.raises((TemplateError, TypeError)):
        made("{{ missing }}")


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_holds_only_what_is_harmless(name: str) -> None:
    tags = Tags(TEMPLATES[name]).tags
    assert {tag for tag, _, _ in tags} <= ELEMENTS
    assert [each for each in tags if FORBIDDEN.fullmatch(each[1])] == []
    for tag, attribute, value in tags:
        if attribute in ADDRESSES:
            assert re.fullmatch(r"#\w+|\{\{.*\|address \}\}[/\w]*", value), (tag, attribute, value)
        if "|exact" in value:
            assert attribute == "value", "everything else is for eyes"
    assert re.findall(r"<script[^>]*>(?!</script>)", TEMPLATES[name]) == [], "what runs comes from a file of ours"


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_puts_no_text_past_the_guards(name: str) -> None:
    """Joined to markup, text is escaped but not made visible; unquoted, it can end its attribute."""
    template = TEMPLATES[name]
    assert not re.search(r"autoescape|Markup|\.format\(", template)
    for code in re.findall(r"\{[{%](.*?)[%}]\}", template, re.DOTALL):
        outside = re.sub(r'"[^"]*"', "", code)
        assert "~" not in outside, code
        assert not re.search(r"\+(?! 1\b)|%", outside), code
    assert not re.search(r"=\s*\{\{", template)


def test_these_checks_notice() -> None:
    bad = Tags("<iframe onload='x'></iframe><a href=\"{{ x }}\">").tags
    assert bad == [("iframe", "onload", "x"), ("a", "href", "{{ x }}")]


def test_only_one_module_makes_markup() -> None:
    package = Path(str(files("skillkit.web")))
    makers = {
        path.relative_to(package).as_posix() for path in package.rglob("*.py") if "markupsafe" in path.read_text()
    }
    assert makers == {"html/__init__.py"}


@pytest.mark.parametrize(
    ("seconds", "words"), [(1, "1 s"), (60, "1 min"), (90, "1 min 30 s"), (3600, "1 h"), (86400, "1 d")]
)
def test_how_long_a_bar_is_has_no_empty_parts(seconds: int, words: str) -> None:
    assert FILTERS["lasting"](seconds) == words
