from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from support.skill_folders import codes, reading_of_text, skill_folder

from skillkit.core.find.reading import HEAD_BYTES, read_skill_file
from skillkit.core.find.roots import PROJECT, Root
from skillkit.core.models import SkillMetadata
from skillkit.core.values.skills import Diagnostic

WHOLE = """\
---
name: pdf
description: |
  Reads PDF
  files.
license: Apache-2.0
compatibility: Needs poppler
allowed-tools: Bash(pdftotext:*) Read
metadata:
  version: 1.10
  nested: {emoji: x}
argument-hint: "[file]"
triggers: [pdf, scan]
---
Body
"""


def test_all_fields_reach_the_metadata(tmp_path: Path) -> None:
    reading, diagnostics = reading_of_text(tmp_path / "pdf", WHOLE.encode())
    path = tmp_path / "pdf" / "SKILL.md"
    metadata = reading.metadata(str(path), Root(tmp_path, PROJECT, tmp_path / "plugin"))
    assert diagnostics == []
    assert metadata == SkillMetadata(
        name="pdf",
        description="Reads PDF files.",
        skill_path=path,
        allowed_tools=("Bash(pdftotext:*)", "Read"),
        version="1.10",
        license="Apache-2.0",
        compatibility="Needs poppler",
        metadata={"version": "1.10", "nested": {"emoji": "x"}},
        extra={"argument-hint": "[file]", "triggers": ["pdf", "scan"]},
        source="project",
        plugin_root=tmp_path / "plugin",
    )
    assert (metadata.base_directory, metadata.qualified_name) == (tmp_path / "pdf", "project:pdf")


def test_a_version_at_the_top_beats_the_one_in_metadata(tmp_path: Path) -> None:
    text = b"---\nname: s\ndescription: d\nversion: 2.0\nmetadata: {version: 1.0}\n---\n"
    reading, _ = reading_of_text(tmp_path / "s", text)
    assert reading.metadata("s/SKILL.md", Root(tmp_path, PROJECT)).version == "2.0"


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "/abs", "..", "a\\b", "CON", "a:b", "~", "-rf", "x" * 65])
def test_a_name_is_a_label_and_never_a_path(tmp_path: Path, name: str) -> None:
    reading, diagnostics = reading_of_text(tmp_path / "s", f"---\nname: '{name}'\ndescription: d\n---\n".encode())
    metadata = reading.metadata(str(tmp_path / "s/SKILL.md"), Root(tmp_path, PROJECT))
    assert (metadata.name, metadata.base_directory) == (name, tmp_path / "s")
    assert codes(diagnostics) == ["name-mismatch"] + (["long-name"] if len(name) > 64 else [])
    assert [diagnostic.line for diagnostic in diagnostics] == [2] * len(diagnostics)


def test_a_missing_name_is_the_folders(tmp_path: Path) -> None:
    reading, diagnostics = reading_of_text(tmp_path / "my skill", b"---\ndescription: d\n---\n")
    assert reading.name == "my skill"
    assert diagnostics == [
        Diagnostic(
            "warning",
            "missing-name",
            "It has no name; the folder's is used: 'my skill'.",
            tmp_path / "my skill" / "SKILL.md",
            1,
            "Add 'name:'.",
        )
    ]


