"""Who takes over a source cannot pass for its author: another key, no signature, or an old version is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.repositories import Repository

from skillkit import GUARDED, OptionRequest, ScriptRefusedError, SkillManager
from skillkit.approvers.callback import CallbackApprover
from skillkit.cli.main import exit_code_of
from skillkit.core.models.digest import SIGNATURE_FILE
from skillkit.core.store.installed import InstalledSkills
from skillkit.present.request import question_text
from skillkit.sources import signatures

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="signatures are made by OpenSSH")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def key_of(folder: Path, who: str) -> Path:
    file = folder / f"key-{who}"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", who, "-f", str(file)]
    subprocess.run(words, check=True)
    return file


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, Path]:
    """The author's key is known to the user; the attacker's is not."""
    made = {who: key_of(tmp_path, who) for who in ("author", "attacker")}
    public = made["author"].with_suffix(".pub").read_text()
    folder = Path(os.environ["HOME"], ".ssh")
    folder.mkdir()
    (folder / "allowed_signers").write_text(f"author@example.com {public}")
    return made


def publish(repository: Repository, key: Path | None, text: str) -> str:
    """A new version, signed or not."""
    repository.add_skill("demo", {"a.txt": text})
    folder = repository.folder / "skills/demo"
    (folder / SIGNATURE_FILE).unlink(missing_ok=True)
    if key is not None:
        assert exit_code_of(["sign", "demo", "--key", str(key), "--skills", str(repository.folder / "skills")]) == 0
    return repository.commit()


@pytest.fixture
def repository(tmp_path: Path, keys: dict[str, Path], project: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    publish(made, keys["author"], "one")
    assert exit_code_of(["add", made.url]) == 0
    assert "author@example.com" in (project / "skills.lock").read_text()
    return made


def refused(capfd: pytest.CaptureFixture[str], project: Path, *words: str) -> str:
    capfd.readouterr()
    before = (project / "skills/demo/a.txt").read_text()
    assert exit_code_of(list(words)) == 126
    assert (project / "skills/demo/a.txt").read_text() == before
    return capfd.readouterr().err


def test_control_the_same_signer_may_bring_a_new_version(
    repository: Repository, keys: dict[str, Path], project: Path
) -> None:
    publish(repository, keys["author"], "two")
    assert exit_code_of(["update"]) == 0
    assert (project / "skills/demo/a.txt").read_text() == "two"
    assert exit_code_of(["verify", "demo"]) == 0


def test_another_signer_is_refused(
    repository: Repository, keys: dict[str, Path], project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    publish(repository, keys["attacker"], "evil")
    said = refused(capfd, project, "update")
    assert "signed by SHA256:" in said
    assert "until now author@example.com had signed it" in said
    assert exit_code_of(["update", "--signer-changed"]) == 0, "control: only a person's word lets it in"
    assert (project / "skills/demo/a.txt").read_text() == "evil"


def test_no_signature_after_a_signed_version_is_refused(
    repository: Repository, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    publish(repository, None, "evil")
    assert "it is not signed" in refused(capfd, project, "update")


def test_an_older_signed_version_is_refused(
    repository: Repository, keys: dict[str, Path], project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    old = repository.git("rev-parse", "HEAD")
    signature = repository.folder / "skills/demo" / SIGNATURE_FILE
    moment = signature.read_text().splitlines()[1]
    while True:  # until the clock shows another second
        publish(repository, keys["author"], "two")
        if signature.read_text().splitlines()[1] != moment:
            break
    assert exit_code_of(["update"]) == 0
    repository.git("reset", "-q", "--hard", old)
    assert "somebody offers an old one" in refused(capfd, project, "update")


def test_removing_a_skill_first_does_not_help_the_attacker(
    repository: Repository, keys: dict[str, Path], project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    publish(repository, keys["attacker"], "evil")
    assert exit_code_of(["remove", "demo"]) == 0
    assert exit_code_of(["add", repository.url]) == 126
    assert "until now author@example.com had signed it" in capfd.readouterr().err
    assert not (project / "skills/demo").exists()


def test_a_signature_of_other_content_or_another_name_is_refused(
    repository: Repository, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    repository.add_skill("demo", {"a.txt": "changed after signing"})
    assert "does not fit what is in the skill now" in refused(capfd, project, "update")
    text = (repository.folder / "skills/demo" / SIGNATURE_FILE).read_text()
    repository.add_skill("other", {SIGNATURE_FILE: text})
    assert exit_code_of(["add", repository.url, "--skill", "other"]) == 126


def test_a_signature_for_another_purpose_is_none(
    repository: Repository,
    keys: dict[str, Path],
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(signatures, "NAMESPACE", "git")
        patch.setattr(signatures, "check_signature", lambda *_: signatures.Signature("SHA256:x", "", 0))
        publish(repository, keys["author"], "two")
    assert "does not fit what is in the skill now" in refused(capfd, project, "update")


def test_the_signature_is_no_part_of_the_digest_and_not_there_when_a_script_runs(
    repository: Repository, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = project / "skills/demo"
    (folder / "scripts").mkdir()
    (folder / "scripts/list.sh").write_text("ls\n")
    (folder / "scripts/again.sh").write_text('ls -a "$(dirname "$0")/.."\n')
    assert (folder / SIGNATURE_FILE).exists()
    capfd.readouterr()
    assert exit_code_of(["run", "demo", "again", "--yes"]) == 0
    listed = capfd.readouterr().out
    assert "SKILL.md" in listed
    assert SIGNATURE_FILE not in listed
    assert exit_code_of(["run", "demo", SIGNATURE_FILE, "--yes"]) == 127
    assert repository.folder.exists()


def test_the_signer_is_shown_and_only_of_what_was_signed(
    repository: Repository, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert repository.folder.exists()
    capfd.readouterr()
    assert exit_code_of(["show", "demo"]) == 0
    assert "signed by  author@example.com" in capfd.readouterr().out
    with SkillManager() as manager:
        skill = manager.load_skill("demo")
        (project / "skills/demo/scripts").mkdir()
        (project / "skills/demo/scripts/run.sh").write_text("echo evil\n")
        assert exit_code_of(["show", "demo"]) == 0
        assert "author@example.com" not in capfd.readouterr().out
        assert InstalledSkills(manager.flow.store).signer_of(skill.base_directory, skill.digest) == ""


@pytest.mark.usefixtures("project")
def test_a_question_names_the_signer(tmp_path: Path, keys: dict[str, Path]) -> None:
    source = Repository(tmp_path / "signed")
    source.add_skill("demo", {"scripts/run.sh": "echo ran\n"})
    publish(source, keys["author"], "one")
    assert exit_code_of(["add", source.url]) == 0
    asked = list[str]()

    def answer(request: OptionRequest) -> str:
        asked.append(question_text(request, 100, source_rows=5))
        return "no"

    with SkillManager(approver=CallbackApprover(answer), policy=GUARDED) as manager, pytest.raises(ScriptRefusedError):
        manager.execute_skill_script("demo", "run")
    assert "Signed by" in asked[0]
    assert "author@example.com" in asked[0]


def test_an_edited_signer_in_the_lock_pins_nobody(
    repository: Repository, keys: dict[str, Path], project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lock = project / "skills.lock"
    lock.write_text(lock.read_text().replace("author@example.com", "attacker@example.com"))
    publish(repository, keys["attacker"], "evil")
    assert "until now author@example.com had signed it" in refused(capfd, project, "update")


def test_a_signer_that_the_lock_names_and_the_folder_has_not_is_drift(
    repository: Repository, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert repository.folder.exists()
    assert exit_code_of(["sync", "--check"]) == 0
    (project / "skills/demo" / SIGNATURE_FILE).unlink()
    assert exit_code_of(["sync", "--check"]) == 1
    assert "author@example.com" in capfd.readouterr().out
