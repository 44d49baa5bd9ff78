"""A text in code, or code that is not parsed -> the hosts, services and places outside the skill that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillkit.core.find.needs.found import Facts

__all__ = ["GAP", "OWN_FILE", "host_of", "note_hosts", "note_patterns", "note_place", "numbered"]

GAP = "{}"
"""Stands for what the file alone does not tell."""
OWN_FILE = "{file}"
"""Stands for the path of the file itself."""
TEXT_LIMIT = 4_000  # characters of one literal

URL = re.compile(
    r"\b(?:https?|wss?)://(?:[^\s/@\"'<>]{0,80}@)?([^\s/\"'<>()\[\]\\,;?#`|&*]{1,200}|\[[0-9a-f:]{2,39}\])",
    re.IGNORECASE,
)
HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?\.){1,8}[a-z][a-z0-9-]{0,22}[a-z]")
ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
PORT = re.compile(r":(\d{1,5})$")
BELOW = re.compile(r"[^.]*[{$%][^.]*(?:\.[^.{$%}]*[{$%][^.]*)*\.((?:[a-z0-9-]{1,63}\.){1,6}[a-z]{2,24})")
LOOPBACK = re.compile(r"localhost|[\w-]{1,60}\.localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|0\.0\.0\.0|\[?::1\]?")
USUAL_PORTS = ("", "80", "443")

# Names in texts that nothing connects to: namespaces, licences, and those that stand for any other.
NAMESPACES = frozenset(
    "www.w3.org w3.org purl.org xmlns.com ns.adobe.com json-schema.org schema.org ogp.me www.apache.org apache.org "
    "opensource.org creativecommons.org www.gnu.org spdx.org docs.oasis-open.org www.sitemaps.org www.topografix.com "
    "relaxng.org dublincore.org docs.python.org peps.python.org semver.org keepachangelog.com rdfs.org xml.org "
    "www.opengis.net www.opengis.org developer.mozilla.org stackoverflow.com www.iana.org tools.ietf.org "
    "img.shields.io "
    "datatracker.ietf.org en.wikipedia.org creativecommons.com www.python.org".split()
)
NAMESPACE_STARTS = ("schemas.", "schema.", "ns.", "xmlns.", "docs.", "doc.", "dtd.")
TALKING_DOCUMENTS = frozenset(("docs.google.com", "docs.googleapis.com"))
PLACEHOLDERS = re.compile(
    r"(?:.*\.)?(?:example\.(?:com|org|net|edu|io)|example|test|invalid|localdomain)"
    r"|.*(?:your|my)[-_]?(?:domain|site|company|instance|org|app|server|host|blog|project|store|shop).*"
    r"|(?:www\.|api\.)?(?:domain|site|website|host|hostname|server)\.(?:com|org|net)|.*\bplaceholder\b.*"
)

HOME = re.compile(r"(?:~|\$HOME|\$\{HOME\}|%USERPROFILE%)[/\\]+((?:[\w.@+ -]{1,80}[/\\]?){1,8})")
# Folders of a person's; what lies there is theirs, and no script's own state.
PERSONS = frozenset(
    "documents downloads desktop pictures music movies videos library public dropbox onedrive projects code".split()
)
# Settings of other programs: a script that names them wants the person's own.
FOREIGN = frozenset(
    ".ssh .gnupg .aws .azure .kube .docker .netrc .gitconfig .git-credentials .npmrc .pypirc .bashrc .bash_profile "
    ".zshrc .profile .bash_history .zsh_history .claude .claude.json .codex .gemini .cursor .openclaw .clawdbot "
    ".moltbot .agents .copilot .opencode .vscode .mozilla".split()
)
SHARED = {".config": 2, ".cache": 2, ".local": 3}
"""Folders in which each program has one of its own, and how deep that lies."""
FOREIGN_BELOW = frozenset(("gh", "gcloud", "git", "op", "google-chrome", "chromium", "obsidian"))
OWN_SKILL = re.compile(r"(?:\.[\w-]+/)?skills(?:/|$)")
ABSOLUTE = re.compile(
    r"/(?:Users|home|mnt|media|Volumes|srv|data|root|Applications|var/(?:log|www|lib|mail))/[\w./@+ -]{1,200}"
)
ABSOLUTE_DEPTH = 4


def note_hosts(facts: Facts, text: str, line: int) -> None:
    """Every address that a text holds: its host, or that it is this machine."""
    for match in URL.finditer(text[:TEXT_LIMIT]) if "://" in text else ():
        name = host_of(match[1])
        if name == "localhost":
            facts.add("loopback", name, line)
        elif name:
            facts.add("host", name, line)


def host_of(written: str) -> str:
    """`api.example.net`, with its port where that is unusual; `*.example.net` where the first part is filled in.

    `localhost` for this machine itself; empty where nobody can tell, or nothing connects there.
    """
    name = written.lower().rstrip(".:")
    port = PORT.search(name)
    name = name[: port.start()] if port else name.partition(":")[0] if "[" not in name else name
    if LOOPBACK.fullmatch(name):
        return "localhost"
    if below := BELOW.fullmatch(name):
        return "" if _is_no_partner(below[1]) else f"*.{below[1]}"
    if not (HOST.fullmatch(name) or ADDRESS.fullmatch(name)) or len(name) > 253 or _is_no_partner(name):  # noqa: PLR2004
        return ""
    number = port[1] if port else ""
    return name if number in USUAL_PORTS else f"{name}:{int(number)}"


def _is_no_partner(name: str) -> bool:
    if name in TALKING_DOCUMENTS:
        return False
    return name in NAMESPACES or name.startswith(NAMESPACE_STARTS) or PLACEHOLDERS.fullmatch(name) is not None


def note_place(facts: Facts, text: str, line: int, *, is_written: bool = False) -> None:
    """A path outside the skill: below home, or a folder of the machine's that walls hide."""
    for kind, name in _places(text[:TEXT_LIMIT], "write" if is_written else "read"):
        facts.add(kind, name, line)


