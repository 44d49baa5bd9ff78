"""Shell text -> what its commands reach for: network, deletions, other places, secrets, code from elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from skillkit.core.ask.risk import rules
from skillkit.core.ask.risk.rules import Seen, Snippet, clip, number_lines
from skillkit.core.ask.risk.texts import host_in, outside_place, secret_variable, sensitive_findings
from skillkit.core.models.shell import SUBSTITUTED, Command, commands_in

__all__ = ["markdown_seen", "shell_seen", "shown_shell_seen"]

LEADING = frozenset("then do else elif if while until time ! { } builtin command coproc".split())
WRAPPERS = frozenset("sudo doas env nohup exec xargs setsid nice ionice stdbuf timeout busybox unbuffer".split())
RUNNERS = rules.SHELLS | {"eval", "source", "."}
VARIABLE = re.compile(r"\$\{?([A-Z][A-Z0-9_]{2,60})\b")
ASSIGNED = re.compile(r"(?:^|[\s;])([A-Za-z_]\w{0,60})=|\bread\b[^\n;]{0,80}?\b([A-Z_]\w{0,60})\b")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w{0,60}\+?=")
SUBSTITUTION = re.compile(r"\$\(|`|<\(")
DOWNLOAD = re.compile(r"(?:\$\(|`|<\()\s{0,20}(?:sudo )?(curl|wget|aria2c|lynx)\b")
SHOWN_COMMAND = 80
WORD_LIMIT = 4_000  # characters
PIPES = 10
# Programs that any look below is about; the words of others are read, and no more.
KNOWN = frozenset().union(
    *(rules.TALKERS, rules.FETCHERS, rules.PROGRAMS, rules.DECODERS, rules.MOVERS, rules.MAKERS, rules.CODE_OPTIONS),
    "find dd env printenv export gh su eval source . trap watch".split(),
)


@dataclass(frozen=True, slots=True)
class _Start:
    """A command, the program it starts and that program's words."""

    command: Command
    program: str
    words: list[str]

    @property
    def line(self) -> int:
        return self.command.line

    @property
    def shown(self) -> str:
        return clip(" ".join((self.program, *self.words[:12])), SHOWN_COMMAND)


def shell_seen(text: str, line: int = 1) -> Iterator[Seen]:
    own = {name for match in ASSIGNED.finditer(text) for name in match.groups() if name}
    for command in commands_in(text, line):
        start = _start_of(command)
        yield from _of_words(start, own)
        is_started_otherwise = len(start.words) + 1 < len(command.words)
        if start.program in KNOWN or command.writes or is_started_otherwise or start.program.startswith("mkfs."):
            for look in LOOKS:
                yield from look(start)


def _start_of(command: Command) -> _Start:
    """Past what stands before the program: keywords, assignments, and programs that only start others."""
    words = [word.text[:WORD_LIMIT] for word in command.words]
    at = 0
    while at < len(words):
        word = words[at]
        is_option = at > 0 and os.path.basename(words[at - 1]) in WRAPPERS and word.startswith("-")
        is_number = at > 0 and word[:1].isdigit()
        is_wrapper = os.path.basename(word) in WRAPPERS and at < len(words) - 1
        if not (word in LEADING or ASSIGNMENT.match(word) or is_option or is_number or is_wrapper):
            break
        at += 1
    return _Start(command, os.path.basename(words[at]) if at < len(words) else "", words[at + 1 :])


