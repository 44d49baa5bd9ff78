"""SkillManager: what Python users hold. It finds skills, reads them and hands them out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.find.discovery import discover
from skillkit.core.find.index import SkillIndex
from skillkit.core.find.plugins import plugin_roots
from skillkit.core.find.roots import PathLike, Root, agent_roots, path_roots, project_roots
from skillkit.core.models import Skill, SkillMetadata
from skillkit.core.state import state_folder
from skillkit.core.values import Diagnostic, ScriptMetadata

__all__ = ["SkillManager"]

TIMEOUT_RANGE_SECONDS = (1, 600)


class SkillManager:
    """The skills of one agent. `None` means the usual places, an empty text or list means off."""

    def __init__(
        self,
        project_skill_dir: PathLike | None = None,
        anthropic_config_dir: PathLike | None = None,
        plugin_dirs: Sequence[PathLike] | None = None,
        additional_search_paths: Sequence[PathLike] | None = None,
        default_script_timeout: float = 30,
        *,
        session_id: str | None = None,
        workspace: PathLike | None = None,
        state_dir: PathLike | None = None,
    ) -> None:
        require_timeout(default_script_timeout)
        self._plugin_problems: list[Diagnostic] = []
        self._roots = [
            *project_roots(project_skill_dir),
            *agent_roots(anthropic_config_dir),
            *plugin_roots(plugin_dirs, self._plugin_problems),
            *path_roots(additional_search_paths),
        ]
        self.default_script_timeout = default_script_timeout
        self.session_id = session_id
        self.workspace = Path(workspace).absolute() if workspace else None
        self.state_dir = state_folder(state_dir)
        self._lock = threading.RLock()
        self._index: SkillIndex | None = None
        self._loaded: dict[Path, Skill] = {}

    @property
    def roots(self) -> tuple[Root, ...]:
        """The folders that are searched, in order of precedence."""
        return tuple(self._roots)

    def discover(self, on_progress: Callable[[int], None] | None = None) -> None:
        """Looks at every root again; skills handed out before stay as they are."""
        found = discover(self._roots, cache_folder=self.state_dir / "readings", on_progress=on_progress)
        index = SkillIndex(found.skills, [*self._plugin_problems, *found.diagnostics])
        with self._lock:
            self._index = index
            self._loaded.clear()

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What was skipped, repaired or shadowed at the last discovery."""
        return list(self._found().diagnostics)

    def list_skills(self, *, include_shadowed: bool = False) -> list[SkillMetadata]:
        """In order of precedence; a skill whose name another one has is left out unless asked for."""
        index = self._found()
        found = index.everything if include_shadowed else index.winners.values()
        return [skill.metadata for skill in found]

    def get_skill(self, name: str) -> SkillMetadata:
        """By name, `source:name`, or the name of its folder; SkillNotFoundError says what exists."""
        return self._found().get(name).metadata

    def load_skill(self, name: str) -> Skill:
        """The same object for the same skill until the next discovery, so that its text is read once."""
        metadata = self.get_skill(name)
        with self._lock:
            return self._loaded.setdefault(metadata.skill_path, Skill(metadata))

    def list_scripts(self, skill_name: str) -> list[ScriptMetadata]:
        return list(self.load_skill(skill_name).scripts)

    def invoke_skill(self, name: str, arguments: str = "") -> str:
        """The text an agent reads, with arguments and folders filled in."""
        from skillkit.core.instructions import instructions_for

        skill = self.load_skill(name)
        return instructions_for(skill, arguments, session_id=self.session_id, workspace=self.workspace)

    async def adiscover(self) -> None:
        """As `discover`, without blocking the loop."""
        import asyncio

        await asyncio.to_thread(self.discover)

    async def ainvoke_skill(self, name: str, arguments: str = "") -> str:
        """As `invoke_skill`, without blocking the loop."""
        import asyncio

        return await asyncio.to_thread(self.invoke_skill, name, arguments)

    def close(self) -> None:
        """Forgets what was loaded; the manager may be used again."""
        with self._lock:
            self._loaded.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _found(self) -> SkillIndex:
        with self._lock:
            if self._index is None:
                self.discover()
            assert self._index is not None  # noqa: S101 - discover sets it
            return self._index


def require_timeout(seconds: object) -> None:
    lowest, highest = TIMEOUT_RANGE_SECONDS
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not lowest <= seconds <= highest:
        raise ConfigurationError(
            f"A timeout is {lowest} to {highest} seconds; {seconds!r} is not. Choose one in that range."
        )
