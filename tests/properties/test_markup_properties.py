"""Whatever text is put into a page, a parser finds exactly the elements that were meant, and that text."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from skillkit.core.values.text import visible
from skillkit.web.html import _environment
from skillkit.web.views.source import Part

ANYTHING = st.text(alphabet=st.one_of(st.sampled_from("<>\"'&/=!- \n\tabc`"), st.characters(exclude_categories=["Cs"])))
PIECES = st.lists(
    st.one_of(ANYTHING, st.sampled_from(["</p>", "<script>", "]]>", "<!--", "&lt;", "&#60;", "' onx='"])), max_size=8
)


TEMPLATE = _environment().from_string(
    '<p aria-label="{{ label }}">{% for each in pieces %}<span>{{ each }}</span>{% endfor %}<input value="{{ value|exact }}"></p>'
)
SOURCE = _environment().from_string('{% from "components.html" import source_block %}{{ source_block(part) }}')


class Seen(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.text = ""
        self.odd: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.odd.append(data)

    def unknown_decl(self, data: str) -> None:
        self.odd.append(data)


@settings(deadline=None, derandomize=True)
@given(PIECES, ANYTHING, ANYTHING)
def test_text_never_becomes_markup(pieces: list[str], label: str, value: str) -> None:
    page = TEMPLATE.render(pieces=pieces, label=label, value=value)
    seen = Seen(page)
    wanted = [("p", (("aria-label", visible(label)),)), *[("span", ())] * len(pieces), ("input", (("value", value),))]
    assert seen.elements == wanted
    assert seen.text == "".join(map(visible, pieces))
    assert seen.odd == []


LINE = st.text(
    alphabet=st.one_of(
        st.sampled_from("<>\"'&#$(){}[] \tabc1"), st.characters(exclude_categories=["Cs", "M"], exclude_characters="\n")
    )
)


@settings(deadline=None, derandomize=True)
@given(st.lists(LINE, min_size=1, max_size=6), st.sampled_from(["x.py", "x.sh", "x.js", "x.rb", "x.pl", "x.txt"]))
def test_colour_loses_and_adds_no_character(lines: list[str], script: str) -> None:
    part = Part(1, script, 1, lines, len(lines), lines[0], frozenset())
    seen = Seen(SOURCE.render(part=part))
    assert seen.text == "".join(f"{visible(line)}\n" for line in lines)
    assert {name for name, _ in seen.elements} <= {"pre", "code", "span", "mark"}
    assert seen.odd == []
