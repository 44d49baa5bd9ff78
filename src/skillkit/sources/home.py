"""Where skills are put: a project's or the user's folders, the lock beside them, and what the world knows of both."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from skillkit.core.exceptions import ConfigurationError, SkillKitError, SourceRefusedError
from skillkit.core.find.roots import user_skills_folder
from skillkit.core.paths import real_path
from skillkit.core.paths.files import Folder
from skillkit.core.paths.hosts import HOSTS, PROJECT_LEVEL, USER_LEVEL
from skillkit.core.paths.temporary import remove_abandoned
from skillkit.core.store.base import Store
from skillkit.core.store.skills import Installed, InstalledSkills
from skillkit.sources.choosing import SkillContent, skill_at
from skillkit.sources.given import Source
from skillkit.sources.listing import Tree
from skillkit.sources.lock import LOCK_FILE, USUAL_FOLDER, Locked
from skillkit.sources.opening import SECONDS, open_source
from skillkit.sources.outcomes import label_at, pinned
from skillkit.sources.placing import put_right
from skillkit.sources.present import present_at
from skillkit.sources.signatures import Signature, check_signature, signature_in

__all__ = ["HOST_NAMES", "SkillHome", "host_folder", "require_same_signer", "user_base"]

HOST_NAMES = tuple(sorted({host.name for host in HOSTS if host.name}))


def host_folder(host: str, *, is_user: bool) -> str:
    """Where this host looks, below a project or below the home folder."""
    level = USER_LEVEL if is_user else PROJECT_LEVEL
    folders = next(getattr(each, level) for each in HOSTS if each.name == host)
    return str(folders[0])


@dataclass(frozen=True, slots=True)
class SkillHome:
    """One lock with its folders; and how to fetch for it."""

    base: Path
    is_user: bool
    state: Store
    allowed_signers: Path | None = None
    may_change_signer: bool = False
    seconds: float = SECONDS
    on_progress: Callable[[str], None] | None = None

    @property
    def lock(self) -> Path:
        return self.base / LOCK_FILE

    @property
    def installed(self) -> InstalledSkills:
        return InstalledSkills(self.state)

    @property
    def notes(self) -> Path:
        """Where it is written down what is being moved."""
        return self.state.folder / "placing"

    def folder(self, relative: str = USUAL_FOLDER) -> Path:
        """For the user, hosts look below the home folder, and skillkit in its own data."""
        is_below_home = self.is_user and relative != USUAL_FOLDER
        return (Path(real_path(Path.home())) if is_below_home else self.base) / relative

    def place_of(self, name: str, locked: Locked) -> Path:
        return self.folder(locked.folder) / name

    def opened(
        self, source: Source, *, version: str = "", wanted: Collection[str] = ()
    ) -> AbstractContextManager[Tree]:
        """The source's tree, for a block."""
        return open_source(
            source, self.base, version=version, wanted=wanted, seconds=self.seconds, on_progress=self.on_progress
        )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One who changes skills and lock at a time; others wait."""
        try:
            Folder.named(self.base, make=True).close()
            descriptor = os.open(self.base, os.O_RDONLY)
        except OSError as error:
            raise ConfigurationError(f"{self.base} cannot be used: {error.strerror}. Go to another folder.") from error
        try:
            if os.name == "posix":
                import fcntl

                fcntl.flock(descriptor, fcntl.LOCK_EX)
            put_right(self.lock, self.notes)
            remove_abandoned()
            yield
        finally:
            os.close(descriptor)

    def signature_of(self, content: SkillContent, place: Path) -> Signature:
        """Whose it is; refused where the world knows another signer of this folder, or a later signature."""
        found = check_signature(content.label, content.manifest.digest, content.signature, self.allowed_signers)
        if not self.may_change_signer:
            self.require_known(content.name, place, found)
        if found.is_there or self.may_change_signer:
            known = self._known_signer(content.name, place)
            self.installed.require_right(found.key, known, is_changed=self.may_change_signer)
        return found

    def require_known(self, name: str, place: Path, found: Signature) -> None:
        """Whoever signed it now is who is known for it, if anybody is."""
        require_same_signer(self._known_signer(name, place), found, name)

    def _known_signer(self, name: str, place: Path) -> Installed | None:
        """Of this folder; of another one of the same base, where a lock moved the skill; else of what lies there."""
        known = self.installed.of(place)
        if known is not None and known.key:
            return known
        return self.installed.named(name, self.base) or self._signed_there(name, place) or known

    def _signed_there(self, name: str, place: Path) -> Installed | None:
        """What came with the project itself and was never added here has a signer too."""
        try:
            content = signature_in(place)
            digest = present_at(place).digest if content is not None else ""
            found = check_signature(label_at(place, name), digest, content, self.allowed_signers) if digest else None
        except (OSError, SkillKitError):
            return None
        return None if found is None or not digest else pinned(place, name, digest, found)

    def fetched(self, wanted: Mapping[str, Locked], *, exactly: bool) -> list[tuple[str, SkillContent]]:
        """Locked skills by name, as their sources have them now or exactly as locked; each source is fetched once."""
        by_source: dict[tuple[Source, str], list[str]] = {}
        for name, entry in wanted.items():
            version = entry.commit if exactly else ""
            by_source.setdefault((entry.as_source()._replace(path=""), version), []).append(name)
        found = []
        for (source, version), names in by_source.items():
            with self.opened(source, version=version, wanted=[wanted[name].path for name in names]) as tree:
                found += [(name, skill_at(tree, wanted[name].path, name)) for name in names]
        return sorted(found, key=lambda each: each[0])


def require_same_signer(known: Installed | None, found: Signature, name: str) -> None:
    """The first signer of a skill's folder is its signer, until a person says that this changed."""
    if known is None or not known.key:
        return
    if not found.is_there:
        reason = f"it is not signed, and until now {known.signer or known.key} had signed it"
    elif found.key != known.key and not (found.signer and found.signer == known.signer):
        reason = f"it is signed by {found.shown}, and until now {known.signer or known.key} had signed it"
    elif found.signed_at < known.signed_at:
        reason = f"it was signed at {found.moment}, before the version that is known here: somebody offers an old one"
    else:
        return
    raise SourceRefusedError(
        f"{name!r} is refused: {reason}. Nothing was changed. Ask its author; if that is as it should be, "
        "add --signer-changed."
    )


def user_base() -> Path:
    """The folder of skillkit's own data that holds the user's skills; links on the way to it are the user's own."""
    return Path(real_path(user_skills_folder().parent))
