"""Text of JavaScript or TypeScript -> what its code uses beyond the skill.

One regular expression takes strings and comments from left to right, so that neither is taken for the other; comments
become spaces, and patterns are looked for in the rest. Every repetition ends at what it finds or at the end.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from skillkit.core.find.needs.found import Facts
from skillkit.core.find.needs.packages import npm_package_of
from skillkit.core.find.needs.shell_code import shell_facts
from skillkit.core.find.needs.siblings import note_reach
from skillkit.core.find.needs.texts import GAP, note_hosts, note_place

__all__ = ["javascript_facts"]

TOKEN = re.compile(
    r"(?P<comment>//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?|`(?:[^`\\]|\\.)*+`?)",
    re.DOTALL,
)
IMPORT = re.compile(
    r"\bimport[ \t\n]{1,9}(?!type\b)(?:[\w$*{}, \t\n]{1,2000}?\bfrom[ \t\n]{0,9})?[\"']([^\"'\n]{1,200})[\"']"
    r"|\bexport[ \t\n]{1,9}[\w$*{}, \t\n]{1,2000}?\bfrom[ \t\n]{0,9}[\"']([^\"'\n]{1,200})[\"']"
    r"|\b(?:require|import)[ \t]{0,9}\([ \t\n]{0,9}[\"'`]([^\"'`\n$]{1,200})[\"'`]"
)
VARIABLE = re.compile(
    r"\b(?:process|Bun|import\.meta)\.env(?:\.|\?\.|\[[\"'])([A-Za-z_]\w{0,99})(?:[\"']\])?(?P<default>\s{0,9}(?:\?\?|\|\|)\s{0,9}[\"'`\d])?"
    r"|\bDeno\.env\.get\([ ]{0,4}[\"']([A-Za-z_]\w{0,99})"
)
TAKEN_APART = re.compile(r"\{([\w\s,:]{1,500})\}[ \t]{0,9}=[ \t]{0,9}process\.env\b")
TALK = re.compile(
    r"\b(?:fetch|axios(?:\.\w{1,10})?|got|https?\.(?:get|request))[ \t]{0,9}\("
    r"|\bnew[ \t]{1,4}(?:WebSocket|XMLHttpRequest)\b"
)
TALKING_PACKAGES = frozenset(
    "axios node-fetch got undici ws superagent request puppeteer puppeteer-core playwright playwright-core openai ky "
    "@anthropic-ai/sdk @octokit/rest @slack/web-api @notionhq/client @google/genai @google/generative-ai viem ethers "
    "googleapis @supabase/supabase-js stripe nodemailer imapflow discord.js telegraf @linear/sdk replicate".split()
)
START = re.compile(
    r"\b(spawn|spawnSync|exec|execSync|execFile|execFileSync|execa|\$)[ \t]{0,9}(?:\([ \t\n]{0,9})?"
    r"(\"(?:[^\"\\\n]|\\.){1,1000}\"|'(?:[^'\\\n]|\\.){1,1000}'|`(?:[^`\\]|\\.){1,2000}`)"
)
STARTERS = re.compile(r"child_process|execa|zx|Bun\.|\$`")
HOME = re.compile(
    r"(?:homedir\(\)|process\.env\.HOME|process\.env\.USERPROFILE|\bHOME)"
    r"(?:[ \t]{0,4}(?:\|\||\?\?)[ \t]{0,4}[\w.()'\"/~]{1,60})?\)?"
    r"(?P<path>(?:[ \t\n]{0,40},[ \t\n]{0,40}[\"'`][\w.@+/ -]{1,100}[\"'`]){1,6}"
    r"|[ \t]{0,4}\+[ \t]{0,4}[\"'`]/[\w.@+/-]{1,100}|\}/[\w.@+/-]{1,100})"
)
JOINED = re.compile(r"__dirname((?:[ \t\n]{0,9},[ \t\n]{0,9}[\"'][\w./-]{1,100}[\"']){2,8})")
PIECE_ABOVE = re.compile(r"[\w./-]+")
PIECE = re.compile(r"[\w.@+-][\w.@+/ -]*")
CURRENT = re.compile(r"\b(?:process|Deno)\.cwd\(\)")
LISTEN = re.compile(r"\.listen\([ ]{0,4}(?:\d|port|PORT|0)|\b(?:Bun|Deno)\.(?:serve|listen)\(")
FILLED = re.compile(r"\$\{[^{}]{0,200}\}")
OWN_FILE = re.compile(r"[\w./-]{1,200}\.(?:js|mjs|cjs|ts|mts|cts|jsx|tsx|py|sh|bash)")
SHOWN = re.compile(r"(?:console\.\w{1,8}|Error|log|print|write|describe|option)[ \t]{0,4}\([ \t\n]{0,9}$")
SHOWN_BEFORE = 40


def javascript_facts(text: str, line: int = 1) -> Facts:
    """Never fails, whatever the text."""
    facts = Facts()
    lines = _Lines(text, line)
    code = TOKEN.sub(lambda match: match[0] if match["string"] else re.sub(r"[^\n]", " ", match[0]), text)
    _note_imports(facts, code, lines)
    for match in VARIABLE.finditer(code):
        facts.add_variable(match[1] or match[3], lines.at(match.start()), has_default=bool(match["default"]))
    for match in TAKEN_APART.finditer(code):
        for name in match[1].split(","):
            facts.add_variable(name.partition(":")[0].strip(), lines.at(match.start()))
    if talk := TALK.search(code):
        facts.note_talk(lines.at(talk.start()))
    for kind, name, pattern in (("working_directory", "workspace", CURRENT), ("loopback", "localhost", LISTEN)):
        if found := pattern.search(code):
            facts.add(kind, name, lines.at(found.start()))
    for match in HOME.finditer(code):
        note_place(facts, "~/" + "/".join(PIECE.findall(match["path"])).strip(), lines.at(match.start()))
    if STARTERS.search(code):
        for match in START.finditer(code):
            facts.merge(shell_facts(FILLED.sub(GAP, match[2][1:-1]), lines.at(match.start())))
    _note_strings(facts, code, lines)
    return facts


def _note_imports(facts: Facts, code: str, lines: _Lines) -> None:
    for match in IMPORT.finditer(code):
        specifier, number = match[1] or match[2] or match[3], lines.at(match.start())
        if specifier.startswith("."):
            facts.uses[specifier] = None
        elif package := npm_package_of(specifier):
            facts.add_npm_package(package, number)
            if package in TALKING_PACKAGES:
                facts.note_talk(number)
        elif specifier.startswith(("http:", "https:")):
            facts.note_talk(number)


def _note_strings(facts: Facts, code: str, lines: _Lines) -> None:
    for match in JOINED.finditer(code):
        facts.reaches.setdefault(("anywhere", "/".join(PIECE_ABOVE.findall(match[1]))), lines.at(match.start()))
    for match in TOKEN.finditer(code):
        inner = (match["string"] or "")[1:-1]
        if not inner or (SHOWN.search(code, max(0, match.start() - SHOWN_BEFORE), match.start()) and "\n" not in inner):
            continue
        number = lines.at(match.start())
        if "://" in inner:
            note_hosts(facts, FILLED.sub(GAP, inner), number)
        elif inner.startswith("~/"):
            note_place(facts, inner, number)
        elif inner in ("localhost", "127.0.0.1", "0.0.0.0"):  # noqa: S104 - nothing is bound here
            facts.add("loopback", "localhost", number)
        elif inner.startswith("../") and not OWN_FILE.fullmatch(inner):
            note_reach(facts, inner, number)
        elif OWN_FILE.fullmatch(inner):
            note_reach(facts, inner, number)
            facts.uses[inner if inner.startswith(".") else inner.rpartition("/")[2]] = None


class _Lines:
    """Places in a text -> the numbers of their lines."""

    def __init__(self, text: str, first: int) -> None:
        self.ends = [match.start() for match in re.finditer("\n", text)]
        self.first = first

    def at(self, place: int) -> int:
        return bisect_right(self.ends, place - 1) + self.first if place else self.first
