"""Shell text -> what its commands reach for: network, deletions, other places, secrets, code from elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from skillkit.core.decide.risk.findings import Finding, Seen, Snippet, shown
from skillkit.core.decide.risk.sensitive import (
    host_in,
    is_secret_name,
    outside_place,
    secret_variable,
    sensitive_findings,
)
from skillkit.core.decide.risk.shell_commands import SUBSTITUTED, Command, commands_in

__all__ = ["shell_seen"]

LEADING = frozenset("then do else elif if while until time ! { } builtin command coproc".split())
WRAPPERS = frozenset("sudo doas env nohup exec xargs setsid nice ionice stdbuf timeout busybox unbuffer".split())
SHELLS = frozenset("sh bash dash zsh ksh ash fish".split())
TALKERS = frozenset(
    "curl wget nc ncat netcat socat ssh scp sftp ftp tftp telnet aria2c httpie nslookup dig lynx rclone".split()
)
# Programs that fetch others, by what they are told to do.
FETCHERS = {
    **dict.fromkeys(("pip", "pip3", "pipx", "uv", "gem", "cargo", "brew", "go", "conda"), ("install", "add", "tool")),
    **dict.fromkeys(("apt", "apt-get", "yum", "dnf", "apk", "npm", "pnpm", "yarn", "bun"), ("install", "add", "i")),
    **dict.fromkeys(("npx", "uvx", "bunx", "pnpx"), ()),
    "git": ("clone", "fetch", "pull", "push", "ls-remote"),
    "docker": ("pull", "run", "push"),
    "openssl": ("s_client",),
}
DELETERS = frozenset("rm rmdir unlink shred wipe srm mkfs".split())
LATER = frozenset("crontab at batch systemctl launchctl".split())
DECODERS = {"base64": ("-d", "-D", "--decode"), "base32": ("-d",), "xxd": ("-r",), "openssl": ("enc",), "rev": ()}
MOVERS = frozenset("cp mv install ln rsync".split())
MAKERS = frozenset("tee touch mkdir chmod chown".split())
SECRET_TOOLS = frozenset("secret-tool security pass keyring".split())
ENDERS = frozenset("kill killall pkill".split())
CODE_OPTIONS = {
    **dict.fromkeys(SHELLS, ("shell", "-c")),
    **dict.fromkeys(("python", "python3"), ("python", "-c")),
    **dict.fromkeys(("node", "bun"), ("javascript", "-e")),
    "ruby": ("ruby", "-e"),
    "perl": ("perl", "-e"),
    "osascript": ("shell", "-e"),
}
VARIABLE = re.compile(r"\$\{?([A-Z][A-Z0-9_]{2,60})\b")
ASSIGNED = re.compile(r"(?:^|[\s;])([A-Za-z_]\w{0,60})=|\bread\b[^\n;]{0,80}?\b([A-Z_]\w{0,60})\b")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w{0,60}\+?=")
SUBSTITUTION = re.compile(r"\$\(|`|<\(")
DOWNLOAD = re.compile(r"(?:\$\(|`|<\()\s{0,20}(?:sudo )?(curl|wget|aria2c|lynx)\b")
SHOWN_COMMAND = 80
KNOWN = frozenset().union(
    *(SHELLS, TALKERS, FETCHERS, DELETERS, LATER, DECODERS, MOVERS, MAKERS, SECRET_TOOLS, ENDERS, CODE_OPTIONS),
    "find dd env printenv export gh su eval source . trap watch".split(),
)


def shell_seen(text: str, line: int = 1) -> Iterator[Seen]:
    own = {name for match in ASSIGNED.finditer(text) for name in match.groups() if name}
    for command in commands_in(text, line):
        words = program_words(command.words)
        yield from _of_texts(command, words, own)
        program = os.path.basename(words[0]) if words else ""
        is_started_otherwise = len(words) < len(command.words)
        if program in KNOWN or command.writes or is_started_otherwise or program.startswith("mkfs."):
            for look in LOOKS:
                yield from look(program, words[1:], command)


def program_words(words: Sequence[str]) -> list[str]:
    """Without what stands before the program: keywords, assignments, and programs that only start others."""
    at = 0
    while at < len(words):
        word = words[at]
        is_option = at > 0 and os.path.basename(words[at - 1]) in WRAPPERS and word.startswith("-")
        is_number = at > 0 and word[:1].isdigit()
        is_wrapper = os.path.basename(word) in WRAPPERS and at < len(words) - 1
        if not (word in LEADING or ASSIGNMENT.match(word) or is_option or is_number or is_wrapper):
            break
        at += 1
    return list(words[at:])


def _of_texts(command: Command, words: Sequence[str], own: set[str]) -> Iterator[Seen]:
    """What any word may name, whatever the program is; what is only printed is passed over."""
    is_printed = bool(words) and words[0] in ("echo", "printf") and not command.writes
    for word in (*command.words, *command.writes, *command.reads):
        if not is_printed:
            yield from sensitive_findings(word, command.line)
        for match in VARIABLE.finditer(word):
            if is_secret_name(match[1]) and match[1] not in own:
                yield secret_variable(match[1], command.line)
        if word.startswith(("/dev/tcp/", "/dev/udp/")):
            yield Finding("network", f"Opens a connection through {shown(word)}.", command.line)
        if "${IFS}" in word or "$IFS$" in word:
            yield Finding("obfuscation", "Writes ${IFS} in place of spaces, which hides a command.", command.line)
        parts = SUBSTITUTION.split(word, maxsplit=4)[1:]
        yield from (Snippet("shell", part, command.line) for part in parts)


def _network(program: str, words: Sequence[str], command: Command) -> Iterator[Seen]:
    orders = FETCHERS.get(program)
    if program in TALKERS or (program == "rsync" and any(":" in word for word in words)):
        host = next((found for found in map(host_in, words) if found), "")
        yield Finding("network", f"Talks to the network with {program}{f': {host}' if host else ''}.", command.line)
    elif orders is not None and (not orders or any(word in orders for word in words[:3])):
        yield Finding("network", f"Fetches from the network: {_shown(program, words)}.", command.line)


def _delete(program: str, words: Sequence[str], command: Command) -> Iterator[Seen]:
    finds = program == "find" and ("-delete" in words or any(os.path.basename(word) in DELETERS for word in words))
    discards = (
        program == "git"
        and words[:1] in (["clean"], ["reset"])
        and any(w in ("-f", "-fd", "-fdx", "--hard") for w in words)
    )
    overwrites = program == "dd" and any(word.startswith("of=/dev/") for word in words)
    if program in DELETERS or program.startswith("mkfs.") or finds or discards or overwrites:
        yield Finding("delete", f"Deletes: {_shown(program, words)}.", command.line)


def _writes(program: str, words: Sequence[str], command: Command) -> Iterator[Seen]:
    named = [word for word in words if not word.startswith("-")]
    targets = list(command.writes)
    targets += named[-1:] if program in MOVERS and len(named) > 1 else []
    targets += named if program in MAKERS else []
    for place in filter(None, map(outside_place, targets)):
        yield Finding("outside_write", f"Writes outside its folder: {place}.", command.line)
    if program in LATER and words and words[:1] not in (["-l"], ["status"], ["list"]):
        yield Finding("outside_write", f"Sets up what runs later: {_shown(program, words)}.", command.line)


def _secrets(program: str, words: Sequence[str], command: Command) -> Iterator[Seen]:
    if (program in ("env", "printenv") and not words) or (program == "export" and list(words) == ["-p"]):
        yield Finding("credentials", "Reads the whole environment.", command.line)
    is_token = program == "gh" and list(words[:2]) == ["auth", "token"]
    if is_token or (program in SECRET_TOOLS and words):
        yield Finding("credentials", f"Asks for stored secrets: {_shown(program, words)}.", command.line)


def _rights(program: str, words: Sequence[str], command: Command) -> Iterator[Seen]:
    if program in ENDERS and list(words[:1]) not in (["-0"], ["-l"]):
        yield Finding("process", f"Ends other programs: {_shown(program, words)}.", command.line)
    if "sudo" in command.words or "doas" in command.words or program == "su":
        yield Finding("process", f"Asks for another user's rights: {_shown('sudo ' + program, words)}.", command.line)


def _foreign_code(program: str, words: Sequence[str], command: Command) -> Iterator[Seen]:
    """Code that is downloaded, decoded or put together, and then run."""
    if program in TALKERS and is_runner(command.inside):
        yield Finding("obfuscation", f"Runs what it downloads: {_shown(program, words)}.", command.line)
    if is_runner(program):
        download = next((found for found in map(DOWNLOAD.search, words) if found), None)
        if download:
            yield Finding("obfuscation", f"Runs what it downloads with {download[1]}.", command.line)
    if program == "eval" and any("$" in word or "`" in word or SUBSTITUTED in word for word in words):
        yield Finding("obfuscation", f"Runs text as a command: {_shown('eval', words)}.", command.line)
    if is_runner(program) or program in CODE_OPTIONS:
        yield from _piped_code(program, words, command)


def _piped_code(program: str, words: Sequence[str], command: Command) -> Iterator[Seen]:
    if any(not word.startswith("-") for word in words):
        return
    source = command.piped_from
    for _ in range(10):
        if source is None:
            return
        sent = program_words(source.words)
        name = os.path.basename(sent[0]) if sent else ""
        if name in TALKERS:
            yield Finding("obfuscation", f"Runs what it downloads: {_shown(name, sent[1:])} | {program}.", command.line)
        options = DECODERS.get(name)
        if options is not None and (not options or any(word in options for word in sent)):
            yield Finding("obfuscation", f"Runs what it decodes: {_shown(name, sent[1:])} | {program}.", command.line)
        if name in ("echo", "printf") and program in SHELLS:
            yield Snippet("shell", " ".join(sent[1:]), command.line)
        source = source.piped_from


def _inner_code(program: str, words: Sequence[str], command: Command) -> Iterator[Seen]:
    """Programs inside commands: `-c`, `-e`, `eval`, `trap`, `ssh host`, documents."""
    language, option = CODE_OPTIONS.get(program, ("", ""))
    if language:
        # `-c` may stand among others, as in `bash -lc`.
        at = next((n for n, word in enumerate(words) if word[:1] == "-" and word[-1:] == option[-1]), None)
        yield from (
            Snippet(language, word, command.line) for word in (words[at + 1 : at + 2] if at is not None else ())
        )
        yield from (Snippet(language, text, line) for line, text in command.documents)
    elif program in ("eval", "trap", "ssh", "watch", "su"):
        yield from (Snippet("shell", word, command.line) for word in words[:4] if " " in word or program == "eval")


def is_runner(program: str) -> bool:
    return program in SHELLS or program in ("eval", "source", ".")


def _shown(program: str, words: Sequence[str]) -> str:
    return shown(" ".join((program, *words[:12])), SHOWN_COMMAND)


LOOKS = (_network, _delete, _writes, _secrets, _rights, _foreign_code, _inner_code)
