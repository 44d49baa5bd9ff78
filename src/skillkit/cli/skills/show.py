"""`skillkit show` and `skillkit needs`: one skill, what it offers, and what it uses beyond its folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Unpack

import click

from skillkit.cli.options import SCRIPT, SKILL, Places, json_option, manager_for, roots_options
from skillkit.cli.output import beside, echo_json, screen_width, script_structure, skill_structure, table, table_width
from skillkit.core.exceptions import SkillKitError
from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill
from skillkit.core.store.skills import Signing
from skillkit.core.values.needs import Need
from skillkit.core.values.text import plural, visible
from skillkit.integrations.loading import bundled_files
from skillkit.present.terminal import columns, cut, width_of

__all__ = ["need_lines", "need_structures", "needs_command", "remedy_lines", "show_command"]

NAME_COLUMNS = 26
NARROW_PLACE = 20
WORDS = {"working_directory": "directory", "read": "to read", "write": "to write"}
COUNTED = {
    "home": ("home folder", "home folders"),
    "loopback": ("local service", "local services"),
    "read": ("place to read", "places to read"),
    "working_directory": ("working directory", "working directories"),
    "write": ("place to write", "places to write"),
}


@click.command("needs", short_help="Say what skills use beyond their folders, and what meets it.")
@click.argument("skill_name", metavar="[SKILL]", type=SKILL, required=False)
@click.argument("script_name", metavar="[SCRIPT]", type=SCRIPT, required=False)
@roots_options
@json_option
def needs_command(skill_name: str | None, script_name: str | None, as_json: bool, **places: Unpack[Places]) -> None:
    """Say what a skill, or one of its scripts, uses beyond its own folder.

    Hosts, keys, packages, places, programs: where each was found, whether it is there, and the command that meets
    it. Nothing is run. Without SKILL: of all skills, in short.

    \b
    Examples:
      skillkit needs
      skillkit needs csv-report
      skillkit needs csv-report report --json
    """
    with manager_for(places) as manager:
        if skill_name is None:
            _tell_all(manager, as_json=as_json)
            return
        needs = manager.needs_of(skill_name, script_name)
    if as_json:
        echo_json(skill=skill_name, script=script_name, needs=need_structures(needs))
        return
    title = visible(f"{skill_name}: {script_name}" if script_name else skill_name)
    click.echo(f"{click.style(title, bold=True)}  {_summary(needs)}")
    if needs:
        click.echo("\n".join(need_lines(needs)))
    if remedies := remedy_lines(needs):
        click.secho("\nWhat meets the rest:", bold=True)
        click.echo("\n".join(f"  {line}" for line in remedies))


def need_structures(needs: Iterable[Need]) -> list[dict[str, Any]]:
    return [asdict(need) for need in needs]


def need_lines(needs: Sequence[Need], indent: str = "  ") -> list[str]:
    """One for each: met or not, what, and where that was found; of a long path the end is kept."""
    kinds = max(len(_word(need)) for need in needs)
    names = min(NAME_COLUMNS, max(width_of(visible(need.name)) for need in needs))
    room = table_width() - len(indent) - kinds - names - 9
    if room < NARROW_PLACE:
        return [line for need in needs for line in _narrow_lines(need, indent)]
    lines = []
    for need in needs:
        name = cut(visible(need.name), names)
        place = _end_of(_place(need), room)
        lines.append(f"{indent}{_mark(need)}  {_word(need):<{kinds}}  {name}{' ' * (names - width_of(name))}  {place}")
    return lines


def _narrow_lines(need: Need, indent: str) -> tuple[str, str]:
    """Where a line has no room for all of it: below each other and nothing cut."""
    return beside(f"{indent}{_mark(need)}  {_word(need)}  ", need.name), beside(f"{indent}     ", _place(need))


def _mark(need: Need) -> str:
    return click.style("yes", fg="green") if need.is_met else click.style("no ", fg="yellow")


def _place(need: Need) -> str:
    return f"{visible(need.where)}, {need.source}"


def remedy_lines(needs: Iterable[Need]) -> list[str]:
    """As they are typed, each once: one command may meet several needs."""
    return list(dict.fromkeys(visible(need.remedy) for need in needs if need.remedy))


def _word(need: Need) -> str:
    return WORDS.get(need.kind, need.kind)


def _end_of(text: str, room: int) -> str:
    return text if width_of(text) <= room else f"…{text[-(room - 1) :]}"


def _summary(needs: Sequence[Need]) -> str:
    if not needs:
        return "needs nothing beyond its folder, as far as can be told."
    unmet = sum(not need.is_met for need in needs)
    return f"{plural(len(needs), 'need')}, {'all met' if not unmet else f'{unmet} unmet'}"


def _tell_all(manager: SkillManager, *, as_json: bool) -> None:
    of_skill = {skill.name: manager.needs_of(skill.name) for skill in manager.list_skills()}
    if as_json:
        echo_json(skills=[{"skill": name, "needs": need_structures(needs)} for name, needs in of_skill.items()])
        return
    rows = [
        (name, _counts(needs, is_met=False), _counts(needs, is_met=True)) for name, needs in of_skill.items() if needs
    ]
    if rows:
        click.echo(table(("SKILL", "UNMET", "MET"), rows, whole="UNMET", spare="MET"))
        click.echo()
    free = len(of_skill) - len(rows)
    click.echo(f"{plural(len(of_skill), 'skill')}; {free:,} of them {'needs' if free == 1 else 'need'} nothing.")


def _counts(needs: Iterable[Need], *, is_met: bool) -> str:
    counts = Counter(need.kind for need in needs if need.is_met is is_met)
    words = ((count, *COUNTED.get(kind, (kind, f"{kind}s"))) for kind, count in counts.items())
    return ", ".join(f"{count:,} {one if count == 1 else many}" for count, one, many in words) or "-"


FOLDERS = ("references/", "assets/")
SHOWN_FILES = 50


@click.command("show")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@roots_options
@click.option("--text", "with_text", is_flag=True, help="Print the text an agent reads, and nothing else.")
@json_option
def show_command(
    skill_name: str,
    with_text: bool,
    as_json: bool,
    **places: Unpack[Places],
) -> None:
    """Show one skill with its scripts.

    \b
    Examples:
      skillkit show csv-report
      skillkit show csv-report --text
      skillkit show my-plugin:csv-report --json
    """
    manager = manager_for(places)
    skill = manager.load_skill(skill_name)
    if as_json:
        echo_json(
            **skill_structure(skill.metadata),
            digest=_digest_of(skill)[0],
            signer=_signing_of(manager, skill).signer or None,
            lost_signer=_signing_of(manager, skill).lost or None,
            scripts=[script_structure(script) for script in skill.scripts],
            needs=need_structures(manager.needs_of(skill_name)),
            files=_shown_files(skill),
            instructions=skill.content,
        )
    elif with_text:
        click.echo(visible(manager.invoke_skill(skill_name)), nl=False)
    else:
        _show_skill(skill, manager.needs_of(skill_name), _signed_by(skill, _signing_of(manager, skill)))


def _show_skill(skill: Skill, needs: Sequence[Need], signer: str) -> None:
    width = screen_width()
    metadata = skill.metadata
    click.secho(visible(metadata.name), bold=True)
    click.echo(click.wrap_text(visible(metadata.description), width=min(width, 100)))
    facts = [
        ("folder", str(skill.base_directory)),
        ("from", metadata.source),
        ("host", metadata.host),
        ("version", metadata.version),
        ("license", metadata.license),
        ("runs on", metadata.compatibility),
        ("tools", " ".join(metadata.allowed_tools)),
        ("digest", "".join(filter(None, _digest_of(skill)))),
        ("signed by", signer),
    ]
    click.echo()
    told = {name: value for name, value in facts if value}
    column = max(map(len, told))
    click.echo("\n".join(beside(f"  {name:<{column}}  ", value) for name, value in told.items()))
    _show_section("Scripts", [(s.path.as_posix(), s.script_type, s.description) for s in skill.scripts], width)
    if needs:
        click.secho("\nNeeds", bold=True)
        click.echo("\n".join(need_lines(needs)))
        unmet = any(not need.is_met for need in needs)
        click.echo(f"  'skillkit needs {visible(metadata.name)}' says what meets the rest." if unmet else "", nl=unmet)
    _show_section("Other files", [(path,) for path in _shown_files(skill)], width)


def _signing_of(manager: SkillManager, skill: Skill) -> Signing:
    """Who signed exactly what is there, as it was checked when it came or by `skillkit verify`."""
    return manager.flow.installed.signing_of(skill.base_directory, _digest_of(skill)[0] or "none", skill.name)


def _signed_by(skill: Skill, signing: Signing) -> str:
    """Another's good signature, which was not taken here, is told apart from none."""
    if not signing.lost:
        return signing.said
    from skillkit.sources.signatures import allowed_signers_file, check_signature, signature_in

    try:
        found = check_signature(
            skill.name, skill.digest, signature_in(skill.base_directory), allowed_signers_file(None)
        )
    except SkillKitError:  # a signature of something else, or nothing to check it with
        return signing.said
    if not found.is_there:
        return signing.said
    told = f"{found.shown}, not taken here yet; until now {signing.lost} had signed it"
    return f"{told} ('skillkit verify {skill.name}' says what to do)"


def _digest_of(skill: Skill) -> tuple[str | None, str]:
    """The digest of all that is in it, or none and why: what cannot be hashed can be shown, not run."""
    try:
        return skill.digest, ""
    except SkillKitError as error:
        return None, f"none: {error}"


def _show_section(title: str, rows: list[tuple[str, ...]], width: int) -> None:
    if rows:
        click.secho(f"\n{title}", bold=True)
        click.echo("\n".join(columns(rows, width)))


def _shown_files(skill: Skill) -> list[str]:
    """What stands in references/ and assets/, in order, at most a screenful."""
    inside = [path for path in bundled_files(skill) if path.startswith(FOLDERS)]
    return sorted(inside, key=lambda path: (not path.startswith(FOLDERS[0]), path))[:SHOWN_FILES]
