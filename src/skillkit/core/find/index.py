"""Skills in order of precedence -> which one a name means."""

from __future__ import annotations

from collections.abc import Iterable

from skillkit.core.exceptions import SkillNotFoundError
from skillkit.core.find.discovery import FoundSkill
from skillkit.core.values import Diagnostic

__all__ = ["SkillIndex"]

SHOWN_NAMES = 20


class SkillIndex:
    """The first skill of a name has it; the others answer to `source:name`, or to their folder's path."""

    def __init__(self, skills: Iterable[FoundSkill], diagnostics: Iterable[Diagnostic] = ()) -> None:
        self.everything = list(skills)
        self.diagnostics = list(diagnostics)
        self.winners: dict[str, FoundSkill] = {}
        self.qualified: dict[str, FoundSkill] = {}
        for skill in self.everything:
            self.qualified.setdefault(skill.qualified_name, skill)
            if self.winners.setdefault(skill.name, skill) is not skill:
                self.diagnostics.append(self.shadowed(skill))

    def shadowed(self, skill: FoundSkill) -> Diagnostic:
        winner = self.winners[skill.name]
        return Diagnostic(
            "warning",
            "shadowed",
            f"Another skill has the name {skill.name!r} and comes first: {winner.path}.",
            skill.metadata.skill_path,
            remedy=f"It stays reachable as {self.reachable_name(skill)!r}.",
        )

    def reachable_name(self, skill: FoundSkill) -> str:
        """The shortest name that means this skill and no other."""
        names = (skill.name, skill.qualified_name)
        return next((name for name in names if self.named(name) is skill), skill.folder)

    def named(self, name: str) -> FoundSkill | None:
        """A qualified name counts first: no skill takes another's by calling itself `project:deploy`."""
        return self.qualified.get(name) or self.winners.get(name)

    def get(self, name: str) -> FoundSkill:
        """By name, qualified name, the name of its folder, or its folder's path."""
        skill = self.named(name) or self.by_folder(name)
        if skill is None:
            raise self.missing(name)
        return skill

    def by_folder(self, name: str) -> FoundSkill | None:
        named = [skill for skill in self.everything if name in (skill.folder, skill.folder.rpartition("/")[2])]
        return named[0] if len(named) == 1 else None

    def missing(self, name: str) -> SkillNotFoundError:
        import difflib

        available = sorted(self.winners)
        message = f"No skill is named {name!r}."
        near = difflib.get_close_matches(name, available, n=1)
        skipped = [d for d in self.diagnostics if d.severity == "error" and d.path.parent.name == name]
        if skipped:
            message += f" One in a folder of that name was skipped: {skipped[0]}"
        elif near:
            message += f" Did you mean {near[0]!r}?"
        elif available:
            more = ", ..." if len(available) > SHOWN_NAMES else ""
            message += f" There are: {', '.join(available[:SHOWN_NAMES])}{more}."
        else:
            message += " No skills were found at all; 'skillkit list' shows where it looked."
        return SkillNotFoundError(message, skill_name=name, available=available)
