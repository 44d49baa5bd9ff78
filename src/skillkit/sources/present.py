"""A skill's place -> what lies there now: by its digest, and what no source gave and no digest holds.

A source gives files, and the folders that these need. So a repository or an empty folder is somebody's own, as a
changed file is, although the digest, which is about what can take part in a run, says nothing of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from skillkit.core.exceptions import SkillKitError
from skillkit.core.models.digest import LEFT_OUT, manifest_of
from skillkit.core.values.text import plural

__all__ = ["NOTHING", "Present", "present_at"]

SHOWN = 3


class Present(NamedTuple):
    """What lies in the place of a skill."""

    digest: str | None
    """Of all files; None for no folder, an empty text for one that cannot be told."""
    extras: tuple[str, ...] = ()
    """Repositories and empty folders."""

    @property
    def is_nothing(self) -> bool:
        return self.digest is None

    @property
    def is_untold(self) -> bool:
        return self.digest == ""

    @property
    def shown_extras(self) -> str:
        more = len(self.extras) - SHOWN
        return ", ".join(self.extras[:SHOWN]) + (f" and {plural(more, 'more folder')}" if more > 0 else "")

    def is_one_of(self, *digests: str | None) -> bool:
        """Whether it is that, and nothing else beside it."""
        return not self.extras and self.digest in digests


NOTHING = Present(None)


def present_at(place: Path) -> Present:
    """Every byte is read; a link is not followed."""
    if not os.path.isdir(place) or os.path.islink(place):
        return Present("") if os.path.islink(place) or os.path.exists(place) else NOTHING
    try:
        manifest = manifest_of(place, by_content=True)
        needed = {parent for path, _ in manifest.entries for parent in PurePosixPath(path).parents}
        return Present(manifest.digest, tuple(sorted(_extras(place, {str(each) for each in needed}))))
    except (OSError, SkillKitError):
        return Present("")


def _extras(place: Path, needed: set[str]) -> Iterator[str]:
    """Each repository, and the outermost of folders without a file; nothing inside them is looked at."""
    pending = [""]
    while pending:
        inside = pending.pop()
        with os.scandir(place / inside) as listing:
            for entry in listing:
                path = f"{inside}{entry.name}"
                if not entry.is_dir(follow_symlinks=False):
                    continue
                if entry.name == LEFT_OUT or path not in needed:
                    yield f"{path}/"
                else:
                    pending.append(f"{path}/")
