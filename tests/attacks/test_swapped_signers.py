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
from skillkit.core.models.digest import SIGNATURE_FILE, manifest_of
from skillkit.core.store.opening import open_store
from skillkit.core.store.skills import Installed, InstalledSkills
from skillkit.core.store.state import state_folder
from skillkit.core.store.trust import StandingApprovals
from skillkit.present.request import question_text
from skillkit.sources import signatures

pytestmark = [
    pytest.mark.usefixtures("each_database"),
    pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="signatures are made by OpenSSH"),
]


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
        assert "nobody known here; until now author@example.com had signed it" in capfd.readouterr().out
        signing = InstalledSkills(manager.flow.store).signing_of(skill.base_directory, skill.digest, skill.name)
        assert signing == ("", "author@example.com")


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


def asked_about(approver: str = "no") -> tuple[list[OptionRequest], ScriptRefusedError | None]:
    """The questions that a run brings up, and why it was refused."""
    asked = list[OptionRequest]()

    def answer(request: OptionRequest) -> str:
        asked.append(request)
        return approver

    with SkillManager(approver=CallbackApprover(answer), policy=GUARDED) as manager:
        try:
            manager.execute_skill_script("demo", "run")
        except ScriptRefusedError as error:
            return asked, error
    return asked, None


@pytest.fixture
def signed(tmp_path: Path, keys: dict[str, Path], project: Path) -> Path:
    """A signed skill with a script, as it was added: its folder."""
    source = Repository(tmp_path / "signed")
    source.add_skill("demo", {"scripts/run.sh": "echo ran\n"})
    publish(source, keys["author"], "one")
    assert exit_code_of(["add", source.url]) == 0
    return project / "skills/demo"


def records() -> list[dict[str, object]]:
    with SkillManager() as manager:
        return [{"kind": record.kind, **record.fields} for record in manager.flow.audit.records()]


def test_the_record_names_the_signer_of_what_ran_or_was_refused(signed: Path) -> None:
    asked_about("yes_once")
    asked_about("no")
    assert [(each["kind"], each.get("signer")) for each in records()] == [
        ("started", "author@example.com"),
        ("finished", "author@example.com"),
        ("refused", "author@example.com"),
    ]
    (signed / "scripts/run.sh").write_text("echo evil\n")
    asked_about("no")
    last = records()[-1]
    assert (last["kind"], last.get("signer"), last["lost_signer"]) == ("refused", None, "author@example.com")


def test_a_run_of_what_the_signer_did_not_sign_says_so_and_is_covered_by_nothing_said_before(signed: Path) -> None:
    assert exit_code_of(["trust", "add", "--locked", "--yes"]) == 0
    assert asked_about() == ([], None), "control: as it was signed and trusted it runs"
    (signed / "scripts/run.sh").write_text("echo evil\n")
    (request,), error = asked_about()
    assert error is not None
    assert "Until now author@example.com had signed this skill; they did not sign what is in it now." in request.message
    shown = " ".join(question_text(request, 100, source_rows=5).replace("│", " ").split())
    assert "Signed by nobody known here; until now author@example.com had signed it" in shown


def test_a_yes_that_was_given_when_it_was_signed_is_none_to_the_same_question_afterwards(signed: Path) -> None:
    (before,), _ = asked_about()
    InstalledSkills(open_store(state_folder(None))).keep(
        [Installed(str(signed), "demo", "", "author@example.com", "SHA256:x", 1, "other content")]
    )
    (after,), _ = asked_about()
    assert before.id != after.id


