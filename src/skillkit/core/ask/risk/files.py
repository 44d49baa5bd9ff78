"""A skill's folder and its manifest -> the files worth reading, the ones that would run first, each cut to a bound."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillkit.core.models.detect.languages import DATA_EXTENSIONS, language_of
from skillkit.core.values.runs import Manifest

__all__ = [
    "Reading",
    "SkillFile",
    "files_to_read",
    "head_of",
    "is_binary",
    "is_code_name",
    "is_of_tests",
    "link_targets",
    "near_files",
    "open_regular",
]

FILES = 200
FILE_BYTES = 256_000
ALL_BYTES = 1_000_000
SHEBANG = b"#!"
SHEBANG_LIMIT = 256
SNIFFED_BYTES = 8_192
DOCUMENTS = (".md", ".markdown", ".mdx")
PROGRAMS = {
    b"\x7fELF": "machine code",
    b"MZ": "machine code",
    b"\xcf\xfa\xed\xfe": "machine code",
    b"\xca\xfe\xba\xbe": "machine or byte code",
    b"\0asm": "WebAssembly",
}
COMPILED = (".pyc", ".so", ".dylib", ".dll", ".exe", ".node", ".wasm", ".jar", ".class", ".bin", ".o", ".a")
PACKED = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".whl", ".egg")
# What brings in another file, in one language or another; where none of these stands, a word is only a word.
BRINGING = ("import", "require", "source", "from ", "include", "load", "use ", ". ")
WORD = re.compile(r"[\w.-]+")
TESTS = frozenset("tests test __tests__ spec specs fixtures".split())
OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class SkillFile:
    """One file: its text as far as it was read, or why there is none."""

    path: str
    language: str
    """Of a script, `markdown`, `package`, or empty for other text."""
    text: str = ""
    size: int = 0
    is_cut: bool = False
    binary: str = ""
    """What kind of program the bytes are, where they are not text."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read, and how many files were not because there are too many."""

    files: tuple[SkillFile, ...]
    left_out: int


def files_to_read(folder: Path, manifest: Manifest, scripts: Sequence[str]) -> Reading:
    """The scripts that would run, then code, then the rest by path, until enough was read."""
    known = dict(manifest.entries)
    first = [path for path in scripts if known.get(path, "").startswith("sha256 ")]
    rest = [path for path, content in manifest.entries if content.startswith("sha256 ") and is_worth_reading(path)]
    paths = list(dict.fromkeys((*first, *sorted(rest, key=lambda path: (not is_code_name(path), path)))))
    files: list[SkillFile] = []
    left = ALL_BYTES
    for number, path in enumerate(paths):
        if number == FILES or left <= 0:
            return Reading(tuple(files), len(paths) - number)
        file = read(folder, path, min(FILE_BYTES, left))
        left -= min(file.size, FILE_BYTES) if file else 0
        files += [file] if file else []
    return Reading(tuple(files), 0)


def near_files(files: Sequence[SkillFile], scripts: Sequence[str]) -> frozenset[str]:
    """The scripts that would run, and what they bring in or name, and so on: what a reader should look at first.

    By names alone, in whichever language: a file too much is no harm, since this only orders what is shown.
    """
    texts = {file.path: file.text for file in files}
    by_name: dict[str, list[str]] = {}
    for path in texts:
        by_name.setdefault(_name_of(path), []).append(path)
        by_name.setdefault(f"{_module_of(path)} brought in", []).append(path)
    near, pending = set(scripts), [script for script in scripts if script in texts]
    while pending:
        for name in _names_in(texts[pending.pop()]) & by_name.keys():
            new = [path for path in by_name[name] if path not in near]
            near.update(new)
            pending += new
    return frozenset(near)


def _names_in(text: str) -> set[str]:
    """Every word that may name a file, and each that stands where something is brought in."""
    names = set(WORD.findall(text))
    lines = (line for line in text.split("\n") if any(word in line for word in BRINGING))
    brought = (part for line in lines for word in WORD.findall(line) for part in word.split("."))
    return names | {f"{word} brought in" for word in brought}


def _module_of(path: str) -> str:
    """What other code calls it: by its stem, or as a whole package by its folder."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0]
    return folder.rpartition("/")[2] if stem in ("__init__", "index", "mod") else stem


def is_of_tests(path: str) -> bool:
    """Whether it lies where tests do and no script can: it runs for nobody unless something names it."""
    folders = path.lower().split("/")[:-1]
    return folders[:1] != ["scripts"] and not TESTS.isdisjoint(folders)


def is_worth_reading(path: str) -> bool:
    """Code, instructions, and what its name does not tell; not data."""
    suffix = _suffix_of(path)
    return suffix in DOCUMENTS or suffix not in DATA_EXTENSIONS or _name_of(path) == "package.json"


def is_code_name(path: str) -> bool:
    return language_of(_suffix_of(path), "") is not None


def read(folder: Path, path: str, limit: int) -> SkillFile | None:
    """None for what is neither code nor instructions, or is not there any more."""
    try:
        content, size = head_of(folder / path, limit)
    except (OSError, ValueError):
        return None
    binary = program_kind(path, content)
    if binary or is_binary(content):
        is_told = binary or is_code_name(path) or content.startswith(SHEBANG)
        return SkillFile(path, "", size=size, binary=binary) if is_told else None
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").replace("\r\n", "\n")
    first_line = text[:SHEBANG_LIMIT].partition("\n")[0]
    suffix = _suffix_of(path)
    language = language_of(suffix, first_line) or ("markdown" if suffix in DOCUMENTS else "")
    if _name_of(path) == "package.json":
        language = "package"
    return SkillFile(path, language, text, size, is_cut=size > len(content))


def program_kind(path: str, content: bytes) -> str:
    """What the bytes are when a machine runs them and nobody can read them; pictures and the like are nothing."""
    for magic, kind in PROGRAMS.items():
        if content.startswith(magic):
            return kind
    suffix = _suffix_of(path)
    if suffix in COMPILED and b"\0" in content:
        return "machine or byte code"
    return "a packed archive" if suffix in PACKED and content else ""


def head_of(path: Path, limit: int) -> tuple[bytes, int]:
    """The first bytes of a regular file, and its size; a link or a pipe in its place is an error."""
    with open(open_regular(path), "rb") as file:
        return file.read(limit), os.fstat(file.fileno()).st_size


def is_binary(head: bytes) -> bool:
    """Whether the first bytes of a file are those of no text."""
    return b"\0" in head[:SNIFFED_BYTES]


def open_regular(path: Path) -> int:
    descriptor = os.open(path, OPEN_FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no regular file")
    return descriptor


def link_targets(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Links that lead out of the skill, each with where it leads."""
    for path, content in manifest.entries:
        if content.startswith("link "):
            target = content.removeprefix("link ")
            inner = os.path.normpath(os.path.join("/skill", os.path.dirname(path), target))
            if os.path.isabs(target) or not inner.startswith("/skill/"):
                yield path, target


def _suffix_of(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _name_of(path: str) -> str:
    return path.rpartition("/")[2]
