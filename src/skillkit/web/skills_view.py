"""The manager's folders -> which skills are installed, what they offer, and what is wrong with them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from skillkit.core.decide.trust import Approval, StandingApprovals
from skillkit.core.digest import manifest_of
from skillkit.core.exceptions import SkillKitError, SkillNotFoundError
from skillkit.core.find.discovery import FoundSkill, discover
from skillkit.core.find.index import SkillIndex
from skillkit.core.find.validation import validate_skill_file
from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill
from skillkit.core.state import StateStore
from skillkit.core.values import Diagnostic, ScriptMetadata
from skillkit.web.frame import framed, links_of
from skillkit.web.links import Links
from skillkit.web.markup import Child, Markup, tag
from skillkit.web.refusals import problem_page
from skillkit.web.served import served
from skillkit.web.shown import card, empty_card, facts, moment, plural

__all__ = ["skill_page", "skills_page"]

LISTED = 500
TEXT_CHARACTERS = 20_000
PROBLEMS_LISTED = 100


def skills_page(request: Request) -> Response:
    manager, links = served(request).manager, links_of(request)
    heading = tag("h1", "Skills")
    if manager is None:
        told = tag("p", "This page was started without skills to look at; approvals work all the same.")
        content: Child = empty_card("folder", told)
    else:
        index = looked_at(manager)
        content = [listing(index, manager, links), problems_card(index.diagnostics)]
    return framed(request, "Skills", tag("div", heading, content, class_="stack"), current="/skills")


def looked_at(manager: SkillManager) -> SkillIndex:
    """Afresh each time, without changing what the manager's own users see."""
    found = discover(manager.roots, cache_folder=manager.state_dir / "readings")
    return SkillIndex(found.skills, found.diagnostics)


def listing(index: SkillIndex, manager: SkillManager, links: Links) -> Child:
    if not index.everything:
        places = [tag("li", tag("code", str(root.path), class_="path")) for root in manager.roots]
        where = [tag("p", "Looked in:"), tag("ul", places, class_="plain")] if places else None
        return empty_card("folder", tag("p", "No skills found."), where)
    kept = approvals_of(manager)
    shown = index.everything[:LISTED]
    entries = [entry(skill, index, links, kept) for skill in shown]
    told = f"{plural(len(index.everything), 'skill')} installed."
    more = f" The first {LISTED} are shown; skillkit list shows all." if len(index.everything) > LISTED else ""
    return [tag("p", told, more, class_="quiet"), tag("ul", entries, class_="skills")]


def entry(skill: FoundSkill, index: SkillIndex, links: Links, kept: list[Approval]) -> Markup:
    name = index.reachable_name(skill)
    metadata = skill.metadata
    chips: list[Child] = [tag("span", f"from {metadata.source}", class_="chip")]
    if index.winners.get(skill.name) is not skill:
        chips.append(tag("span", "shadowed by another of this name", class_="chip warn"))
    chips.append(trust_chip(skill, kept))
    link = tag("a", tag("code", name), href=links.skill(name), class_="cover")
    return tag("li", tag("h2", link), tag("p", metadata.description), tag("p", chips, class_="chips"), class_="card")


def trust_chip(skill: FoundSkill, kept: list[Approval]) -> Child:
    """Only what somebody trusted once is hashed: all of them would take long."""
    digests = {each.digest for each in kept if each.skill == skill.name}
    if not digests:
        return None
    try:
        is_same = manifest_of(skill.metadata.base_directory).digest in digests
    except SkillKitError:
        is_same = False
    return tag(
        "span", "trusted" if is_same else "changed since it was trusted", class_=f"chip {'good' if is_same else 'warn'}"
    )


def approvals_of(manager: SkillManager) -> list[Approval]:
    store = StateStore(manager.state_dir)
    try:
        return StandingApprovals(store).trusted()
    finally:
        store.close()


def problems_card(problems: list[Diagnostic]) -> Child:
    if not problems:
        return None
    entries = [tag("li", problem_entry(each)) for each in problems[:PROBLEMS_LISTED]]
    return card(["Problems ", tag("span", len(problems), class_="count")], tag("ul", entries, class_="risks"))


