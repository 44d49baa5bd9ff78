"""What several commands are given on the command line, and what they make of it: manager, approver, workspace."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, TypeVar, cast

import click
from click.core import ParameterSource

from skillkit.cli import NOT_FOUND, REFUSED, SIGNAL_BASE
from skillkit.config import Origin, Place, Settings, current_folder, load_settings
from skillkit.core.exceptions import ConfigurationError, SkillKitError
from skillkit.core.find.roots import existing_folder
from skillkit.core.manager import SkillManager
from skillkit.core.paths import real_path
from skillkit.core.store.opening import SHARED_VARIABLE
from skillkit.core.values.policy import PROFILES
from skillkit.core.values.skills import Workspace
from skillkit.core.values.text import on_one_line, visible

TYPE_CHECKING = False
if TYPE_CHECKING:  # `skillkit list` has to be fast, and most of this is for other commands
    from click.shell_completion import CompletionItem

    from skillkit.core.values.questions import Approver, OptionRequest

__all__ = [
    "LOCKED",
    "SCRIPT",
    "SKILL",
    "Chosen",
    "MissingError",
    "Places",
    "any_state_option",
    "approver_for",
    "current_workspace",
    "end_on_signals",
    "input_option",
    "json_option",
    "manager_for",
    "policy_options",
    "require_person_to_loosen",
    "require_yes",
    "roots_options",
    "session_id",
    "set_while_it_runs",
    "settings_for",
    "state_option",
]

SESSION_VARIABLE = "SKILLKIT_SESSION"
SHOWN_NAMES = 20
OPENING = {
    "profile": "--policy",
    "network": "--network",
    "hosts": "--host",
    "writable": "--write",
    "readable": "--read",
    "run_on_load": "--run-on-load",
}
"""What of `Chosen` can make a policy looser, and how it is typed."""

Decorated = TypeVar("Decorated", bound=Callable[..., object])

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
input_option = click.option(
    "--input", "given", metavar="JSON|@FILE|-", help="JSON for the script's stdin; @FILE or - reads it."
)
STATE_HELP = "Where skillkit keeps its state."


def _use_shared_state(ctx: click.Context, _: click.Parameter, address: str | None) -> None:
    """For as long as the command runs it is as if the variable said so: what it starts belongs to the same world."""
    if address is None or ctx.resilient_parsing:
        return
    from skillkit.core.store.shared.postgres import WorldAddress

    try:
        WorldAddress.from_text(address)
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from error
    set_while_it_runs(ctx, SHARED_VARIABLE, address)


def set_while_it_runs(ctx: click.Context, name: str, value: str) -> None:
    """A variable, as long as the command's context lives."""
    before = os.environ.get(name)
    os.environ[name] = value

    def restore() -> None:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before

    ctx.call_on_close(restore)


def _state_options(folder: click.Path) -> Callable[[Decorated], Decorated]:
    def decorate(function: Decorated) -> Decorated:
        shared = click.option(
            "--state",
            metavar="ADDRESS",
            expose_value=False,
            callback=_use_shared_state,
            help="A world that many machines share: postgresql://host/db?world=NAME.",
        )
        return click.option("--state-dir", type=folder, help=STATE_HELP)(shared(function))

    return decorate


state_option = _state_options(click.Path(path_type=Path, file_okay=False))
# Whoever runs or looks at the machine says by itself what is wrong with the folder.
any_state_option = _state_options(click.Path(path_type=Path))


class MissingError(click.ClickException):
    """What was asked for is not there."""

    exit_code = NOT_FOUND


def _require_folders(ctx: click.Context, param: click.Parameter, given: tuple[Path, ...]) -> tuple[Path, ...]:
    """As given; a folder that is not there is told by the name that the person wrote, not by the manager's."""
    is_variable = ctx.get_parameter_source(str(param.name)) is ParameterSource.ENVIRONMENT
    written = f"${param.envvar}" if is_variable else param.opts[0]
    for path in () if ctx.resilient_parsing else given:
        existing_folder(path, written)
    return given


