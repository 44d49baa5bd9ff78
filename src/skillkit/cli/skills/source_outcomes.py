"""What came, changed, went or differs -> what a person is told: files, needs, risks, signer, what is asked next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import click

from skillkit.cli.output import echo_json, label_rows, table
from skillkit.core.models import Skill
from skillkit.core.models.digest import manifest_of
from skillkit.core.values.needs import Need
from skillkit.core.values.policy import STANDARD
from skillkit.core.values.questions import RiskFlag
from skillkit.core.values.text import grouped, plural, visible
from skillkit.present.changes import change_text
from skillkit.present.terminal import columns
from skillkit.sources.home import SkillHome
from skillkit.sources.outcomes import Outcome

__all__ = ["show_drift", "show_outcomes"]

SHOWN_WHOLE = 5
SHOWN_NAMES = 20
UNLIMITED = 10_000
CAME = ("added", "updated", "restored")


class _Look:
    """A skill that came, looked at without running anything of it."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.manifest = manifest_of(outcome.place)

    @cached_property
    def skill(self) -> Skill:
        from skillkit.core.find.reading import read_skill_file
        from skillkit.core.find.roots import PATH, Root
        from skillkit.core.find.walk import SKILL_FILE

        place = self.outcome.place
        file = next(each for each in sorted(place.iterdir()) if each.name.upper() == SKILL_FILE.upper())
        return Skill(read_skill_file(str(file), file.stat()).metadata(str(file), Root(place.parent, PATH)))

    @property
    def scripts(self) -> list[str]:
        return [script.path.as_posix() for script in self.skill.scripts]

    @property
    def needs(self) -> tuple[Need, ...]:
        from skillkit.core.find.needs import needs_of, surroundings_here

        around = surroundings_here(self.skill.name, STANDARD, folder=self.outcome.place, tier="bubblewrap")
        return needs_of(self.skill, surroundings=around)

    @property
    def risks(self) -> tuple[RiskFlag, ...]:
        from skillkit.core.ask.risk import risk_flags

        return risk_flags(self.outcome.place, self.manifest, self.scripts)


def show_outcomes(home: SkillHome, outcomes: Sequence[Outcome], *, as_json: bool, host: str = "") -> None:
    """In short where there are many."""
    if as_json:
        echo_json(lock=str(home.lock), host=host or None, skills=[*map(_structure, outcomes)])
        return
    came = [outcome for outcome in outcomes if outcome.what in CAME]
    for outcome in came[:SHOWN_WHOLE] if len(came) <= SHOWN_NAMES else ():
        _show_whole(outcome)
    for outcome in outcomes:
        if outcome.what == "newer":
            _show_newer(outcome)
    counts = Counter(outcome.what for outcome in outcomes)
    click.echo(", ".join(f"{grouped(count)} {what}" for what, count in counts.items()) or "Nothing is locked here.")
    rest = came[SHOWN_WHOLE:] if len(came) <= SHOWN_NAMES else came
    if rest:
        names = ", ".join(visible(outcome.name) for outcome in rest[:SHOWN_NAMES])
        more = f" and {grouped(len(rest) - SHOWN_NAMES)} more" if len(rest) > SHOWN_NAMES else ""
        click.echo(f"  {names}{more}. 'skillkit needs NAME' and 'skillkit show NAME' tell about each.")
    _tell_next(came, host)


def _tell_next(came: Sequence[Outcome], host: str) -> None:
    if not came:
        return
    click.echo("Nothing was approved: the first run of each asks.", err=True)
    if host:
        click.echo(
            f"{host} finds them now and runs their scripts itself, past skillkit: without its walls, questions and "
            "record.",
            err=True,
        )


def _show_whole(outcome: Outcome) -> None:
    from skillkit.cli.skills.show import need_lines

    look, locked = _Look(outcome), outcome.locked
    risks = [f"{risk.kind}: {risk.message} ({risk.path}:{risk.line})" for risk in look.risks]
    signature = outcome.signature
    signed = f"{signature.shown}, at {signature.moment}" if signature and signature.is_there else "nobody"
    facts = [
        ("from", " ".join(filter(None, (locked.source, locked.ref, locked.path)))),
        ("commit", locked.commit),
        ("folder", str(outcome.place)),
        ("files", str(len(look.manifest.entries))),
        *label_rows("scripts", look.scripts or ["none"]),
        *label_rows("risks", risks or ["none found, which proves nothing"]),
        ("signed by", signed),
        ("digest", look.manifest.digest),
        ("note", outcome.note),
    ]
    click.echo(f"{click.style(visible(outcome.name), bold=True)}  {outcome.what}")
    click.echo("\n".join(columns([(label, value) for label, value in facts if value], UNLIMITED)))
    if needs := look.needs:
        click.echo("  needs")
        click.echo("\n".join(need_lines(needs, "    ")))
    if outcome.what == "updated":
        _show_changes(outcome)
    click.echo()


def _show_newer(outcome: Outcome) -> None:
    click.echo(f"{click.style(visible(outcome.name), bold=True)}  {visible(outcome.locked.source)} has another version")
    if outcome.note:
        click.echo(f"  {visible(outcome.note)}")
    _show_changes(outcome)


def _show_changes(outcome: Outcome) -> None:
    if outcome.changes:
        click.echo("\n".join(map(change_text, outcome.changes)))
    if unseen := sum(change.unseen for change in outcome.changes):
        click.echo(f"{plural(unseen, 'added line')} not shown to the end.", err=True)


def show_drift(home: SkillHome, outcomes: Sequence[Outcome], *, as_json: bool) -> None:
    drifted = [outcome for outcome in outcomes if outcome.what != "unchanged"]
    if as_json:
        skills = [
            {"name": each.name, "what": each.what, "folder": str(each.place), "note": each.note} for each in outcomes
        ]
        echo_json(lock=str(home.lock), drift=len(drifted), skills=skills)
    elif drifted:
        rows = [(each.name, each.what, visible(each.note)) for each in drifted]
        click.echo(table(("SKILL", "IS", "WHY"), rows, whole="WHY"))
    else:
        click.echo(f"{plural(len(outcomes), 'skill')} as locked.")


def _structure(outcome: Outcome) -> dict[str, Any]:
    signature = outcome.signature
    structure = {
        "name": outcome.name,
        "what": outcome.what,
        "folder": str(outcome.place),
        **{key: value for key, value in outcome.locked._asdict().items() if key != "folder"},
        "signed_at": signature.moment if signature and signature.is_there else None,
        "note": outcome.note or None,
        "changes": list(outcome.changes),
    }
    if outcome.what in CAME:
        from skillkit.cli.skills.show import need_structures  # reads code; many skills are told of without

        look = _Look(outcome)
        files = [path for path, _ in look.manifest.entries]
        needs, risks = need_structures(look.needs), list(look.risks)
        structure |= {"files": files, "scripts": look.scripts, "needs": needs, "risks": risks}
    return structure
