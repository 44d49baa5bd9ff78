"""Values -> the small pieces that several views show: times, spans, facts, trees."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from skillkit.core.decide.prompt import pretty_json
from skillkit.web.highlight import marked
from skillkit.web.icons import icon
from skillkit.web.markup import Child, Markup, tag

__all__ = ["card", "empty_card", "facts", "input_block", "listing", "moment", "plural", "value_block", "within"]

DEEPEST = 24
TREE_CHARACTERS = 50_000
MINUTE, HOUR, DAY = 60, 3600, 86_400


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def moment(seconds: float) -> Markup:
    """In UTC; the browser says it in local time where it can."""
    at = datetime.fromtimestamp(seconds, UTC)
    return tag("time", f"{at:%Y-%m-%d %H:%M:%S} UTC", datetime=at.isoformat(timespec="seconds"), data_local=True)


def within(seconds: float) -> str:
    """`4 min 5 s`: how long is left."""
    left = max(0, round(seconds))
    if left >= DAY:
        return f"{left // DAY} d {left % DAY // HOUR} h"
    if left >= HOUR:
        return f"{left // HOUR} h {left % HOUR // MINUTE} min"
    return f"{left // MINUTE} min {left % MINUTE} s" if left >= MINUTE else f"{left} s"


def card(heading: Child, *content: Child, class_: str = "") -> Markup:
    return tag("section", tag("h2", heading), *content, class_=f"card {class_}".rstrip())


def empty_card(drawing: str, *content: Child) -> Markup:
    """In place of what is not there."""
    return tag("div", icon(drawing), *content, class_="card empty")


def listing(label: str, rows: Sequence[Mapping[str, Child]]) -> Markup:
    """A table; each cell has its column's name, for screens too narrow for columns."""
    head = tag("thead", tag("tr", [tag("th", name, scope="col") for name in rows[0]]))
    body = [tag("tr", [tag("td", value, data_name=name) for name, value in row.items()]) for row in rows]
    table = tag("table", head, tag("tbody", body), class_="listing")
    return tag("div", table, class_="card scroll", tabindex=0, role="region", aria_label=label)


def facts(rows: Iterable[tuple[str, Child]]) -> Markup:
    """Labels are ours, what stands beside them may be anybody's."""
    return tag("dl", [tag("div", tag("dt", label), tag("dd", value)) for label, value in rows if value], class_="facts")


def input_block(text: str) -> Child:
    """A tree where the text is JSON that loses nothing by being read; else the text as it is."""
    value = json.loads(text) if pretty_json(text) else None
    if not isinstance(value, dict | list) or not is_small(value, text):
        return text_block(text)
    return [tree(value), tag("details", tag("summary", "As text"), text_block(text))]


def value_block(value: dict[str, Any]) -> Child:
    """As a tree while a person can find their way in it."""
    text = json.dumps(value, ensure_ascii=False)
    return tree(value) if is_small(value, text) else text_block(text)


def is_small(value: dict[str, Any] | list[Any], text: str) -> bool:
    return len(text) <= TREE_CHARACTERS and depth_of(value) <= DEEPEST


def text_block(text: str) -> Markup:
    return tag("pre", marked(text), class_="code wrap", tabindex=0, role="region", aria_label="Text")


def tree(value: Any) -> Markup:  # noqa: ANN401 - whatever JSON holds
    """Nested lists; a screen reader says how deep it is."""
    match value:
        case Mapping() if value:
            entries = [
                tag("li", tag("span", marked(str(key)), class_="key"), branch(each)) for key, each in value.items()
            ]
            return tag("ul", entries, class_="tree")
        case list() | tuple() if value:
            return tag("ol", [tag("li", branch(each)) for each in value], class_="tree", start=0)
        case _:
            return tag("code", marked(scalar(value)), class_="value text" if isinstance(value, str) else "value")


def branch(value: Any) -> Child:  # noqa: ANN401 - as above
    return [" ", tree(value)]


def scalar(value: object) -> str:
    """As JSON, so that text and number cannot be mistaken for each other."""
    return json.dumps(value, ensure_ascii=False)


def depth_of(value: dict[str, Any] | list[Any]) -> int:
    """Without recursion: the value comes from elsewhere."""
    deepest, level = 0, [value]
    while level and deepest <= DEEPEST:
        deepest += 1
        inside = [each for one in level for each in (one.values() if isinstance(one, dict) else one)]
        level = [each for each in inside if isinstance(each, dict | list)]
    return deepest
