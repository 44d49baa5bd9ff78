"""Packages of Node under another's name: what is asked about is what is installed, whoever wrote the lock."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.network import ProxyOutside, answer_http, listening
from support.node_registry import NodeRegistry, integrity_of, serving_node_packages, shrinkwrap
from support.running import needs

from skillkit.approvers.callback import CallbackApprover
from skillkit.core.exceptions import ApprovalDeclinedError
from skillkit.core.manager import SkillManager
from skillkit.core.store.environments import Environments
from skillkit.core.values.policy import STANDARD
from skillkit.core.values.questions import OptionAnswer, OptionRequest
from skillkit.packages.prepare import prepare_packages
from skillkit.packages.values import PackagesError
from skillkit.testing import ScriptedApprover, skill_folder

CODE = "console.log(require('wrapper'))"
LODASH = "4.17.21"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[NodeRegistry]:
    """With a package that everybody knows, and one of today that nobody does."""
    needs("npm")
    with serving_node_packages() as served:
        monkeypatch.setenv("npm_config_registry", served.address)
        served.add("lodash", LODASH, "'known'", age_days=2000)
        served.add("evil-new", LODASH, "'EVIL'", age_days=0)
        yield served


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[SkillManager]:
    (tmp_path / "skills").mkdir()
    with SkillManager("", "", [], [tmp_path / "skills"], policy=STANDARD, state_dir=tmp_path / "state") as made:
        yield made


def declared(manager: SkillManager, **files: str) -> None:
    listed = {"package.json": '{"dependencies": {"wrapper": "^1.0.0"}}', "scripts/a.js": CODE}
    skill_folder(manager.roots[0].path, "animals", {**listed, **files})


def prepared(manager: SkillManager, *ticks: str) -> OptionRequest:
    """What a person was asked who said yes and ticked these."""
    asked: list[OptionRequest] = []

    def answer(request: OptionRequest) -> OptionAnswer:
        asked.append(request)
        return OptionAnswer("yes_once", "", time.time(), grants=ticks)

    prepare_packages(manager, "animals", approver=CallbackApprover(answer))
    return asked[0]


def plainly(folder: Path) -> str:
    """What a script gets from npm alone."""
    (folder / "plain").mkdir()
    quiet = ("--no-audit", "--no-fund", "--cache", str(folder / "npm-cache"))
    said = subprocess.run(
        ["npm", "install", "wrapper", *quiet], cwd=folder / "plain", capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    told = subprocess.run(["node", "-e", CODE], cwd=folder / "plain", capture_output=True, text=True, check=False)
    return told.stdout.strip()


def test_a_package_under_anothers_name_is_shown_as_what_it_is(
    registry: NodeRegistry, manager: SkillManager, tmp_path: Path
) -> None:
    registry.add("wrapper", "1.0.0", "require('lodash')", needs={"lodash": "npm:evil-new@^4.0.0"})
    declared(manager)
    assert plainly(tmp_path) == "EVIL"
    asked = ScriptedApprover("yes_once")
    with pytest.raises(ApprovalDeclinedError, match=r"not ticked\. evil-new 4\.17\.21 \(Node\): younger than 7 days"):
        prepare_packages(manager, "animals", approver=asked)
    (request,) = asked.requests
    assert "evil-new 4.17.21 (as lodash), 4 kB, 0 days old, needed by another" in request.message
    assert "lodash 4.17.21," not in request.message
    assert "evil-new (as lodash)" in [row["name"] for row in request.context["packages"]]
    prepared(manager, "young:node:evil-new@4.17.21")
    assert manager.execute_skill_script("animals", "a.js").stdout == "EVIL\n", "this is what was said"


@pytest.mark.parametrize("where", ["beside its own", "at another host"])
def test_a_package_cannot_say_by_a_shrinkwrap_what_others_are(
    registry: NodeRegistry, manager: SkillManager, tmp_path: Path, where: str
) -> None:
    evil = registry.files[f"/evil-new/-/evil-new-{LODASH}.tgz"]
    seen: list[bytes] = []
    with listening(answer_http(seen, evil)) as other:
        place = f"{registry.address}/evil-new/-/evil-new-{LODASH}.tgz"
        resolved = place if where == "beside its own" else f"http://127.0.0.1:{other}/lodash/-/lodash-{LODASH}.tgz"
        entry = {"version": LODASH, "resolved": resolved, "integrity": integrity_of(evil)}
        text = shrinkwrap({"lodash": LODASH}, {"lodash": entry})
        registry.add("wrapper", "1.0.0", "require('lodash')", needs={"lodash": LODASH}, shrinkwrapped=text)
        declared(manager)
        told = plainly(tmp_path)
        if told == "known":  # npm from 12 on reads no package's shrinkwrap
            prepared(manager)
            assert manager.execute_skill_script("animals", "a.js").stdout == "known\n"
            return
        assert told == "EVIL"
        seen.clear()
        with pytest.raises(PackagesError, match=r"lodash: the registry has another file of lodash 4\.17\.21"):
            prepared(manager)
        assert seen == []
    assert Environments(manager.state_dir).all_built() == []


REGISTRY, FILES, OTHER = "packages.company.example:80", "files.company.example:80", "elsewhere.example.com:80"


@pytest.mark.parametrize(("place", "files"), [("", REGISTRY), ("/npm/team", REGISTRY), ("/npm/team", FILES)])
def test_only_hosts_that_the_registry_itself_names_are_opened(
    registry: NodeRegistry, manager: SkillManager, monkeypatch: pytest.MonkeyPatch, place: str, files: str
) -> None:
    """It may lie below a path and name its files at another host; a shrinkwrap names a third, which has the same file."""
    known = integrity_of(registry.files[f"/lodash/-/lodash-{LODASH}.tgz"])
    resolved = f"http://{OTHER.removesuffix(':80')}/lodash/-/lodash-{LODASH}.tgz"
    text = shrinkwrap({"lodash": LODASH}, {"lodash": {"version": LODASH, "resolved": resolved, "integrity": known}})
    registry.add("wrapper", "1.0.0", "require('lodash')", needs={"lodash": LODASH}, shrinkwrapped=text)
    declared(manager)
    registry.place = place
    registry.files_at = f"http://{files.removesuffix(':80')}{place}"
    outside = ProxyOutside(dict.fromkeys((REGISTRY, FILES, OTHER), registry.port))
    with listening(outside) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy}")
        monkeypatch.setenv("npm_config_registry", f"http://{REGISTRY.removesuffix(':80')}{place}/")
        if files == FILES:  # npm reads a shrinkwrap where it looks for versions, from the registry alone
            registry.pages["wrapper"]["versions"]["1.0.0"].pop("_hasShrinkwrap")
        prepared(manager)
    assert set(outside.asked) == {REGISTRY, files}
    assert manager.execute_skill_script("animals", "a.js").stdout == "known\n"


def own_lock(registry: NodeRegistry, **entries: dict[str, str]) -> str:
    wrapper = registry.pages["wrapper"]["versions"]["1.0.0"]
    top = {"version": "1.0.0", "integrity": wrapper["dist"]["integrity"], "dependencies": wrapper["dependencies"]}
    inside = {f"node_modules/{name}": entry for name, entry in entries.items()}
    return json.dumps({"lockfileVersion": 3, "packages": {"": {}, "node_modules/wrapper": top, **inside}})


def test_what_the_skills_lock_names_is_what_is_installed_whatever_its_packages_carry(
    registry: NodeRegistry, manager: SkillManager
) -> None:
    """The skill's lock is honest, and a package in it brings a shrinkwrap that would give it another."""
    evil = registry.files[f"/evil-new/-/evil-new-{LODASH}.tgz"]
    place = f"{registry.address}/evil-new/-/evil-new-{LODASH}.tgz"
    text = shrinkwrap(
        {"lodash": LODASH}, {"lodash": {"version": LODASH, "resolved": place, "integrity": integrity_of(evil)}}
    )
    registry.add("wrapper", "1.0.0", "require('lodash')", needs={"lodash": LODASH}, shrinkwrapped=text)
    known = integrity_of(registry.files[f"/lodash/-/lodash-{LODASH}.tgz"])
    declared(manager, **{"package-lock.json": own_lock(registry, lodash={"version": LODASH, "integrity": known})})
    request = prepared(manager)
    assert f"lodash {LODASH}, 4 kB, 2,000 days old" in request.message
    assert manager.execute_skill_script("animals", "a.js").stdout == "known\n"


