"""Skills from git: one commit is read without a checkout, whatever the repository is or becomes."""

from __future__ import annotations

import os
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from support.repositories import Repository, hanging_port, https_site, skill_text
from support.running import wait_for

from skillkit import SkillManager
from skillkit.core.models.digest import manifest_of
from skillkit.sources import git, listing

RUN = "#!/bin/sh\necho ran\n"


def folders(project: Path) -> list[str]:
    return sorted(os.listdir(project / "skills")) if (project / "skills").exists() else []


def test_every_skill_of_a_repository_is_added_and_locked(repository: Repository, project: Path, skillkit: Any) -> None:
    repository.add_skill("alpha", {"scripts/run.sh": RUN})
    commit = repository.add_skill("beta")
    told = skillkit("add", repository.url)
    assert [(each["name"], each["what"]) for each in told["skills"]] == [("alpha", "added"), ("beta", "added")]
    assert told["skills"][0]["files"] == ["SKILL.md", "scripts/run.sh"]
    locked = tomllib.loads((project / "skills.lock").read_text())["skill"]
    assert locked["alpha"] == {
        "source": repository.url,
        "ref": "",
        "commit": commit,
        "path": "skills/alpha",
        "digest": manifest_of(project / "skills/alpha").digest,
        "signer": "",
    }
    assert folders(project) == ["alpha", "beta"], "nothing else is left in the folder"
    assert [skill.name for skill in SkillManager().list_skills()] == ["alpha", "beta"]


def test_the_digest_in_the_lock_is_the_one_that_approvals_bind_to(
    repository: Repository, project: Path, skillkit: Any
) -> None:
    repository.commit(
        {"skills/alpha/SKILL.md": skill_text("alpha"), "skills/alpha/sub/a.txt": "1", "skills/alpha/b": ""}
    )
    os.symlink("sub/a.txt", repository.folder / "skills/alpha/link")
    repository.commit()
    (added,) = skillkit("add", repository.url)["skills"]
    assert added["digest"] == SkillManager().load_skill("alpha").digest == skillkit("show", "alpha")["digest"]
    assert os.readlink(project / "skills/alpha/link") == "sub/a.txt"


def test_programs_stay_programs(repository: Repository, project: Path, skillkit: Any) -> None:
    repository.commit({"skills/alpha/SKILL.md": skill_text("alpha"), "skills/alpha/scripts/run.sh": RUN})
    os.chmod(repository.folder / "skills/alpha/scripts/run.sh", 0o755)
    repository.commit()
    skillkit("add", repository.url)
    assert os.access(project / "skills/alpha/scripts/run.sh", os.X_OK)
    assert not os.stat(project / "skills/alpha/SKILL.md").st_mode & 0o111


def test_one_skill_is_named_by_name_or_by_path(repository: Repository, project: Path, skillkit: Any) -> None:
    repository.add_skill("alpha")
    repository.add_skill("beta")
    repository.add_skill("gamma")
    skillkit("add", repository.url, "--skill", "beta")
    skillkit("add", f"{repository.url}#main:skills/gamma")
    assert folders(project) == ["beta", "gamma"]
    error = skillkit("add", repository.url, "--skill", "alpa", code=127)["error"]["message"]
    assert error == "The source has no skill 'alpa'. Did you mean 'alpha'?"


def test_a_skill_at_the_top_of_a_repository_has_the_name_it_gives_itself(
    repository: Repository, project: Path, skillkit: Any
) -> None:
    repository.commit({"SKILL.md": skill_text("whole"), "scripts/run.sh": RUN})
    skillkit("add", repository.url)
    assert folders(project) == ["whole"]


