from __future__ import annotations

from pathlib import Path

import pytest

from skillkit import SkillNotFoundError
from skillkit.core.find.index import FoundSkill, SkillIndex
from skillkit.core.find.reading import Reading
from skillkit.core.find.roots import Root
from skillkit.core.values.skills import Diagnostic


def skill(source: str, name: str, folder: str = "") -> FoundSkill:
    reading = Reading(name, '["d", [], null, null, null, {}, {}]', "[]")
    return FoundSkill(f"/{source}/{folder or name}/SKILL.md", reading, Root(Path("/", source), source))


def test_the_first_of_a_name_has_it_and_the_others_stay_reachable() -> None:
    first, second, third = skill("project", "a"), skill("agent", "a"), skill("agent", "a", "twin")
    index = SkillIndex([first, second, third])
    assert index.get("a") is first
    assert index.get("project:a") is first
    assert index.get("agent:a") is second
    assert index.get("/agent/twin") is third
    assert index.diagnostics == [
        Diagnostic(
            "warning",
            "shadowed",
            "Another skill has the name 'a' and comes first: /project/a/SKILL.md.",
            Path("/agent/a/SKILL.md"),
            remedy="It stays reachable as 'agent:a'.",
        ),
        Diagnostic(
            "warning",
            "shadowed",
            "Another skill has the name 'a' and comes first: /project/a/SKILL.md.",
            Path("/agent/twin/SKILL.md"),
            remedy="It stays reachable as '/agent/twin'.",
        ),
    ]


def test_a_skill_answers_to_its_folder_when_only_one_has_it() -> None:
    one, two = skill("project", "PDF Tools", "pdf"), skill("agent", "x", "same")
    index = SkillIndex([one, two, skill("path", "y", "same")])
    assert index.get("pdf") is one
    assert index.get("/agent/same") is two
    with pytest.raises(SkillNotFoundError, match="No skill is named 'same'"):
        index.get("same")


def test_a_skill_cannot_take_the_qualified_name_of_another() -> None:
    """Otherwise a found skill that calls itself `project:deploy` would be run in place of the project's."""
    real, impostor = skill("project", "deploy"), skill("path", "project:deploy", "evil")
    for order in ([real, impostor], [impostor, real]):
        index = SkillIndex(order)
        assert index.get("project:deploy") is real
        assert index.get("deploy") is real
        assert index.get("path:project:deploy") is impostor
        assert index.reachable_name(impostor) == "path:project:deploy"


def test_every_skill_is_reachable_by_the_name_the_index_gives_it() -> None:
    skills = [skill(source, name, folder) for source in ("project", "p", "path") for name, folder in
              (("a", "x"), ("a", "y"), ("p:a", "z"), ("b", "x2"), ("path:b", "w"))]  # fmt: skip
    index = SkillIndex(skills)
    assert all(index.get(index.reachable_name(one)) is one for one in skills)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pdff", r"No skill is named 'pdff'\. Did you mean 'pdf'\?"),
        ("zzz", r"No skill is named 'zzz'\. There are: csv, pdf\."),
        ("", r"No skill is named ''\. There are: csv, pdf\."),
        ("bad", r"One in a folder of that name was skipped: /r/bad/SKILL\.md:2: error: It is bad\."),
    ],
)
def test_a_miss_says_what_exists(name: str, message: str) -> None:
    broken = Diagnostic("error", "x", "It is bad.", Path("/r/bad/SKILL.md"), 2)
    index = SkillIndex([skill("project", "pdf"), skill("project", "csv")], [broken])
    with pytest.raises(SkillNotFoundError, match=message) as missed:
        index.get(name)
    assert (missed.value.skill_name, missed.value.available) == (name, ("csv", "pdf"))


def test_a_miss_among_nothing_and_among_many_is_told_briefly() -> None:
    with pytest.raises(SkillNotFoundError, match="No skills were found at all"):
        SkillIndex([]).get("a")
    many = SkillIndex(skill("project", f"skill-{number:03}") for number in range(100))
    with pytest.raises(SkillNotFoundError, match=r"skill-019, \.\.\.\.$"):
        many.get("zzz")


def test_a_very_long_name_is_missed_quickly() -> None:
    """The suite's timeout is the limit."""
    many = SkillIndex(skill("project", f"skill-{number}") for number in range(10_000))
    with pytest.raises(SkillNotFoundError, match="No skill is named 'xxx"):
        many.get("x" * 1_000_000)
