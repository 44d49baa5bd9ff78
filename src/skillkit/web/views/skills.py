"""The manager's folders -> which skills are installed, what they offer, and what is wrong with them."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from skillkit.core.exceptions import SkillKitError, SkillNotFoundError
from skillkit.core.find.index import FoundSkill, SkillIndex, discover
from skillkit.core.find.validation import validate_skill_file
from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill
from skillkit.core.models.digest import manifest_of
from skillkit.core.store.opening import open_store
from skillkit.core.store.trust import Approval, StandingApprovals
from skillkit.web.context import context_of
from skillkit.web.html import problem_page, render

__all__ = ["skill_page", "skills_page"]

LISTED = 500
TEXT_CHARACTERS = 20_000
PROBLEMS_LISTED = 100
NO_MANAGER = "This page was started without skills to look at."


def skills_page(request: Request) -> Response:
    manager = context_of(request).manager
    index = _look(manager) if manager is not None else SkillIndex([], [])
    kept = _approvals_of(manager) if manager is not None and index.everything else []
    values = {
        "has_manager": manager is not None,
        "places": [str(root.path) for root in manager.roots] if manager is not None else [],
        "total": len(index.everything),
        "skills": [
            (index.reachable_name(skill), skill, index.winners.get(skill.name) is not skill, _trust_word(skill, kept))
            for skill in index.everything[:LISTED]
        ],
        "problems": index.diagnostics,
        "most_problems": PROBLEMS_LISTED,
    }
    return render(request, "skills", values)


def skill_page(request: Request) -> Response:
    """By name in the index of what was found; a name never becomes a path."""
    manager = context_of(request).manager
    if manager is None:
        return problem_page(request, 404, "No such skill", NO_MANAGER)
    try:
        skill = Skill(_look(manager).get(request.path_params["name"]).metadata)
    except SkillNotFoundError as error:
        return problem_page(request, 404, "No such skill", str(error))
    text, unreadable = "", ""
    try:
        text = skill.content
    except SkillKitError as error:
        unreadable = str(error)
    values = {
        "skill": skill,
        "problems": validate_skill_file(skill.metadata.skill_path),
        "most_problems": PROBLEMS_LISTED,
        "unreadable": unreadable,
        "text": text[:TEXT_CHARACTERS],
        "more": len(text) - TEXT_CHARACTERS,
    }
    return render(request, "skill", values | _trust_of(skill, manager))


def _look(manager: SkillManager) -> SkillIndex:
    """Afresh each time, without changing what the manager's own users see."""
    found = discover(manager.roots, cache_folder=manager.state_dir / "readings")
    return SkillIndex(found.skills, found.diagnostics)


def _trust_word(skill: FoundSkill, kept: list[Approval]) -> str:
    """Empty if nobody trusted it. Only what somebody trusted once is hashed: all of them would take long."""
    digests = {each.digest for each in kept if each.skill == skill.name}
    if not digests:
        return ""
    try:
        return "same" if manifest_of(skill.metadata.base_directory).digest in digests else "changed"
    except SkillKitError:
        return "changed"


def _trust_of(skill: Skill, manager: SkillManager) -> dict[str, Any]:
    """Whether it is trusted as it is now; `undigested` says why that cannot be known."""
    try:
        digest = manifest_of(skill.base_directory).digest
    except SkillKitError as error:
        return {"undigested": str(error)}
    kept = [each for each in _approvals_of(manager) if each.skill == skill.name]
    approval = next((each for each in kept if each.digest == digest), None)
    return {"undigested": "", "digest": digest, "approval": approval, "was_trusted": bool(kept)}


def _approvals_of(manager: SkillManager) -> list[Approval]:
    with closing(open_store(manager.state_dir, manager.state)) as store:
        return StandingApprovals(store).trusted()