def _of_words(start: _Start, own: set[str]) -> Iterator[Seen]:
    """What any word may name, whatever the program is; what is only printed is passed over."""
    command, line = start.command, start.line
    named = [word.text for word in command.words][: len(command.words) - len(start.words)][-1:]
    is_printed = named in (["echo"], ["printf"]) and not command.writes  # `./echo` may do anything
    for whole in (*(word.text for word in command.words), *command.writes, *command.reads):
        word = whole[:WORD_LIMIT]
        if not is_printed:
            yield from sensitive_findings(word, line)
        for match in VARIABLE.finditer(word):
            if match[1] not in own:
                yield from secret_variable(match[1], line)
        if word.startswith(("/dev/tcp/", "/dev/udp/")):
            yield rules.CONNECTS.at(line, clip(word))
        if "${IFS}" in word or "$IFS$" in word:
            yield rules.HIDES_SPACES.at(line)
        parts = SUBSTITUTION.split(word, maxsplit=4)[1:]
        yield from (Snippet("shell", part, line) for part in parts)


def _network(it: _Start) -> Iterator[Seen]:
    orders = rules.FETCHERS.get(it.program)
    if it.program in rules.TALKERS or (it.program == "rsync" and any(":" in word for word in it.words)):
        yield rules.TALKS.at(it.line, it.program, next(filter(None, map(host_in, it.words)), ""))
    elif orders is not None and (not orders or any(word in orders for word in it.words[:3])):
        yield rules.FETCHES.at(it.line, what=it.shown)


def _named_programs(it: _Start) -> Iterator[Seen]:
    """What the name of the program tells, but for a few orders, and what some programs do by order only."""
    rule = rules.PROGRAMS.get(it.program)
    exceptions = rules.HARMLESS_ORDERS.get(rule, ()) if rule else ()
    if rule == rules.DELETES or _deletes(it):
        yield rules.DELETES.at(it.line, what=it.shown)
    elif rule and next(iter(it.words), None) not in exceptions:
        yield rule.at(it.line, what=it.shown)
    if (it.program in ("env", "printenv") and not it.words) or (it.program == "export" and it.words == ["-p"]):
        yield rules.READS_ENVIRONMENT.at(it.line)
    if it.program == "gh" and it.words[:2] == ["auth", "token"]:
        yield rules.ASKS_SECRETS.at(it.line, what=it.shown)
    if it.program == "su" or any(word.text in ("sudo", "doas") for word in it.command.words):
        yield rules.ASKS_RIGHTS.at(it.line, what=clip(f"sudo {it.shown}", SHOWN_COMMAND))


def _deletes(it: _Start) -> bool:
    if it.program == "find":
        return any(
            word == "-delete" or rules.PROGRAMS.get(os.path.basename(word)) == rules.DELETES for word in it.words
        )
    if it.program == "git":
        return it.words[:1] in (["clean"], ["reset"]) and any(w in ("-f", "-fd", "-fdx", "--hard") for w in it.words)
    overwrites = it.program == "dd" and any(word.startswith("of=/dev/") for word in it.words)
    return overwrites or it.program.startswith("mkfs.")


def _writes(it: _Start) -> Iterator[Seen]:
    named = [word for word in it.words if not word.startswith("-")]
    targets = list(it.command.writes)
    targets += named[-1:] if it.program in rules.MOVERS and len(named) > 1 else []
    targets += named if it.program in rules.MAKERS else []
    yield from (rules.WRITES_OUTSIDE.at(it.line, what=place) for place in filter(None, map(outside_place, targets)))


def _foreign_code(it: _Start) -> Iterator[Seen]:
    """Code that is downloaded, decoded or put together, and then run."""
    if it.program in rules.TALKERS and it.command.inside in RUNNERS:
        yield rules.RUNS_DOWNLOAD.at(it.line, what=it.shown)
    if it.program in RUNNERS:
        downloads = filter(None, map(DOWNLOAD.search, it.words))
        yield from (rules.RUNS_DOWNLOAD.at(it.line, found[1]) for found in list(downloads)[:1])
    if it.program == "eval" and any("$" in word or "`" in word or SUBSTITUTED in word for word in it.words):
        yield rules.RUNS_WORDS.at(it.line, what=it.shown)
    if it.program in RUNNERS or it.program in rules.CODE_OPTIONS:
        yield from _piped_code(it)