def problem_entry(problem: Diagnostic) -> Child:
    kind = "chip bad" if problem.severity == "error" else "chip warn"
    place = f"{problem.path}:{problem.line}" if problem.line else str(problem.path)
    said: list[Child] = [
        problem.message,
        f" {problem.remedy}" if problem.remedy else "",
        tag("br"),
        tag("code", place, class_="path"),
    ]
    return [tag("span", problem.severity, class_=kind), tag("span", said)]


def skill_page(request: Request) -> Response:
    """By name in the index of what was found; a name never becomes a path."""
    manager, links = served(request).manager, links_of(request)
    if manager is None:
        return problem_page(request, 404, "No such skill", tag("p", "This page was started without skills to look at."))
    try:
        skill = Skill(looked_at(manager).get(request.path_params["name"]).metadata)
    except SkillNotFoundError as error:
        return problem_page(request, 404, "No such skill", tag("p", str(error)))
    back = tag("p", tag("a", "All skills", href=links.to("/skills")), class_="back")
    body = tag("div", back, *sections(skill, manager), class_="stack")
    return framed(request, skill.name, body, current="/skills")


def sections(skill: Skill, manager: SkillManager) -> list[Child]:
    metadata = skill.metadata
    rows: list[tuple[str, Child]] = [
        ("From", tag("code", str(skill.base_directory), class_="path")),
        ("Found in", metadata.source),
        ("Version", metadata.version),
        ("License", metadata.license),
        ("Needs", metadata.compatibility),
        ("Tools", [tag("code", rule, class_="chip") for rule in metadata.allowed_tools]),
    ]
    heading = tag("section", tag("h1", tag("code", skill.name)), tag("p", metadata.description), facts(rows),
                  class_="card question")  # fmt: skip
    problems = validate_skill_file(metadata.skill_path)
    fine = card("Problems", tag("p", "None: it keeps to the open standard."))
    return [heading, trust_card(skill, manager), scripts_card(skill.scripts), problems_card(problems) or fine,
            instructions_card(skill)]  # fmt: skip


def trust_card(skill: Skill, manager: SkillManager) -> Markup:
    try:
        digest = manifest_of(skill.base_directory).digest
    except SkillKitError as error:
        return card("Trust", tag("p", str(error)), class_="warn")
    kept = [each for each in approvals_of(manager) if each.skill == skill.name]
    known = next((each for each in kept if each.digest == digest), None)
    if known is not None:
        told: Child = [
            "Trusted as it is now, since ",
            moment(known.approved_at),
            ", through ",
            tag("code", known.channel),
        ]
    elif kept:
        told = "It was trusted with other content. It changed since, so its next run asks."
    else:
        told = [
            "Not trusted for good: a run asks where policy says so. ",
            tag("code", f"skillkit trust add {skill.name}"),
        ]
    return card("Trust", tag("p", told), facts([("Digest", tag("code", digest, class_="path"))]))


def scripts_card(scripts: list[ScriptMetadata]) -> Markup:
    if not scripts:
        return card("Scripts", tag("p", "None."))
    entries = [
        tag("li", tag("code", script.path.as_posix()), " ", tag("span", script.script_type, class_="chip"),
            tag("p", script.description) if script.description else None)
        for script in scripts
    ]  # fmt: skip
    return card(["Scripts ", tag("span", len(scripts), class_="count")], tag("ul", entries, class_="scripts"))


def instructions_card(skill: Skill) -> Markup:
    try:
        text = skill.content
    except SkillKitError as error:
        return card("Instructions", tag("p", str(error)), class_="warn")
    more = len(text) - TEXT_CHARACTERS
    rest = tag("p", f"{more:,} more characters: skillkit show {skill.name} --text") if more > 0 else None
    block = tag("pre", text[:TEXT_CHARACTERS], class_="code wrap", tabindex=0, role="region", aria_label="Instructions")
    return card("Instructions", tag("p", "What an agent reads, as it is written.", class_="quiet"), block, rest)
