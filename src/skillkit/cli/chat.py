"""`skillkit chat`: a terminal chat with a model that can use skills."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import click

from skillkit.cli import REFUSED
from skillkit.cli.elsewhere import fleet_options, runner_here
from skillkit.cli.options import (
    Chosen,
    approver_for,
    current_workspace,
    end_on_signals,
    json_option,
    policy_options,
    require_person_to_loosen,
    roots_options,
    session_id,
    settings_for,
)
from skillkit.cli.output import echo_json
from skillkit.config import Settings
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.manager import SkillManager
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.text import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.chat.agent import Agent
    from skillkit.chat.endpoint import Endpoint
    from skillkit.chat.screen import AskingHere, Screen
    from skillkit.chat.session import Chat
    from skillkit.integrations.inline import InlineProcessor

__all__ = ["chat_command"]

ADDRESS_VARIABLE = "OPENAI_BASE_URL"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked for on the command line."""

    agent: str | None
    model: str | None
    base_url: str | None
    allow_scripts: bool
    yes: bool
    once: str | None
    prompt_file: Path | None
    save: Path | None
    as_json: bool
    state_dir: Path | None

    @property
    def is_single(self) -> bool:
        """One question and its answer, without a line to type the next into."""
        return self.once is not None or self.as_json


@click.command("chat")
@click.option("--agent", metavar="FILE", help="An agent file, or the name of one beside your settings.")
@click.option("--model", help="The model's name; wins over the agent file's.")
@click.option("--base-url", metavar="URL", help="Where the model is; $OPENAI_BASE_URL, else OpenAI's own address.")
@click.option("--allow-scripts", is_flag=True, help="Let the model run scripts of skills; you are asked first.")
@click.option("--yes", "-y", is_flag=True, help="Approve each run without being asked.")
@click.option("--once", metavar="PROMPT", help="Ask this one question and end; - reads it from stdin.")
@click.option("--prompt-file", type=click.Path(path_type=Path, dir_okay=False), help="Begin with what stands in it.")
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), help="Save the conversation: .md or .jsonl.")
@fleet_options
@policy_options
@roots_options
@json_option
@click.pass_context
def chat_command(
    ctx: click.Context,
    /,
    **given: Any,  # noqa: ANN401 - click's
) -> None:
    """Talk with a model that can use your skills.

    Any endpoint that speaks OpenAI's protocol will do. The key is read from $OPENAI_API_KEY. Scripts run only with
    --allow-scripts, and you are asked before a skill's first run. /help in the chat lists its commands.

    \b
    Examples:
      skillkit chat --model gpt-5-mini
      skillkit chat --agent tutor.toml --allow-scripts
      skillkit chat --model qwen3 --base-url http://127.0.0.1:11434/v1 --allow-scripts
      skillkit chat --model gpt-5-mini --once "How long is this text?" --allow-scripts -y
    """
    from skillkit.chat import require_chat

    chosen = cast(
        "Chosen", {name: given.pop(name) for name in Chosen.__annotations__ if name in given and name != "state_dir"}
    )
    asked = _Asked(**given)
    if asked.as_json and asked.once is None and asked.prompt_file is None:
        raise click.UsageError("--json needs --once or --prompt-file.")
    require_chat()
    require_person_to_loosen({**chosen, "state_dir": asked.state_dir}, "chat")
    settings = settings_for(chosen)
    with end_on_signals(), _open_chat(asked, settings) as (chat, processor):
        ctx.exit(_run_chat(chat, processor, asked))


def _run_chat(chat: Chat, processor: InlineProcessor, asked: _Asked) -> int:
    """One question and an exit code, or a conversation."""
    first = _first_question(chat, processor, asked)
    if not asked.is_single:
        from skillkit.chat.screen import Lines

        lines = Lines(chat.manager.state_dir, has_color=chat.has_color)
        try:
            chat.converse(lines, first)
        finally:
            lines.close()
        return 0
    if not first:
        raise click.UsageError("There is nothing to ask: the prompt is empty.")
    stopped = chat.answer_once(first)
    if asked.as_json:
        echo_json(**chat.structure(), stopped=stopped)
    return REFUSED if chat.was_refused else 0


def _first_question(chat: Chat, processor: InlineProcessor, asked: _Asked) -> str:
    """What stands in the prompt file, then what was given on the command line."""
    parts = []
    if asked.prompt_file is not None:
        from skillkit.chat.prompts import expand_prompt_file

        folders = [root.path for root in chat.manager.roots]
        parts.append(expand_prompt_file(asked.prompt_file, processor, folders, chat.show))
    if asked.once is not None:
        parts.append((sys.stdin.read() if asked.once == "-" else asked.once).strip())
    return "\n\n".join(part for part in parts if part)