@pytest.mark.skipif(os.name == "nt", reason="no line ends in names there")
def test_a_folder_name_with_a_line_end_gives_a_name_of_one_line(tmp_path: Path) -> None:
    reading, _ = reading_of_text(tmp_path / "a\n\n# b", b"---\ndescription: d\n---\n")
    assert reading.name == "a # b"


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        pytest.param(b"", "no-frontmatter", 1, id="empty"),
        pytest.param(b"# Hi\n", "no-frontmatter", 1, id="no frontmatter"),
        pytest.param(b"---\nname: s\n", "no-frontmatter", 1, id="never closed"),
        pytest.param(b"---\nname: s\n---\n", "missing-field", 1, id="no description"),
        pytest.param(b"---\nname: s\ndescription:\n---\n", "missing-field", 3, id="empty description"),
        pytest.param(b"---\nname: s\ndescription: null\n---\n", "missing-field", 3, id="null description"),
        pytest.param(b"---\nname: s\ndescription: ' '\n---\n", "missing-field", 3, id="blank description"),
        pytest.param(b"---\n[a, b\n---\n", "invalid-yaml", 3, id="no YAML"),
        pytest.param(b"---\na: &a [*a]\n---\n", "invalid-yaml", 2, id="an alias of itself"),
        pytest.param(b"---\n" + b"[" * 100_000 + b"\n---\n", "invalid-yaml", 2, id="too deep"),
        pytest.param(b"\0" * 5000, "no-frontmatter", 1, id="NULs"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, "no-frontmatter", 1, id="a picture"),
    ],
)
def test_a_file_that_cannot_be_used_says_why_where_and_what_to_do(
    tmp_path: Path, content: bytes, code: str, line: int
) -> None:
    reading, (diagnostic,) = reading_of_text(tmp_path / "s", content)
    assert reading.name == ""
    assert (diagnostic.severity, diagnostic.code, diagnostic.path, diagnostic.line) == (
        "error",
        code,
        tmp_path / "s" / "SKILL.md",
        line,
    )
    assert diagnostic.remedy


def test_a_hundred_megabytes_are_refused_unread(tmp_path: Path) -> None:
    file = skill_folder(tmp_path, "s") / "SKILL.md"
    os.truncate(file, 100_000_000)
    (diagnostic,) = read_skill_file(str(file), file.stat()).diagnostics(str(file))
    assert diagnostic.message == "The file has 100,000,000 bytes; the limit is 10,000,000."
    assert diagnostic.remedy == "Move long texts into references/."


def test_a_long_body_is_not_read(tmp_path: Path) -> None:
    """Only the head is looked at: bytes far behind it that are not UTF-8 go unnoticed."""
    text = b"---\nname: s\ndescription: d\n---\n" + b"x\n" * HEAD_BYTES + b"\xff\xff"
    reading, diagnostics = reading_of_text(tmp_path / "s", text)
    assert (reading.name, diagnostics) == ("s", [])


def test_a_frontmatter_that_ends_at_any_byte_is_read_whole(tmp_path: Path) -> None:
    for length in (*range(HEAD_BYTES - 60, HEAD_BYTES + 10), 50_000):
        text = b"---\nname: s\ndescription: d\nx: " + b"y" * (length - 36) + b"\n---\nBody" + b"z" * HEAD_BYTES
        reading, diagnostics = reading_of_text(tmp_path / str(length) / "s", text)
        metadata = reading.metadata("s/SKILL.md", Root(tmp_path, PROJECT))
        assert (len(metadata.extra["x"]), diagnostics) == (length - 36, []), length


def test_metadata_that_is_no_map_is_left_out_and_told(tmp_path: Path) -> None:
    reading, (diagnostic,) = reading_of_text(tmp_path / "s", b"---\nname: s\ndescription: d\nmetadata: x\n---\n")
    assert reading.metadata("s/SKILL.md", Root(tmp_path, PROJECT)).metadata == {}
    assert (diagnostic.code, diagnostic.line) == ("odd-metadata", 4)


def test_a_folder_in_place_of_the_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").mkdir()
    (diagnostic,) = read_skill_file(str(tmp_path / "SKILL.md"), (tmp_path / "SKILL.md").stat()).diagnostics("p")
    assert (diagnostic.message, diagnostic.remedy) == ("It is not a regular file.", "Replace it by a text file.")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_that_takes_the_files_place_does_not_make_anybody_wait(tmp_path: Path) -> None:
    file = skill_folder(tmp_path, "s") / "SKILL.md"
    status = file.stat()
    file.unlink()
    os.mkfifo(file)
    readings: list[str] = []
    reader = threading.Thread(target=lambda: readings.append(read_skill_file(str(file), status).name), daemon=True)
    reader.start()
    reader.join(20)
    assert readings == [""]


def test_a_file_that_vanished_since_stat_says_so(tmp_path: Path) -> None:
    file = skill_folder(tmp_path, "s") / "SKILL.md"
    status = file.stat()
    file.unlink()
    (diagnostic,) = read_skill_file(str(file), status).diagnostics(str(file))
    assert (diagnostic.code, diagnostic.remedy) == ("unreadable-file", "Make it readable or remove it.")
