"""Options and output habits that several commands share."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from skillkit.core.config import current_folder, load_settings
from skillkit.core.exceptions import SkillKitError
from skillkit.core.manager import SkillManager
from skillkit.core.policy import PROFILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = [
    "SKILL",
    "MissingError",
    "echo_json",
    "json_option",
    "manager_for",
    "policy_options",
    "roots_options",
    "screen_width",
    "state_option",
]

NOT_FOUND = 127

Decorated = TypeVar("Decorated", bound=Callable[..., object])

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


class MissingError(click.ClickException):
    """What was asked for is not there."""

    exit_code = NOT_FOUND


def state_option(function: Decorated) -> Decorated:
    kind = click.Path(path_type=Path, file_okay=False)
    return click.option("--state-dir", type=kind, help="Where skillkit keeps its state.")(function)


def roots_options(function: Decorated) -> Decorated:
    """Where to look for skills; without any of these the usual places."""
    for option in reversed(
        (
            click.option(
                "--skills",
                multiple=True,
                type=click.Path(path_type=Path),
                envvar="SKILLKIT_SKILLS",
                help="Look only in this folder (repeatable).",
            ),
            click.option(
                "--plugin",
                "plugins",
                multiple=True,
                type=click.Path(path_type=Path),
                help="Also use this plugin folder (repeatable).",
            ),
            click.option("--state-dir", type=click.Path(path_type=Path), help="Where skillkit keeps its state."),
        )
    ):
        function = option(function)
    return function


def policy_options(function: Decorated) -> Decorated:
    """What one call may do, beside what the settings say."""
    path = click.Path(path_type=Path)
    for option in reversed(
        (
            click.option("--policy", type=click.Choice(list(PROFILES)), help="Use this profile, not the settings."),
            click.option("--read", "readable", multiple=True, type=path, help="Let it read this path too."),
            click.option("--write", "writable", multiple=True, type=path, help="Let it write there too."),
            click.option("--network", is_flag=True, help="Let it use the network."),
        )
    ):
        function = option(function)
    return function


def manager_for(
    skills: tuple[Path, ...] = (),
    plugins: tuple[Path, ...] = (),
    state_dir: Path | None = None,
    *,
    profile: str | None = None,
    readable: tuple[Path, ...] = (),
    writable: tuple[Path, ...] = (),
    network: bool = False,
    **more: Any,  # noqa: ANN401 - the manager's own
) -> SkillManager:
    """By the settings that hold in this folder, and what was chosen on the command line."""
    settings = load_settings(current_folder()).chosen(
        skills=skills, plugins=plugins, profile=profile, readable=readable, writable=writable, network=network
    )
    return SkillManager(**settings.manager_arguments(), state_dir=state_dir, **more)


class SkillName(click.ParamType[str]):
    """A skill's name, completed from what is installed."""

    name = "skill"

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        given = {key: ctx.params[key] for key in ("skills", "plugins", "state_dir") if ctx.params.get(key)}
        try:
            skills = manager_for(**given).list_skills()
        except SkillKitError:
            return []
        return [
            CompletionItem(skill.name, help=skill.description) for skill in skills if skill.name.startswith(incomplete)
        ]


SKILL = SkillName()


def screen_width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def echo_json(**fields: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    import json

    click.echo(json.dumps({"schema_version": 1, **fields}, indent=2, ensure_ascii=False, default=str))
