"""`skillkit trust`: lasting approvals, each for one skill with exactly its present content."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from skillkit.cli.options import (
    SKILL,
    MissingError,
    echo_json,
    json_option,
    manager_for,
    roots_options,
    screen_width,
    state_option,
)
from skillkit.core.decide.trust import Approval, StandingApprovals
from skillkit.core.digest import manifest_of, snapshot_of
from skillkit.core.exceptions import ContentChangedError, StateUnavailableError
from skillkit.core.models import Skill
from skillkit.core.questions import FileChange
from skillkit.core.state import StateStore, state_folder
from skillkit.present.terminal import columns, visible

__all__ = ["trust"]

CHANNEL = "cli"
SHORT_DIGEST = 12
UNLIMITED = 10_000

_HEADINGS = ("SKILL", "DIGEST", "SINCE (UTC)", "FOLDER")


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
    """


@trust.command("add")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@roots_options
@click.option("--digest", "reviewed", metavar="SHA256", help="Only if its content has this digest, all of it.")
@click.option("--yes", "-y", "is_sure", is_flag=True, help="Do not ask.")
@json_option
def add_command(
    skill_name: str,
    skills: tuple[Path, ...],
    plugins: tuple[Path, ...],
    state_dir: Path | None,
    reviewed: str | None,
    is_sure: bool,
    as_json: bool,
) -> None:
    """Trust a skill with exactly its present content.

    \b
    Examples:
      skillkit trust add csv-report
      skillkit trust add csv-report --yes
      skillkit trust add csv-report --yes --digest 685465d6...
    """
    with manager_for(skills, plugins, state_dir) as manager:
        skill, folder = manager.load_skill(skill_name), manager.state_dir
    manifest = manifest_of(skill.base_directory)
    show_what(skill, manifest.digest, len(manifest.entries))
    if reviewed is not None and reviewed != manifest.digest:
        raise ContentChangedError(
            f"{skill.name!r} is not trusted: its digest is {manifest.digest}, not {reviewed}. Look at what differs "
            "from what was reviewed; to trust it all the same, leave out --digest."
        )
    if not is_sure:
        click.confirm("Trust it as it is now?", abort=True, err=True)
    store = StateStore(folder)
    approvals = StandingApprovals(store)
    try:
        # The copy comes first: it proves that what is trusted is what was shown.
        snapshot_of(skill.base_directory, manifest, folder / "snapshots", approvals.digests)
        place = skill.base_directory
        kept = approvals.trust(skill=skill.name, folder=place, digest=manifest.digest, channel=CHANNEL)
    except OSError as error:
        raise StateUnavailableError(
            f"No copy of {skill.name!r} can be kept in {folder}: {error.strerror or error}. "
            "Make the state folder writable, or name another with --state-dir."
        ) from error
    finally:
        store.close()
    if as_json:
        echo_json(trusted=asdict(kept))
    else:
        click.echo(f"Trusted {visible(skill.name)} with digest {kept.digest[:SHORT_DIGEST]}.")


def show_what(skill: Skill, digest: str, count: int) -> None:
    scripts = ", ".join(script.path.as_posix() for script in skill.scripts) or "none"
    facts = [
        ("skill", skill.name),
        ("folder", str(skill.base_directory)),
        ("files", str(count)),
        ("scripts", scripts),
        ("digest", digest),
    ]
    click.echo("\n".join(columns(facts, UNLIMITED)), err=True)


@trust.command("list")
@state_option
@json_option
def list_command(state_dir: Path | None, as_json: bool) -> None:
    """List what is trusted.

    \b
    Examples:
      skillkit trust list
      skillkit trust list --json
    """
    store = StateStore(state_folder(state_dir))
    found = StandingApprovals(store).trusted()
    store.close()
    if as_json:
        echo_json(trusted=[asdict(each) for each in found])
    elif found:
        width = screen_width() if sys.stdout.isatty() else UNLIMITED
        click.echo("\n".join(columns([_HEADINGS, *map(cells, found)], width, indent="")))
    else:
        click.echo(f"No skill is trusted in {visible(str(store.folder))}.", err=True)
        click.echo("hint: skillkit trust add SKILL", err=True)


@trust.command("remove")
@click.argument("skill_name", metavar="SKILL")
@click.option("--folder", type=click.Path(), help="Only the one from this folder.")
@state_option
@json_option
def remove_command(skill_name: str, folder: str | None, state_dir: Path | None, as_json: bool) -> None:
    """Stop trusting a skill; it need not exist any more.

    \b
    Examples:
      skillkit trust remove csv-report
      skillkit trust remove csv-report --folder ./skills/csv-report
    """
    store = StateStore(state_folder(state_dir))
    place = None if folder is None else Path(folder).absolute()
    gone = StandingApprovals(store).remove_trust(skill_name, folder=place) if store.path.exists() else []
    store.close()
    if not gone:
        raise MissingError(f"{skill_name!r} is not trusted here. `skillkit trust list` shows what is.")
    if as_json:
        echo_json(removed=[asdict(each) for each in gone])
    else:
        for each in gone:
            click.echo(f"No longer trusted: {visible(each.skill)} in {visible(each.folder)}.")


@trust.command("diff")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@roots_options
@json_option
def diff_command(
    skill_name: str, skills: tuple[Path, ...], plugins: tuple[Path, ...], state_dir: Path | None, as_json: bool
) -> None:
    """Show what changed in a skill since it was approved last.

    \b
    Examples:
      skillkit trust diff csv-report
      skillkit trust diff csv-report --json
    """
    with manager_for(skills, plugins, state_dir) as manager:
        skill, folder = manager.load_skill(skill_name), manager.state_dir
    copy = approved_copy(skill, folder)
    from skillkit.core.decide.changes import changes_between

    changes = changes_between(copy, skill.base_directory)
    if as_json:
        echo_json(skill=skill.name, approved=copy.name, changes=[asdict(change) for change in changes])
    elif changes:
        click.echo("\n".join(change_text(change) for change in changes))
    else:
        click.echo(f"{visible(skill.name)} is as it was approved.", err=True)


def approved_copy(skill: Skill, state_dir: Path) -> Path:
    store = StateStore(state_dir)
    digest = StandingApprovals(store).last_approved_digest(skill.name, skill.base_directory)
    store.close()
    if digest is None:
        raise MissingError(f"{skill.name!r} was never approved here. `skillkit trust add` approves it.")
    copy = state_dir / "snapshots" / digest
    if not copy.is_dir():
        raise MissingError(f"The copy of what was approved of {skill.name!r} is gone, so nothing can be compared.")
    return copy


def change_text(change: FileChange) -> str:
    """Our own words stand at the left margin, what the skill wrote stands behind a bar."""
    lines = [f"  │ {line}" for line in visible(change.diff).splitlines()]
    path = visible(change.path).replace("\n", "\\n")
    return "\n".join([f"{change.kind}: {path}", *lines])


def cells(approval: Approval) -> tuple[str, ...]:
    moment = datetime.fromtimestamp(approval.approved_at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return approval.skill, approval.digest[:SHORT_DIGEST], moment, approval.folder
