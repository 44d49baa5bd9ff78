"""What is no name with a version is refused by name, in lists and in locks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillkit.core.find.needs import needs_of
from skillkit.core.manager import SkillManager
from skillkit.packages.skill_lock import npm_lock_of, python_pins_of
from skillkit.packages.values import PackagesError, Wanted, common_name_near, locked_in
from skillkit.packages.wanted import wanted_of
from skillkit.testing import skill_folder

HASH = "sha256:" + "a" * 64
INTEGRITY = "sha512-" + "A" * 86 + "=="
ADDRESS = "https://files.example.com/zebra/-/zebra-1.0.0.tgz"


def wanted(manager: SkillManager, files: dict[str, str], body: str = "Do it.\n") -> tuple[Wanted, ...]:
    skill_folder(manager.roots[0].path, "animals", {"scripts/run.py": "print(1)", **files}, body=body)
    skill = manager.load_skill("animals")
    return wanted_of(skill, needs_of(skill))


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("--index-url https://evil.example/simple", "an option"),
        ("-r other.txt", "an option"),
        ("-e .", "an editable"),
        ("git+https://example.com/zebra.git", "a git repository"),
        ("zebra @ git+https://example.com/zebra.git", "a git repository"),
        ("zebra @ https://example.com/zebra-1.0-py3-none-any.whl", "an address"),
        ("https://example.com/zebra-1.0.tar.gz", "an address"),
        ("./vendored/zebra", "a path"),
        ("/srv/zebra-1.0-py3-none-any.whl", "a path"),
        ("file:///srv/zebra", "a path"),
    ],
)
def test_an_entry_that_is_no_name_is_refused_in_a_list_and_in_a_lock(
    manager: SkillManager, tmp_path: Path, line: str, what: str
) -> None:
    with pytest.raises(PackagesError, match=f"requirements.txt:2: .* is {what}"):
        wanted(manager, {"requirements.txt": f"zebra\n{line}\n"})
    (tmp_path / "requirements.lock").write_text(f"lion==1.0 --hash={HASH}\n{line}\n")
    with pytest.raises(PackagesError, match=f"requirements.lock:2: .* is {what}"):
        python_pins_of(tmp_path)


@pytest.mark.parametrize(
    "version",
    ["git+https://example.com/z.git", "https://example.com/z.tgz", "file:../z", "someone/zebra", "npm:other@1"],
)
def test_an_address_in_package_json_is_refused(manager: SkillManager, version: str) -> None:
    with pytest.raises(PackagesError, match=r"package\.json: zebra"):
        wanted(manager, {"package.json": json.dumps({"dependencies": {"zebra": version, "lion": "^1.0.0"}})})


def test_versions_are_read_where_the_need_was_found(manager: SkillManager) -> None:
    files = {
        "requirements.txt": "Zebra_Stripes[wide]>=2,<3  # stripes\n",
        "package.json": '{"dependencies": {"lion": "^1.2.0"}}',
    }
    found = wanted(manager, files, '```\npip install "tiger~=4.1" ape\n```\n')
    assert {(each.name, each.requirement, each.source) for each in found} == {
        ("zebra-stripes", "Zebra_Stripes[wide]<3,>=2", "declared"),
        ("lion", "^1.2.0", "declared"),
        ("tiger", "tiger~=4.1", "instructed"),
        ("ape", "ape", "instructed"),
    }


def test_of_a_lock_only_name_version_and_hash_are_taken(tmp_path: Path) -> None:
    (tmp_path / "requirements.lock").write_text(
        f"# made by hand\nzebra==1.0 \\\n    --hash={HASH}\nlion==2 ; python_version > '3'\n"
    )
    assert python_pins_of(tmp_path) == {"zebra": ("1.0", (HASH,)), "lion": ("2", ())}
    (tmp_path / "requirements.lock").write_text("zebra>=1\n")
    with pytest.raises(PackagesError, match="names no single version"):
        python_pins_of(tmp_path)


@pytest.mark.parametrize("source", ["git", "url", "path", "directory", "editable"])
def test_a_lock_of_uv_with_another_source_is_refused_by_name(tmp_path: Path, source: str) -> None:
    text = 'version = 1\n[[package]]\nname = "zebra"\nversion = "1.0"\nsource = {{ {} = "somewhere" }}\n'
    (tmp_path / "run.py.lock").write_text(text.format("registry"))
    assert python_pins_of(tmp_path) == {"zebra": ("1.0", ())}
    (tmp_path / "run.py.lock").write_text(text.format(source))
    with pytest.raises(PackagesError, match=r"run.py.lock: zebra"):
        python_pins_of(tmp_path)


def test_of_a_lock_of_npm_the_address_is_not_taken(tmp_path: Path) -> None:
    entry = {"version": "1.0.0", "resolved": ADDRESS, "integrity": INTEGRITY, "hasInstallScript": True}
    lock = {"lockfileVersion": 3, "packages": {"": {}, "node_modules/zebra": entry}}
    (tmp_path / "package-lock.json").write_text(json.dumps(lock))
    kept = json.loads(npm_lock_of(tmp_path))["packages"]
    assert kept == {"node_modules/zebra": {"version": "1.0.0", "integrity": INTEGRITY}}


@pytest.mark.parametrize(
    ("name", "resolved"),
    [
        ("zebra", "https://files.example.com/npm/team/zebra/-/zebra-1.0.0.tgz"),
        ("@wild/zebra", "https://files.example.com/@wild/zebra/-/zebra-1.0.0.tgz"),
        ("@wild/zebra", "https://files.example.com/npm/team/@wild%2fzebra/-/@wild/zebra-1.0.0.tgz"),
    ],
)
def test_a_package_under_another_name_is_taken_as_what_it_is(tmp_path: Path, name: str, resolved: str) -> None:
    """Registries name their files in these ways."""
    entry = {"name": name, "version": "1.0.0", "resolved": resolved, "integrity": INTEGRITY}
    (tmp_path / "package-lock.json").write_text(json.dumps({"packages": {"node_modules/stripes": entry}}))
    kept = npm_lock_of(tmp_path)
    assert json.loads(kept)["packages"]["node_modules/stripes"]["name"] == name
    (found,) = locked_in(kept, "node")
    assert (found.name, found.aliases) == (name, ("stripes",))
    (tmp_path / "package-lock.json").write_text(
        json.dumps({"packages": {"node_modules/zebra": {**entry, "name": "x"}}})
    )
    with pytest.raises(PackagesError, match="comes from an address"):
        npm_lock_of(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"resolved": "git+ssh://git@example.com/zebra.git#abc"},
        {"resolved": "https://evil.example/other.tgz"},
        {"resolved": "file:../zebra"},
        {"link": True},
        {"integrity": ""},
    ],
)
def test_another_place_in_a_lock_of_npm_is_refused_by_name(tmp_path: Path, change: dict[str, object]) -> None:
    entry = {"version": "1.0.0", "resolved": ADDRESS, "integrity": INTEGRITY, **change}
    (tmp_path / "package-lock.json").write_text(json.dumps({"packages": {"node_modules/zebra": entry}}))
    with pytest.raises(PackagesError, match="zebra"):
        npm_lock_of(tmp_path)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("reqeusts", "requests"),
        ("request", "requests"),
        ("pandass", "pandas"),
        ("requests", ""),
        ("zebra", ""),
        ("panda3d", ""),
    ],
)
def test_a_trap_is_one_letter_away(name: str, near: str) -> None:
    assert common_name_near(name, "python") == near
