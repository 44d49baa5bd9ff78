"""A script -> why no worker can run it as it is: it needs a home that stays, or files of its plugin beyond its skill.

Both are looked for before anything is asked or ordered. A script that lost what it saved, or did not find what it
reads, would fail later, or say that all is well.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from skillkit.core.exceptions import ScriptRefusedError
from skillkit.core.models import Skill
from skillkit.core.paths import real_path
from skillkit.core.values.needs import Need
from skillkit.core.values.runs import Manifest, ScriptCommand

__all__ = ["PLUGIN_VARIABLE", "has_own_plugin", "refuse_lost_home", "refuse_plugin_files"]

PLUGIN_VARIABLE = "CLAUDE_PLUGIN_ROOT"
TEXTS = (".md", ".markdown")
"""Instructions: in them the name is replaced before anybody acts by them."""


def refuse_lost_home(command: ScriptCommand, needs: Iterable[Need]) -> None:
    """For a run whose policy keeps a home, on a fleet that keeps none."""
    need = next((each for each in needs if each.kind == "home"), None)
    if need is not None:
        raise ScriptRefusedError.because(
            f"{command.script_name!r} of {command.skill_name!r} keeps {need.name} in its home ({need.where}), and the "
            "homes of workers are gone after each run",
            "Let a volume hold them: CeleryRunner(..., homes='NAME') or SKILLKIT_HOMES=NAME here, and on each worker "
            "'skillkit worker --volume NAME=FOLDER --homes NAME'. Where nothing has to stay, set the policy key home "
            "to 'fresh'.",
        )


def has_own_plugin(skill: Skill) -> bool:
    """Whether its folder is its plugin's too: then all of the plugin travels with it."""
    root = skill.metadata.plugin_root
    return root is not None and real_path(root) == real_path(skill.base_directory)


def refuse_plugin_files(command: ScriptCommand, copy: Path, manifest: Manifest) -> None:
    """For a skill of a plugin that holds more: its scripts may not ask where that plugin lies."""
    for relative, content in manifest.entries:
        is_code = not content.startswith("link ") and not relative.lower().endswith(TEXTS)
        if is_code and PLUGIN_VARIABLE.encode() in (copy / relative).read_bytes():
            raise ScriptRefusedError.because(
                f"{relative} of {command.skill_name!r} uses {PLUGIN_VARIABLE}, and only the skill travels to a worker, "
                "not the rest of its plugin",
                "Put what it uses into the skill's own folder, or run it with a manager that has no runner.",
            )
