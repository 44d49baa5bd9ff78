"""`skillkit add`, `update`, `remove`, `sync`: where skills come from, and the lock that says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack

import click

from skillkit.cli.deciding import require_person
from skillkit.cli.options import LOCKED, json_option, state_option
from skillkit.cli.output import PassingLine
from skillkit.cli.skills.source_outcomes import show_drift, show_outcomes
from skillkit.config import current_folder
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.store.opening import open_store
from skillkit.core.store.state import state_folder
from skillkit.core.values.text import visible
from skillkit.sources.given import source_from
from skillkit.sources.home import HOST_NAMES, SkillHome, host_folder, user_base
from skillkit.sources.lock import USUAL_FOLDER
from skillkit.sources.opening import SECONDS
from skillkit.sources.signatures import allowed_signers_file

__all__ = ["add_command", "remove_command", "skill_home", "sync_command", "update_command"]

Decorated = TypeVar("Decorated", bound=Callable[..., object])

user_option = click.option("--user", "is_user", is_flag=True, help="For all your projects: in skillkit's own data.")
discard_option = click.option("--discard", is_flag=True, help="Lose what was changed in the folder here.")


class Fetching(TypedDict, total=False):
    """What `fetch_options` give."""

    is_user: bool
    allowed_signers: Path | None
    signer_changed: bool
    seconds: float
    state_dir: Path | None


def fetch_options(function: Decorated) -> Decorated:
    """Where to put skills, and what a fetch may take."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    for option in (
        state_option,
        click.option(
            "--timeout",
            "seconds",
            type=click.FloatRange(min=1),
            default=SECONDS,
            show_default=True,
            help="Seconds that one fetch may take.",
        ),
        click.option("--signer-changed", is_flag=True, help="Take another signer, none, or an older signature."),
        click.option("--allowed-signers", type=file, help="Whose keys are known, instead of ~/.ssh/allowed_signers."),
        user_option,
    ):
        function = option(function)
    return function


@contextmanager
def skill_home(*, as_json: bool = False, **chosen: Unpack[Fetching]) -> Iterator[SkillHome]:
    """The lock and the folders of this project, or of the user."""
    if chosen.get("signer_changed"):
        require_person(chosen.get("state_dir"), "--signer-changed")
    base = user_base() if chosen.get("is_user") else current_folder()
    if base is None:
        raise ConfigurationError("The current folder is gone. Go to another, or use --user.")
    store = open_store(state_folder(chosen.get("state_dir")))
    line = PassingLine(is_shown=not as_json)
    try:
        yield SkillHome(
            base,
            is_user=bool(chosen.get("is_user")),
            state=store,
            allowed_signers=allowed_signers_file(chosen.get("allowed_signers")),
            may_change_signer=bool(chosen.get("signer_changed")),
            seconds=chosen.get("seconds", SECONDS),
            on_progress=lambda text: line.show(f"  {visible(text)}"),
        )
    finally:
        line.clear()
        store.close()


@click.command("add", short_help="Get skills from a repository, a folder, an archive or a site.")
@click.argument("given", metavar="SOURCE")
@click.option("--skill", "wanted", metavar="NAME", multiple=True, help="Only this skill of the source (repeatable).")
@click.option("--for", "host", type=click.Choice(HOST_NAMES), help="Put them where this host looks.")
@fetch_options
@json_option
def add_command(
    given: str, wanted: tuple[str, ...], host: str | None, as_json: bool, **chosen: Unpack[Fetching]
) -> None:
    """Get skills, write them to ./skills, and note in skills.lock where they came from.

    SOURCE is OWNER/REPO[/PATH][@REF] on GitHub, a git URL (URL#REF:PATH), a folder (./FOLDER), a .zip or .skill file,
    or an https index. Nothing of it runs, and nothing is approved: the first run asks. All of it is added or nothing.

    \b
    Examples:
      skillkit add anthropics/skills --skill pdf
      skillkit add anthropics/skills/skills/pdf@main
      skillkit add https://git.example.com/team/skills.git#v2
      skillkit add ./downloads/csv-report.skill --user
      skillkit add https://example.com --json
    """
    from skillkit.sources.adding import add_skills

    source = source_from(given)
    with skill_home(as_json=as_json, **chosen) as home:
        folder = host_folder(host, is_user=home.is_user) if host else USUAL_FOLDER
        if home.is_user and not source.is_remote:  # the lock lies elsewhere
            source = source._replace(place=str(Path(source.place).expanduser().absolute()))
        outcomes = add_skills(home, source, wanted, folder)
    show_outcomes(home, outcomes, as_json=as_json, host=host or "")


@click.command("update", short_help="Take what the sources of locked skills have now.")
@click.argument("names", metavar="[NAME]...", nargs=-1, type=LOCKED)
@click.option("--check", is_flag=True, help="Change nothing; end with 1 if there is something newer.")
@discard_option
@fetch_options
@json_option
@click.pass_context
def update_command(
    ctx: click.Context,
    names: tuple[str, ...],
    check: bool,
    discard: bool,
    as_json: bool,
    **chosen: Unpack[Fetching],
) -> None:
    """Take what the sources have now, of all locked skills or of those named, and show what differs.

    It shows what the next question would show. What was changed here is never lost without --discard.

    \b
    Examples:
      skillkit update
      skillkit update pdf --check
    """
    from skillkit.sources.adding import update_skills

    with skill_home(as_json=as_json, **chosen) as home:
        outcomes = update_skills(home, names, check=check, discard=discard)
    show_outcomes(home, outcomes, as_json=as_json)
    ctx.exit(1 if check and any(outcome.what == "newer" for outcome in outcomes) else 0)


@click.command("remove", short_help="Remove a skill that was added, and its line in the lock.")
@click.argument("name", metavar="NAME", type=LOCKED)
@discard_option
@user_option
@state_option
@json_option
def remove_command(name: str, discard: bool, as_json: bool, **chosen: Any) -> None:  # noqa: ANN401 - Fetching
    """Remove a skill that was added: its folder and what skills.lock says of it.

    \b
    Examples:
      skillkit remove pdf
      skillkit remove pdf --user --discard
    """
    from skillkit.sources.adding import remove_skill

    with skill_home(as_json=as_json, **chosen) as home:
        outcome = remove_skill(home, name, discard=discard)
    show_outcomes(home, [outcome], as_json=as_json)


@click.command("sync", short_help="Make the folder what skills.lock says.")
@click.option("--frozen", is_flag=True, help="Byte for byte as locked, or fail; the lock is not touched.")
@click.option("--check", is_flag=True, help="Fetch and change nothing; end with 1 if anything differs.")
@discard_option
@fetch_options
@json_option
@click.pass_context
def sync_command(
    ctx: click.Context, frozen: bool, check: bool, discard: bool, as_json: bool, **chosen: Unpack[Fetching]
) -> None:
    """Make the skills in this folder what skills.lock says, or tell what differs.

    A lock gives no trust: what it brings is asked about like any other skill.

    \b
    Examples:
      skillkit sync
      skillkit sync --frozen
      skillkit sync --check --json
    """
    from skillkit.sources.syncing import drift_of, sync_skills

    if frozen and check:
        raise click.UsageError("--frozen makes the folder so, --check only looks. Use one of them.")
    with skill_home(as_json=as_json, **chosen) as home:
        outcomes = drift_of(home) if check else sync_skills(home, frozen=frozen, discard=discard)
    (show_drift if check else show_outcomes)(home, outcomes, as_json=as_json)
    ctx.exit(1 if check and any(outcome.what != "unchanged" for outcome in outcomes) else 0)
