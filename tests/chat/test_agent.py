"""Agent files: what they say, what is wrong with them and where, and what a project's file may not say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.config_files import Machine, placed

from skillkit import GUARDED, STANDARD, ConfigurationError
from skillkit.chat.agent import Agent, read_agent
from skillkit.chat.agent_files import AgentWord, agent_path, open_agent_file
from skillkit.config import load_settings

EXAMPLE = Path(__file__).parents[2] / "examples" / "agents" / "vocabulary-tutor.toml"


def project_agent(machine: Machine, text: str, *, base_url: str = "") -> Agent:
    """Of a file that came with a project."""
    settings = machine.settings()
    return read_agent(placed(machine.project / "tutor.toml", text), settings, base_url=base_url)


def own_agent(machine: Machine, text: str) -> Agent:
    """Of a file beside the user's settings."""
    if not machine.user_file.exists():
        machine.user("")
    settings = machine.settings()
    placed(machine.user_file.parent / "agents" / "tutor.toml", text)
    return read_agent(agent_path("tutor", settings), settings)


def test_a_file_says_who_the_agent_is(tmp_path: Path) -> None:
    text = """
        model = "gpt-x"
        base_url = "https://models.example.org/v1"
        api_key_env = "TUTOR_KEY"
        instructions = "You teach."
        skills = ["say"]
        tools = false
        [script_policy]
        allow_scripts = true
        allowed_commands = ["say", "scripts/*"]
        limits.processes = 8
    """
    agent = own_agent(Machine(tmp_path), text)
    policy = agent.policy
    assert (agent.model, agent.base_url) == ("gpt-x", "https://models.example.org/v1")
    assert (agent.api_key_env, agent.instructions, agent.skills) == ("TUTOR_KEY", "You teach.", ("say",))
    assert (agent.tools, agent.is_own, agent.allows_scripts) == (False, True, True)
    assert (policy.allowed_commands, policy.limits.processes) == (("say", "scripts/*"), 8)
    assert policy.approval == "first_run"


def test_an_inline_table_and_a_profile_name_are_policies_too(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    table = 'script_policy = { allow_scripts = true, allowed_commands = ["say", "scripts/*"] }'
    assert own_agent(machine, table).policy == replace(GUARDED, allowed_commands=("say", "scripts/*"))
    assert own_agent(machine, 'script_policy = "standard"').policy == STANDARD
    assert own_agent(machine, 'skills = "all"').skills is None
    assert own_agent(machine, 'script_policy = "locked"').allows_scripts is False


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('modle = "x"', "2: 'modle' is no setting of an agent. Did you mean 'model'?"),
        ("model = 3", "2: 'model' is 3; it must be a text."),
        ('base_url = "ftp://x"', "2: 'base_url' is \"ftp://x\"; it must be like https://api.example.org/v1."),
        ('skills = "some"', '2: \'skills\' is "some"; it must be a list of names, or "all".'),
        ('tools = "no"', '2: \'tools\' is "no"; it must be true, false or "auto".'),
        ('script_policy = "loose"', "it must be a table, or one of: locked, guarded, standard, trusted."),
        ("script_policy.timeout_second = 3", "Did you mean 'script_policy.timeout_seconds'?"),
        ("script_policy.timeout_seconds = 0", "2: 'script_policy.timeout_seconds': A timeout is 1 to 600 seconds"),
        ("script_policy.limits.processes = 0", "2: 'script_policy.limits.processes' is 0"),
        ("api_key = 'sk-1'", "2: 'api_key' is no setting of an agent. Did you mean 'api_key_env'?"),
        ("model = ", "2:9: this is not TOML"),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_the_nearest_key(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(told)):
        project_agent(Machine(tmp_path), f"# an agent\n{line}\n")


@pytest.mark.parametrize(
    "line",
    [
        'script_policy = "trusted"',
        "script_policy.allow_network = true",
        'script_policy.approval = "never"',
        'script_policy.sandbox = "off"',
        'script_policy.allowed_commands = ["say"]',
        'script_policy.pass_environment = ["OPENAI_API_KEY"]',
    ],
)
def test_a_projects_file_may_not_loosen_what_the_users_own_may(tmp_path: Path, line: str) -> None:
    machine = Machine(tmp_path)
    with pytest.raises(ConfigurationError, match=r"tutor.toml:1: it makes .* may only tighten"):
        project_agent(machine, line)
    assert own_agent(machine, line).is_own
    machine.trusting()
    with pytest.raises(ConfigurationError, match="may only tighten"):
        project_agent(machine, line)
    file, word = machine.project / "tutor.toml", AgentWord(machine.folder / "state")
    word.give(open_agent_file(file, machine.settings()), "cli")
    assert read_agent(file, machine.settings(), word=word).is_own


def test_a_projects_file_may_tighten_and_does_not_stand_for_the_command_lines_word(tmp_path: Path) -> None:
    agent = project_agent(Machine(tmp_path), "script_policy = { allow_scripts = true, timeout_seconds = 5 }")
    assert agent.policy == replace(GUARDED, timeout_seconds=5)
    assert agent.allows_scripts is False


def test_a_projects_file_cannot_have_keys_sent_elsewhere(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    elsewhere = 'base_url = "https://thief.example/v1"'
    with pytest.raises(ConfigurationError, match=r"would send your key.*--base-url"):
        project_agent(machine, elsewhere)
    with pytest.raises(ConfigurationError, match="only your own agent file may say which variable holds a key"):
        project_agent(machine, 'api_key_env = "AWS_SECRET_ACCESS_KEY"')
    assert project_agent(machine, elsewhere, base_url="https://mine.example").base_url == "https://mine.example"
    assert project_agent(machine, 'base_url = "http://127.0.0.1:11434/v1"').is_own is False


def test_a_projects_file_may_be_no_link(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    settings = machine.settings()
    target = placed(tmp_path / "elsewhere" / "secret.toml", 'model = "x"')
    (machine.project / "tutor.toml").symlink_to(target)
    with pytest.raises(ConfigurationError, match="may not be a link"):
        read_agent(machine.project / "tutor.toml", settings)


def test_a_file_that_is_nowhere_is_said_to_be_nowhere(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.user("")
    with pytest.raises(ConfigurationError, match=r"no agent file 'tutor', nor .*agents/tutor\.toml'"):
        agent_path("tutor", machine.settings())


def test_the_example_only_tightens() -> None:
    agent = read_agent(EXAMPLE, load_settings(None, environ={}))
    assert (agent.skills, agent.policy.timeout_seconds, agent.policy.approval) == (
        ("vocabulary",),
        15,
        GUARDED.approval,
    )
