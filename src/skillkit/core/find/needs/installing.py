"""A command that installs, and those in SKILL.md -> the packages and programs that are wanted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from skillkit.core.find.needs.found import Facts
from skillkit.core.find.needs.packages import program_of
from skillkit.core.find.needs.texts import numbered

__all__ = ["instructed_facts", "note_installation", "requirement_name"]

REQUIREMENT = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]{0,99})[ \t]{0,9}(?:\[[^\]]{0,200}\])?[ \t]{0,9}(?:[<>=!~;@,].*)?", re.DOTALL
)
NPM_WORD = re.compile(r"((?:@[\w.-]{1,60}/)?[\w.-]{1,100})(?:@[\w.^~*-]{0,40})?")
# Options of installers that take the next word.
TAKING = frozenset(
    "-r --requirement -c --constraint -i --index-url --extra-index-url -t --target -e --editable -f --find-links "
    "--python -p --prefix --registry --root --tag --version "
    "--group --extra --optional --profile --git --branch --rev --features".split()
)
NO_PROGRAMS = re.compile(
    r"(?:lib|fonts?-|python3?-|ca-certificates|build-essential|software-properties|apt-|texlive|.*-dev$|.*-common$).*"
)
# Without winget, whose names are titles and publishers.
SYSTEM = frozenset("apt apt-get brew dnf yum apk pacman snap port choco scoop".split())
NPM = frozenset(("npm", "pnpm", "yarn", "bun"))
INSTALL, ADD = ("install",), ("add",)
INSTALLERS: tuple[tuple[str, frozenset[str], tuple[tuple[str, ...], ...]], ...] = (
    ("python", frozenset(("pip", "pip3")), (INSTALL,)),
    ("python", frozenset(("uv",)), (("pip", "install"), ADD)),
    ("python", frozenset(("poetry", "pdm")), (ADD,)),
    ("tool", frozenset(("uv",)), (("tool", "install"),)),
    ("tool", frozenset(("pipx", "cargo", "go", "gem")), (INSTALL,)),
    ("npm", NPM, (INSTALL, ("i",), ADD)),
    ("system", SYSTEM, (INSTALL, ADD)),
)
END = frozenset(("&&", "||", ";", "|", "#", ">", "2>", "\\"))


def requirement_name(written: str) -> str:
    """`requests` for `requests[socks]>=2; python_version > "3"`; empty for files, addresses and options."""
    found = REQUIREMENT.fullmatch(written.strip()[:1_000])
    is_file = written.strip().endswith((".txt", ".whl", ".toml", ".gz", ".zip", "/")) or written.strip() in (".", "..")
    return "" if found is None or is_file else found[1]


def note_installation(facts: Facts, words: Sequence[str], line: int) -> None:
    """Of one command, its program first; nothing for all others."""
    kind, rest = _installer(list(words))
    for word in _named(rest) if kind else ():
        if kind == "python":
            if (name := requirement_name(word)).lower() not in ("", "pip", "setuptools", "wheel", "uv"):
                facts.add_package(name, line)
        elif kind == "npm":
            if found := NPM_WORD.fullmatch(word):
                facts.add_npm_package(found[1], line)
        elif not NO_PROGRAMS.fullmatch(word):
            name = word.rpartition("/")[2].partition("@")[0]
            if words[0] in NPM:
                facts.uses[f"npm:{name}"] = None
            facts.add_program(program_of(name) if kind == "system" else name, line)


def _installer(words: list[str]) -> tuple[str, list[str]]:
    """What the command installs, `python`, `npm`, `system` or `tool`, and the words behind its verb; or nothing."""
    if words[:1] and words[0].rstrip("0123456789.") == "python" and words[1:2] == ["-m"]:
        words = words[2:]
    verbs = [word for word in words[1:] if not word.startswith("-")]
    for kind, programs, wanted in INSTALLERS:
        if words[:1] and words[0] in programs and any(verbs[: len(verb)] == list(verb) for verb in wanted):
            last = next(verb[-1] for verb in wanted if verbs[: len(verb)] == list(verb))
            rest = words[words.index(last) + 1 :]
            if kind == "npm" and ("-g" in words or "--global" in words):
                # What program a scoped package brings is not told by its name.
                return "tool", [word for word in rest if not word.startswith("@")]
            return kind, rest
    return "", []


def _named(words: Sequence[str]) -> Iterator[str]:
    """Up to where another command begins; without options and what belongs to them."""
    skips = False
    for word in words:
        if word in END or word.startswith("#"):
            return
        if skips:
            skips = False
        elif word.startswith("-"):
            skips = word in TAKING
        elif word[:1].isalnum() or word.startswith("@"):
            yield word
        elif word.startswith(("$", "<", "{", ".", "/")):
            continue


FENCE = re.compile(r"[ \t>]{0,12}(`{3,20}|~{3,20})")
SPAN = re.compile(r"(?<!`)`([^`\n]{3,300})`(?!`)")
WORTH = re.compile(r"\b(?:install|add|export|setx?|i)\b|\$env:")
PARTS = re.compile(r"&&|\|\||[;|]")
EXPORT = re.compile(r"(?:export|set|setx|\$env:)[ \t]{0,4}([A-Za-z_]\w{0,99})[ \t]{0,2}(?:=|[ \t])(.{0,60})")
BLANK = re.compile(r"[\"']?(?:$|\.\.\.|<|\$|your|xxx|/path/to|\.\.\.|my[-_])|.*(?:your|\.\.\.|<)", re.IGNORECASE)
LEADING = frozenset("sudo $ > % env RUN then".split())
LONGEST_LINE = 4_000


def instructed_facts(text: str, line: int = 1) -> Facts:
    """`line` is where the text begins in its file."""
    facts = Facts()
    started = set[str]()
    for number, snippet in _snippets(text, line):
        for words in map(_words_of, PARTS.split(snippet)):
            started.update(words[:1])
            if WORTH.search(snippet):
                _note_command(facts, words, number)
    for (kind, name), found in list(facts.found.items()):
        # What is installed for all is a program if it is started somewhere, else a library.
        if kind == "program" and (f"npm:{name}" in facts.uses) and name not in started:
            del facts.found[kind, name]
            facts.add_npm_package(name, found.line)
    return facts


def _words_of(command: str) -> list[str]:
    words = [word.strip("'\"") for word in command.split()]
    at = next((at for at, word in enumerate(words) if word not in LEADING), len(words))
    return words[at:]


def _note_command(facts: Facts, words: list[str], line: int) -> None:
    note_installation(facts, words, line)
    if match := EXPORT.match(" ".join(words[:3])):
        # A value that is written out is given by the instructions themselves.
        facts.add_variable(match[1], line, has_default=not BLANK.match(match[2]))


def _snippets(text: str, line: int) -> Iterator[tuple[int, str]]:
    """Lines of code blocks, and code inside lines of text."""
    closing = ""
    for number, whole in numbered(text, line):
        written = whole[:LONGEST_LINE]
        fence = FENCE.match(written)
        if fence and (not closing or fence[1].startswith(closing)):
            closing = "" if closing else fence[1]
        elif closing:
            yield number, written
        else:
            yield from ((number, match[1]) for match in SPAN.finditer(written))
