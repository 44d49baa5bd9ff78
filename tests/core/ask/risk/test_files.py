from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillkit.core.ask.risk.files import (
    files_to_read,
    head_of,
    is_worth_reading,
    link_targets,
    open_regular,
    program_kind,
    read,
)
from skillkit.core.models.digest import manifest_of
from skillkit.core.values.runs import Manifest


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


def listed(*paths: str) -> Manifest:
    return Manifest("0" * 64, tuple((path, "sha256 0") for path in paths))


def test_scripts_that_run_are_read_first_then_code_then_the_rest_but_no_data_and_no_link(tmp_path: Path) -> None:
    for name in ("z.sh", "b.py", "LICENSE", "a.md", "data.csv", "other.csv"):
        (tmp_path / name).write_text("x\n")
    os.symlink("b.py", tmp_path / "link.py")
    reading = files_to_read(tmp_path, manifest_of(tmp_path), ["z.sh", "data.csv", "link.py", "missing.py"])
    assert [file.path for file in reading.files] == ["z.sh", "data.csv", "b.py", "LICENSE", "a.md"]
    assert reading.left_out == 0


def test_so_many_files_are_read_and_the_rest_is_counted(tmp_path: Path) -> None:
    names = [f"{number:03}.py" for number in range(202)]
    for name in names:
        (tmp_path / name).write_text("x\n")
    reading = files_to_read(tmp_path, listed(*reversed(names)), [])
    assert ([file.path for file in reading.files], reading.left_out) == (names[:200], 2)


def test_what_is_no_file_of_the_skill_is_not_counted(tmp_path: Path) -> None:
    names = [f"{number:03}.py" for number in range(200)]
    manifest = Manifest("0" * 64, (*listed(*names).entries, ("zz.py", "link 000.py")))
    assert files_to_read(tmp_path, manifest, ["missing.py"]).left_out == 0


def sized(folder: Path, sizes: list[int]) -> Manifest:
    for number, size in enumerate(sizes):
        (folder / f"{number}.py").write_bytes(b"x" * size)
    return listed(*(f"{number}.py" for number in range(len(sizes))))


def test_so_much_of_a_file_and_of_all_files_is_read(tmp_path: Path) -> None:
    reading = files_to_read(tmp_path, sized(tmp_path, [300_000] * 6), [])
    assert [len(file.text) for file in reading.files] == [256_000, 256_000, 256_000, 232_000]
    assert reading.left_out == 2


def test_the_last_byte_that_may_be_read_is_read(tmp_path: Path) -> None:
    reading = files_to_read(tmp_path, sized(tmp_path, [*[250_000] * 3, 249_999, 1]), [])
    assert (len(reading.files), reading.left_out) == (5, 0)


def test_nothing_is_read_after_all_that_may_be_read_and_what_is_gone_takes_no_room(tmp_path: Path) -> None:
    manifest = sized(tmp_path, [1, *[250_000] * 4, 1])
    (tmp_path / "0.py").unlink()
    reading = files_to_read(tmp_path, manifest, [])
    assert [(len(file.text), file.is_cut) for file in reading.files] == [(250_000, False)] * 4
    assert reading.left_out == 1


def test_what_is_no_text_is_said_to_be_there_only_where_its_name_is_that_of_code(tmp_path: Path) -> None:
    for name in ("x.py", "notes"):
        (tmp_path / name).write_bytes(b"a" * 8_191 + b"\0")
    file = read(tmp_path, "x.py", 10_000)
    assert file is not None
    assert (file.language, file.text, file.size, file.binary) == ("", "", 8_192, "")
    assert not file.is_cut
    assert read(tmp_path, "notes", 10_000) is None


def test_an_archive_is_one_however_its_bytes_look(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK")
    file = read(tmp_path, "x.zip", 100)
    assert file is not None
    assert (file.text, file.binary) == ("", "a packed archive")


def test_what_is_text_for_long_enough_is_text(tmp_path: Path) -> None:
    (tmp_path / "notes").write_bytes(b"a" * 8_192 + b"\0")
    file = read(tmp_path, "notes", 10_000)
    assert file is not None
    assert len(file.text) == 8_193


@pytest.mark.parametrize("name", ["missing.py", "a\0b.py", "."])
def test_what_is_not_there_or_no_file_is_not_read(tmp_path: Path, name: str) -> None:
    assert read(tmp_path, name, 100) is None


@pytest.mark.parametrize(
    ("name", "text", "language"),
    [
        ("tool", "#!/bin/sh\nls\n", "shell"),
        ("tool", "#!" + " " * 247 + "/bin/sh\n", "shell"),
        ("tool", "#!" + " " * 248 + "/bin/sh\n", ""),
        ("tool", "ls\n", ""),
        ("tool", "#!/bin/unknown\n", ""),
        ("tool.PY", "x\n", "python"),
        ("README.md", "x\n", "markdown"),
        ("package.json", "{}", "package"),
    ],
)
def test_the_language_of_a_file(tmp_path: Path, name: str, text: str, language: str) -> None:
    (tmp_path / name).write_text(text)
    file = read(tmp_path, name, 1_000)
    assert file is not None
    assert (file.language, file.text) == (language, text)


@pytest.mark.parametrize(("limit", "start"), [(0, b""), (1, b"a"), (2, b"ab"), (3, b"abc"), (4, b"abc")])
def test_the_first_bytes_of_a_file_and_its_size(tmp_path: Path, limit: int, start: bytes) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert head_of(tmp_path / "x", limit) == (start, 3)


def next_descriptor() -> int:
    descriptor = os.open(os.devnull, os.O_RDONLY)
    os.close(descriptor)
    return descriptor


def test_what_is_no_regular_file_is_refused_and_closed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    before = next_descriptor()
    with pytest.raises(OSError, match="is no regular file"):
        open_regular(tmp_path / "pipe")
    assert next_descriptor() == before
