"""An order -> what it needs on this machine: the skill in a folder, what it is fed, and files that were sent along."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from skillkit.core.exceptions import ContentChangedError, ScriptRefusedError
from skillkit.core.find.reading import read_skill_file
from skillkit.core.find.roots import PATH, Root
from skillkit.core.models import Skill
from skillkit.core.models.digest import manifest_of
from skillkit.core.paths.files import Folder
from skillkit.fleet.orders import Order
from skillkit.fleet.packing import kept_in, unpack
from skillkit.fleet.rows import Rows, patiently

__all__ = ["Materials"]

SKILL_FILE = "SKILL.md"
INPUTS = "inputs"
MOST_SKILLS = 256


class Materials:
    """What was fetched before is used again, after a look at it."""

    def __init__(self, rows: Rows, folder: Path) -> None:
        self._rows = rows
        self._folder = folder
        self._lock = threading.Lock()
        self._skills: dict[tuple[str, str, bool], Skill] = {}
        self._told: dict[str, dict[str, Any]] = {}

    def is_of(self, store: object) -> bool:
        return self._rows.store is store

    def note(self, run: str, order: Order) -> None:
        self._told[run] = {
            "session": order.session_id,
            "skill": order.skill,
            "digest": order.digest,
            "script": order.script,
        }

    def told(self, run: str) -> dict[str, Any]:
        """What a record says of a run that came no further than its order."""
        return self._told.pop(run, {})

    def forget(self, run: str) -> None:
        self._told.pop(run, None)

    def skill(self, order: Order) -> Skill:
        """Hashed each time, here and by who runs it."""
        key = (order.digest, order.folder, order.is_plugin)
        with self._lock:
            known = self._skills.get(key)
        if known is not None and os.path.isdir(known.base_directory) and known.digest == order.digest:
            with suppress(OSError):  # it goes at this very moment
                os.utime(known.base_directory.parent)  # what is used stays longest
            return known
        place = unpack(self._blob(order.package), order.digest, order.folder, self._folder)
        skill = _skill_in(place, order)
        with self._lock:
            if len(self._skills) >= MOST_SKILLS:
                self._skills.clear()
            self._skills[key] = skill
        return skill

    def by_digest(self, digest: str) -> Path | None:
        """A skill of this content, where it was fetched before or can be by an order that is still known; else None."""
        for place in kept_in(self._folder / digest):
            if manifest_of(place).digest == digest:
                return place
        order = patiently(lambda: self._rows.order_with(digest))
        return None if order is None else self.skill(order).base_directory

    def stdin(self, order: Order) -> bytes:
        return self._blob(order.stdin) if order.stdin else b""

    def inputs(self, order: Order, held: Path) -> tuple[dict[str, str], Path]:
        """What each was called -> where it lies here; all in one folder inside `held`, which stays this user's own."""
        placed, folder = {}, held / INPUTS
        with Folder.of(held) as top, top.folder(INPUTS, make=True):
            pass
        for number, each in enumerate(order.inputs):
            name = os.path.basename(each.path)
            if name in ("", ".", "..") or "\0" in name:
                raise ScriptRefusedError.because(f"The order names the input {each.path!r}")
            content = self._blob(each.digest)
            if len(content) != each.size:
                raise ScriptRefusedError.because(f"The input {each.path!r} has another size than the order says")
            with Folder.of(folder) as top, top.folder(str(number), make=True) as place:
                place.write_new(name, content, 0o444)
            placed[each.path] = str(folder / str(number) / name)
        os.chmod(folder, 0o755)  # noqa: S103 - walls show it to other users of a namespace
        return placed, folder

    def _blob(self, digest: str) -> bytes:
        found = patiently(lambda: self._rows.blob(digest))
        if found is None:
            raise ContentChangedError.because("The bytes of the order are not in the shared world", "Run it again.")
        return found


def _skill_in(place: Path, order: Order) -> Skill:
    path = place / SKILL_FILE
    try:
        reading = read_skill_file(str(path), path.stat())
    except OSError as error:
        raise ContentChangedError.because(f"The skill has no {SKILL_FILE}", "Send it again.") from error
    if reading.name != order.skill:
        raise ContentChangedError.because(f"The skill is named {reading.name!r}, not {order.skill!r}", "Run it again.")
    return Skill(reading.metadata(str(path), Root(place.parent, PATH, place if order.is_plugin else None)))