def _piped_code(it: _Start) -> Iterator[Seen]:
    source = it.command.piped_from
    if any(not word.startswith("-") for word in it.words):
        return
    for _ in range(PIPES):
        if source is None:
            return
        sent = _start_of(source)
        options = rules.DECODERS.get(sent.program)
        if sent.program in rules.TALKERS:
            yield rules.RUNS_DOWNLOAD.at(it.line, what=f"{sent.shown} | {it.program}")
        if options is not None and (not options or any(word in options for word in sent.words)):
            yield rules.RUNS_DECODED.at(it.line, what=f"{sent.shown} | {it.program}")
        if sent.program in ("echo", "printf") and it.program in rules.SHELLS:
            yield Snippet("shell", " ".join(sent.words), it.line)
        source = source.piped_from


def _inner_code(it: _Start) -> Iterator[Seen]:
    """Programs inside commands: `-c`, `-e`, `eval`, `trap`, `ssh host`, documents."""
    language, option = rules.CODE_OPTIONS.get(it.program, ("", ""))
    if language:
        # `-c` may stand among others, as in `bash -lc`.
        at = next((n for n, word in enumerate(it.words) if word[:1] == "-" and word[-1:] == option[-1]), len(it.words))
        yield from (Snippet(language, word, it.line) for word in it.words[at + 1 : at + 2])
        yield from (Snippet(language, text, line) for line, text in it.command.documents)
    elif it.program in ("eval", "trap", "ssh", "watch", "su"):
        yield from (Snippet("shell", word, it.line) for word in it.words[:4] if " " in word or it.program == "eval")


LOOKS = (_network, _named_programs, _writes, _foreign_code, _inner_code)

# Instructions show commands all the time, so only those count that fetch and run, decode and run, or name secrets.
FENCE = re.compile(r"^[ \t>]{0,12}(`{3,20}|~{3,20})[ \t]*([\w+-]{0,30})", re.MULTILINE)
SHELL_NAMES = ("", "sh", "bash", "shell", "zsh", "console", "terminal")
AT_LOADING = re.compile(r"(?:^|(?<=\s))!`([^`\n]{1,300})`", re.MULTILINE)
INLINE = re.compile(r"(?<!`)`([^`\n]{8,300})`(?!`)")
PROMPT = re.compile(r"^[ \t>]{0,12}\$ ", re.MULTILINE)
DEPTH = 3


def markdown_seen(text: str, line: int = 1) -> Iterator[Seen]:
    """What a skill's instructions would have an agent run that a person should know of."""
    for number, match in number_lines(AT_LOADING, text, line):
        yield rules.RUNS_AT_LOADING.at(number, what=clip(match[1]))
    yield from sensitive_findings(text, line, has_startup=False)
    opened: tuple[int, re.Match[str]] | None = None
    for number, fence in number_lines(FENCE, text, line):
        if opened is None:
            opened = (number, fence)
        elif fence[1].startswith(opened[1][1]) and not fence[2]:
            if opened[1][2].lower() in SHELL_NAMES:
                start = text.find("\n", opened[1].end())
                yield Snippet("shown shell", PROMPT.sub("", text[start + 1 : fence.start()]), opened[0] + 1)
            opened = None
    for number, match in number_lines(INLINE, text, line):
        if "|" in match[1] or "$(" in match[1] or "<(" in match[1]:
            yield Snippet("shown shell", match[1], number)


def shown_shell_seen(text: str, line: int = 1, depth: int = 0) -> Iterator[Seen]:
    """Of a command in instructions, and of the commands inside it, however many: harmless ones hide no other."""
    for seen in shell_seen(text, line):
        if isinstance(seen, Snippet):
            if seen.language == "shell" and depth < DEPTH:
                yield from shown_shell_seen(seen.text, seen.line, depth + 1)
        elif seen.kind == "obfuscation":
            yield seen
