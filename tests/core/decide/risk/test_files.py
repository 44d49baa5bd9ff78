from __future__ import annotations

from pathlib import Path

import pytest

from skillkit.core.decide.risk.files import is_worth_reading, link_targets, program_kind, read
from skillkit.core.runs import Manifest


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"\x7fELF", "machine code"),
        (b"MZ", "machine code"),
        (b"\xcf\xfa\xed\xfe", "machine code"),
        (b"\xca\xfe\xba\xbe", "machine or byte code"),
        (b"\0asm", "WebAssembly"),
        (b"#!/bin/sh", ""),
        (b"\x89PNG\0", ""),
    ],
)
def test_a_program_is_known_by_how_it_starts(start: bytes, kind: str) -> None:
    assert program_kind("x", start + b"...") == kind


COMPILED = ".pyc .so .dylib .dll .exe .node .wasm .jar .class .bin .o .a".split()
PACKED = ".zip .tar .gz .tgz .bz2 .xz .7z .rar .whl .egg".split()


@pytest.mark.parametrize("suffix", COMPILED)
def test_bytes_with_the_name_of_a_program_are_one_and_a_text_is_not(suffix: str) -> None:
    assert program_kind(f"x{suffix.upper()}", b"a\0") == "machine or byte code"
    assert program_kind(f"x{suffix}", b"a") == ""


@pytest.mark.parametrize("suffix", PACKED)
def test_whatever_has_the_name_of_an_archive_and_is_not_empty_is_one(suffix: str) -> None:
    assert program_kind(f"x{suffix}", b"a") == "a packed archive"
    assert program_kind(f"x{suffix}", b"") == ""


@pytest.mark.parametrize("name", ["a.md", "a.markdown", "a.MDX"])
def test_instructions_are_read_as_such(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    file = read(tmp_path, name, 100)
    assert is_worth_reading(name)
    assert file is not None
    assert (file.language, file.text, file.size, file.is_cut) == ("markdown", "one\ntwo", 11, False)


def test_a_file_is_cut_only_where_it_is_longer_than_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("12345")
    read_so_far = [read(tmp_path, "a.py", limit) for limit in (4, 5, 6)]
    assert [(file.text, file.is_cut) for file in read_so_far if file] == [
        ("1234", True),
        ("12345", False),
        ("12345", False),
    ]


def test_the_list_of_a_package_is_read_and_other_data_is_not() -> None:
    assert [is_worth_reading(name) for name in ("sub/package.json", "other.json")] == [True, False]


def test_links_out_of_the_skill() -> None:
    links = {"a": "b", "b/c": "../a", "d": "..", "e": "../skillful", "f": "/skill/a", "g/h": "../../x", "i": "."}
    entries = tuple((path, f"link {target}") for path, target in links.items())
    found = [path for path, _ in link_targets(Manifest("0" * 64, (*entries, ("j", "sha256 0"))))]
    assert found == ["d", "e", "f", "g/h", "i"]