@contextmanager
def _open_chat(asked: _Asked, settings: Settings) -> Iterator[tuple[Chat, InlineProcessor]]:
    """The chat, and a processor for prompt files that asks about every single command."""
    from skillkit.chat.screen import AskingHere, Screen

    agent = _chosen_agent(asked, settings)
    endpoint = _endpoint_for(asked, agent)
    may_run = agent.policy.allow_scripts and (asked.allow_scripts or agent.allows_scripts)
    policy = agent.policy if may_run else replace(agent.policy, allow_scripts=False)
    screen = Screen(io.StringIO(), sys.stderr) if asked.as_json else Screen()
    approver = approver_for(asked.state_dir, yes=asked.yes, wait=False)
    here = None if asked.yes else AskingHere(approver, screen)
    arguments = settings.manager_arguments()
    protected = (*arguments["protected_paths"], *([agent.file] if agent.file else []))
    manager = SkillManager(
        **{**arguments, "policy": policy, "protected_paths": protected},
        state_dir=asked.state_dir,
        approver=here or approver,
        session_id=session_id(),
        workspace=current_workspace(asked.state_dir),
        runner=runner_here(),
    )
    if asked.allow_scripts and not may_run:
        screen.complain(
            "Your settings forbid scripts ('policy.allow_scripts' is false), so --allow-scripts does nothing."
        )
    try:
        with manager:
            yield _assemble_chat(asked, agent, endpoint, manager, screen, here)
    finally:
        endpoint.close()


def _assemble_chat(
    asked: _Asked,
    agent: Agent,
    endpoint: Endpoint,
    manager: SkillManager,
    screen: Screen,
    here: AskingHere | None,
) -> tuple[Chat, InlineProcessor]:
    from functools import partial

    from skillkit.chat.prompts import loaded_skills, system_prompt
    from skillkit.chat.session import Chat
    from skillkit.chat.talk import Talk
    from skillkit.chat.transcript import Transcript
    from skillkit.integrations.functions import SkillFunctions
    from skillkit.integrations.inline import InlineProcessor

    may_run = manager.policy.allow_scripts
    skills = loaded_skills(manager, agent.skills)
    names = agent.skills or [skill.name for skill in skills]
    transcript = Transcript(endpoint.secret)
    if asked.save is not None:
        transcript.save_to(asked.save.expanduser().absolute())
    chat = Chat(
        manager, skills, screen, transcript, may_run=may_run, lacks_flag=agent.policy.allow_scripts and not may_run
    )
    prompt = partial(system_prompt, manager, skills, agent.instructions, may_run=may_run)
    answers = InlineProcessor(manager, skills=names)
    chat.begin(
        Talk(
            endpoint,
            answers,
            SkillFunctions(manager, run_scripts=may_run, skills=names),
            system=lambda has_tools: prompt(has_tools=has_tools),
            show=chat.show,
            wait=chat.wait,
            running=screen.running,
            is_stopped=lambda: here is not None and here.was_stopped,
            begin=here.begin_round if here else lambda: None,
            tools=agent.tools,
        )
    )
    if not asked.is_single:
        screen.say(_greeting(endpoint, len(skills), manager.policy, yes=asked.yes))
    always_asking = replace(manager.policy, approval="always")
    return chat, InlineProcessor(manager, always_asking, skills=names, beside=answers)


def _greeting(endpoint: Endpoint, skills: int, policy: ScriptPolicy, *, yes: bool) -> str:
    if not policy.allow_scripts:
        scripts = "may not run (--allow-scripts)"
    elif yes or policy.approval == "never":
        scripts = f"may run, without asking you ({'-y' if yes else 'policy'})"
    else:
        scripts = "may run, you are asked first"
    return (
        f"{endpoint.model} at {endpoint.base_url}, {plural(skills, 'skill')}; scripts {scripts}.\n"
        "/help lists commands. Ctrl-D ends the chat."
    )


def _chosen_agent(asked: _Asked, settings: Settings) -> Agent:
    from skillkit.chat.agent import Agent, read_agent
    from skillkit.chat.agent_files import AgentWord, agent_path

    if asked.agent is None:
        return Agent(settings.policy, base_url=asked.base_url or "", model=asked.model or "")
    word = AgentWord(asked.state_dir, approver_for(asked.state_dir, yes=False, wait=False))
    path = agent_path(asked.agent, settings)
    agent = read_agent(path, settings, base_url=asked.base_url or "", word=word)
    return replace(agent, model=asked.model or agent.model)


def _endpoint_for(asked: _Asked, agent: Agent) -> Endpoint:
    """The key leaves the environment here: nothing that this process starts can get it from there."""
    from skillkit.chat.agent import API_KEY_VARIABLE, is_loopback, require_address
    from skillkit.chat.endpoint import DEFAULT_ADDRESS, Endpoint

    usual = os.environ.pop(API_KEY_VARIABLE, "")
    key = usual if agent.api_key_env == API_KEY_VARIABLE else os.environ.pop(agent.api_key_env, "")
    address = agent.base_url or os.environ.get(ADDRESS_VARIABLE) or DEFAULT_ADDRESS
    require_address("--base-url" if agent.base_url else ADDRESS_VARIABLE, address)
    if not agent.model:
        raise click.UsageError("No model is named. Give --model, or 'model' in the agent file.")
    if agent.base_url and not agent.is_own and not asked.base_url:
        key = ""  # a project's file may name a server of this machine, but not have a key sent there
    elif not key and not is_loopback(address):
        raise ConfigurationError(f"There is no key for {address}. Put it into ${agent.api_key_env}.")
    if address.startswith("http:") and not is_loopback(address):
        click.echo(f"skillkit: {address} is not encrypted; others may read the key and the conversation.", err=True)
    return Endpoint(agent.model, address, key.strip(), agent.api_key_env, is_single=asked.is_single)