def test_a_lock_of_the_skill_can_give_no_package_the_name_of_another(
    registry: NodeRegistry, manager: SkillManager
) -> None:
    registry.add("wrapper", "1.0.0", "require('lodash')", needs={"lodash": "^4.0.0"})
    evil = integrity_of(registry.files[f"/evil-new/-/evil-new-{LODASH}.tgz"])
    for entry in ({"version": LODASH, "integrity": evil}, {"version": "9.9.9", "integrity": evil}):
        declared(manager, **{"package-lock.json": own_lock(registry, lodash=entry)})
        with pytest.raises(PackagesError, match="lodash"):
            prepared(manager)
    entry = {"version": LODASH, "integrity": evil, "name": "evil-new"}
    declared(manager, **{"package-lock.json": own_lock(registry, lodash=entry)})
    with pytest.raises((PackagesError, ApprovalDeclinedError), match=r"evil-new|lodash"):
        prepared(manager)
    assert Environments(manager.state_dir).all_built() == []


@pytest.mark.parametrize("place", ["../lodash", "node_modules/../../lodash", "inner/lodash"])
def test_an_entry_of_a_lock_lies_among_the_packages(registry: NodeRegistry, manager: SkillManager, place: str) -> None:
    registry.add("wrapper", "1.0.0", "1")
    known = integrity_of(registry.files[f"/lodash/-/lodash-{LODASH}.tgz"])
    lock = json.loads(own_lock(registry))
    lock["packages"][place] = {"version": LODASH, "integrity": known, "name": "lodash"}
    declared(manager, **{"package-lock.json": json.dumps(lock)})
    with pytest.raises(PackagesError, match="is a path"):
        prepared(manager)
