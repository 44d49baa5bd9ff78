"""Words on the command line -> the command they name, and its exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module

import click

from skillkit._version import __version__
from skillkit.cli import INTERRUPTED, NOT_FOUND, OWN_FAILURE, REFUSED
from skillkit.core.exceptions import (
    ApprovalUnavailableError,
    InterpreterNotAllowedError,
    InterpreterNotFoundError,
    RequestClosedError,
    SandboxUnavailableError,
    ScriptNotFoundError,
    ScriptPermissionError,
    ScriptRefusedError,
    SkillKitError,
    SkillNotFoundError,
    SkillSecurityError,
)

__all__ = ["cli", "exit_code_of", "main"]

EXIT_CODES: dict[type[SkillKitError], int] = {
    SkillNotFoundError: NOT_FOUND,
    ScriptNotFoundError: NOT_FOUND,
    InterpreterNotFoundError: NOT_FOUND,
    RequestClosedError: REFUSED,
    ScriptRefusedError: REFUSED,
    SkillSecurityError: REFUSED,
    InterpreterNotAllowedError: REFUSED,
    ScriptPermissionError: REFUSED,
    SandboxUnavailableError: REFUSED,
}
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
HOW_TO_APPROVE = "To approve it, run it in a terminal, or look at it first and add --yes."
WITH_OWN_OPTIONS = ("run", "check")
"""Commands behind whose `--` stand words for a script."""

COMMANDS = {
    "list": "skills.listing:list_command",
    "show": "skills.show:show_command",
    "validate": "skills.authoring:validate_command",
    "add": "skills.sources:add_command",
    "update": "skills.sources:update_command",
    "remove": "skills.sources:remove_command",
    "sync": "skills.sources:sync_command",
    "sign": "skills.signing:sign_command",
    "verify": "skills.signing:verify_command",
    "needs": "skills.show:needs_command",
    "prepare": "skills.prepare:prepare_command",
    "packages": "skills.packages:packages",
    "check": "check:check_command",
    "run": "run:run_command",
    "home": "people.kept:home_command",
    "trust": "people.trust:trust",
    "grant": "people.grant:grant",
    "secret": "people.kept:secret",
    "approvals": "people.approvals:approvals",
    "audit": "people.audit:audit",
    "config": "config:config",
    "mcp": "mcp:mcp_command",
    "web": "web:web_command",
    "chat": "chat:chat_command",
    "worker": "worker:worker_command",
    "fleet": "fleet:fleet",
    "world": "fleet:world",
    "doctor": "doctor:doctor_command",
    "new": "skills.authoring:new_command",
    "demo": "demo:demo_command",
}
# What is not named here stands at the end of the help.
SECTIONS = {
    "Skills": ("list", "show", "validate", "new", "add", "update", "remove", "sync", "sign", "verify"),
    "What they need": ("needs", "prepare", "packages", "grant", "secret", "home"),
    "Runs, and your word on them": ("check", "run", "trust", "approvals", "web"),
    "For agents": ("mcp", "chat"),
    "The record and this machine": ("audit", "config", "doctor", "demo"),
}


class _LazyGroup(click.Group):
    """Imports a command's module when the command is used, so that each starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"skillkit.cli.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """By what they are for: a newcomer does not read thirty lines."""
        named = {name for names in SECTIONS.values() for name in names}
        others = tuple(name for name in COMMANDS if name not in named)
        commands = {name: self.get_command(ctx, name) for name in COMMANDS}
        column = max(map(len, COMMANDS))
        for title, names in {**SECTIONS, "Many machines": others}.items():
            with formatter.section(title):
                helps = {name: each.get_short_help_str(formatter.width) for name in names if (each := commands[name])}
                formatter.write_dl([(name.ljust(column), told) for name, told in helps.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A mistyped command is answered with the nearest one."""
        if args[0] not in COMMANDS:
            from skillkit.core.values.text import near_names

            near = near_names(args[0], COMMANDS)
            remedy = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(COMMANDS)}."
            ctx.fail(f"No command is named {args[0]!r}. {remedy}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """A reader that stops early is not a failure, though click would make one of it."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return 0


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="skillkit")
def cli() -> None:
    """The safe runtime for Agent Skills.

    Finds skills, shows what they offer, and keeps a person in control of what runs.

    \b
    Examples:
      skillkit demo                     see it at work, on skills that ship with it
      skillkit add OWNER/REPO           get skills from a repository
      skillkit list                     what is installed here
      skillkit show csv-report          one skill and its scripts
      skillkit run csv-report report    run a script; you are asked first
      skillkit audit tail               what ran, and what was refused

    Completion for your shell: eval "$(_SKILLKIT_COMPLETE=bash_source skillkit)"
    (zsh_source and fish_source for the others).
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Never shows a traceback for what a user can put right."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from skillkit.cli.streams import open_closed_streams

        open_closed_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(exit_code_of(words))


def exit_code_of(words: list[str]) -> int:
    try:
        color = False if os.environ.get("NO_COLOR") else None
        code = cli.main(args=words, prog_name="skillkit", standalone_mode=False, color=color)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.ClickException, SkillKitError) as error:
        _show_error(error, words)
        return _failure_code(error)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep the interpreter from complaining at exit.
        sys.stdout = None
        return 0
    except OSError as error:
        if error.errno not in UNWRITABLE or error.filename is not None:
            raise
        sys.stdout = None
        with suppress(OSError):
            click.echo(
                f"skillkit: The output cannot be written: {error.strerror}. Write it to another place.", err=True
            )
        return OWN_FAILURE
    return code if isinstance(code, int) else 0


def _failure_code(error: click.ClickException | SkillKitError) -> int:
    if isinstance(error, click.ClickException):
        return error.exit_code
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), OWN_FAILURE)


def _failure(error: click.ClickException | SkillKitError) -> dict[str, str | int]:
    """In the words that agents are told too, and as the command will end."""
    code = _failure_code(error)
    status = "not_found" if code == NOT_FOUND else "failed"
    if code == REFUSED and isinstance(error, SkillKitError):
        from skillkit.present.tool_result import refusal_status

        status = refusal_status(error)
    return {"status": status, "exit_code": code}


def _show_error(error: click.ClickException | SkillKitError, words: Sequence[str]) -> None:
    from skillkit.core.values.text import visible

    if isinstance(error, click.UsageError):
        if isinstance(error, click.NoSuchOption):
            near = _near(error.option_name, error.possibilities or ())
            error = click.NoSuchOption(error.option_name, error.message, near, error.ctx)
        error.show()
        if isinstance(error, click.NoSuchOption) and words[:1] and words[0] in WITH_OWN_OPTIONS:
            click.echo(f"The script's own options go after '--': {visible(_behind_dashes(error, words))}", err=True)
    elif "--json" in words:
        import json

        structure = {
            "schema_version": 1,
            **_failure(error),
            "error": {"type": type(error).__name__, "message": str(error)},
        }
        click.echo(json.dumps(structure, indent=2))
    else:
        click.echo(f"skillkit: {visible(str(error))}", err=True)
        if isinstance(error, ApprovalUnavailableError):
            for remedy in getattr(error, "__notes__", (HOW_TO_APPROVE,)):
                click.echo(f"skillkit: {visible(remedy)}", err=True)


def _behind_dashes(error: click.NoSuchOption, words: Sequence[str]) -> str:
    """The command as it should have been typed; where skill and script do not come first, its form."""
    import shlex

    at = next((number for number, word in enumerate(words) if word.startswith(error.option_name)), 1)
    command = error.ctx.command if error.ctx is not None else None
    if command is not None:
        before = command.make_context(words[0], list(words[1:at]), resilient_parsing=True).params
        if before.get("skill_name") and before.get("script_name"):
            return shlex.join(["skillkit", *words[:at], "--", *words[at:]])
    return f"skillkit {words[0]} SKILL SCRIPT -- {error.option_name}"


def _near(option: str, options: Iterable[str]) -> list[str]:
    """Compared without the dashes, which every option has: advice that is wrong is worse than none."""
    from skillkit.core.values.text import near_names

    names = {each.lstrip("-"): each for each in options}
    return [names[name] for name in near_names(option.lstrip("-"), names, most=3)]
