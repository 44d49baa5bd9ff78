"""File extension and first line -> the language of a script and the interpreters that run it."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast

__all__ = [
    "DATA_EXTENSIONS",
    "INTERPRETER_MAP",
    "LANGUAGE_INTERPRETERS",
    "language_of",
    "languages_by_extension",
    "parse_python",
    "shebang_program",
]

INTERPRETER_MAP: dict[str, str] = {
    ".py": "python3",
    ".sh": "bash",
    ".bash": "bash",
    ".js": "node",
    ".mjs": "node",
    ".cjs": "node",
    ".ts": "tsx",
    ".mts": "tsx",
    ".cts": "tsx",
    ".rb": "ruby",
    ".pl": "perl",
    ".ps1": "powershell",
    ".bat": "cmd",
    ".cmd": "cmd",
}

# The first that exists runs the script.
LANGUAGE_INTERPRETERS: dict[str, tuple[str, ...]] = {
    "python": ("python3",),
    "shell": ("bash",),
    "javascript": ("node",),
    "typescript": ("tsx", "bun", "deno", "node", "ts-node"),
    "ruby": ("ruby",),
    "perl": ("perl",),
    "powershell": ("pwsh", "powershell"),
    "batch": ("cmd",),
}

_DOCUMENTS = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".html", ".htm", ".tex", ".pdf", ".ipynb")
_SETTINGS = (".json", ".jsonl", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".env", ".lock", ".xml")
_DATA = (".csv", ".tsv", ".sql", ".log", ".diff", ".patch", ".svg", ".png", ".jpg", ".xsd", ".css", ".map")
_PATTERNS = (".template", ".tmpl", ".tpl", ".j2", ".example", ".sample", ".bak", ".orig", ".pyi", ".pyc")

# A shebang does not turn these into scripts: a document may quote one in its first line.
DATA_EXTENSIONS = frozenset(_DOCUMENTS + _SETTINGS + _DATA + _PATTERNS)

_SHELL = ("shell",)
_JAVASCRIPT_FIRST = ("javascript", "typescript")
_TYPESCRIPT_FIRST = ("typescript", "javascript")

# What each program can run, best guess first; empty: it runs nothing that skillkit can.
_LANGUAGES_BY_PROGRAM: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("python", "pythonw", "pypy", "uv", "pipx"), ("python",)),
    **dict.fromkeys(("sh", "bash", "rbash", "dash", "ash", "ksh", "mksh", "zsh"), _SHELL),
    **dict.fromkeys(("node", "nodejs"), _JAVASCRIPT_FIRST),
    **dict.fromkeys(("tsx", "ts-node", "ts-node-esm", "ts-node-script", "bun", "deno"), _TYPESCRIPT_FIRST),
    **dict.fromkeys(("ruby", "jruby"), ("ruby",)),
    "perl": ("perl",),
    **dict.fromkeys(("pwsh", "powershell"), ("powershell",)),
    **dict.fromkeys(("osascript", "swift", "fish", "csh", "tcsh", "php", "lua", "rscript", "awk", "gawk"), ()),
}

# Words that only lead to the program: `env -S`, `npx --yes tsx`, `pnpm dlx tsx`, `busybox sh`.
_LAUNCHERS = frozenset(("env", "npx", "npm", "pnpx", "pnpm", "bunx", "yarn", "exec", "dlx", "busybox"))


def languages_by_extension(*, windows: bool) -> dict[str, str]:
    """Batch files are scripts on Windows only."""
    language_of_interpreter = {names[0]: language for language, names in LANGUAGE_INTERPRETERS.items()}
    language_of_interpreter["powershell"] = "powershell"
    return {
        extension: language_of_interpreter[interpreter]
        for extension, interpreter in INTERPRETER_MAP.items()
        if windows or interpreter != "cmd"
    }


_LANGUAGES_BY_EXTENSION = languages_by_extension(windows=os.name == "nt")


# The scripts of a skill share a handful of first lines.
@lru_cache(maxsize=64)
def shebang_program(first_line: str) -> str:
    """`python` for `#!/usr/bin/env -S python3.11 -u`: without folder, launcher, options and version."""
    line = first_line.lstrip("\ufeff")
    if not line.startswith("#!"):
        return ""
    for word in line[2:].split():
        # `env -Spython3` is one word.
        program = word.removeprefix("-S")
        name = program.replace("\\", "/").rpartition("/")[2].lower()
        name = name.partition("@")[0].removesuffix(".exe").rstrip("0123456789.")
        if name and name not in _LAUNCHERS and not program.startswith("-") and "=" not in program:
            return name
    return ""


def language_of(suffix: str, first_line: str) -> str | None:
    """A known program in the shebang outranks an extension it cannot run; `None` means no script."""
    suffix = suffix.lower()
    by_extension = _LANGUAGES_BY_EXTENSION.get(suffix)
    if not first_line:
        return by_extension
    by_shebang = _LANGUAGES_BY_PROGRAM.get(shebang_program(first_line))
    if by_shebang is None or by_extension in by_shebang:
        return by_extension
    if not by_shebang or suffix in DATA_EXTENSIONS:
        return None
    return by_shebang[0]


_parsing = threading.Lock()
PARSE_ATTEMPTS = 5


def parse_python(text: str | bytes) -> ast.Module:
    """Without the warnings that odd code gives: they would reach the person as if skillkit had written them.

    SyntaxError, ValueError, RecursionError or MemoryError for what is no Python. One at a time: all threads share the
    filters of warnings, and up to Python 3.12 the count of how deep a tree is (CPython's gh-106905). Whoever else
    parses meanwhile can still upset that count, so it is tried again.
    """
    import ast  # most who ask for a language parse nothing
    import warnings

    with _parsing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(PARSE_ATTEMPTS):
            with suppress(SystemError):
                return ast.parse(text)
    raise ValueError("Python could not make a tree of it")