@pytest.mark.parametrize("how", ["another key", "no signature", "other content", "signature of another"])
def test_trust_by_the_lock_looks_at_the_signer(
    signed: Path, keys: dict[str, Path], project: Path, capfd: pytest.CaptureFixture[str], how: str
) -> None:
    """The lock is edited as well, so that content and lock agree; only the signature can tell."""
    capfd.readouterr()
    if how == "other content":
        (signed / "a.txt").write_text("evil")
    if how in ("another key", "other content"):
        assert exit_code_of(["sign", "demo", "--key", str(keys["attacker"])]) == 0
    if how == "no signature":
        (signed / SIGNATURE_FILE).unlink()
    if how == "signature of another":
        text = (signed / SIGNATURE_FILE).read_text()
        (signed / SIGNATURE_FILE).write_text(text.replace("signed 20", "signed 19"))
    digest = manifest_of(signed).digest
    lock = project / "skills.lock"
    lines = [line for line in lock.read_text().splitlines() if not line.startswith(("digest", "signer"))]
    lock.write_text("\n".join([*lines, f'digest = "{digest}"', 'signer = ""', ""]))
    assert exit_code_of(["trust", "add", "--locked", "--yes"]) == 126
    told = capfd.readouterr().err
    assert "'demo'" in told
    assert "until now author@example.com" in told or "does not fit what is in the skill now" in told
    with SkillManager() as manager:
        assert not StandingApprovals(manager.flow.store).trusted()


def test_control_trust_by_the_lock_of_what_its_signer_signed(signed: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert signed.exists()
    capfd.readouterr()
    assert exit_code_of(["trust", "add", "--locked", "--yes"]) == 0
    assert "signed by" in capfd.readouterr().err


def test_show_tells_another_ones_signature_from_none(
    signed: Path, keys: dict[str, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    (signed / "a.txt").write_text("another's words")
    assert exit_code_of(["sign", "demo", "--key", str(keys["attacker"])]) == 0
    key = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(keys["attacker"])], check=True, capture_output=True, text=True
    ).stdout.split()[1]
    capfd.readouterr()
    assert exit_code_of(["show", "demo"]) == 0
    assert f"{key}, not taken here yet; until now author@example.com had signed it" in capfd.readouterr().out


def test_trust_in_a_changed_skill_shows_whose_it_was(signed: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (signed / "a.txt").write_text("mine now")
    capfd.readouterr()
    assert exit_code_of(["trust", "add", "demo", "--yes"]) == 0
    assert "nobody known here; until now author@example.com had signed it" in capfd.readouterr().err
    assert exit_code_of(["show", "demo"]) == 0
    assert "nobody known here; until now author@example.com had signed it" in capfd.readouterr().out


def test_a_signer_that_only_the_lock_names_is_no_signer(
    tmp_path: Path, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = Repository(tmp_path / "unsigned")
    source.add_skill("demo")
    assert exit_code_of(["add", source.url]) == 0
    lock = project / "skills.lock"
    assert exit_code_of(["trust", "add", "--locked", "--yes"]) == 0, "control"
    lock.write_text(lock.read_text().replace('signer = ""', 'signer = "author@example.com"'))
    capfd.readouterr()
    assert exit_code_of(["trust", "add", "--locked", "--yes"]) == 126
    assert "the lock says that author@example.com signed it, and nobody did" in capfd.readouterr().err


def test_what_came_with_the_project_has_its_signer_too(
    repository: Repository, keys: dict[str, Path], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Skills, signature and lock are committed; another person's world never saw them added."""
    monkeypatch.setenv("SKILLKIT_STATE_DIR", str(project.parent / "another-state"))
    publish(repository, keys["attacker"], "evil")
    assert exit_code_of(["update"]) == 126
    assert (project / "skills/demo/a.txt").read_text() == "one"
    publish(repository, keys["author"], "two")
    assert exit_code_of(["update"]) == 0, "control"


def test_a_lock_that_moves_a_skill_to_another_folder_does_not_lose_its_signer(
    repository: Repository, keys: dict[str, Path], project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    publish(repository, keys["attacker"], "evil")
    lock = project / "skills.lock"
    lines = [line for line in lock.read_text().splitlines() if not line.startswith("folder")]
    lock.write_text("\n".join([*lines, 'folder = ".codex/skills"', ""]))
    assert exit_code_of(["update"]) == 126
    assert "until now author@example.com had signed it" in capfd.readouterr().err
    assert not (project / ".codex").exists()
