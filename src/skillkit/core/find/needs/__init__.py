"""A skill -> what it uses beyond its own folder, and whether that is there for it.

    needs_of(skill, script=None, *, surroundings=None) -> tuple[Need, ...]
    met(needs, surroundings) -> tuple[Need, ...]
    Surroundings(skill_name, policy, environment, granted, stored, programs, packages, tier)

Reading is pure: it starts nothing, opens no connection, is linear in the size of the skill and never raises for what
is in its files. `is_met` and `remedy` are filled by `met`, or by `needs_of` when it is given `surroundings`. `script`
is a path inside the skill, a file name, a stem or a `ScriptMetadata`; None means the whole skill. Who asks about many
scripts of one skill makes one `SkillNeeds(skill)` and asks it with `of(script)`.
"""

from __future__ import annotations

from pathlib import Path

from skillkit.core.find.needs.meeting import met
from skillkit.core.find.needs.reading import SkillNeeds
from skillkit.core.find.needs.surroundings import Surroundings, surroundings_here
from skillkit.core.models import Skill
from skillkit.core.values.needs import Need
from skillkit.core.values.skills import ScriptMetadata

__all__ = ["SkillNeeds", "Surroundings", "met", "needs_of", "surroundings_here"]


def needs_of(
    skill: Skill, script: str | Path | ScriptMetadata | None = None, *, surroundings: Surroundings | None = None
) -> tuple[Need, ...]:
    """By kind, then by name, each once with its surest source; what others of its scripts need is not claimed."""
    needs = SkillNeeds(skill).of(script)
    return met(needs, surroundings) if surroundings is not None else needs
