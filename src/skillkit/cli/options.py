"""Options and output habits that several commands share."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict, TypeVar, cast

import click
from click.core import ParameterSource

from skillkit.cli.exit_codes import NOT_FOUND
from skillkit.core.config import Settings, current_folder, load_settings
from skillkit.core.exceptions import SkillKitError
from skillkit.core.find.roots import existing_folder
from skillkit.core.manager import SkillManager
from skillkit.core.policy import PROFILES
from skillkit.present.terminal import columns, least_width, visible, width_of, wrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = [
    "SCRIPT",
    "SKILL",
    "Chosen",
    "MissingError",
    "Places",
    "any_state_option",
    "beside",
    "counted",
    "echo_json",
    "json_option",
    "manager_for",
    "moment_text",
    "on_one_line",
    "policy_options",
    "roots_options",
    "screen_width",
    "settings_for",
    "state_option",
    "table",
    "table_width",
]

UNLIMITED = 10_000
LEAST_ROOM = 20

Decorated = TypeVar("Decorated", bound=Callable[..., object])

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
STATE_HELP = "Where skillkit keeps its state."
state_option = click.option("--state-dir", type=click.Path(path_type=Path, file_okay=False), help=STATE_HELP)
# Whoever runs or looks at the machine says by itself what is wrong with the folder.
any_state_option = click.option("--state-dir", type=click.Path(path_type=Path), help=STATE_HELP)


class MissingError(click.ClickException):
    """What was asked for is not there."""

    exit_code = NOT_FOUND


def existing_folders(ctx: click.Context, param: click.Parameter, given: tuple[Path, ...]) -> tuple[Path, ...]:
    """As given; a folder that is not there is told by the name that the person wrote, not by the manager's."""
    is_variable = ctx.get_parameter_source(str(param.name)) is ParameterSource.ENVIRONMENT
    written = f"${param.envvar}" if is_variable else param.opts[0]
    for path in () if ctx.resilient_parsing else given:
        existing_folder(path, written)
    return given


def roots_options(function: Decorated) -> Decorated:
    """Where to look for skills; without any of these the usual places."""
    for option in reversed(
        (
            click.option(
                "--skills",
                multiple=True,
                type=click.Path(path_type=Path),
                envvar="SKILLKIT_SKILLS",
                callback=existing_folders,
                help="Look only in this folder (repeatable).",
            ),
            click.option(
                "--plugin",
                "plugins",
                multiple=True,
                type=click.Path(path_type=Path),
                callback=existing_folders,
                help="Also use this plugin folder (repeatable).",
            ),
            any_state_option,
        )
    ):
        function = option(function)
    return function


def policy_options(function: Decorated) -> Decorated:
    """What one call may do, beside what the settings say."""
    path = click.Path(exists=True, path_type=Path)  # what is not there cannot be opened to a script
    for option in reversed(
        (
            click.option(
                "--policy", "profile", type=click.Choice(list(PROFILES)), help="Use this profile, not the settings."
            ),
            click.option("--read", "readable", multiple=True, type=path, help="Let it read this path too."),
            click.option("--write", "writable", multiple=True, type=path, help="Let it write there too."),
            click.option("--network", is_flag=True, help="Let it use the network."),
        )
    ):
        function = option(function)
    return function


class Places(TypedDict, total=False):
    """What `roots_options` give."""

    skills: tuple[Path, ...]
    plugins: tuple[Path, ...]
    state_dir: Path | None


class Chosen(Places, total=False):
    """What `roots_options` and `policy_options` give together."""

    profile: str | None
    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    network: bool


def settings_for(chosen: Chosen | Places) -> Settings:
    """Those that hold in this folder, and what was chosen on the command line."""
    named = cast("dict[str, Any]", {name: value for name, value in chosen.items() if name != "state_dir"})
    return load_settings(current_folder()).chosen(**named)


def manager_for(chosen: Chosen | Places, **more: Any) -> SkillManager:  # noqa: ANN401 - the manager's own
    return SkillManager(**settings_for(chosen).manager_arguments(), state_dir=chosen.get("state_dir"), **more)


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

        try:
            skills = manager_for(places_of(ctx)).list_skills()
        except SkillKitError:
            return []
        return [
            CompletionItem(skill.name, help=on_one_line(skill.description))
            for skill in skills
            if skill.name.startswith(incomplete) and skill.name.isprintable()
        ]


class ScriptName(click.ParamType[str]):
    """A script of the skill that was named before it, completed from what the skill has."""

    name = "script"

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        skill = ctx.params.get("skill_name")
        try:
            scripts = manager_for(places_of(ctx)).list_scripts(skill) if skill else []
        except SkillKitError:
            return []
        stems = Counter(script.name for script in scripts)
        named = [(script.name if stems[script.name] == 1 else "", script) for script in scripts]
        # A path only for who begins one, or where the short name would mean several.
        offered = {name: script for name, script in named if name and name.startswith(incomplete)}
        offered |= {
            path: script
            for name, script in named
            if (path := script.path.as_posix()).startswith(incomplete) and (not name or "/" in incomplete)
        }
        return [
            CompletionItem(name, help=on_one_line(script.description))
            for name, script in offered.items()
            if name.isprintable()
        ]


def places_of(ctx: click.Context) -> Places:
    """Where the words that are typed so far say to look."""
    return cast("Places", {key: ctx.params[key] for key in Places.__annotations__ if ctx.params.get(key)})


SKILL, SCRIPT = SkillName(), ScriptName()


def screen_width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def table_width() -> int:
    """As wide as the screen; in a pipe nothing is cut."""
    return screen_width() if sys.stdout.isatty() else UNLIMITED


def table(rows: Sequence[Sequence[str]], *, whole: Sequence[int] = (), spare: int | None = None) -> str:
    """Those in `whole` are not cut while there is room for them, if need be without the `spare` column."""
    width = table_width()
    if spare is not None and least_width(rows, whole) > width:
        rows = [[*row[:spare], *row[spare + 1 :]] for row in rows]
        whole = [at - (at > spare) for at in whole]
    return "\n".join(columns(rows, width, indent="", whole=whole if least_width(rows, whole) <= width else ()))


def beside(label: str, text: str) -> str:
    """The text folded between words where the screen ends, each line beside the label; one word stays whole."""
    indent = " " * width_of(click.unstyle(label))
    room = max(LEAST_ROOM, table_width() - len(indent)) if " " in text else UNLIMITED
    lines = (piece for line in visible(text).split("\n") for piece in wrapped(line, room))
    return label + f"\n{indent}".join(lines)


def counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def moment_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def on_one_line(text: str) -> str:
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def echo_json(**fields: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    import json

    click.echo(json.dumps({"schema_version": 1, **fields}, indent=2, ensure_ascii=False, default=str))
