"""`skillkit trust`: lasting approvals, each for one skill with exactly its present content."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple, Unpack

import click

from skillkit.cli.deciding import require_person
from skillkit.cli.options import (
    SKILL,
    Chosen,
    MissingError,
    Places,
    json_option,
    manager_for,
    policy_options,
    require_yes,
    roots_options,
    state_option,
)
from skillkit.cli.output import echo_json, label_rows, moment_text, table
from skillkit.cli.people.agents import agent_command
from skillkit.core.exceptions import ContentChangedError, SkillKitError, StateUnavailableError
from skillkit.core.find.references import ScriptReference
from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill
from skillkit.core.models.digest import manifest_of
from skillkit.core.store.opening import open_store
from skillkit.core.store.snapshots import Snapshots
from skillkit.core.store.state import state_folder
from skillkit.core.store.trust import AGENT_OWNER, ANYWHERE, Approval, StandingApprovals
from skillkit.core.values.bounds import Bounds
from skillkit.core.values.questions import FileChange, RiskFlag
from skillkit.core.values.runs import Manifest
from skillkit.core.values.text import plural, visible
from skillkit.present.changes import change_text
from skillkit.present.glance import as_word
from skillkit.present.terminal import columns

__all__ = ["trust"]

CHANNEL = "cli"
SHORT_DIGEST = 12
UNLIMITED = 10_000

_HEADINGS = ("SKILL", "DIGEST", "NOW", "SINCE (UTC)", "FOLDER")


@click.group("trust")
def trust() -> None:
    """Approve skills for good, as they are now.

    A trusted skill runs without a question where policy asks for a first run. Any change to any of its files
    ends that, and the next question shows the change.

    \b
    Examples:
      skillkit trust add csv-report        trust it as it is now
      skillkit trust list                  what is trusted
      skillkit trust diff csv-report       what changed since
      skillkit trust remove csv-report     ask again from now on
      skillkit trust agent ./tutor.toml    believe this agent file as it is now
    """


@trust.command("add")
@click.argument("skill_name", metavar="[SKILL]", type=SKILL, required=False)
@click.option("--locked", "is_locked", is_flag=True, help="Every skill of ./skills.lock, each only if it is as locked.")
@policy_options
@roots_options
@click.option("--digest", "reviewed", metavar="SHA256", help="Only if its content has this digest, all of it.")
@click.option("--yes", "-y", "is_sure", is_flag=True, help="Do not ask.")
@json_option
def add_command(
    skill_name: str | None,
    is_locked: bool,
    reviewed: str | None,
    is_sure: bool,
    as_json: bool,
    **chosen: Unpack[Chosen],
) -> None:
    """Trust a skill as it is now, within the walls shown.

    A run that would get more than these walls give, such as the network, is asked about all the same. A lock says what
    there should be, not that it is good: --locked shows all of it and asks once.

    \b
    Examples:
      skillkit trust add csv-report
      skillkit trust add --locked
      skillkit trust add csv-report --network
      skillkit trust add csv-report --yes
      skillkit trust add csv-report --yes --digest 685465d6...
    """
    require_person(chosen.get("state_dir"), "trust add")
    if is_locked == (skill_name is not None) or (is_locked and reviewed):
        raise click.UsageError("Name one SKILL, perhaps with --digest; or use --locked for all of ./skills.lock.")
    with manager_for(chosen) as manager:
        digests = _locked_digests(manager.state_dir) if skill_name is None else {skill_name: reviewed}
        shown = [_Shown.under(manager, manager.load_skill(name)) for name in digests]
        folder = manager.state_dir
    for each, digest in zip(shown, digests.values(), strict=True):
        _require_reviewed(each.skill.name, each.manifest.digest, digest)
    store = open_store(folder)
    try:
        kept = _trusted(shown, folder, StandingApprovals(store), is_sure=is_sure)
    except OSError as error:
        raise StateUnavailableError(
            f"No copy of {', '.join(each.skill.name for each in shown)} can be kept in {folder}: "
            f"{error.strerror or error}. Make the state folder writable, or name another with --state-dir."
        ) from error
    finally:
        store.close()
    if as_json:
        echo_json(trusted=kept if is_locked else kept[0])
        return
    for approval in kept:
        click.echo(f"Trusted {visible(approval.skill)} with digest {approval.digest[:SHORT_DIGEST]}.")


def _locked_digests(state_dir: Path) -> dict[str, str | None]:
    """By the folder of each skill, which no other can take: what it has to be, by whom it has to be signed."""
    from skillkit.cli.skills.sources import skill_home
    from skillkit.sources.lock import LOCK_FILE, read_lock
    from skillkit.sources.syncing import require_signers

    with skill_home(state_dir=state_dir) as home:
        locked = dict(sorted(read_lock(home.lock).items()))
        if not locked:
            raise MissingError(f"There is no {LOCK_FILE} in {home.base}. 'skillkit add' makes one.")
        require_signers(home, locked)
        return {str(home.place_of(name, entry)): entry.digest for name, entry in locked.items()}


class _Shown(NamedTuple):
    """All that a yes is about."""

    skill: Skill
    manifest: Manifest
    on_load: list[ScriptReference]
    """The commands that run when an agent loads it."""
    walls: Bounds
    sentences: tuple[str, ...]
    signed_by: str

    @classmethod
    def under(cls, manager: SkillManager, skill: Skill) -> _Shown:
        from skillkit.integrations.loading import commands_on_load

        folder, flow = skill.base_directory, manager.flow
        on_load = commands_on_load(skill, manager.policy, manager.workspace)
        signed = flow.installed.signing_of(folder, skill.digest, skill.name).said
        return cls(skill, manifest_of(folder), on_load, flow.bounds(None), flow.reach_of_any(skill), signed)


def _trusted(shown: list[_Shown], folder: Path, approvals: StandingApprovals, *, is_sure: bool) -> list[Approval]:
    """The copies come first: what is shown is read from them, and they are what will run. One question for all."""
    snapshots = Snapshots(folder, approvals.digests)
    with ExitStack() as held:
        for each in shown:
            copy = held.enter_context(snapshots.hold(each.skill.base_directory, each.manifest))
            before = approvals.last_approved_digest(each.skill.name, each.skill.base_directory)
            _show_what(each, copy, snapshots.approved_copy(before), is_new=before is None)
        if not is_sure:
            require_yes("Trust it as it is now?" if len(shown) == 1 else f"Trust these {len(shown)} as they are now?")
        return [_trusted_one(each, approvals) for each in shown]


def _trusted_one(shown: _Shown, approvals: StandingApprovals) -> Approval:
    from skillkit.integrations.loading import commands_digest

    return approvals.trust(
        skill=shown.skill.name,
        folder=shown.skill.base_directory,
        digest=shown.manifest.digest,
        channel=CHANNEL,
        walls=shown.walls,
        on_load=commands_digest(shown.on_load),
    )


def _require_reviewed(name: str, digest: str, reviewed: str | None) -> None:
    """What somebody else looked at, and nothing else."""
    if reviewed is not None and reviewed != digest:
        raise ContentChangedError(
            f"{name!r} is not trusted: its digest is {digest}, not {reviewed}. Look at what differs "
            "from what was reviewed; to trust it all the same, leave out --digest."
        )


def _show_what(shown: _Shown, copy: Path, approved: Path | None, *, is_new: bool) -> None:
    """All that a question about one of its scripts, or about loading it, would show of the skill."""
    from skillkit.core.ask.changes import changes_between
    from skillkit.core.ask.risk import risk_flags  # reads code; other commands do not

    skill, manifest = shown.skill, shown.manifest
    scripts = [script.path.as_posix() for script in skill.scripts]
    on_load = [" ".join(map(as_word, (each.script, *each.argv))) for each in shown.on_load]
    risks = [_risk_text(risk) for risk in risk_flags(copy, manifest, scripts)]
    changes = changes_between(approved, copy) if approved is not None else ()
    facts = [
        ("skill", skill.name),
        ("folder", str(skill.base_directory)),
        ("files", str(len(manifest.entries))),
        *label_rows("scripts", scripts or ["none"]),
        *label_rows("on load", on_load or ["nothing runs when an agent loads it"]),
        *label_rows("risks", risks or ["none found, which proves nothing"]),
        ("changed", _change_summary(approved, len(changes), is_new=is_new)),
        *label_rows("walls", list(shown.sentences)),
        ("digest", manifest.digest),
        *label_rows("signed by", [shown.signed_by] if shown.signed_by else []),
    ]
    click.echo("\n".join([*columns(facts, UNLIMITED), *map(change_text, changes)]), err=True)
    _tell_unseen(changes)


def _risk_text(risk: RiskFlag) -> str:
    return f"{risk.kind}: {risk.message} ({risk.path}:{risk.line})"


def _change_summary(approved: Path | None, count: int, *, is_new: bool) -> str:
    if is_new:
        return "never approved before"
    if approved is None:
        return "the copy of what was approved is gone, so nothing can be compared"
    return f"{plural(count, 'file')} since it was approved, as below" if count else "nothing since it was approved"


@trust.command("list")
@state_option
@json_option
def list_command(state_dir: Path | None, as_json: bool) -> None:
    """List what is trusted, and whether it is still the same.

    A skill that is changed, gone or unreadable now is asked about again. So is one whose walls are unknown, because an
    older skillkit did not keep them: trust it again.

    \b
    Examples:
      skillkit trust list
      skillkit trust list --json
    """
    store = open_store(state_folder(state_dir))
    found = StandingApprovals(store).trusted()
    store.close()
    if as_json:
        echo_json(trusted=[{**asdict(each), "now": _state_of(each)} for each in found])
    elif found:
        click.echo(table(_HEADINGS, map(_cells, found)))
    else:
        click.echo(f"No skill is trusted in {visible(store.place)}.", err=True)
        click.echo("hint: skillkit trust add SKILL", err=True)


@trust.command("remove")
@click.argument("skill_name", metavar="SKILL|FILE")
@click.option("--folder", type=click.Path(), help="Only the one from this folder.")
@state_option
@json_option
def remove_command(skill_name: str, folder: str | None, state_dir: Path | None, as_json: bool) -> None:
    """Stop trusting a skill, or the agent file of that path.

    Neither needs to exist any more.

    \b
    Examples:
      skillkit trust remove csv-report
      skillkit trust remove csv-report --folder ./skills/csv-report
      skillkit trust remove ./tutor.toml
    """
    store = open_store(state_folder(state_dir))
    place = None if folder is None else Path(folder).absolute()
    gone = _removed(StandingApprovals(store), skill_name, place) if store.exists() else []
    store.close()
    if not gone:
        raise MissingError(f"{skill_name!r} is not trusted here. 'skillkit trust list' shows what is.")
    if as_json:
        echo_json(removed=gone)
    else:
        for each in gone:
            click.echo(f"No longer trusted: {visible(each.skill)} in {visible(each.folder)}.")


def _removed(approvals: StandingApprovals, named: str, place: Path | None) -> list[Approval]:
    """Of the skill of that name, else of the agent file that stands there."""
    gone = approvals.remove_trust(named, folder=place)
    return gone or (approvals.remove_trust(AGENT_OWNER, folder=Path(named).absolute()) if place is None else [])


@trust.command("diff")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@click.option("--all", "is_whole", is_flag=True, help="Show every line, however many differ.")
@roots_options
@json_option
def diff_command(skill_name: str, is_whole: bool, as_json: bool, **places: Unpack[Places]) -> None:
    """Show what changed in a skill since it was approved last.

    \b
    Examples:
      skillkit trust diff csv-report
      skillkit trust diff csv-report --all
      skillkit trust diff csv-report --json
    """
    with manager_for(places) as manager:
        skill, folder = manager.load_skill(skill_name), manager.state_dir
    copy = _approved_copy(skill, folder)
    from skillkit.core.ask.changes import BRIEF, WHOLE, changes_between

    changes = changes_between(copy, skill.base_directory, WHOLE if is_whole else BRIEF)
    if as_json:
        echo_json(skill=skill.name, approved=copy.name, changes=changes)
    elif changes:
        click.echo("\n".join(map(change_text, changes)))
        _tell_unseen(changes)
    else:
        click.echo(f"{visible(skill.name)} is as it was approved.", err=True)


trust.add_command(agent_command)


def _approved_copy(skill: Skill, state_dir: Path) -> Path:
    store = open_store(state_dir)
    digest = StandingApprovals(store).last_approved_digest(skill.name, skill.base_directory)
    store.close()
    if digest is None:
        raise MissingError(f"{skill.name!r} was never approved here. 'skillkit trust add {skill.name}' approves it.")
    copy = Snapshots(state_dir).approved_copy(digest)
    if copy is None:
        raise MissingError(
            f"The copy of what was approved of {skill.name!r} is gone, so nothing can be compared. "
            f"'skillkit trust add {skill.name}' keeps a new one."
        )
    return copy


def _tell_unseen(changes: Sequence[FileChange]) -> None:
    unseen = sum(change.unseen for change in changes)
    if unseen:
        lines = plural(unseen, "added line")
        click.echo(f"{lines} not shown to the end. 'skillkit trust diff SKILL --all' shows every line.", err=True)


def _state_of(approval: Approval) -> str:
    """The skill in the folder now, compared with what was trusted there."""
    folder = Path(approval.folder)
    if approval.skill == AGENT_OWNER:
        return _state_of_agent(folder, approval.digest)
    if not approval.folder.startswith(ANYWHERE):
        if not os.path.isdir(folder):
            return "gone"
        try:
            is_same = manifest_of(folder).digest == approval.digest
        except (OSError, SkillKitError):
            return "unreadable"
        if not is_same:
            return "changed"
    return "as trusted" if approval.walls else "walls unknown"


def _state_of_agent(file: Path, digest: str) -> str:
    from skillkit.chat.agent_files import digest_of

    try:
        return "as trusted" if digest_of(file.read_text(encoding="utf-8-sig")) == digest else "changed"
    except FileNotFoundError:
        return "gone"
    except (OSError, ValueError):
        return "unreadable"


def _cells(approval: Approval) -> tuple[str, ...]:
    digest, since = approval.digest[:SHORT_DIGEST], moment_text(approval.approved_at)
    return approval.skill, digest, _state_of(approval), since, approval.folder
