"""The lock and the folders it is about: all or nothing, byte for byte, nobody's changes lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.repositories import Repository
from support.skill_folders import skill_folder

from skillkit import GUARDED, ApprovalDeclinedError, ConfigurationError, SkillManager, SourceRefusedError
from skillkit.core.values.questions import Prompt
from skillkit.sources import placing
from skillkit.sources.given import Source, source_from
from skillkit.sources.lock import Locked, lock_text, read_lock, write_lock
from skillkit.sources.placing import Change, place_all
from skillkit.sources.present import present_at
from skillkit.sources.signatures import sign_skill
from skillkit.testing import ScriptedApprover

GITHUB = "https://github.com/owner/repo"


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("owner/repo", Source("git", GITHUB)),
        ("owner/repo@v1", Source("git", GITHUB, "v1")),
        ("owner/repo/skills/pdf@feature/x", Source("git", GITHUB, "feature/x", "skills/pdf")),
        (f"{GITHUB}/tree/main/skills/pdf", Source("git", GITHUB, "main", "skills/pdf")),
        (f"{GITHUB}.git#v2:skills/pdf", Source("git", f"{GITHUB}.git", "v2", "skills/pdf")),
        ("git@example.com:team/skills.git", Source("git", "git@example.com:team/skills.git")),
        ("ssh://git@example.com/skills.git#main", Source("git", "ssh://git@example.com/skills.git", "main")),
        ("./here", Source("folder", "./here")),
        ("demo.skill", Source("archive", "demo.skill")),
        ("https://example.com/demo.zip", Source("archive", "https://example.com/demo.zip")),
        ("https://example.com", Source("index", "https://example.com/.well-known/agent-skills/index.json")),
    ],
)
def test_what_is_typed_means_one_source(text: str, source: Source, project: Path) -> None:  # noqa: ARG001
    assert source_from(text) == source


@pytest.mark.parametrize("text", ["", "word", "a b c", "owner/repo@../x", "owner/repo@-x", "http://x/y", "x\ny"])
def test_what_is_no_source_is_told(text: str, project: Path) -> None:  # noqa: ARG001
    with pytest.raises(ConfigurationError):
        source_from(text)


def test_a_folder_that_looks_like_a_repository_is_asked_about(project: Path) -> None:
    (project / "owner/repo").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=r"Write \./owner/repo for the folder"):
        source_from("owner/repo")


def test_a_lock_reads_as_it_was_written(tmp_path: Path) -> None:
    skills = {
        "pdf": Locked("owner/repo", "0" * 64, "v1", "1" * 40, "skills/pdf", 'a "b" \\ü', ".claude/skills"),
        "a.b": Locked("./x", "f" * 64),
    }
    write_lock(tmp_path / "skills.lock", skills)
    assert read_lock(tmp_path / "skills.lock") == skills
    assert lock_text(skills) == lock_text(dict(reversed(skills.items())))


def test_a_second_folder_becomes_byte_equal(
    repository: Repository, project: Path, tmp_path: Path, skillkit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.add_skill("alpha", {"scripts/run.sh": "echo 1\n", "data.bin": bytes(range(256))})
    repository.add_skill("beta")
    skillkit("add", repository.url)
    repository.add_skill("alpha", {"scripts/run.sh": "echo 2\n"})
    second = tmp_path / "second"
    second.mkdir()
    shutil.copy(project / "skills.lock", second)
    monkeypatch.chdir(second)
    told = skillkit("sync", "--frozen")["skills"]
    assert [each["what"] for each in told] == ["added", "added"]
    for path in (each.relative_to(project) for each in project.rglob("*") if each.is_file()):
        assert (second / path).read_bytes() == (project / path).read_bytes()
    assert [each["what"] for each in skillkit("sync", "--frozen")["skills"]] == ["unchanged", "unchanged"]


@pytest.mark.parametrize("change", ["byte", "new", "gone", "link"])
def test_any_change_is_drift_by_name(repository: Repository, project: Path, skillkit: Any, change: str) -> None:
    repository.add_skill("alpha", {"a.txt": "one"})
    repository.add_skill("beta")
    skillkit("add", repository.url)
    assert skillkit("sync", "--check")["drift"] == 0
    folder = project / "skills/alpha"
    if change == "byte":
        (folder / "a.txt").write_text("onE")
    elif change == "new":
        (folder / ".hidden").write_text("")
    elif change == "gone":
        shutil.rmtree(folder)
    else:
        (folder / "a.txt").unlink()
        (folder / "a.txt").symlink_to("SKILL.md")
    told = skillkit("sync", "--check", code=1)
    assert {each["name"]: each["what"] for each in told["skills"]} == {
        "alpha": "missing" if change == "gone" else "changed",
        "beta": "unchanged",
    }


def test_a_changed_local_file_is_never_overwritten_without_discard(
    repository: Repository, project: Path, skillkit: Any
) -> None:
    repository.add_skill("alpha", {"a.txt": "one"})
    skillkit("add", repository.url)
    mine = project / "skills/alpha/a.txt"
    mine.write_text("mine")
    repository.add_skill("alpha", {"a.txt": "two"})
    for words in (["update"], ["sync"], ["sync", "--frozen"], ["remove", "alpha"]):
        assert "add --discard" in skillkit(*words, code=126)["error"]["message"]
        assert mine.read_text() == "mine"
    assert "other content" in skillkit("add", repository.url, code=126)["error"]["message"]
    skillkit("update", "--discard")
    assert mine.read_text() == "two"


# What a person may make in a skill's folder, and no digest tells.
OWN = {
    "a repository": (".git/HEAD", ".git/"),
    "a repository further below": ("scripts/.git/HEAD", "scripts/.git/"),
    "a repository in a folder of its own": ("mine/.git/HEAD", "mine/"),
    "an empty folder": ("notes/", "notes/"),
    "empty folders inside each other": ("scripts/a/b/", "scripts/a/"),
}


def make_own(skill: Path, what: str) -> tuple[Path, str]:
    path, told = OWN[what]
    made = skill / path
    if path.endswith("/"):
        made.mkdir(parents=True)
    else:
        made.parent.mkdir(parents=True)
        made.write_text("mine")
    return made, told


@pytest.mark.parametrize("what", OWN)
def test_repositories_and_empty_folders_of_ones_own_are_never_lost_without_discard(
    repository: Repository, project: Path, skillkit: Any, what: str
) -> None:
    repository.add_skill("alpha", {"scripts/a.sh": "echo 1"})
    skillkit("add", repository.url)
    made, told = make_own(project / "skills/alpha", what)
    drift = skillkit("sync", "--check", code=1)["skills"][0]
    assert (drift["what"], drift["note"]) == ("changed", f"It holds {told}, which came from no source.")
    for is_newer in (False, True):
        if is_newer:
            repository.add_skill("alpha", {"scripts/a.sh": "echo 2"})
        for words in (["update"], ["sync"], ["sync", "--frozen"], ["remove", "alpha"]):
            message = skillkit(*words, code=126)["error"]["message"]
            assert f"it holds {told}, which came from no source, and that would be lost" in message
            assert made.exists()
    assert f"with other content ({told})" in skillkit("add", repository.url, code=126)["error"]["message"]
    skillkit("sync", "--discard")
    assert not made.exists(), "it goes where that is said, so each of these would take it"
    assert skillkit("sync", "--check")["drift"] == 0


@pytest.mark.parametrize("words", [["update", "--discard"], ["remove", "alpha", "--discard"]])
def test_a_repository_of_ones_own_goes_where_that_is_said(
    repository: Repository, project: Path, skillkit: Any, words: list[str]
) -> None:
    repository.add_skill("alpha")
    skillkit("add", repository.url)
    make_own(project / "skills/alpha", "a repository")
    skillkit(*words)
    assert not (project / "skills/alpha/.git").exists()


@pytest.mark.parametrize("what", OWN)
def test_what_comes_after_a_skill_was_judged_is_not_lost_either(
    repository: Repository, project: Path, tmp_path: Path, skillkit: Any, what: str
) -> None:
    repository.add_skill("alpha")
    skillkit("add", repository.url)
    place, lock = project / "skills/alpha", project / "skills.lock"
    judged = present_at(place)
    made, _ = make_own(place, what)
    with pytest.raises(SourceRefusedError, match="changed meanwhile"):
        place_all([Change(place, (), judged)], lock, {}, tmp_path / "notes")
    assert made.exists()
    assert list(read_lock(lock)) == ["alpha"]
    place_all([Change(place, (), present_at(place))], lock, {}, tmp_path / "notes")
    assert not place.exists()


def test_what_stands_in_a_skills_place_and_cannot_be_told_is_left_alone(
    repository: Repository, project: Path, tmp_path: Path, skillkit: Any
) -> None:
    repository.add_skill("alpha")
    skillkit("add", repository.url)
    os.rename(project / "skills/alpha", tmp_path / "elsewhere")
    (project / "skills/alpha").symlink_to(tmp_path / "elsewhere")
    for words in (["update", "--discard"], ["sync", "--discard"], ["remove", "alpha", "--discard"]):
        assert "Move it away by hand" in skillkit(*words, code=126)["error"]["message"]
    assert skillkit("sync", "--check", code=1)["skills"][0]["what"] == "unreadable"
    assert (tmp_path / "elsewhere/SKILL.md").exists()


def test_two_adds_at_once_lose_nothing(repository: Repository, project: Path, skillkit: Any) -> None:  # noqa: ARG001
    names = [f"skill-{number}" for number in range(4)]
    for name in names:
        repository.add_skill(name)
    words = [sys.executable, "-m", "skillkit", "add", repository.url, "--skill"]
    started = [subprocess.Popen([*words, name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for name in names]
    assert [each.wait() for each in started] == [0] * 4
    assert list(read_lock(project / "skills.lock")) == names


def test_a_newer_lock_replaces_what_skillkit_itself_had_put_there(
    repository: Repository, project: Path, skillkit: Any
) -> None:
    repository.add_skill("alpha", {"a.txt": "one"})
    skillkit("add", repository.url)
    old = (project / "skills.lock").read_text()
    repository.add_skill("alpha", {"a.txt": "two"})
    skillkit("update")
    (project / "skills.lock").write_text(old)
    assert skillkit("sync")["skills"][0]["what"] == "restored"
    assert (project / "skills/alpha/a.txt").read_text() == "one"


def test_if_one_of_several_cannot_be_placed_none_is(
    repository: Repository, project: Path, skillkit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.add_skill("alpha", {"a.txt": "one"})
    repository.add_skill("beta", {"a.txt": "one"})
    skillkit("add", repository.url)
    repository.add_skill("alpha", {"a.txt": "two"})
    repository.add_skill("beta", {"a.txt": "two"})
    before = (project / "skills.lock").read_text()

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device", "skills.lock")

    with monkeypatch.context() as patch:
        patch.setattr(placing, "write_lock", full_disk)  # the last step: everything has moved by then
        assert "Nothing was changed" in skillkit("update", code=125)["error"]["message"]
    assert [(project / "skills" / name / "a.txt").read_text() for name in ("alpha", "beta")] == ["one", "one"]
    assert ((project / "skills.lock").read_text(), sorted(os.listdir(project / "skills"))) == (
        before,
        ["alpha", "beta"],
    )
    skillkit("update")
    assert [(project / "skills" / name / "a.txt").read_text() for name in ("alpha", "beta")] == ["two", "two"]


def test_a_failed_add_leaves_the_folder_as_it_was(
    repository: Repository, project: Path, skillkit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.add_skill("alpha")
    skill_folder(project / "skills", "alpha", files={"own.txt": "mine"})
    repository.add_skill("beta")
    skillkit("add", repository.url, code=126)
    assert os.listdir(project / "skills") == ["alpha"]
    shutil.rmtree(project / "skills")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(placing, "write_lock", interrupt)
    from skillkit.cli.main import exit_code_of

    assert exit_code_of(["add", repository.url]) == 130
    assert os.listdir(project) == []


def test_remove_takes_the_folder_and_the_lines(repository: Repository, project: Path, skillkit: Any) -> None:
    repository.add_skill("alpha")
    repository.add_skill("beta")
    skillkit("add", repository.url)
    skillkit("remove", "alpha")
    assert list(read_lock(project / "skills.lock")) == ["beta"]
    assert os.listdir(project / "skills") == ["beta"]
    assert "It has: beta." in skillkit("remove", "alpha", code=127)["error"]["message"]
    skillkit("remove", "beta")
    assert not (project / "skills.lock").exists()
    assert "There is no" in skillkit("sync", code=125)["error"]["message"]


def test_for_the_user_they_are_found_from_everywhere(
    repository: Repository, tmp_path: Path, skillkit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.add_skill("alpha")
    (added,) = skillkit("add", repository.url, "--user")["skills"]
    assert added["folder"] == os.path.join(os.environ["HOME"], ".local/share/skillkit/skills/alpha")
    monkeypatch.chdir(tmp_path)
    assert [(skill.name, skill.source) for skill in SkillManager().list_skills()] == [("alpha", "agent")]
    assert skillkit("sync", "--check", "--user")["drift"] == 0
    skillkit("remove", "alpha", "--user")
    assert SkillManager().list_skills() == []


def test_a_home_behind_links_of_the_users_own_is_a_home(repository: Repository, tmp_path: Path, skillkit: Any) -> None:
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", Path(os.environ["HOME"], ".local"))
    repository.add_skill("alpha")
    skillkit("add", repository.url, "--user")
    assert [skill.name for skill in SkillManager().list_skills()] == ["alpha"]
    assert skillkit("sync", "--check", "--user")["drift"] == 0


def test_for_a_host_they_lie_where_it_looks_and_that_is_said(
    repository: Repository, project: Path, skillkit: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    from skillkit.cli.main import exit_code_of

    repository.add_skill("alpha")
    assert exit_code_of(["add", repository.url, "--for", "codex"]) == 0
    assert "codex finds them now and runs their scripts itself, past skillkit" in capfd.readouterr().err
    assert (project / ".codex/skills/alpha/SKILL.md").exists()
    shutil.rmtree(project / ".codex")
    skillkit("sync", "--frozen")
    assert (project / ".codex/skills/alpha/SKILL.md").exists()
    skillkit("remove", "alpha")
    (added,) = skillkit("add", repository.url, "--user", "--for", "goose")["skills"]
    assert added["folder"] == os.path.join(os.environ["HOME"], ".config/goose/skills/alpha")


def test_adding_twice_changes_nothing(repository: Repository, project: Path, skillkit: Any) -> None:
    repository.add_skill("alpha")
    skillkit("add", repository.url)
    before = (project / "skills.lock").read_text()
    assert skillkit("add", repository.url)["skills"][0]["what"] == "unchanged"
    assert (project / "skills.lock").read_text() == before


def test_needs_and_risks_are_told_and_nothing_is_approved(repository: Repository, skillkit: Any) -> None:
    script = (
        "import os, urllib.request\nurllib.request.urlopen('https://api.example.com/x')\nos.environ['DEMO_API_KEY']\n"
    )
    repository.add_skill("alpha", {"scripts/call.py": script})
    (added,) = skillkit("add", repository.url)["skills"]
    assert "DEMO_API_KEY" in [need["name"] for need in added["needs"]]
    assert added["risks"]
    assert skillkit("trust", "list")["trusted"] == []


def test_names_are_completed_from_the_lock(repository: Repository, project: Path, skillkit: Any) -> None:  # noqa: ARG001
    from click.shell_completion import ShellComplete

    from skillkit.cli.main import cli

    repository.add_skill("alpha")
    skillkit("add", repository.url)
    found = ShellComplete(cli, {}, "skillkit", "_X").get_completions(["remove"], "al")
    assert [each.value for each in found] == ["alpha"]


# Ends itself as by SIGKILL before or after the step that is named, the second time that it comes by.
KILLED = """
import os, sys
from skillkit.sources import placing
from skillkit.cli.main import exit_code_of
where, name, when, times = {where}, {name!r}, {when!r}, [{times}]
step = getattr(where, name)
def dying(*given):
    times[0] -= 1
    if times[0] == 0 and when == "before":
        os.kill(os.getpid(), 9)
    result = step(*given)
    if times[0] == 0:
        os.kill(os.getpid(), 9)
    return result
