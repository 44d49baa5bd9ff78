"""An agent file (TOML) and the settings that hold -> the agent: model, instructions, skills, policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from skillkit.chat.agent_files import AgentFile, AgentWord, agent_path, open_agent_file, own_folder
from skillkit.config import Place, Settings
from skillkit.config.keys import KeyPath, check_value, leaves, nearest_key, parse, shorten_value, toml_text
from skillkit.config.settings import policy_of
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.values.policy import PROFILES, Limits, ScriptPolicy, loosenings

__all__ = ["API_KEY_VARIABLE", "Agent", "agent_path", "is_loopback", "read_agent", "require_address", "require_agent"]

API_KEY_VARIABLE = "OPENAI_API_KEY"
POLICY_TABLE = "script_policy"
LIMITS_TABLE = f"{POLICY_TABLE}.limits"
SHOWN_PROBLEMS = 10
STANDS_FOR_FLAG = "it lets the model run scripts without --allow-scripts"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Agent:
    """Who a person talks to. Without a file: the model that was named, all skills, the settings' policy."""

    policy: ScriptPolicy
    model: str = ""
    base_url: str = ""
    api_key_env: str = API_KEY_VARIABLE
    instructions: str = ""
    skills: tuple[str, ...] | None = None
    """None for all."""
    tools: bool | Literal["auto"] = "auto"
    is_own: bool = True
    """Whether it is the user's word; a file that came with a project may only tighten."""
    allows_scripts: bool = False
    """Whether the user's own file says so; otherwise it takes the command line's word."""
    file: Path | None = None
    """Where all this stands."""


def read_agent(path: Path, settings: Settings, *, base_url: str = "", word: AgentWord | None = None) -> Agent:
    """Raises one error that names every problem, each with its line and what to do; a person's `base_url` wins.

    `word` is what a person said about files that are not the user's own, or says now.
    """
    file = open_agent_file(path, settings)
    values, reader = _values_of(file)
    is_own = file.is_own or (word is not None and word.is_given(file))
    agent = _agent_from(values, settings, is_own=is_own)
    if not is_own:
        _refuse_loosening(agent, settings.policy, reader)
        _refuse_redirection(agent, base_url, reader)
        wants = [*reader.problems, *([STANDS_FOR_FLAG] if _allows_scripts(values) else [])]
        if wants and file.is_asked_about and word is not None and word.ask(file, wants):
            agent = _agent_from(values, settings, is_own=True)
        else:
            reader.require_no_problems(_remedy_for(file, settings))
    return replace(agent, base_url=base_url or agent.base_url, file=file.path)


def require_agent(file: AgentFile, settings: Settings) -> None:
    """Raises what the chat would for a file that is none of an agent; what it loosens is for a person to say."""
    _agent_from(_values_of(file)[0], settings, is_own=True)


def _values_of(file: AgentFile) -> tuple[dict[str, Any], _Reader]:
    data, lines = parse(file.place, file.text)
    reader = _Reader(file.place, lines)
    found = leaves(data, (POLICY_TABLE, LIMITS_TABLE))
    values = {".".join(key_path): reader.value(key_path, value) for key_path, value in found}
    reader.require_no_problems()
    return values, reader


def _remedy_for(file: AgentFile, settings: Settings) -> str:
    return (
        f"Correct it, move it to {own_folder(settings) or 'your own settings'} if it is yours, or approve it "
        f"as it is now: skillkit trust agent {file.path}"
    )


def _agent_from(values: Mapping[str, Any], settings: Settings, *, is_own: bool) -> Agent:
    named = values.get(POLICY_TABLE)
    base = settings.policy if named is None else PROFILES[named]
    policy = {f"policy.{key.removeprefix(f'{POLICY_TABLE}.')}": value for key, value in values.items() if "." in key}
    chosen = {key: value for key, value in values.items() if key != POLICY_TABLE and "." not in key}
    return Agent(policy_of(base, policy), is_own=is_own, allows_scripts=is_own and _allows_scripts(values), **chosen)


def _allows_scripts(values: Mapping[str, Any]) -> bool:
    """Whether the file says so itself."""
    return bool(values.get(f"{POLICY_TABLE}.allow_scripts", values.get(POLICY_TABLE) not in (None, "locked")))


