"""A git repository's URL and a ref -> one commit's tree, read from a bare shallow copy: nothing is checked out.

Theory of operation. Hooks, filters, LFS and submodules act when files are checked out, so nothing is. The copy lies in
a temporary folder, has no hooks and no templates, and is read object by object. Only https, ssh and file are spoken,
whatever a redirect or the user's settings say, and nobody is asked for a password on the terminal. Whatever the
repository becomes meanwhile, all that is read is of the one commit that was fetched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from skillkit.core.exceptions import SizeLimitExceededError, SourceUnavailableError
from skillkit.core.paths.temporary import temporary_folder
from skillkit.core.values.runs import ProcessExit
from skillkit.core.values.text import grouped, visible
from skillkit.sources.given import Source, is_commit
from skillkit.sources.listing import LISTED, Kind, Listed
from skillkit.sources.programs import PlaceWatch, require_program, run_program

__all__ = ["FETCH_BYTES", "GitTree", "fetch_tree"]

FETCH_BYTES = 1_000_000_000
FETCHED = "refs/skillkit/fetched"
LISTING_BYTES = 200_000_000
SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "credential.interactive=false",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "transfer.bundleURI=false",
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
    "advice.detachedHead=false",
)
VARIABLES = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "https:ssh:file",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_NO_LAZY_FETCH": "1",  # a repository on this disk could name a program that fetches what it lacks
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
}
KINDS: dict[str, Kind] = {"100644": "file", "100664": "file", "100755": "program", "120000": "link"}
KEPT_WORDS = re.compile(r"^(?:fatal|error|remote|ssh): ?", re.MULTILINE)
SHOWN = 300

OnProgress = Callable[[str], None]


class GitTree:
    """One commit in a bare copy, which goes with the block."""

    def __init__(self, source: Source, *, seconds: float, on_progress: OnProgress | None = None) -> None:
        self.version = ""
        self.listed: Sequence[Listed] = ()
        self._source = source
        self._seconds = seconds
        self._on_progress = on_progress
        self._git = require_program("git", "to fetch skills from a repository")
        self._held = ExitStack()
        self._folder = self._held.enter_context(temporary_folder("git"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._held.close()

    def open_at(self, commit: str = "") -> None:
        """Fetches the ref, or exactly this commit; SourceUnavailableError where the repository has none."""
        self._require(self._run("init", "--quiet", "--bare", "--template=", self._folder), "no copy can be made")
        if commit:
            self._fetch_commit(commit)
        else:
            self._fetch(self._source.ref or "HEAD")
        found = self._run("rev-parse", "--verify", "--quiet", f"{FETCHED}^{{commit}}")
        self.version = self._require(found, "what it names is no commit").decode().strip()
        self.listed = self._list()

    def version_of(self, _: str) -> str:
        return self.version

    def read(self, entries: Sequence[Listed]) -> list[bytes]:
        """All of them by one process; each by the name of its content."""
        if not entries:
            return []
        names = "".join(f"{entry.key}\n" for entry in entries).encode()
        room = sum(entry.size for entry in entries) + len(entries) * 100
        ended = self._run("cat-file", "--batch", stdin=names, output=room)
        return list(_blobs(self._require(ended, "its files cannot be read"), entries))

    def _fetch_commit(self, commit: str) -> None:
        """By its name where the server allows that; else in the ref's history."""
        if self._try_fetch(commit, "--depth=1").status == 0:
            return
        self._fetch(self._source.ref or "HEAD", is_whole=True)
        held = self._run("update-ref", FETCHED, commit)
        if held.status != 0 or self._run("cat-file", "-e", f"{commit}^{{commit}}").status != 0:
            raise SourceUnavailableError(
                f"{visible(self._source.place)} has no commit {commit} any more: it was removed, or its history was "
                "rewritten. 'skillkit update' takes what is there now, and shows what differs."
            )

    def _fetch(self, ref: str, *, is_whole: bool = False) -> None:
        ended = self._try_fetch(ref, *([] if is_whole else ["--depth=1"]))
        if ended.status != 0 and not is_whole and b"shallow" in ended.stderr:  # a server of plain files
            ended = self._try_fetch(ref)
        if ended.timed_out:
            raise SourceUnavailableError(
                f"{visible(self._source.place)} did not answer to the end within {self._seconds:g} seconds. "
                "Try again, or give it more time by --timeout."
            )
        self._require(ended, f"{ref!r} cannot be fetched")

    def _try_fetch(self, ref: str, *options: str) -> ProcessExit:
        words = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--force")
        with PlaceWatch(self._folder, FETCH_BYTES, self._on_progress) as watch:
            ended = self._run(
                *words, "--no-auto-maintenance", *options, "--", self._source.place, f"+{ref}:{FETCHED}", watch=watch
            )
        if watch.is_too_large:
            raise SizeLimitExceededError(
                f"{visible(self._source.place)} is not added: more than {grouped(FETCH_BYTES)} bytes came. "
                "Skills need less; ask its author for a repository of their own.",
                size=FETCH_BYTES + 1,
                limit=FETCH_BYTES,
            )
        return ended

    def _list(self) -> list[Listed]:
        words = ("ls-tree", "-r", "-z", "-l", "--full-tree", FETCHED)
        ended = self._run(*words, output=LISTING_BYTES)
        listing = self._require(ended, "its files cannot be listed")
        rows = listing.split(b"\0")[:-1]
        if len(rows) > LISTED or ended.stdout_bytes > len(listing):
            raise SizeLimitExceededError(
                f"{visible(self._source.place)} is not added: it has more than {grouped(LISTED)} files.",
                size=len(rows),
                limit=LISTED,
            )
        return [*map(_listed, rows)]

    def _run(
        self, *words: str, stdin: bytes = b"", output: int = 1_000_000, watch: PlaceWatch | None = None
    ) -> ProcessExit:
        settings = [word for setting in SETTINGS for word in ("-c", setting)]
        return run_program(
            [self._git, *settings, *words],
            cwd=self._folder,
            variables={**VARIABLES, "GIT_DIR": self._folder},
            stdin=stdin,
            seconds=self._seconds,
            output=output,
            cancel=watch.cancel if watch else None,
        )

    def _require(self, ended: ProcessExit, what: str) -> bytes:
        if ended.status == 0:
            return ended.stdout
        said = KEPT_WORDS.sub("", ended.stderr.decode("utf-8", "replace")).strip()
        said = " ".join(visible(said).split())[:SHOWN].rstrip(".") or f"git ended with {ended.status}"
        remedy = "Check the address, the ref, and whether you may read it."
        raise SourceUnavailableError(f"{visible(self._source.place)}: {what}. git says: {said}. {remedy}")


