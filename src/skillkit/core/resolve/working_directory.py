"""A script's text and what its skill holds -> whether it starts in its skill's folder or in the workspace.

Only content decides, never what lies in the workspace: a script that opens, sources or starts something of its own
skill by a relative name has to start where that name means it. Nothing is run; a text is read once, from the start to
the end. What is joined to another path, or found beside the script's file, does not depend on where it starts.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator

from skillkit.core.models.detect.languages import parse_python
from skillkit.core.models.shell import commands_in

__all__ = ["starts_in_skill"]

READ_BYTES = 1_000_000
LONGEST = 300  # characters of a path in a text
PATTERN = re.compile(r"[*?\[{]")
# Python: these take a path first, so that a plain word is one too.
OPENING = frozenset(
    "open Path PurePath PosixPath listdir scandir walk glob iglob chdir exists isfile isdir lexists join abspath "
    "realpath FileSystemLoader run_path copy copyfile copy2 copytree connect".split()
)
STARTING = frozenset(
    "run Popen call check_call check_output getoutput getstatusoutput system popen execv execvp execl execlp "
    "spawnv spawnl create_subprocess_exec create_subprocess_shell".split()
)
# What they are given is text, or joined to what comes before.
NOT_OPENING = frozenset(
    "print log debug info warning error exception write echo joinpath startswith endswith replace split strip get "
    "pop setdefault compile match search sub findall format with_name with_suffix getLogger fail exit append_text "
    "relative_to index count isinstance getattr hasattr require_relative".split()
)
SPOKEN = frozenset("echo printf".split())
# Other languages: what stands before a literal that is opened or started.
CALL = (
    r"(?:open\w*|read\w*|exists\w*|access\w*|l?stat\w*|create\w*Stream|copy\w*|spawn\w*|exec\w*|fork|load|system|glob\w*"
    r"|import_?file\w*|resolve|join|foreach|entries|children|Get-Content|Import-\w+|Get-ChildItem)"
)
FIRST_WORD = re.compile(rf"\b{CALL}\s*[(\s]\s*$", re.IGNORECASE)
IN_A_LIST = re.compile(r"\b(?:spawn|exec|fork|system)\w*\s*\([^()\n]{0,120}\[\s*(?:['\"][^'\"\n]*['\"]\s*,\s*){0,20}$")
READ_MODE = re.compile(r"\bopen\b[^;\n]{0,80}['\"]<[^'\"\n]{0,20}['\"]\s*,\s*$")
FROM_HERE = {"ruby": re.compile(r"\brequire\s*\(?\s*$"), "perl": re.compile(r"\b(?:do|require)\s+$")}
STARTED = re.compile(r"(?:\b(?:exec|spawn|system|run)\w*\s*\(?\s*|%x)$")
LITERAL = re.compile(r"(['\"`])((?:(?!\1)[^\\\n]){1,300})\1")
COMMENT = re.compile(r"^\s*(?://|#|\*|/\*)")


def starts_in_skill(text: bytes, interpreter: str, entries: tuple[str, ...]) -> bool:
    """`entries` are the skill's files by relative path."""
    files = {*entries}
    folders = {above for path in files for above in _above(path)}
    said = text[:READ_BYTES].decode("utf-8", "replace")
    found = _python(said) if interpreter.startswith("python") else None
    if found is None:
        found = _shell(said) if interpreter in ("bash", "sh") else _others(said, interpreter)
    return any(_names_own(literal, files, folders, may_be_word=may_be_word) for literal, may_be_word in found)


def _above(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path


def _names_own(literal: str, files: set[str], folders: set[str], *, may_be_word: bool) -> bool:
    """Whether the skill has it; of a pattern, the folders before it count."""
    if not 0 < len(literal) <= LONGEST or literal.startswith(("/", "~", "-")) or "\0" in literal:
        return False
    fixed = PATTERN.split(literal, maxsplit=1)[0]
    if fixed != literal:
        fixed, may_be_word = posixpath.dirname(fixed), may_be_word or "/" in fixed
    elif "/" not in literal and "." not in literal and not may_be_word:
        return False
    path = posixpath.normpath(fixed) if fixed else "."
    return not path.startswith("..") and path != "." and (path in files or path in folders)


def _python(text: str) -> list[tuple[str, bool]] | None:
    """None for what is no Python that can be read."""
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    named = dict(_assigned(tree))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [found for call in calls for found in _of_call(call, named)]


def _assigned(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that mean one literal, also as a parameter's default."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value.value
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            for argument, default in zip(given, node.args.defaults, strict=True):
                if isinstance(default, ast.Constant) and isinstance(default.value, str):
                    yield argument.arg, default.value


def _of_call(call: ast.Call, named: dict[str, str]) -> Iterator[tuple[str, bool]]:
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name in NOT_OPENING:
        return
    if name == "add_argument":
        given = [each.value for each in call.keywords if each.arg == "default"]
    else:
        given = [*(call.args[:1] if name in OPENING else call.args), *(each.value for each in call.keywords)]
    for node in given:
        for part in node.elts if isinstance(node, ast.List | ast.Tuple) else [node]:
            literal = _literal(part, named)
            yield literal, name in OPENING
            if name in STARTING and " " in literal:
                yield from ((word, False) for word in literal.split())


def _literal(node: ast.expr, named: dict[str, str]) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return named.get(node.id, "")
    if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
        return f"{node.values[0].value!s}*"  # what comes is not known, as in a pattern
    return ""


def _shell(text: str) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    for command in commands_in(text):
        found += [(path, True) for path in command.reads]
        if not command.words or command.words[0].text in SPOKEN:
            continue
        is_sourcing = command.words[0].text in (".", "source")
        for word in command.words:
            name, sign, value = word.text.partition("=")
            if sign and name.isidentifier():
                if word.is_literal and re.search(rf"(?<!/)\$\{{?{name}\b", text):
                    found.append((value, False))
            elif word.is_literal:
                found.append((value if sign and name.startswith("--") else word.text, is_sourcing))
    return found


def _others(text: str, interpreter: str) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    for line in text.splitlines():
        if COMMENT.match(line) or len(line) > READ_BYTES // 100:
            continue
        for literal in LITERAL.finditer(line):
            before = line[max(0, literal.start() - 200) : literal.start()]
            here = FROM_HERE.get(interpreter)
            if any(each.search(before) for each in (FIRST_WORD, IN_A_LIST, READ_MODE, *((here,) if here else ()))):
                found.append((literal[2], False))
                if STARTED.search(before):
                    found += [(word, False) for word in literal[2].split()]
    return found
