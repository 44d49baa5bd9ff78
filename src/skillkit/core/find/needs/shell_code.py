"""Text of a shell -> what its commands use beyond the skill: programs, hosts, variables, places, files of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from skillkit.core.find.needs.found import PROGRAM_NAME, Facts
from skillkit.core.find.needs.installing import note_installation
from skillkit.core.find.needs.siblings import note_reach
from skillkit.core.find.needs.texts import OWN_FILE, note_hosts, note_place
from skillkit.core.models.shell import Command, commands_in

__all__ = ["shell_facts"]

LEADING = frozenset("then do else elif if while until time ! { } ( builtin command coproc in".split())
WRAPPERS = frozenset(
    "sudo doas env nohup exec xargs setsid nice ionice stdbuf timeout gtimeout busybox unbuffer caffeinate".split()
)
ASSIGNMENT = re.compile(r"([A-Za-z_]\w{0,60})\+?=")
ASSIGNED = re.compile(
    r"(?:^|[\s;(])(?:local|export|declare|readonly|typeset)?[ \t]{0,4}([A-Za-z_]\w{0,60})=(?!=)"
    r"|\bread\b[^\n;|]{0,80}?[ \t]([A-Za-z_]\w{0,60})[ \t]*(?:$|[;<&|])|\bfor[ \t]{1,4}([A-Za-z_]\w{0,60})\b",
    re.MULTILINE,
)
FUNCTION = re.compile(
    r"^[ \t]*(?:function[ \t]{1,4})?([\w-]{1,60})[ \t]*\(\)|^[ \t]*function[ \t]{1,4}([\w-]{1,60})"
    r"|\balias[ \t]{1,4}([\w-]{1,60})=",
    re.MULTILINE,
)
PATTERN = re.compile(
    r"(?:^|;;&?|\bin)[ \t]*+\(?"
    r"(?:\"[^\"\n]{0,200}+\"|'[^'\n]{0,200}+'|[\w*?.+:/@$\[\]-]{1,200}+|[ \t]{0,20}+\|[ \t]{0,20}+){1,60}+"
    r"[ \t]{0,20}+\)|=~[^\n]{0,500}",
    re.MULTILINE,
)
WORD = re.compile(r"[\w.+-]+")
# `${NAME:-default}` and the like ask the environment, also where the script gives the name a value itself.
ASKED = re.compile(r"\$\{([A-Z][A-Z0-9_]{1,60})(:?[-?=+])(.{0,3})")
READ = re.compile(r"\$\{?([A-Z][A-Z0-9_]{1,60})\b")
FILE_NAME = re.compile(r"[\w.-]{1,100}\.(?:py|sh|bash|zsh|js|mjs|cjs|ts|rb|pl|ps1|cjs)")
PRINTERS = frozenset(("echo", "printf", "log", "info", "warn", "error", "die", "fail", "usage"))
LOOKERS = frozenset(("which", "type", "hash"))
TALKERS = frozenset(
    "curl wget http https aria2c ssh scp sftp nc ncat telnet ftp lynx w3m gh aws gcloud az kubectl".split()
)
HOSTS_OF_PROGRAMS = {"gh": "api.github.com", "aws": "*.amazonaws.com", "gcloud": "*.googleapis.com"}
GIT_TALK = frozenset(("clone", "push", "pull", "fetch", "ls-remote"))
GIT_ELSEWHERE = frozenset(("-C", "clone", "--version", "config", "ls-remote", "--git-dir", "--no-index", "init"))
PYTHONS = frozenset(("python", "python3", "pypy3"))
PYTHON_INSTALLERS = frozenset(("pip", "pip3", "uv", "pipx", *PYTHONS))
NPM_INSTALLERS = frozenset(("npm", "npx", "pnpm", "yarn", "bunx"))
CODE_OPTIONS = {"python": "-c", "python3": "-c", "bash": "-c", "sh": "-c"}
INNER_DEPTH = 2
WORD_LIMIT = 4_000

# With every system that runs shell scripts at all, or part of the shell.
EVERYWHERE = frozenset(
    """
    alias bg bind break builtin caller case cd command compgen complete compopt continue declare dirs disown echo enable
    esac eval exec exit export false fc fg fi for function getopts hash help history if jobs kill let local logout
    mapfile popd printf pushd pwd read readarray readonly return select set shift shopt source suspend test times trap
    true type typeset ulimit umask unalias unset until wait while do done then else elif in time coproc
    [ [[ ]] : . ! { } ( )
    arch awk b2sum base32 base64 basename bash cat chgrp chmod chown chroot cksum clear cmp col column comm cp csplit
    cut date dd df diff dir dirname du egrep env expand expr factor fgrep file find flock fmt fold free getconf
    getent getopt grep groups gunzip gzip head hexdump hostid hostname iconv id install ionice join less link ln
    locale logger logname
    ls man md5sum mkdir mkfifo mknod mktemp more mount mv nice nl nohup nproc numfmt od passwd paste patch
    pathchk pgrep pidof pkill pr printenv ps realpath rev rm rmdir sed seq setsid sh sha1sum sha224sum sha256sum
    sha384sum sha512sum shasum shred shuf sleep sort split stat stdbuf stty su sudo sum sync tac tail tar tee timeout
    top touch tput tr truncate tsort tty uname unexpand uniq unlink unxz uptime uuidgen vdir wc who whoami xargs xz yes
    zcat zsh dash ksh umount which whereis chmod kill killall nohup bzip2 bunzip2 xxd cal look script tic reset
    """.split()
)


def shell_facts(text: str, line: int = 1, depth: int = 0) -> Facts:
    """Never fails, whatever the text."""
    facts = Facts()
    own = {name for match in FUNCTION.finditer(text) for name in match.groups() if name}
    given = {name for match in ASSIGNED.finditer(text) for name in match.groups() if name}
    patterns = set(_pattern_words(text, line))
    for command in commands_in(text, line):
        program, words = _start_of(command)
        name = os.path.basename(program)
        is_printed = name in PRINTERS and not command.writes
        _note_variables(facts, command, given)
        if not is_printed:
            _note_words(facts, command)
        if program and name not in own and (command.line, name) not in patterns:
            _note_program(facts, program, words, command)
            if depth < INNER_DEPTH:
                _note_inner(facts, name, words, command, depth)
    return facts


def _pattern_words(text: str, line: int) -> Iterator[tuple[int, str]]:
    """Words of patterns, which look like commands between pipes and brackets, each with its line."""
    at = 0
    for match in PATTERN.finditer(text) if "esac" in text or "=~" in text else ():
        line += text.count("\n", at, match.start())
        at = match.start()
        inner_line = line + match[0].count("\n", 0, len(match[0]) - len(match[0].lstrip()))
        yield from ((inner_line, word) for word in WORD.findall(match[0]))


def _start_of(command: Command) -> tuple[str, list[str]]:
    """The program and its words, past keywords, assignments and programs that only start others."""
    words = [word.text[:WORD_LIMIT] for word in command.words]
    at = 0
    while at < len(words):
        word = words[at]
        before = os.path.basename(words[at - 1]) if at else ""
        is_option = at > 0 and word.startswith("-") and (before in WRAPPERS or words[at - 1].startswith("-"))
        if before == "command" and word in ("-v", "-V"):
            return "which", words[at + 1 :]
        is_number = at > 0 and word[:1].isdigit()
        is_wrapper = os.path.basename(word) in WRAPPERS and at < len(words) - 1
        if not (word in LEADING or ASSIGNMENT.match(word) or is_option or is_number or is_wrapper):
            break
        at += 1
    return (words[at], words[at + 1 :]) if at < len(words) else ("", [])


def _note_variables(facts: Facts, command: Command, given: set[str]) -> None:
    for text in _texts_of(command):
        if "$" not in text:
            continue
        for match in ASKED.finditer(text):
            has_default = match[2].endswith(("-", "=", "+")) and not match[3].startswith("}")
            facts.add_variable(match[1], command.line, has_default=has_default or "+" in match[2])
        for match in READ.finditer(text):
            if match[1] not in given:
                # Other names may come from a file that is sourced; a key does not.
                facts.add_variable(match[1], command.line, has_default=True)


def _texts_of(command: Command) -> Iterator[str]:
    for text in (*(word.text for word in command.words), *command.writes, *command.reads):
        yield text[:WORD_LIMIT]


def _note_words(facts: Facts, command: Command) -> None:
    for text in _texts_of(command):
        note_hosts(facts, text, command.line)
        if "~/" in text or "$HOME" in text or "${HOME}" in text or text.startswith("/"):
            note_place(facts, text, command.line, is_written=text in command.writes)
        if OWN_FILE not in text:  # of Python, which has looked at it
            note_reach(facts, text, command.line)
        name = text.rpartition("/")[2]
        if FILE_NAME.fullmatch(name):
            facts.uses[name] = None


def _note_program(facts: Facts, program: str, words: Sequence[str], command: Command) -> None:
    name, line = os.path.basename(program), command.line
    if name in LOOKERS:
        for word in words:
            if PROGRAM_NAME.fullmatch(word) and word not in EVERYWHERE:
                facts.add_program(word, line)
        return
    is_path = "/" in program and not program.startswith(("/usr/", "/bin/", "/opt/"))
    if (
        is_path
        or name in EVERYWHERE
        or not command.words
        or not PROGRAM_NAME.fullmatch(name)
        or FILE_NAME.fullmatch(name)
    ):
        return
    if name in PYTHON_INSTALLERS:
        note_installation(facts, [name, *words], line)
    elif name in NPM_INSTALLERS and words:  # into a project that it makes, or for all
        facts.note_talk(line)
    facts.add_program(name, line)
    if name in TALKERS or (name == "git" and words[:1] and words[0] in GIT_TALK):
        facts.note_talk(line)
    if host := HOSTS_OF_PROGRAMS.get(name):
        facts.add("host", host, line)
    if name == "git" and GIT_ELSEWHERE.isdisjoint(words[:3]):
        facts.add("working_directory", "workspace", line)


def _note_inner(facts: Facts, name: str, words: Sequence[str], command: Command, depth: int) -> None:
    """Programs inside commands: behind `-c`, and documents that are fed to an interpreter."""
    option = CODE_OPTIONS.get(name)
    if option is None:
        return
    texts = [(command.line, text) for text in words[words.index(option) + 1 :][:1]] if option in words else []
    for line, text in (*texts, *command.documents):
        if name in PYTHONS:
            facts.inner.append((line, text))
        else:
            facts.merge(shell_facts(text, line, depth + 1))
