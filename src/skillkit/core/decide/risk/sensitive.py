"""A text that a program holds -> the secrets, startup files and outside places it names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillkit.core.decide.risk.findings import Finding, numbered, shown

__all__ = [
    "credential_findings",
    "host_in",
    "is_secret_name",
    "outside_place",
    "secret_variable",
    "sensitive_findings",
]

# Each starts with a fixed letter or sign, so that no text takes more than one look at each of its characters.
CREDENTIALS = re.compile(
    r"(?<![\w.)\]?])\.(?:ssh\b(?!/known_hosts|/config\b)(?:/[\w.*-]{1,40})?|aws/(?:credentials|config)\b|gnupg\b|netrc\b|git-credentials\b"
    r"|pypirc\b|kube/config\b|docker/config\.json|password-store\b|config/(?:gcloud|gh/hosts)\b"
    r"|local/share/keyrings|cargo/credentials|bash_history\b|zsh_history\b|config/(?:google-chrome|chromium)\b"
    r"|mozilla/firefox|vault-token\b)"
    r"|\bid_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)|/etc/(?:shadow|sudoers)\b|\bcookies\.sqlite\b|\bkey[34]\.db\b"
    r"|\blogins\.json\b|\bLogin Data\b|\bwallet\.dat\b|\blogin\.keychain|\bLibrary/Keychains\b|\b169\.254\.169\.254\b"
    r"|\bmetadata\.google\.internal\b|/proc/(?:self|\d{1,9})/environ\b",
)
WRITTEN_KEYS = re.compile(
    r"\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}\b|\bsk-ant-[\w-]{20}|\bxox[abp]-[0-9]{8}"
    r"|-----BEGIN (?:[A-Z]{2,9} ){0,2}PRIVATE KEY-----"
)
STARTUP = re.compile(
    r"(?<![\w.])\.(?:bashrc|bash_profile|bash_login|bash_logout|profile|zshrc|zshenv|zprofile|config/fish/config\.fish"
    r"|config/autostart|config/systemd/user|git/hooks|claude/settings|claude/hooks|mcp\.json|cursor/mcp\.json"
    r"|ssh/authorized_keys|xinitrc|xprofile|vscode/tasks\.json)\b"
    r"|/etc/(?:cron|systemd/|init\.d|rc\.local|profile|ld\.so\.preload|sudoers\.d)|/var/spool/cron"
    r"|\bLaunch(?:Agents|Daemons)\b|\bCurrentVersion\\{1,2}Run\b|\bStart Menu\\{1,2}Programs\\{1,2}Startup\b"
    r"|\bsitecustomize\.py\b|\busercustomize\.py\b",
)
# Words of which one must be in a text before a pattern is tried: looking for a word is much faster.
CREDENTIAL_WORDS = (
    *".ssh .aws/ .gnupg .netrc .git-cred .pypirc .kube/ .docker/ .password-store .config/ .cargo/".split(),
    *".local/share/ _history .mozilla .vault-token id_ /etc/s cookies.sqlite key3.db key4.db logins.json".split(),
    *("Login Data", "wallet.dat", "login.key", "Keychains", "169.254", "metadata.google", "/environ"),
)
KEY_WORDS = ("AKIA", "gh", "sk-ant-", "xox", "-----BEGIN ")
STARTUP_WORDS = (
    *".bash .profile .z .config/ .git/hooks .claude/ mcp.json .ssh/ .xinitrc .xprofile .vscode/ /etc/ /cron".split(),
    *("LaunchAgents", "LaunchDaemons", "CurrentVersion", "Start Menu", "customize.py"),
)
SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|ACCESS_?KEY(?:_ID)?|SECRET|SECRETS|SECRET_?KEY|PRIVATE_?KEY|TOKEN|PASSWORD|PASSWD"
    r"|PASSPHRASE|CREDENTIALS?|PAT|AUTH_?KEY|SESSION_?KEY|DATABASE_URL|COOKIE|KEY)$"
)
HOST = re.compile(r"\b(?:https?|ftp|wss?|tcp)://(?:[^\s/@\"'<>]{0,80}@)?([\w.\[\]:-]{1,100})", re.IGNORECASE)
BARE_HOST = re.compile(r"(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24}\Z|\d{1,3}(?:\.\d{1,3}){3}\Z")
NAME_LIMIT = 100
PATH_LIMIT = 4096
HARMLESS = (
    "/dev/tcp /dev/udp /dev/null /dev/stdout /dev/stderr /dev/stdin /dev/tty /dev/fd /dev/shm /tmp /var/tmp".split()
)


def sensitive_findings(text: str, line: int) -> Iterator[Finding]:
    """Secrets and startup files that `text` names; `line` is where it starts."""
    yield from credential_findings(text, line)
    if any(word in text for word in STARTUP_WORDS):
        for number, match in numbered(STARTUP, text, line):
            message = f"Names {shown(match[0])}, which other programs run or read on their own."
            yield Finding("outside_write", message, number)


def credential_findings(text: str, line: int = 1) -> Iterator[Finding]:
    """Of a key only the beginning is shown: a prompt is kept, and a secret should not be."""
    if any(word in text for word in CREDENTIAL_WORDS):
        for number, match in numbered(CREDENTIALS, text, line):
            yield Finding("credentials", f"Names {shown(match[0])}, where secrets are kept.", number)
    if any(word in text for word in KEY_WORDS):
        for number, match in numbered(WRITTEN_KEYS, text, line):
            yield Finding("credentials", f"Holds what looks like a secret key: {shown(match[0][:12])}...", number)


def host_in(text: str) -> str:
    """Whom a text addresses; empty when that cannot be told."""
    found = HOST.search(text[:PATH_LIMIT])
    if found:
        return shown(found[1].rstrip(".:"))
    return shown(text) if len(text) < NAME_LIMIT and BARE_HOST.match(text) else ""


def is_secret_name(name: str) -> bool:
    """Whether an environment variable of this name usually holds a secret."""
    return len(name) < NAME_LIMIT and bool(SECRET_NAME.search(name.upper()))


def secret_variable(name: str, line: int) -> Finding:
    return Finding("credentials", f"Reads the environment variable {shown(name)}.", line)


def outside_place(path: str) -> str:
    """The place, as it is shown, when a path leads out of the folder a script works in; else empty."""
    start = path[:PATH_LIMIT]
    leads_up = start.startswith(("../", "..\\")) or start == ".." or "/../" in start
    is_home = start.startswith(("~", "$HOME", "${HOME}", "%USERPROFILE%", "$env:USERPROFILE"))
    is_drive = start[1:3] in (":/", ":\\") and start[:1].isalpha()
    is_absolute = start.startswith("/") and not any(start == each or start.startswith(f"{each}/") for each in HARMLESS)
    return shown(path) if leads_up or is_home or is_drive or is_absolute else ""