def test_tags_branches_and_commits_are_refs(repository: Repository, project: Path, skillkit: Any) -> None:
    first = repository.add_skill("alpha", {"version": "one"})
    repository.git("tag", "-a", "v1", "-m", "one")
    repository.git("checkout", "-q", "-b", "next/two")
    repository.add_skill("alpha", {"version": "two"})
    repository.git("checkout", "-q", "main")
    repository.add_skill("alpha", {"version": "three"})
    for ref, version in (("v1", "one"), ("next/two", "two"), ("main", "three"), (first, "one")):
        (added,) = skillkit("add", f"{repository.url}#{ref}")["skills"]
        assert (project / "skills/alpha/version").read_text() == version
        assert added["ref"] == ref
        assert added["commit"] == repository.git("rev-parse", f"{ref}^{{commit}}")
        skillkit("remove", "alpha")
    error = skillkit("add", f"{repository.url}#nowhere", code=125)["error"]["message"]
    assert "'nowhere' cannot be fetched" in error
    assert folders(project) == []


def test_a_branch_that_moved_is_newer_and_its_diff_is_shown(
    repository: Repository, project: Path, skillkit: Any
) -> None:
    repository.add_skill("alpha", {"a.txt": "one\n"})
    skillkit("add", repository.url)
    assert skillkit("update", "--check")["skills"][0]["what"] == "unchanged"
    newer = repository.add_skill("alpha", {"a.txt": "two\n"})
    (checked,) = skillkit("update", "alpha", "--check", code=1)["skills"]
    assert (checked["what"], (project / "skills/alpha/a.txt").read_text()) == ("newer", "one\n")
    (updated,) = skillkit("update")["skills"]
    assert (updated["what"], updated["commit"]) == ("updated", newer)
    assert [(change["path"], change["diff"]) for change in updated["changes"]] == [
        ("a.txt", "@@ -1,1 +1,1 @@\n-one\n+two")
    ]
    assert (project / "skills/alpha/a.txt").read_text() == "two\n"
    assert skillkit("sync", "--check")["drift"] == 0


def test_a_moved_tag_is_told(repository: Repository, project: Path, skillkit: Any) -> None:
    old = repository.add_skill("alpha", {"a.txt": "one\n"})
    repository.git("tag", "v1")
    skillkit("add", f"{repository.url}#v1")
    new = repository.add_skill("alpha", {"a.txt": "two\n"})
    repository.git("tag", "-f", "v1")
    (updated,) = skillkit("update")["skills"]
    assert updated["note"] == f"v1 meant {old[:12]} when it was locked, and means {new[:12]} now."
    assert (project / "skills/alpha/a.txt").read_text() == "two\n"


def test_after_a_force_push_the_locked_commit_is_fetched_or_its_loss_is_told(
    repository: Repository, project: Path, skillkit: Any
) -> None:
    repository.add_skill("alpha", {"a.txt": "one\n"})
    skillkit("add", repository.url)
    repository.git("checkout", "-q", "--orphan", "fresh")
    repository.add_skill("alpha", {"a.txt": "forced\n"})
    repository.git("branch", "-f", "main")
    repository.git("checkout", "-q", "main")
    repository.git("branch", "-D", "fresh")
    (project / "skills/alpha/a.txt").unlink()
    skillkit("sync", "--frozen", "--discard")
    assert (project / "skills/alpha/a.txt").read_text() == "one\n", "git still has it"
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "-q", "--prune=now")
    (project / "skills/alpha/a.txt").unlink()
    error = skillkit("sync", "--frozen", "--discard", code=125)["error"]["message"]
    assert "has no commit" in error
    assert "'skillkit update'" in error
    assert not (project / "skills/alpha/a.txt").exists(), "nothing was changed"


class Author:
    """Somebody else with a copy, who rewrites the branch while it is being fetched."""

    def __init__(self, repository: Repository, folder: Path) -> None:
        self.there = repository
        repository.git("config", "receive.denyCurrentBranch", "ignore")
        repository.git("clone", "-q", repository.url, str(folder))
        self.here = Repository.at(folder)

    def force_push(self, text: str, *, prune: bool = False) -> str:
        self.here.git("checkout", "-q", "--orphan", f"fresh-{text}")
        commit = self.here.add_skill("alpha", {"a.txt": text, "b.txt": text, f"only-{text}.txt": text})
        self.here.git("push", "-q", "--force", "origin", "HEAD:main")
        if prune:
            self.there.git("reflog", "expire", "--expire=now", "--all")
            self.there.git("gc", "-q", "--prune=now")
        return commit


