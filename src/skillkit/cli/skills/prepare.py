"""`skillkit prepare`: the packages that a skill needs, installed for its runs after a person looked at the list."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any, Unpack

import click

from skillkit.cli.options import (
    SCRIPT,
    SKILL,
    Places,
    approver_for,
    end_on_signals,
    json_option,
    manager_for,
    roots_options,
    settings_for,
)
from skillkit.cli.output import PassingLine, echo_json
from skillkit.core.values.text import plural, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from skillkit.core.values.questions import Approver, Cancel, OptionAnswer, OptionRequest
    from skillkit.packages.prepare import Preparation

__all__ = ["prepare_command"]

BAR = 24


@click.command("prepare", short_help="Install the packages that a skill needs, for its runs alone.")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@click.argument("script_name", metavar="[SCRIPT]", type=SCRIPT, required=False)
@click.option("--dry-run", is_flag=True, help="Only say what would be installed.")
@click.option("--yes", is_flag=True, help="Install without asking: you looked at the list before.")
@click.option("--inferred", is_flag=True, help="Also packages that are only guessed from imports.")
@click.option("--young", is_flag=True, help="Also releases younger than packages_min_age_days.")
@roots_options
@json_option
def prepare_command(
    skill_name: str,
    script_name: str | None,
    dry_run: bool,
    yes: bool,
    inferred: bool,
    young: bool,
    as_json: bool,
    **places: Unpack[Places],
) -> None:
    """Install the packages that a skill, or one of its scripts, needs.

    You are shown every package with version, size, age and who says that it is needed. They come as wheels from the
    index that you use yourself, none of their code runs meanwhile, and only runs of skills see them. Runs install
    nothing and need no network.

    \b
    Examples:
      skillkit prepare pdf-tools --dry-run
      skillkit prepare pdf-tools
      skillkit prepare pdf-tools extract --yes
    """
    from skillkit.cli.deciding import require_person
    from skillkit.packages import require_packages

    require_packages()
    from skillkit.packages.prepare import prepare_packages

    state_dir = places.get("state_dir")
    if not dry_run:
        require_person(state_dir, "prepare")
    days = settings_for(places).packages_min_age_days
    with manager_for(places) as manager, end_on_signals(), PassingLine() as line:
        done = prepare_packages(
            manager,
            skill_name,
            script_name,
            approver=None if dry_run else _LateApprover(lambda: approver_for(state_dir, yes=yes, wait=False)),
            dry_run=dry_run,
            young=young,
            inferred=inferred,
            min_age_days=days,
            on_step=lambda what, there, whole: line.show(_bar(what, there, whole)),
        )
    if as_json:
        echo_json(**_structure(done, is_dry=dry_run))
    else:
        _tell(done, is_dry=dry_run)


def _structure(done: Preparation, *, is_dry: bool) -> dict[str, Any]:
    packages = [{"kind": plan.kind, **asdict(each)} for plan in done.plans for each in plan.packages]
    built = [{"kind": each.mark.kind, "key": each.mark.key, "bytes": each.mark.size} for each in done.environments]
    is_ready = bool(done.environments) or not done.plans
    return {
        "skill": done.skill,
        "status": "planned" if is_dry and not done.was_ready else "ready" if is_ready else "planned",
        "was_ready": done.was_ready,
        **({"alone": done.alone} if done.alone else {}),
        "packages": packages,
        "environments": built,
    }


def _tell(done: Preparation, *, is_dry: bool) -> None:
    from skillkit.packages.values import size_text

    name = visible(done.skill)
    if not done.plans:
        click.echo(f"{name} needs no packages, as far as can be told.")
        return
    now = time.time()
    count = plural(sum(len(plan.packages) for plan in done.plans), "package")
    if is_dry and not done.was_ready:
        from skillkit.packages.question import package_line

        click.echo(f"{click.style(name, bold=True)} would get {count}:")
        for plan in done.plans:
            click.echo(f"{plan.kind}, from {', '.join(plan.indexes) or 'the approved lock'}")
            click.echo("\n".join(f"  {package_line(each, now)}" for each in plan.packages))
        return
    size = size_text(sum(each.mark.size for each in done.environments))
    said = "has its packages already" if done.was_ready else "is prepared"
    click.echo(f"{name} {said}: {count}, {size}. Its runs find them; nothing else does.")
    if done.alone:
        click.echo(f"hint: {visible(done.alone)}", err=True)


class _LateApprover:
    """Made when somebody is asked: mostly what is to be prepared is there, and nobody is."""

    def __init__(self, make: Callable[[], Approver]) -> None:
        self._make = make

    @property
    def channel(self) -> str:
        return self._make().channel

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        return self._make().ask(request, cancel)


def _bar(what: str, there: int, whole: int) -> str:
    part = min(1.0, there / whole) if whole else 0.0
    return f"{what} [{'#' * int(BAR * part):<{BAR}}] {part:4.0%}" if whole else f"{what} ..."
