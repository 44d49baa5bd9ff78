"""Options and output habits that several commands share."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from skillkit.core.exceptions import SkillKitError
from skillkit.core.manager import SkillManager
from skillkit.core.policy import ScriptPolicy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = [
    "SKILL",
    "MissingError",
    "echo_json",
    "json_option",
    "manager_for",
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


def manager_for(
    skills: tuple[Path, ...] = (),
    plugins: tuple[Path, ...] = (),
    state_dir: Path | None = None,
    policy: ScriptPolicy | None = None,
) -> SkillManager:
    only_given = "" if skills else None
    return SkillManager(only_given, only_given, plugins, skills, state_dir=state_dir, policy=policy)


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
