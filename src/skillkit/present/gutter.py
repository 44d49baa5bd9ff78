"""Our words and other people's -> lines that cannot be mistaken for each other.

Labels and our own words are plain. Everything else, from a skill or a caller, stands behind a gutter: it can
never begin where a heading or an option of ours begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from skillkit.present.terminal import visible, wrapped

__all__ = ["BOLD", "CYAN", "DIM", "GREEN", "RED", "YELLOW", "Layout", "harmless"]

BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"
LABEL_COLUMNS = 11
BESIDE_LABELS = 56  # columns; on less, a label stands above its text
SHORTEST_PIECE = 8
TAB_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things stand on a page of this width."""

    width: int
    color: bool = False
    has_keys: bool = True
    """Whether whoever reads can press one to see more."""

    def more(self, key: str) -> str:
        """How to see the rest, where there is a way."""
        return f"; {key} shows all" if self.has_keys else ""

    @property
    def room(self) -> int:
        """Columns for text, behind label and gutter."""
        return max(self.width - (LABEL_COLUMNS + 5 if self.width >= BESIDE_LABELS else 4), SHORTEST_PIECE)

    def painted(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.color and style and text else text

    def said(self, label: str, text: str) -> list[str]:
        """Our own words."""
        rows = [f"  {self.painted(piece, DIM)}" for piece in wrapped(text, self.room)]
        return self._labelled(label, rows)

    def quoted(
        self,
        label: str,
        lines: Iterable[str],
        *,
        style: str = "",
        at_words: bool = True,
        start: str = "",
        limit: int | None = None,
    ) -> list[str]:
        """Anybody's words, made harmless; `start` is ours and stands before the first row of each line."""
        rows: list[str] = []
        for line in lines:
            for prefix, piece in self._pieces(line, start, at_words=at_words, limit=limit):
                if limit is not None and len(rows) == limit:
                    return [*self._labelled(label, rows), *self.said("", f"more{self.more('v')}")]
                gutter = self.painted("│", DIM)
                rows.append(f"{gutter} {self.painted(prefix, DIM)}{self.painted(piece, style)}".rstrip())
        return self._labelled(label, rows)

    def _pieces(self, line: str, start: str, *, at_words: bool, limit: int | None) -> Iterator[tuple[str, str]]:
        room = max(self.room - len(start), SHORTEST_PIECE)
        # One row more than is shown: a line of megabytes is not worth the work, and its rest must not go unsaid.
        kept = line if limit is None else line[: (limit + 1) * room]
        prefix = start
        for piece in wrapped(harmless(kept), room, at_words=at_words):
            yield prefix, piece
            prefix = " " * len(start)
        if len(kept) < len(line):
            yield prefix, "…"

    def _labelled(self, label: str, rows: list[str]) -> list[str]:
        if self.width < BESIDE_LABELS:
            above = [f"  {self.painted(label, BOLD)}"] if label and rows else []
            return above + [f"  {row}" for row in rows]
        labels = [self.painted(label, BOLD) + " " * (LABEL_COLUMNS - len(label)), *[" " * LABEL_COLUMNS] * len(rows)]
        return [f"  {name} {row}" for name, row in zip(labels, rows, strict=False)]


def harmless(line: str) -> str:
    """On one line; whatever could move the cursor, hide or reorder is written out."""
    return visible(line.expandtabs(TAB_COLUMNS)).replace("\n", "\\n")