setattr(where, name, dying)
exit_code_of(sys.argv[1:])
"""
KILLS = {
    "while a note is written": ("placing.Folder", "write_new", "after", 1),
    "before a folder is made": ("placing._Note", "write", "after", 1),
    "while it is written": ("placing._Work", "prepare", "before", 2),
    "before anything moved": ("placing._Work", "_swap", "before", 1),
    "between two": ("placing._Work", "_swap", "after", 1),
    "before the lock": ("placing", "write_lock", "before", 1),
    "after the lock": ("placing", "write_lock", "after", 1),
}


def run_and_kill(how: str, *words: str) -> None:
    where, name, when, times = KILLS[how]
    program = KILLED.format(where=where, name=name, when=when, times=times)
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr


@pytest.mark.parametrize("how", KILLS)
@pytest.mark.parametrize("command", ["add", "update", "remove"])
def test_after_a_kill_the_next_command_finds_all_of_it_done_or_nothing(
    repository: Repository, project: Path, skillkit: Any, command: str, how: str, private_home: Path
) -> None:
    repository.add_skill("alpha", {"a.txt": "one"})
    repository.add_skill("beta", {"a.txt": "one"})
    if command != "add":
        skillkit("add", repository.url)
    repository.add_skill("alpha", {"a.txt": "two"})
    repository.add_skill("beta", {"a.txt": "two"})
    if command == "remove" and KILLS[how][1] == "prepare":
        pytest.skip("one folder is prepared once")
    before = sorted(read_lock(project / "skills.lock"))
    run_and_kill(how, *{"add": ("add", repository.url), "update": ("update",), "remove": ("remove", "alpha")}[command])
    skillkit("remove", "nothing-there", code=127)
    is_done = how == "after the lock"
    text = "two" if is_done or command == "add" else "one"
    names = {"add": ["alpha", "beta"] if is_done else [], "update": before, "remove": ["beta"] if is_done else before}
    assert sorted(read_lock(project / "skills.lock")) == names[command]
    there = sorted(os.listdir(project / "skills")) if (project / "skills").exists() else []
    assert there == names[command], "nothing hidden is left either"
    beside = ["skills", "skills.lock"] if names[command] else []
    assert sorted(os.listdir(project)) == beside, "no empty folder, no half of a lock"
    text = "one" if command == "remove" else text
    assert {(project / "skills" / name / "a.txt").read_text() for name in there} <= {text}
    if there:
        assert skillkit("sync", "--check")["drift"] == 0
    assert not list((private_home / "state/placing").iterdir())


def test_a_note_that_lies_in_a_project_moves_nothing(repository: Repository, project: Path, skillkit: Any) -> None:
    """Who may write in the project could else have anything moved."""
    repository.add_skill("alpha", {"a.txt": "mine"})
    skillkit("add", repository.url)
    planted = skill_folder(project / "skills/.skillkit-0123456789abcdef", "old-0", files={"a.txt": "evil"})
    skillkit("update")
    assert (project / "skills/alpha/a.txt").read_text() == "mine"
    assert planted.exists()


def test_a_skill_has_one_place(repository: Repository, project: Path, skillkit: Any) -> None:
    repository.add_skill("alpha")
    skillkit("add", repository.url)
    error = skillkit("add", repository.url, "--for", "codex", code=126)["error"]["message"]
    assert "a lock holds one place of each" in error
    assert not (project / ".codex").exists()
    skillkit("remove", "alpha")
    skillkit("add", repository.url, "--for", "codex")
    assert (project / ".codex/skills/alpha").exists()


def test_after_an_update_approvals_end_and_the_question_shows_the_diff_that_update_showed(
    repository: Repository, project: Path, skillkit: Any
) -> None:
    repository.add_skill("alpha", {"scripts/run.sh": "echo one\n", "gone.txt": "x\n"})
    skillkit("add", repository.url)
    skillkit("trust", "add", "alpha", "--yes")
    skillkit("run", "alpha", "run")
    (repository.folder / "skills/alpha/gone.txt").unlink()
    repository.add_skill("alpha", {"scripts/run.sh": "echo two\n", "new.txt": "y\n"})
    (checked,) = skillkit("update", "--check", code=1)["skills"]
    skillkit("run", "alpha", "run")
    (updated,) = skillkit("update")["skills"]
    assert skillkit("run", "alpha", "run", code=126)["error"]
    asked = ScriptedApprover("no")
    with SkillManager(policy=GUARDED, approver=asked) as manager, pytest.raises(ApprovalDeclinedError):
        manager.execute_skill_script("alpha", "run")
    (request,) = asked.requests
    prompt = Prompt.from_context(request.context)
    assert prompt is not None
    shown = [(change.path, change.kind, change.diff) for change in prompt.changes or ()]
    for told in (checked, updated):
        assert [(change["path"], change["kind"], change["diff"]) for change in told["changes"]] == shown
    assert sorted(path for path, _, _ in shown) == ["gone.txt", "new.txt", "scripts/run.sh"]
    assert "changed since it was approved" in request.message
    assert (project / "skills/alpha/new.txt").exists()


def test_what_is_no_lock_or_no_key_is_told_in_whole_sentences(tmp_path: Path) -> None:
    (tmp_path / "skillkit.lock").write_text("version = [")
    with pytest.raises(ConfigurationError, match=r"[^.]\. Take back what was edited in it\.$"):
        read_lock(tmp_path / "skillkit.lock")
    folder = skill_folder(tmp_path / "skills", "demo")
    (tmp_path / "junk.key").write_text("no key\n")
    with pytest.raises(ConfigurationError, match="cannot sign") as told:
        sign_skill(folder, "demo", "d" * 64, tmp_path / "junk.key")
    assert "\\r" not in str(told.value)
    assert ".." not in str(told.value)
