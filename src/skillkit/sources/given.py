"""What a person typed, or a lock says -> a source: what kind it is, where it lies, which ref and which path in it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from skillkit.core.exceptions import ConfigurationError

__all__ = ["WELL_KNOWN", "Source", "is_commit", "locked_source", "source_from"]

WELL_KNOWN = "/.well-known/agent-skills/index.json"
GITHUB = "https://github.com"
ARCHIVES = (".zip", ".skill", ".tar.gz", ".tgz")
SHORTHAND = re.compile(
    r"(?P<owner>[A-Za-z0-9][A-Za-z0-9-]*)/(?P<repo>[A-Za-z0-9_.-]+)(?:/(?P<path>[^@#]+))?(?:@(?P<ref>[^@]+))?"
)
BROWSED = re.compile(r"/(?P<owner>[^/]+)/(?P<repo>[^/]+)/tree/(?P<ref>[^/]+)(?:/(?P<path>.+))?")
SCP = re.compile(r"(?:[A-Za-z0-9_.-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?!//)[^:].*")
REF = re.compile(r"(?![-/.])(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)))[^\x00-\x20\x7f~^:?*\[\\]{1,250}(?<![/.])")
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
HOST = re.compile(r"[A-Za-z0-9\[][A-Za-z0-9.:\[\]-]*")
FORMS = (
    "OWNER/REPO[/PATH][@REF], a git URL (https, ssh or file; URL#REF:PATH), a folder (./FOLDER), "
    "a .zip or .skill file, or an https index"
)

Kind = Literal["git", "folder", "archive", "index"]


class Source(NamedTuple):
    """`place` is a URL or a path, as the lock keeps it."""

    kind: Kind
    place: str
    ref: str = ""
    path: str = ""

    @property
    def is_remote(self) -> bool:
        return "://" in self.place or self.kind == "git"


def source_from(text: str) -> Source:
    """As typed; ConfigurationError says which forms there are."""
    if not text or not text.isprintable():
        raise _unknown(text)
    if "://" in text:
        return _from_url(text)
    if text.startswith((".", "/", "~")) or text.lower().endswith(ARCHIVES):
        return _from_path(text)
    if short := SHORTHAND.fullmatch(text):
        if os.path.lexists(text):
            raise ConfigurationError(
                f"{text!r} is a folder here and may be a repository too. "
                f"Write ./{text} for the folder, {GITHUB}/{text} for the repository."
            )
        place = f"{GITHUB}/{short['owner']}/{short['repo'].removesuffix('.git')}"
        return _git(place, short["ref"] or "", short["path"] or "")
    if SCP.fullmatch(text):
        place, ref, path = _parts(text)
        return _git(place, ref, path)
    if os.path.isdir(text):
        return _from_path(text)
    raise _unknown(text)


def locked_source(place: str, ref: str, path: str) -> Source:
    """What a lock says, held to the same rules as what is typed."""
    found = source_from(place)
    if found.ref or found.path:
        raise ConfigurationError(f"{place!r} is no source for a lock: ref and path have keys of their own.")
    return _git(found.place, ref, path) if found.kind == "git" else found._replace(path=_plain(path))


def is_commit(ref: str) -> bool:
    return COMMIT.fullmatch(ref) is not None


def _from_url(text: str) -> Source:
    url, ref, path = _parts(text)
    parts = urlsplit(url)
    if parts.scheme not in ("https", "ssh", "file"):
        raise ConfigurationError(
            f"{text!r}: skills are fetched by https, ssh or file, not by {parts.scheme!r}, which anybody on the way "
            "may change. Use an https URL."
        )
    if parts.scheme != "file" and not HOST.fullmatch(parts.hostname or ""):
        raise _unknown(text)
    if parts.scheme == "https":
        if parts.password:
            raise ConfigurationError(
                "A URL with a password would be written into skills.lock. Leave it out: git asks your helper."
            )
        if parts.path in ("", "/"):
            return Source("index", f"https://{parts.netloc}{WELL_KNOWN}")
        if parts.path.endswith("/index.json"):
            return Source("index", url)
        if parts.path.lower().endswith(ARCHIVES):
            return Source("archive", url, path=path)
        if parts.hostname == "github.com" and (browsed := BROWSED.fullmatch(parts.path)):
            place = f"{GITHUB}/{browsed['owner']}/{browsed['repo']}"
            return _git(place, browsed["ref"], (browsed["path"] or "").rstrip("/"))
    return _git(url, ref, path)


def _parts(text: str) -> tuple[str, str, str]:
    """`URL#REF:PATH`; either may be absent."""
    place, _, rest = text.partition("#")
    ref, _, path = rest.partition(":")
    return place, ref, path


def _git(place: str, ref: str, path: str) -> Source:
    if ref and not REF.fullmatch(ref):
        raise ConfigurationError(f"{ref!r} is no branch, tag or commit of git. Correct what stands behind the @ or #.")
    return Source("git", place, ref, _plain(path))


def _plain(path: str) -> str:
    names = [name for name in path.split("/") if name not in ("", ".")]
    if ".." in names or not path.isprintable():
        raise ConfigurationError(f"{path!r} is no path inside a source. Write it from the source's top, without '..'.")
    return "/".join(names)


def _from_path(text: str) -> Source:
    try:
        place = Path(text).expanduser()
    except RuntimeError as error:  # `~nobody`
        raise ConfigurationError(f"{text!r} cannot be found: {error} Give an absolute path.") from error
    kept = text if not text.startswith("~") else str(place)
    if text.lower().endswith(ARCHIVES) and not os.path.isdir(place):
        return Source("archive", kept)
    return Source("folder", kept)


def _unknown(text: str) -> ConfigurationError:
    return ConfigurationError(f"{text!r} is no source of skills. A source is {FORMS}.")
