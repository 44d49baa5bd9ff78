"""Names of volumes -> folders of this machine: where the workspace of an order lies, and where homes are kept.

A volume is a folder that several machines have together, under a name that callers know. One of them may hold homes. It
is no workspace: a script would find the homes of other skills in it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from skillkit.core.exceptions import ConfigurationError, ScriptRefusedError
from skillkit.core.paths import is_inside
from skillkit.core.store.homes import Homes
from skillkit.fleet.orders import Order

__all__ = ["Volumes"]


class Volumes:
    """Those of one worker; `homes` names the one that holds homes, empty where every run has a new home."""

    def __init__(self, given: Mapping[str, str | Path] | None = None, homes: str = "") -> None:
        self._places = {name: os.path.realpath(place) for name, place in (given or {}).items()}
        self._name = homes
        self.homes_folder = self._require_apart(homes) if homes else None

    def _require_apart(self, homes: str) -> Path:
        place = self._places.pop(homes, None)
        if place is None:
            raise ConfigurationError(
                f"The volume {homes!r} is to hold homes, but is not mapped. Name its folder: --volume {homes}=FOLDER."
            )
        for name, other in self._places.items():
            if is_inside(place, other) or is_inside(other, place):
                raise ConfigurationError(
                    f"The volume {name!r} ({other}) and {homes!r} ({place}), which holds homes, lie in each other: a "
                    "script could read other skills' homes in its workspace. Use folders beside each other."
                )
        return Path(place)

    def homes(self, world: str) -> Homes | None:
        return None if self.homes_folder is None else Homes.in_volume(self.homes_folder, world)

    def require_homes(self, order: Order) -> None:
        """Refuses an order that keeps a home which is not kept here."""
        if order.homes and order.homes != self._name:
            name = order.homes
            raise ScriptRefusedError.because(
                f"The home of {order.skill!r} is kept in the volume {name!r}, and this worker keeps no homes there",
                f"Start it with --volume {name}=FOLDER --homes {name}, the same folder for all workers.",
            )

    def workspace(self, order: Order) -> Path | None:
        if not order.workspace:
            return None
        name, _, inside = order.workspace.partition("/")
        place = self._places.get(name)
        if place is None:
            held = ", for it holds homes" if name == self._name else ""
            raise ScriptRefusedError.because(
                f"This worker maps no volume {name!r} for workspaces{held}", f"Start it with --volume {name}=FOLDER."
            )
        named = os.path.join(place, inside) if inside else place
        if os.path.isabs(inside) or os.path.realpath(named) != named:
            raise ScriptRefusedError.because(
                f"{order.workspace!r} leads elsewhere than it says, by a link or '..', and its name is what was shown",
                "Name the folder itself as workspace.",
            )
        return Path(named)