def fetch_tree(source: Source, commit: str, *, seconds: float, on_progress: OnProgress | None = None) -> GitTree:
    """The tree of the ref's commit, or of exactly `commit`; it is the caller's to close."""
    tree = GitTree(source, seconds=seconds, on_progress=on_progress)
    try:
        tree.open_at(commit or (source.ref if is_commit(source.ref) else ""))
    except BaseException:
        tree.__exit__(None, None, None)
        raise
    return tree


def _listed(row: bytes) -> Listed:
    """`MODE TYPE NAME SIZE<tab>PATH`."""
    head, _, path = row.partition(b"\t")
    mode, kind, name, size = head.decode().split()
    known: Kind = "submodule" if kind == "commit" else KINDS.get(mode, "special")
    return Listed(path.decode("utf-8", "surrogateescape"), known, 0 if size == "-" else int(size), name)


def _blobs(output: bytes, entries: Sequence[Listed]) -> list[bytes]:
    """`NAME blob SIZE<newline>CONTENT<newline>`, in the order asked."""
    found, at = list[bytes](), 0
    for entry in entries:
        end = output.index(b"\n", at) if b"\n" in output[at : at + 200] else -1
        if output[at:end] != f"{entry.key} blob {entry.size}".encode():
            raise SourceUnavailableError(f"{entry.path!r} cannot be read from its repository. Try again.")
        at = end + 1 + entry.size + 1
        found.append(output[end + 1 : at - 1])
    return found