def _refuse_loosening(agent: Agent, own: ScriptPolicy, reader: _Reader) -> None:
    for each in loosenings(own, agent.policy):
        key = each.key.replace("policy.", f"{POLICY_TABLE}.", 1)
        ours, theirs = shorten_value(toml_text(each.own)), shorten_value(toml_text(each.given))
        reader.blame(
            tuple(key.split(".")),
            f"it makes {key!r} {theirs}, but your settings say {ours}. "
            f"An agent file of a project may only tighten: {each.reason}.",
        )


def _refuse_redirection(agent: Agent, chosen: str, reader: _Reader) -> None:
    """Whoever names the endpoint or the key's variable could have your keys sent to them."""
    if agent.base_url and not chosen and not is_loopback(agent.base_url):
        reader.blame(
            ("base_url",),
            f"it would send your key and what you type to {agent.base_url!r}, and the file is not your own. "
            "If you want that, say so: --base-url",
        )
    if agent.api_key_env != API_KEY_VARIABLE:
        reader.blame(("api_key_env",), "only your own agent file may say which variable holds a key.")


def is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in LOOPBACK


class _Reader:
    """Checks the values of one file and collects what is wrong with them."""

    def __init__(self, place: Place, lines: Mapping[KeyPath, int]) -> None:
        self._place = place
        self._lines = lines
        self._problems: list[str] = []

    def value(self, path: KeyPath, value: object) -> Any:  # noqa: ANN401 - as different as settings are
        key = ".".join(path)
        try:
            if key in CHECKS:
                return CHECKS[key](key, value)
            if key in POLICY_KEYS:
                return check_value(key.replace(POLICY_TABLE, "policy", 1), value, self._place)
            self.blame(path, f"{shorten_value(key, 80)!r} is no setting of an agent. {_nearest(key)}")
        except ConfigurationError as error:
            self.blame(path, str(error).replace("'policy.", f"'{POLICY_TABLE}."))
        return None

    def blame(self, path: KeyPath, problem: str) -> None:
        """At the key's own line, else at that of the table it is in."""
        line = next((self._lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self._lines), None)
        self._problems.append(shorten_value(f"{Place(self._place.kind, self._place.file, line)}: {problem}"))

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(self._problems)

    def require_no_problems(self, remedy: str = "") -> None:
        if self._problems:
            shown = self._problems[:SHOWN_PROBLEMS]
            raise ConfigurationError("\n".join([*shown, remedy] if remedy else shown))


def _nearest(key: str) -> str:
    near = nearest_key(key, (*CHECKS, *POLICY_KEYS))
    return f"Did you mean {near!r}?" if near else f"There are: {', '.join(CHECKS)}."


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{key!r} is {toml_text(value)}; it must be a text.")
    return value


def require_address(key: str, value: object) -> str:
    given = _text(key, value)
    try:
        parts = urlsplit(given)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username
    except ValueError:
        is_address = False
    if not is_address:
        raise ConfigurationError(f"{key!r} is {toml_text(given)}; it must be like https://api.example.org/v1.")
    return given


def _skill_names(key: str, value: object) -> tuple[str, ...] | None:
    if value == "all":
        return None
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise ConfigurationError(f'{key!r} is {toml_text(value)}; it must be a list of names, or "all".')
    return tuple(value)


def _tool_choice(key: str, value: object) -> bool | str:
    if isinstance(value, bool) or value == "auto":
        return value
    raise ConfigurationError(f'{key!r} is {toml_text(value)}; it must be true, false or "auto".')


def _profile(key: str, value: object) -> str:
    if not isinstance(value, str) or value not in PROFILES:
        raise ConfigurationError(
            f"{key!r} is {toml_text(value)}; it must be a table, or one of: {', '.join(PROFILES)}."
        )
    return value


CHECKS: dict[str, Callable[[str, object], Any]] = {
    "model": _text,
    "base_url": require_address,
    "api_key_env": _text,
    "instructions": _text,
    "skills": _skill_names,
    "tools": _tool_choice,
    POLICY_TABLE: _profile,
}
POLICY_KEYS = (
    *(f"{POLICY_TABLE}.{each.name}" for each in fields(ScriptPolicy) if each.name != "limits"),
    *(f"{LIMITS_TABLE}.{each.name}" for each in fields(Limits)),
)
