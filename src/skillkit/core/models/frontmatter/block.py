"""One frontmatter block -> fields, every scalar as text; what YAML refuses is repaired entry by entry."""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml

from skillkit.core.exceptions import InvalidFrontmatterError, InvalidYAMLError
from skillkit.core.models.frontmatter.texts import Note, Value, as_written, child_block, entries, quote
from skillkit.core.values.text import grouped

__all__ = ["BlockReader"]

NODE_LIMIT = 10_000
CHARACTER_LIMIT = 512 * 1024
DEPTH_LIMIT = 32
NOTE_LIMIT = 100
ENTRY_COST_NODES = 10  # a repaired entry is parsed on its own
QUOTE_IT = "Put the value in quotes."


class _Untyped:
    """YAML guesses a type for every scalar; here all stay text, which also saves a third of the time."""

    def resolve(self, *_: object) -> str:
        return ""

    def descend_resolver(self, *_: object) -> None: ...

    def ascend_resolver(self) -> None: ...


# The C library is ten times as fast; wheels for every common platform have it.
class _TextLoader(_Untyped, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # chosen at run time
    """Gives nodes only; nothing is ever constructed from a tag."""


# What YAML calls printable, and the line break.
UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Only YAML ends a line there; editors, and so the people who wrote the file, do not.
OTHER_LINE_ENDS = str.maketrans("\x85\u2028\u2029", "   ")
NESTING = re.compile(r"[\[{]|[-?][ \t]|\n +(?=[^ ])")
# A plain description with its continuation lines. No possessive groups here or elsewhere: Python 3.11 before
# 3.11.5 matches them wrongly.
PLAIN_DESCRIPTION = re.compile(
    r"^(description:[ \t]*(?:\n[ \t]+)?)(?![\s\"'|>\[{&*!%@`#]|-\s)([^\n]+(?:\n[ \t]+[^\n]+)*)",
    re.MULTILINE,
)
HASH_IN_TEXT = re.compile(r"(?<=\S)[ \t]+#(?=\S)")


@dataclass(slots=True)
class _Budget:
    """What one file may still cost, however its aliases and repairs multiply."""

    nodes: int = NODE_LIMIT
    characters: int = CHARACTER_LIMIT

    def covers(self, *, nodes: int, characters: int = 0) -> bool:
        """Takes that much; false when there was not enough left."""
        self.nodes -= nodes
        self.characters -= characters
        return self.nodes >= 0 and self.characters >= 0


class BlockReader:
    """Reads one block; oddities are appended to `notes` with their line in the file."""

    def __init__(self, first_line: int, notes: list[Note], depth: int = 0, budget: _Budget | None = None) -> None:
        if depth > DEPTH_LIMIT:
            raise _too_much(first_line)
        self.first_line = first_line
        self.notes = notes
        self.depth = depth
        self.budget = budget or _Budget()

    def read(self, block: str) -> tuple[dict[str, Value], dict[str, int]]:
        """The fields, and the line of each top-level key."""
        block = self.keep_hash(self.printable(block))
        try:
            return self.mapping(block)
        except yaml.YAMLError as error:
            return self.repair(block, error)

    def note(self, code: str, message: str, line: int, remedy: str) -> None:
        if len(self.notes) < NOTE_LIMIT:
            self.notes.append(Note(code, message, line, remedy))
        elif len(self.notes) == NOTE_LIMIT:
            self.notes.append(
                Note("more", "There are more oddities; they are not listed.", line, "Correct these first.")
            )

    def printable(self, block: str) -> str:
        """YAML refuses a whole file for one control character; it is shown as U+FFFD instead."""
        if not block.isascii():
            block = block.translate(OTHER_LINE_ENDS)
        bad = UNPRINTABLE.search(block)
        if bad is None:
            return block
        line = self.first_line + block.count("\n", 0, bad.start())
        self.note("control-character", f"Character U+{ord(bad[0]):04X} is not allowed.", line, "Remove it.")
        return UNPRINTABLE.sub("\ufffd", block)

    def keep_hash(self, block: str) -> str:
        """YAML cuts a plain description at ` #`; `issue #12` is text, so it is quoted before YAML sees it."""
        found = PLAIN_DESCRIPTION.search(block) if "#" in block else None
        if found is None or HASH_IN_TEXT.search(found[2]) is None:
            return block
        line = self.first_line + block.count("\n", 0, found.start())
        message = "The description contains ' #', which starts a comment in YAML; read as text."
        self.note("hash-in-text", message, line, QUOTE_IT)
        return f"{block[: found.start(2)]}{quote(found[2].strip())}{block[found.end() :]}"

    def mapping(self, block: str) -> tuple[dict[str, Value], dict[str, int]]:
        """The block as YAML says it, every scalar as text."""
        self.refuse_depth(block)
        node = _single_node(block)
        if node is None:
            return {}, {}
        if not isinstance(node, yaml.MappingNode):
            raise InvalidFrontmatterError(
                "The frontmatter is not made of 'key: value' lines.",
                line=self.first_line,
                remedy="Write name and description as 'key: value'.",
            )
        keys = (key for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        lines = {key.value: self.first_line + key.start_mark.line for key in keys}
        return _NodeReader(self).pairs(node, 0), lines

    def refuse_depth(self, block: str) -> None:
        """The C library builds its tree by recursion and takes the whole process down when it is too deep."""
        if len(NESTING.findall(block)) < DEPTH_LIMIT:
            return
        depth = 0
        for event in yaml.parse(block, Loader=_TextLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH_LIMIT:
                raise _too_much(self.first_line + event.start_mark.line)

    def repair(self, block: str, error: yaml.YAMLError) -> tuple[dict[str, Value], dict[str, int]]:
        """Each top-level entry on its own, so that a bad one costs nothing but itself."""
        fields: dict[str, Value] = {}
        lines: dict[str, int] = {}
        notes_before = len(self.notes)
        for key, offset, entry in entries(block):
            line = self.first_line + offset
            if not self.budget.covers(nodes=ENTRY_COST_NODES):
                raise _too_much(line)
            if key in fields:
                self.note_duplicate(key, line)
            fields[key], lines[key] = self.entry_value(key, line, entry), line
        broken = _invalid_yaml(error, self.first_line)
        if not fields:
            raise broken
        if len(self.notes) == notes_before:
            self.note("repaired", f"{broken} It was read line by line.", broken.line or 1, "Correct it.")
        return fields, lines

    def entry_value(self, key: str, line: int, entry: list[str]) -> Value:
        """As YAML, else its indented lines as a block of their own, else as the text that stands there."""
        try:
            single, _ = BlockReader(line, self.notes, budget=self.budget).mapping("\n".join(entry))
            return single.get(key)
        except (yaml.YAMLError, InvalidFrontmatterError):
            children = child_block(entry)
            if children:
                nested, _ = BlockReader(line + 1, self.notes, self.depth + 1, self.budget).read(children)
                return dict(nested)
            self.note("repaired-value", f"The value of {key!r} is not valid YAML; read as text.", line, QUOTE_IT)
            return as_written(key, entry)

    def note_duplicate(self, key: str, line: int) -> None:
        self.note("duplicate-key", f"{key!r} is given twice; the last one counts.", line, "Keep one of them.")


class _NodeReader:
    """YAML nodes -> text, lists and dicts; pays for what it visits, so that aliases cannot multiply."""

    def __init__(self, reader: BlockReader) -> None:
        self.reader = reader

    def value(self, node: yaml.Node, depth: int) -> Value:
        self.pay(node)
        if depth > DEPTH_LIMIT:
            raise _too_much(self.line_of(node))
        if isinstance(node, yaml.ScalarNode):
            is_null = not node.style and node.value in ("", "~", "null", "Null", "NULL")
            # An escape in a quoted text can name a character that the file itself may not hold.
            return None if is_null else UNPRINTABLE.sub("\ufffd", node.value)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        return self.pairs(node, depth) if isinstance(node, yaml.MappingNode) else None

    def pairs(self, node: yaml.MappingNode, depth: int) -> dict[str, Value]:
        pairs: dict[str, Value] = {}
        for key, value in node.value:
            self.pay(key)
            if not isinstance(key, yaml.ScalarNode):
                self.note_odd_key(key, is_placeholder=bool(node.flow_style))
                continue
            if key.value in pairs:
                self.reader.note_duplicate(key.value, self.line_of(key))
            pairs[key.value] = self.value(value, depth + 1)
        return pairs

    def note_odd_key(self, key: yaml.Node, *, is_placeholder: bool) -> None:
        """`{{name}}` is a map with a map as its key; whoever wrote it meant text."""
        if is_placeholder:
            raise yaml.MarkedYAMLError(problem="a key is not text", problem_mark=key.start_mark)
        message = "A key is not plain text; its entry is left out."
        self.reader.note("odd-key", message, self.line_of(key), "Quote it.")

    def pay(self, node: yaml.Node) -> None:
        length = len(node.value) if isinstance(node, yaml.ScalarNode) else 0
        if not self.reader.budget.covers(nodes=1, characters=length):
            raise _too_much(self.line_of(node))

    def line_of(self, node: yaml.Node) -> int:
        return self.reader.first_line + int(node.start_mark.line)


def _single_node(block: str) -> yaml.Node | None:
    loader = _TextLoader(block)
    try:
        node: yaml.Node | None = loader.get_single_node()
        return node
    finally:
        loader.dispose()


def _too_much(line: int) -> InvalidYAMLError:
    return InvalidYAMLError(
        f"The frontmatter holds more than {grouped(NODE_LIMIT)} values or {DEPTH_LIMIT} levels.",
        line=line,
        remedy="Write it without aliases and deep nesting.",
    )


def _invalid_yaml(error: yaml.YAMLError, first_line: int) -> InvalidYAMLError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "it cannot be parsed"
    return InvalidYAMLError(
        f"The frontmatter is not valid YAML: {problem}.",
        line=first_line + mark.line if mark else first_line,
        column=mark.column + 1 if mark else None,
        remedy=QUOTE_IT,
    )