def _places(text: str, kind: str) -> Iterator[tuple[str, str]]:
    if match := HOME.search(text):
        parts = [part for part in match[1].replace("\\", "/").split("/") if part not in ("", ".", "..")]
        if parts:
            yield from _home_place(parts, kind)
    elif match := ABSOLUTE.match(text):
        parts = match[0].split("/")[1:]
        if ".." not in parts:
            yield kind, "/" + "/".join(parts[:ABSOLUTE_DEPTH]).rstrip("/ ")


def _home_place(parts: list[str], kind: str) -> Iterator[tuple[str, str]]:
    first = parts[0].strip()
    is_own_skill = any(OWN_SKILL.match("/".join(parts[at:])) for at in range(min(2, len(parts))))
    if not first or is_own_skill:
        return
    if first.lower() in PERSONS or first in FOREIGN:
        yield kind, "~/" + "/".join(parts[:2]).strip()
    elif first in SHARED and len(parts) > 1 and parts[1] in FOREIGN_BELOW:
        yield kind, f"~/{first}/{parts[1]}"
    else:
        yield "home", "~/" + "/".join(parts[: SHARED.get(first, 1)]).strip()


COMMENT = {"powershell": "#", "python": "#", "ruby": "#", "perl": "#", "batch": "REM"}
VARIABLES = {
    "ruby": re.compile(r"\bENV(?:\.fetch\(|\[)[ ]{0,4}['\"]([A-Za-z_]\w{0,99})"),
    "perl": re.compile(r"\$ENV\{['\"]?([A-Za-z_]\w{0,99})"),
    "powershell": re.compile(r"\$env:([A-Za-z_]\w{0,99})", re.IGNORECASE),
    "batch": re.compile(r"%([A-Za-z_]\w{0,99})%"),
    "python": re.compile(r"\b(?:environ(?:\.get)?|getenv)[ ]{0,4}[\[(][ ]{0,4}['\"]([A-Za-z_]\w{0,99})"),
}
IMPORT = re.compile(r"[ \t]*(?:import|from)[ \t]{1,9}([A-Za-z_][\w.]{0,200})")
TALK = re.compile(
    r"\b(?:Net::HTTP|Faraday|HTTParty|open-uri|LWP::|HTTP::Tiny|Invoke-(?:WebRequest|RestMethod)|\bcurl\b|\bwget\b"
    r"|urllib\.request|requests\.(?:get|post|put)|httpx\.)"
)
HOME_PATH = re.compile(r"(?:~|\$HOME|\$env:USERPROFILE|#\{Dir\.home\}|\$ENV\{HOME\})[/\\][\w./\\@+-]{1,200}")
LONGEST_LINE = 10_000


def note_patterns(text: str, language: str, line: int = 1) -> Facts:
    """Line by line; what stands in a comment does not count."""
    facts = Facts()
    variable, comment = VARIABLES.get(language), COMMENT.get(language, "#")
    for number, whole in numbered(text, line):
        written = whole[:LONGEST_LINE]
        if written.lstrip().startswith(comment):
            continue
        for match in variable.finditer(written) if variable else ():
            facts.add_variable(match[1], number)
        note_hosts(facts, written, number)
        for match in HOME_PATH.finditer(written):
            note_place(facts, re.sub(r"^[^/\\]+", "~", match[0]), number)
        if TALK.search(written):
            facts.note_talk(number)
        if language == "python" and (found := IMPORT.match(written)):
            facts.imports.setdefault(found[1], number)
    return facts


def numbered(text: str, line: int = 1) -> Iterator[tuple[int, str]]:
    """Each line with its number."""
    return enumerate(text.split("\n"), line)
