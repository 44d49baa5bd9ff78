"""HTML that is made of tags and text: what the makers refuse."""

from __future__ import annotations

import pytest

from skillkit.web.markup import Markup, document, tag


def test_text_is_escaped_and_elements_nest() -> None:
    made = tag("p", "a < b & ", tag("strong", '"c"'), [" d", None, 5], class_="x", hidden=True, id=None)
    assert made.html == '<p class="x" hidden>a &lt; b &amp; <strong>&quot;c&quot;</strong> d5</p>'
    assert document(tag("html", "é")).decode() == "<!doctype html>\n<html>é</html>"


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
        tag("a", "x", href=address)
    assert 'href="/x?y=1#z"' in tag("a", "x", href="/x?y=1#z").html


@pytest.mark.parametrize("name", ["onclick", "ONCLICK", "style", "srcdoc", "http_equiv", "a b", "x>", "1x"])
def test_an_attribute_that_could_run_or_restyle_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no attribute"):
        tag("p", "x", **{name: "x"})


def test_an_element_that_the_page_does_not_use_is_refused() -> None:
    for name in ("iframe", "object", "style", "base", "p onclick"):
        with pytest.raises(ValueError, match="no element"):
            tag(name, "x")
    with pytest.raises(ValueError, match="holds nothing"):
        tag("script", "alert(1)")


def test_nobody_else_makes_markup() -> None:
    with pytest.raises(TypeError):
        Markup("<script>", key=object())
