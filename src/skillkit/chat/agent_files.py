"""An agent file's name -> the file, whose word it is, and whether a person approved what stands in it.

Theory of operation. Who writes an agent file can take the walls away and have keys sent anywhere, so what it loosens is
believed only if it is the user's word: a plain file in the user's own folder, or one whose very content a person has
approved. The approval is kept in the world's store beside trust, by the digest of the text that was read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from skillkit.config import Place, Settings, searched_folders
from skillkit.config.files import PROJECT, USER, read_text
from skillkit.config.settings import AGENTS_FOLDER
from skillkit.core.exceptions import ApprovalUnavailableError, ConfigurationError
from skillkit.core.store.opening import open_store
from skillkit.core.store.state import state_folder
from skillkit.core.store.trust import AGENT_OWNER, StandingApprovals
from skillkit.core.values.questions import Approver, Option, OptionRequest

__all__ = ["AgentFile", "AgentWord", "agent_path", "digest_of", "open_agent_file", "own_folder"]

YES, NO = Option("yes", "Yes, as it is now"), Option("no", "No")


class AgentFile(NamedTuple):
    """One agent file as it was read, once."""

    path: Path
    text: str
    is_own: bool
    """Whether it is the user's word by where it lies."""
    is_asked_about: bool
    """Whether the user said that files from there may loosen, once their content is approved."""

    @property
    def place(self) -> Place:
        return Place(USER if self.is_own else PROJECT, self.path)

    @property
    def digest(self) -> str:
        return digest_of(self.text)


def digest_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def agent_path(named: str, settings: Settings) -> Path:
    """A bare name is looked for in the user's own folder first: a project could have put a file of that name here."""
    path = Path(named).expanduser()
    folder = own_folder(settings)
    own = folder / f"{named}.toml" if folder else None
    is_bare = not any(separator in named for separator in (os.sep, os.altsep) if separator)
    if own is not None and is_bare and os.path.isfile(own):
        return own
    if os.path.isfile(path):
        return path.absolute()
    elsewhere = f", nor {str(own)!r}" if own is not None and path.suffix != ".toml" else ""
    raise ConfigurationError(f"There is no agent file {str(path)!r}{elsewhere}. Name one that exists.")


def open_agent_file(path: Path, settings: Settings) -> AgentFile:
    """A link in the user's own folder counts as what it leads to; elsewhere a link is refused."""
    own = own_folder(settings)
    lies_in_own = own is not None and os.path.realpath(path.parent) == os.path.realpath(own)
    real = Path(os.path.realpath(path)) if lies_in_own else path
    is_own = lies_in_own and own is not None and os.path.realpath(real.parent) == os.path.realpath(own)
    is_asked_about = lies_in_own or _is_in_trusted_project(path, settings)
    text = read_text(Place(USER if is_own else PROJECT, real), may_loosen=is_own or is_asked_about)
    return AgentFile(real, text, is_own, is_asked_about)


def own_folder(settings: Settings) -> Path | None:
    return settings.user_file.parent / AGENTS_FOLDER if settings.user_file else None


def _is_in_trusted_project(path: Path, settings: Settings) -> bool:
    trusted = settings.named.get("projects.trusted")
    listed = {os.path.realpath(each) for each in (trusted.value if trusted else ())}
    return any(str(each) in listed for each in searched_folders(path.parent))


class AgentWord:
    """What a person said about agent files, kept in one world."""

    def __init__(self, state_dir: Path | None = None, approver: Approver | None = None) -> None:
        self._folder = state_folder(state_dir)
        self._approver = approver

    def is_given(self, file: AgentFile) -> bool:
        """Whether exactly this content was approved, for this file."""
        return self._approved_digest(file) == file.digest

    def ask(self, file: AgentFile, wants: Sequence[str]) -> bool:
        """A person's word, kept if it is a yes; where nobody can be asked there is none."""
        if self._approver is None:
            return False
        request = _agent_request(file, wants, was_approved=self._approved_digest(file) is not None)
        try:
            answer = self._approver.ask(request)
        except ApprovalUnavailableError:
            return False
        if answer.option_id != YES.id:
            return False
        self.give(file, answer.channel)
        return True

    def give(self, file: AgentFile, channel: str) -> None:
        with closing(open_store(self._folder)) as store:
            StandingApprovals(store).trust(
                skill=AGENT_OWNER, folder=file.path, digest=file.digest, channel=channel, walls=None
            )

    def _approved_digest(self, file: AgentFile) -> str | None:
        with closing(open_store(self._folder)) as store:
            return StandingApprovals(store).last_approved_digest(AGENT_OWNER, file.path)


def _agent_request(file: AgentFile, wants: Sequence[str], *, was_approved: bool) -> OptionRequest:
    """Everything that a person has to know, and the file itself."""
    why = "It changed since you approved it." if was_approved else "Nobody has approved it yet."
    parts = [why, "It asks for more than your settings allow:", *wants, "", file.text, f"sha256 {file.digest}"]
    request_id = sha256(f"agent\0{file.path}\0{file.digest}".encode(errors="backslashreplace")).hexdigest()
    return OptionRequest(request_id, f"Believe the agent file {file.path}?", "\n".join(parts), (YES, NO))