def roots_options(function: Decorated) -> Decorated:
    """Where to look for skills; without any of these the usual places."""
    folders: dict[str, Any] = {"multiple": True, "type": click.Path(path_type=Path), "callback": _require_folders}
    skills = click.option(
        "--skills", envvar="SKILLKIT_SKILLS", help="Look only in this folder (repeatable).", **folders
    )
    plugins = click.option("--plugin", "plugins", help="Also use this plugin folder (repeatable).", **folders)
    return skills(plugins(any_state_option(function)))


def _check_hosts(_: click.Context, __: click.Parameter, hosts: tuple[str, ...]) -> tuple[str, ...]:
    """What names no host is wrong usage, as any other bad option is."""
    from skillkit.core.values.hosts import HostRule, require_openable

    try:
        return tuple(require_openable(HostRule.from_id(each)).id for each in hosts)
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from error


def policy_options(function: Decorated) -> Decorated:
    """What one call may do, beside what the settings say."""
    path = click.Path(exists=True, path_type=Path)  # what is not there cannot be opened to a script
    for option in (
        click.option("--network", is_flag=True, help="Let it use the whole network."),
        click.option(
            "--host", "hosts", multiple=True, callback=_check_hosts, help="Let it reach this host (repeatable)."
        ),
        click.option("--write", "writable", multiple=True, type=path, help="Let it write there too."),
        click.option("--read", "readable", multiple=True, type=path, help="Let it read this path too."),
        click.option(
            "--policy", "profile", type=click.Choice(list(PROFILES)), help="Use this profile, not the settings."
        ),
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
    run_on_load: str | None
    hosts: tuple[str, ...]


def settings_for(chosen: Chosen | Places) -> Settings:
    """Those that hold in this folder, and what was chosen on the command line."""
    named = cast("dict[str, Any]", {name: value for name, value in chosen.items() if name != "state_dir"})
    return _starting_by_content(load_settings(current_folder()).chosen(**named))


def _starting_by_content(settings: Settings) -> Settings:
    """Where no file says otherwise, a script's content decides where it starts: here there is a folder to work in."""
    key = "policy.working_directory"
    if key in settings.named:
        return settings
    origin = Origin("auto", (Place("the command line"),))
    policy = replace(settings.policy, working_directory="auto")
    return replace(settings, policy=policy, named={**settings.named, key: origin})


def require_person_to_loosen(chosen: Chosen, command: str, *, is_server: bool = False) -> None:
    """What an option opens beyond the settings is a person's to give, as a yes is; where nothing runs nothing opens."""
    from skillkit.core.values.policy import loosenings

    given = {option for name, option in OPENING.items() if chosen.get(name)}
    wanted = settings_for(chosen).policy
    if not given or not wanted.allow_scripts or not any(loosenings(settings_for({}).policy, wanted)):
        return
    from skillkit.cli.deciding import require_person

    require_person(chosen.get("state_dir"), f"{command} {' '.join(sorted(given))}", is_server=is_server)


def manager_for(chosen: Chosen | Places, **more: Any) -> SkillManager:  # noqa: ANN401 - the manager's own
    return SkillManager(**settings_for(chosen).manager_arguments(), state_dir=chosen.get("state_dir"), **more)


class _InstalledName(click.ParamType[str]):
    """A name that is completed from what is installed: name -> description of what may be meant."""

    def __init__(self, name: str, offer: Callable[[click.Context, str], dict[str, str]]) -> None:
        self.name = name
        self._offer = offer

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        try:
            offered = self._offer(ctx, incomplete)
        except SkillKitError:
            return []
        return [
            CompletionItem(name, help=on_one_line(description))
            for name, description in offered.items()
            if name.startswith(incomplete) and name.isprintable()
        ]

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str | None:  # noqa: ARG002
        """Who leaves a name out sees which there are."""
        try:
            offered = [name for name in self._offer(ctx, "") if name.isprintable()] if ctx else []
        except SkillKitError:
            return None
        more = ", ..." if len(offered) > SHOWN_NAMES else ""
        return f"There are: {', '.join(offered[:SHOWN_NAMES])}{more}." if offered else None


def _offer_skills(ctx: click.Context, _: str) -> dict[str, str]:
    return {skill.name: skill.description for skill in _typed_manager(ctx).list_skills()}


def _offer_scripts(ctx: click.Context, incomplete: str) -> dict[str, str]:
    """Of the skill that was named before; a path only for who begins one, or where the short name means several."""
    skill = ctx.params.get("skill_name")
    scripts = _typed_manager(ctx).list_scripts(skill) if skill else []
    stems = Counter(script.name for script in scripts)
    offered = {script.name: script.description for script in scripts if stems[script.name] == 1}
    paths = [script for script in scripts if stems[script.name] > 1 or "/" in incomplete]
    return offered | {script.path.as_posix(): script.description for script in paths}


def _typed_manager(ctx: click.Context) -> SkillManager:
    """Looks where the words that are typed so far say to look."""
    return manager_for(cast("Places", {key: ctx.params[key] for key in Places.__annotations__ if ctx.params.get(key)}))


def _offer_locked(ctx: click.Context, _: str) -> dict[str, str]:
    from skillkit.sources.home import user_base
    from skillkit.sources.lock import LOCK_FILE, read_lock

    base = user_base() if ctx.params.get("is_user") else Path.cwd()
    return {name: locked.source for name, locked in read_lock(base / LOCK_FILE).items()}


LOCKED = _InstalledName("skill", _offer_locked)
SKILL, SCRIPT = _InstalledName("skill", _offer_skills), _InstalledName("script", _offer_scripts)


def approver_for(state_dir: Path | None, *, yes: bool, wait: bool) -> Approver:
    """The flag, else the terminal, and with `wait` whoever answers in the world's store."""
    from skillkit.approvers.callback import ChainApprover, FlagApprover
    from skillkit.approvers.terminal import TerminalApprover

    if yes:
        from skillkit.cli.deciding import require_person

        require_person(state_dir, "--yes")
        return FlagApprover()
    terminal = TerminalApprover(state_dir=state_dir)
    if not wait:
        return terminal
    from skillkit.approvers.store import StoreApprover
    from skillkit.core.store.world import World

    world = World(state_dir)
    return ChainApprover(terminal, StoreApprover(world, announce=partial(_say_who_can_answer, world.folder)))


def _say_who_can_answer(state_folder: Path, request: OptionRequest) -> None:
    from skillkit.web.presence import running_page

    page = running_page(state_folder)
    elsewhere = f", or {page.address}" if page is not None else ""
    click.echo(f"skillkit: waiting for an answer: skillkit approvals show {request.id[:12]}{elsewhere}", err=True)


def require_yes(question: str = "Trust it as it is now?", refusal: str = "It is not trusted") -> None:
    """A no and the lack of an answer are refusals; Ctrl-C at a terminal is an interruption."""
    try:
        if click.confirm(question, err=True):
            return
        click.echo(f"{refusal}.", err=True)
    except click.Abort:
        click.echo(f"\n{refusal}: nobody answered. Look at it, then add --yes.", err=True)
        if sys.stdin.isatty():
            raise
    raise click.exceptions.Exit(REFUSED)


def session_id() -> str | None:
    """`$SKILLKIT_SESSION`, else the terminal's session: its leader, told from later ones by when it started."""
    from skillkit.core.run.process.kernel import started_at

    given = os.environ.get(SESSION_VARIABLE)
    if given or not hasattr(os, "getsid"):
        return given or None
    leader = os.getsid(0)
    started = started_at(leader)
    return f"terminal-{leader}-{started}" if started else None


def current_workspace(state_dir: Path | None) -> Workspace | None:
    """The current folder, unless scripts may not work there; then a person is told that there is none.

    At home and in the root folder nobody expects one.
    """
    from skillkit.core.paths.forbidden import named_workspace
    from skillkit.core.store.state import state_folder

    here = current_folder()
    if here is None or real_path(here) in (os.sep, real_path(os.path.expanduser("~"))):
        return None
    try:
        found = named_workspace(here, state_folder(state_dir), setting="The current folder is no workspace")
        return replace(found, is_named=False)
    except ConfigurationError as error:
        click.echo(f"skillkit: {visible(str(error))}", err=True)
        return None


@contextmanager
def end_on_signals() -> Iterator[None]:
    """`kill` and a closed terminal end us as Ctrl-C does: the script's tree goes first."""
    import signal

    def stop(number: int, _: object) -> None:
        sys.exit(SIGNAL_BASE + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    is_main = threading.current_thread() is threading.main_thread()  # nobody else may set handlers
    before = {number: signal.signal(number, stop) for number in numbers if is_main}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
