"""Made-up skills, one for each way in which real ones depart from the standard, and what is made of them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.skill_folders import codes, discovered, metadata_of, reading_of_text, skill_folder

from skillkit.core.find.roots import PROJECT, Root
from skillkit.core.models import Skill


@dataclass(frozen=True)
class Case:
    """The text between the fences, and what it must give; `raw` in place of the block gives the whole file."""

    block: str
    description: str
    notes: tuple[tuple[str, int], ...] = ()
    fields: dict[str, Any] = field(default_factory=dict)
    raw: bytes | None = None


CASES = {
    # YAML that is broken
    "unquoted colon": Case(
        "name: s\ndescription: Use when: the user asks for a report",
        "Use when: the user asks for a report",
        (("repaired-value", 3),),
    ),
    "unquoted colon on a second line": Case(
        "name: s\ndescription: Makes reports.\n  Use when: the user asks",
        "Makes reports. Use when: the user asks",
        (("repaired-value", 3),),
    ),
    "unquoted colon, other fields keep their types": Case(
        "name: s\ndescription: Do: it\nversion: 1.10\nallowed-tools: Read, Bash(git:*)\nmetadata:\n  a: [b, c]",
        "Do: it",
        (("repaired-value", 3),),
        {"version": "1.10", "allowed_tools": ("Read", "Bash(git:*)"), "metadata": {"a": ["b", "c"]}},
    ),
    "colon inside nested metadata": Case(
        "name: s\ndescription: d\nmetadata:\n  hint: use: this\n  tag: x",
        "d",
        (("repaired-value", 5),),
        {"metadata": {"hint": "use: this", "tag": "x"}},
    ),
    "argument hint of two lists": Case(
        "name: s\ndescription: d\nargument-hint: [file] [format]",
        "d",
        (("repaired-value", 4),),
        {"extra": {"argument-hint": "[file] [format]"}},
    ),
    "argument hint of one list": Case(
        "name: s\ndescription: d\nargument-hint: [file]", "d", (), {"extra": {"argument-hint": ["file"]}}
    ),
    "broken flow metadata": Case(
        'name: s\ndescription: d\nmetadata: {"openclaw": {"emoji": "x"',
        "d",
        (("repaired-value", 4), ("odd-metadata", 4)),
        {"metadata": {}},
    ),
    "JSON metadata": Case(
        'name: s\ndescription: d\nmetadata: {"openclaw":{"requires":{"bins":["jq"]},"always":true}}',
        "d",
        (),
        {"metadata": {"openclaw": {"requires": {"bins": ["jq"]}, "always": "true"}}},
    ),
    "JSON metadata on many lines": Case(
        'name: s\ndescription: d\nmetadata:\n  {\n    "openclaw": {"emoji": "x"},\n  }',
        "d",
        (),
        {"metadata": {"openclaw": {"emoji": "x"}}},
    ),
    "merge conflict": Case(
        "name: s\n<<<<<<< HEAD\ndescription: ours\n=======\ndescription: theirs\n>>>>>>> branch",
        "theirs",
        (("duplicate-key", 6),),
    ),
    "Markdown in the block": Case("name: s\n# A title\ndescription: d", "d"),
    "Markdown line in the block": Case("name: s\n**Note**\ndescription: d", "d", (("repaired-value", 2),)),
    "value starting with a comma": Case("name: s\ndescription: , and more", ", and more", (("repaired-value", 3),)),
    "allowed tools with a dash": Case(
        "name: s\ndescription: d\nallowed-tools: - Read", "d", (("repaired-value", 4),), {"allowed_tools": ("Read",)}
    ),
    "template placeholder": Case("name: s\ndescription: {{what it is}}", "{{what it is}}", (("repaired-value", 3),)),
    "unhashable key": Case("name: s\ndescription: d\n{a: b}: c", "d", (("odd-key", 4),)),
    "C1 control character": Case("name: s\ndescription: a\x80b", "a\ufffdb", (("control-character", 3),)),
    "bold text read as an alias": Case(
        "name: s\ndescription: **Reports** for all", "**Reports** for all", (("repaired-value", 3),)
    ),
    "bold text in a list": Case(
        "name: s\ndescription: d\ntags:\n- **a**", "d", (("repaired-value", 4),), {"extra": {"tags": "- **a**"}}
    ),
    "text glued to the closing fence": Case(
        "", "d", (("glued-fence", 4),), raw=b"---\nname: s\ndescription: d\n---# Title\nDo it.\n"
    ),
    "list at the margin inside a description": Case(
        "name: s\ndescription: Makes:\n- reports\n- charts", "Makes: - reports - charts", (("repaired-value", 3),)
    ),
    "surrogate pair": Case('name: s\ndescription: "Fun \\ud83d\\ude00"', "Fun \U0001f600", (("repaired-value", 3),)),
    "lone surrogate": Case('name: s\ndescription: "Odd \\ud83d."', "Odd ?.", (("repaired-value", 3),)),
    "NUL": Case("name: s\ndescription: a\0b", "a\ufffdb", (("control-character", 3),)),
    "0x01": Case("name: s\ndescription: a\x01b", "a\ufffdb", (("control-character", 3),)),
    "entity of a space": Case("name: s\ndescription: &nbsp;A&nbsp;b", "&nbsp;A&nbsp;b", (("repaired-value", 3),)),
    "at sign": Case("name: s\ndescription: @team writes", "@team writes", (("repaired-value", 3),)),
    "backtick": Case("name: s\ndescription: `pdf` tools", "`pdf` tools", (("repaired-value", 3),)),
    "percent sign": Case("name: s\ndescription: %done", "%done", (("repaired-value", 3),)),
    "quote that is not closed": Case('name: s\ndescription: "open', '"open', (("repaired-value", 3),)),
    "quotes inside quotes": Case('name: s\ndescription: "say "hi" now"', 'say "hi" now', (("repaired-value", 3),)),
    "tab indentation": Case(
        "name: s\ndescription: d\nmetadata:\n\ta: b", "d", (("repaired", 5),), {"metadata": {"a": "b"}}
    ),
    "duplicate key": Case("name: s\ndescription: a\ndescription: b", "b", (("duplicate-key", 4),)),
    # bytes
    "byte-order mark": Case("", "d", raw=b"\xef\xbb\xbf---\nname: s\ndescription: d\n---\nDo it.\n"),
    "CRLF": Case("", "d", raw=b"---\r\nname: s\r\ndescription: d\r\n---\r\nDo it.\r\n"),
    "not UTF-8": Case("", "caf\ufffd", (("encoding", 3),), raw=b"---\nname: s\ndescription: caf\xe9\n---\nDo it.\n"),
    # silent loss
    "description with a hash": Case("name: s\ndescription: Fixes issue #12", "Fixes issue #12", (("hash-in-text", 3),)),
    "version stays text": Case("name: s\ndescription: d\nversion: 1.10", "d", (), {"version": "1.10"}),
    "version in metadata": Case("name: s\ndescription: d\nmetadata:\n  version: 2.0", "d", (), {"version": "2.0"}),
    # styles
    "literal block": Case("name: s\ndescription: |\n  One.\n\n  Two: three.", "One. Two: three."),
    "folded block": Case("name: s\ndescription: >-\n  One\n  two.", "One two."),
    "double quotes": Case('name: s\ndescription: "a: b # c"', "a: b # c"),
    "single quotes": Case("name: s\ndescription: 'it''s: fine'", "it's: fine"),
    "plain on many lines": Case("name: s\ndescription: one\n  two\n  three", "one two three"),
    "not ASCII": Case("name: s\ndescription: Отчёты 报告 😀", "Отчёты 报告 😀"),
    "longer than the standard allows": Case("name: s\ndescription: " + "x" * 1929, "x" * 1929),
    "dashes inside a value": Case("name: s\ndescription: a --- b ---", "a --- b ---"),
    # fields
    "name with spaces": Case("name: My Skill\ndescription: d", "d", (("name-mismatch", 2),), {"name": "My Skill"}),
    "name with colons": Case("name: a::b\ndescription: d", "d", (("name-mismatch", 2),), {"name": "a::b"}),
    "name with a slash": Case("name: a/b\ndescription: d", "d", (("name-mismatch", 2),), {"name": "a/b"}),
    "name that climbs": Case("name: ../../x\ndescription: d", "d", (("name-mismatch", 2),), {"name": "../../x"}),
    "name like a number": Case("name: 007\ndescription: d", "d", (("name-mismatch", 2),), {"name": "007"}),
    "no name": Case("description: d", "d", (("missing-name", 1),), {"name": "s"}),
    "null metadata": Case("name: s\ndescription: d\nmetadata:", "d", (), {"metadata": {}}),
    "metadata of text": Case("name: s\ndescription: d\nmetadata: x", "d", (("odd-metadata", 4),), {"metadata": {}}),
    "vendor fields": Case(
        "name: s\ndescription: d\nuser-invocable: no\ntags: [a]\nhooks: {stop: []}",
        "d",
        (),
        {"extra": {"user-invocable": "no", "tags": ["a"], "hooks": {"stop": []}}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_a_real_looking_skill_loads(tmp_path: Path, case: Case) -> None:
    raw = case.raw or f"---\n{case.block}\n---\nDo it.\n".encode()
    reading, diagnostics = reading_of_text(tmp_path / "s", raw)
    metadata = reading.metadata(str(tmp_path / "s" / "SKILL.md"), Root(tmp_path, PROJECT))
    assert metadata.description == case.description
    assert {key: getattr(metadata, key) for key in case.fields} == case.fields
    assert tuple((diagnostic.code, diagnostic.line) for diagnostic in diagnostics) == case.notes
    assert all(diagnostic.severity == "warning" and diagnostic.remedy for diagnostic in diagnostics)
    assert Skill(metadata).content.strip().endswith("Do it.")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("# PDF tools\n\nRead PDF files.\n", "no-frontmatter", id="no frontmatter"),
        pytest.param("name: s\ndescription: d\n", "no-frontmatter", id="no fences"),
        pytest.param("---\nname: s\ndescription: d\n# PDF tools\n", "no-frontmatter", id="never closed"),
        pytest.param("---\nname: s\nversion: 1\n---\n", "missing-field", id="no description"),
        pytest.param("---\nname: s\ndescription: >\n---\n", "missing-field", id="empty block"),
        pytest.param("---\n---\n", "missing-field", id="nothing in it"),
    ],
)
def test_what_no_client_can_load_is_skipped_with_a_reason(tmp_path: Path, text: str, code: str) -> None:
    reading, (diagnostic,) = reading_of_text(tmp_path / "s", text.encode())
    assert (reading.name, diagnostic.severity, diagnostic.code) == ("", "error", code)
    assert diagnostic.line
    assert diagnostic.remedy


LAYOUTS = {
    "skills at the root": (["skills/a"], ["a"]),
    "plugins": (["plugins/p/skills/a", "plugins/p/skills/b"], ["a", "b"]),
    "no skills folder": (["a", "b"], ["a", "b"]),
    "two levels": (["skills/group/a"], ["a"]),
    "three levels": (["skills/group/kind/a"], ["a"]),
    "four levels": (["skills/x/group/kind/a"], ["a"]),
    "hidden client folders": ([".github/skills/a", ".gemini/skills/b", ".codex/skills/c"], ["c", "b", "a"]),
    "a skill inside a skill": (["a", "a/b", "a/more/c"], ["a", "b", "c"]),
    "odd file names": (["a b & c (1)"], ["a b & c (1)"]),
}


@pytest.mark.parametrize(("folders", "names"), [pytest.param(*value, id=key) for key, value in LAYOUTS.items()])
def test_every_layout_is_found(tmp_path: Path, folders: list[str], names: list[str]) -> None:
    for folder in folders:
        skill_folder(tmp_path / "root", folder)
    found = discovered(tmp_path / "root")
    assert list(metadata_of(found)) == names
    assert found.diagnostics == []


@pytest.mark.parametrize("file_name", ["skill.md", "Skill.md", "SKILL.MD"])
def test_every_spelling_of_the_file_name_loads(tmp_path: Path, file_name: str) -> None:
    folder = skill_folder(tmp_path / "root", "s")
    (folder / "SKILL.md").rename(folder / file_name)
    assert metadata_of(discovered(tmp_path / "root"))["s"].skill_path.name == file_name


def test_links_as_repositories_have_them(tmp_path: Path) -> None:
    """To a sibling, to a target outside, a plugin that links to its own parent, and hundreds that are broken."""
    root = tmp_path / "repository"
    skill_folder(root, "skills/a")
    (root / "skills" / "alias-of-a").symlink_to("a")
    skill_folder(tmp_path, "outside/b")
    (root / "skills" / "b").symlink_to(tmp_path / "outside" / "b")
    skill_folder(root, "plugins/p/skills/c")
    (root / "plugins" / "p" / "plugins").symlink_to("..")
    (root / "gone").mkdir()
    for number in range(336):
        (root / "gone" / f"link{number:03}").symlink_to("nowhere")
    found = discovered(root)
    assert sorted(metadata_of(found)) == ["a", "b", "c"]
    assert codes(found.diagnostics) == ["broken-link"] * 336


def test_a_skill_of_a_thousand_files_and_many_megabytes_costs_nothing_to_find(tmp_path: Path) -> None:
    folder = skill_folder(tmp_path / "root", "s", files={f"data/{n}/file.txt": "" for n in range(1104)})
    (folder / "data" / "large.bin").touch()
    os.truncate(folder / "data" / "large.bin", 48_000_000)
    found = discovered(tmp_path / "root")
    assert (list(metadata_of(found)), found.diagnostics) == (["s"], [])