# Waits between what is chosen and what is sent, until it is told to go on.
HOOK = "#!/bin/sh\ntouch '{0}/chosen'\nwhile [ ! -e '{0}/go' ]; do sleep 0.01; done\nexec \"$@\"\n"


@pytest.fixture
def changing(
    repository: Repository, tmp_path: Path, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., AbstractContextManager[str]]:
    """A served repository in which something happens between the refs that a client is told and the pack it gets."""
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("GIT_SSL_CAINFO", str(tmp_path / "authority.pem"))
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)

    @contextmanager
    def served(happens: Callable[[], object], when: str) -> Iterator[str]:
        if when == "before the pack":
            with https_site(repository.folder.parent, authority, before_pack=lambda: (happens(), None)[1]) as address:
                yield f"{address}/repository/.git"
            return
        hook, settings = tmp_path / "hook", tmp_path / "settings"
        hook.write_text(HOOK.format(tmp_path))
        hook.chmod(0o755)
        settings.write_text(f"[uploadpack]\npackObjectsHook = {hook}\n[safe]\ndirectory = *\n")

        def happen() -> None:
            assert wait_for((tmp_path / "chosen").exists, 30)
            happens()
            (tmp_path / "go").touch()

        thread = threading.Thread(target=happen)
        thread.start()
        with https_site(repository.folder.parent, authority, variables={"GIT_CONFIG_GLOBAL": str(settings)}) as address:
            yield f"{address}/repository/.git"
        thread.join(30)

    return served


MOMENTS = ("before the pack", "while it is packed")


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_repository_that_changes_during_the_fetch_gives_one_whole_commit(
    repository: Repository, project: Path, tmp_path: Path, skillkit: Any, changing: Any, moment: str
) -> None:
    first = repository.add_skill("alpha", {"a.txt": "one", "b.txt": "one"})
    author, pushed = Author(repository, tmp_path / "author"), list[str]()
    with changing(lambda: pushed.append(author.force_push(f"two{len(pushed)}")), moment) as url:
        (added,) = skillkit("add", url)["skills"]
    assert pushed, "it did change meanwhile"
    assert repository.git("rev-parse", "main") == pushed[-1] != first
    assert added["commit"] == first, "what was told is what came"
    there = project / "skills/alpha"
    assert {each.name: each.read_text() for each in there.glob("*.txt")} == {"a.txt": "one", "b.txt": "one"}
    assert tomllib.loads((project / "skills.lock").read_text())["skill"]["alpha"]["digest"] == manifest_of(there).digest
    skillkit("sync", "--check")


@pytest.mark.parametrize("moment", MOMENTS)
def test_one_whose_commit_is_gone_in_the_middle_is_an_error_and_nothing_is_half_done(
    repository: Repository, project: Path, tmp_path: Path, skillkit: Any, changing: Any, moment: str
) -> None:
    repository.add_skill("alpha", {"a.txt": "one", "b.txt": "one" * 100_000})
    author, pushed = Author(repository, tmp_path / "author"), list[str]()
    with changing(lambda: pushed.append(author.force_push(f"two{len(pushed)}", prune=True)), moment) as url:
        error = skillkit("add", url, code=125)["error"]["message"]
    assert pushed
    assert url in error
    assert "cannot be fetched" in error
    assert os.listdir(project) == []
    (added,) = skillkit("add", repository.url)["skills"]
    assert added["commit"] == pushed[-1], "the control: tried again, it is there"


def test_over_https_with_a_certificate_that_is_known(
    repository: Repository, project: Path, skillkit: Any, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.add_skill("alpha", {"scripts/run.sh": RUN})
    os.rename(repository.folder / ".git", repository.folder.parent / "skills.git")
    url = f"{site}/skills.git"
    (added,) = skillkit("add", url)["skills"]
    assert (added["source"], added["commit"]) == (url, commit)
    skillkit("remove", "alpha")
    monkeypatch.delenv("GIT_SSL_CAINFO")
    assert "certificate" in skillkit("add", url, code=125)["error"]["message"]
    assert folders(project) == []


def test_a_server_that_hangs_is_given_up_with_nothing_changed(project: Path, skillkit: Any) -> None:
    with hanging_port() as port:
        error = skillkit("add", f"https://127.0.0.1:{port}/skills.git", "--timeout", "1", code=125)["error"]["message"]
    assert "did not answer to the end within 1 seconds" in error
    assert os.listdir(project) == []


@pytest.mark.slow
def test_ten_thousand_files_are_one_skill(repository: Repository, project: Path, skillkit: Any) -> None:
    repository.commit_entries(
        [
            ("100644", "skills/alpha/SKILL.md", skill_text("alpha").encode()),
            ("100644", "skills/alpha/data/0", b"same"),
        ]
    )
    blob = repository.git("rev-parse", "HEAD:skills/alpha/data/0")
    rows = "".join(f"100644 {blob}\tskills/alpha/data/{n % 100}/{n}\n" for n in range(1, 10_001))
    repository.git("rm", "-q", "--cached", "skills/alpha/data/0")
    repository.git("update-index", "--add", "--index-info", stdin=rows.encode())
    repository.git("commit", "-q", "-m", "many")
    (added,) = skillkit("add", repository.url)["skills"]
    assert len(added["files"]) == 10_001
    assert added["digest"] == manifest_of(project / "skills/alpha").digest


def test_too_many_files_and_too_large_ones_are_refused_before_they_are_read(
    repository: Repository, project: Path, skillkit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.add_skill("many", {f"{n}.txt": "x" for n in range(20)})
    repository.add_skill("large", {"huge.bin": b"\0" * 5000})
    monkeypatch.setattr(listing, "FILES", 20)
    assert "it has 21 files; the limit is 20" in skillkit("add", repository.url, code=126)["error"]["message"]
    monkeypatch.setattr(listing, "FILE_BYTES", 4999)
    error = skillkit("add", repository.url, "--skill", "large", code=126)["error"]["message"]
    assert "'huge.bin' has 5,000 bytes, more than 4,999" in error
    monkeypatch.setattr(listing, "FILE_BYTES", 5000)
    skillkit("add", repository.url, "--skill", "large")
    assert folders(project) == ["large"]


def test_a_repository_larger_than_allowed_is_stopped_while_it_comes(
    repository: Repository, project: Path, skillkit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.add_skill("alpha", {"noise.bin": os.urandom(3_000_000)})
    monkeypatch.setattr(git, "FETCH_BYTES", 1_000_000)
    monkeypatch.setattr("skillkit.sources.programs.LOOK_SECONDS", 0.001)
    assert "more than 1,000,000 bytes came" in skillkit("add", repository.url, code=126)["error"]["message"]
    assert os.listdir(project) == []


def test_two_different_skills_of_one_name_have_to_be_told_apart(
    repository: Repository, project: Path, skillkit: Any
) -> None:
    repository.commit({"a/demo/SKILL.md": skill_text("demo"), "b/demo/SKILL.md": skill_text("demo", "Other.")})
    error = skillkit("add", repository.url, code=126)["error"]["message"]
    assert "several different skills named 'demo': a/demo, b/demo" in error
    skillkit("add", f"{repository.url}#main:b/demo")
    assert "Other." in (project / "skills/demo/SKILL.md").read_text()


def test_a_copy_for_another_host_is_the_same_skill(repository: Repository, project: Path, skillkit: Any) -> None:
    repository.commit({path: skill_text("demo") for path in (".claude/skills/demo/SKILL.md", "skills/demo/SKILL.md")})
    skillkit("add", repository.url)
    assert folders(project) == ["demo"]
