"""The hosts that are driven, one after the other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from support.hosts.host import Host
from support.hosts.model import ScriptedModel
from support.hosts.pages import run
from support.hosts.screen import HostScreen
from support.hosts.world import HostWorld

__all__ = ["HOSTS"]

RIGHT = "\x1b[C"
PROMPT = "\u276f"


def _claude_environment(_: HostWorld, model: ScriptedModel) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": model.address,
        "ANTHROPIC_AUTH_TOKEN": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def _claude_settled(world: HostWorld, _: ScriptedModel) -> None:
    trusted = {str(world.project): {"hasTrustDialogAccepted": True}}
    (world.home / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True, "projects": trusted}))


def _claude_yes(screen: HostScreen) -> None:
    screen.press(RIGHT, "expand the field")
    screen.wait_for("Yes once")
    screen.capture("the field, expanded")
    screen.press("\r", "the first answer")
    screen.wait_for("\u276f Accept")
    screen.press("\r", "accept")


CLAUDE_CODE = Host(
    name="claude-code",
    argv=("claude", "--allowedTools", "mcp__skillkit"),
    environment=_claude_environment,
    settle=_claude_settled,
    ready=rf"(?m)^{PROMPT}",
    form="requests your input",
    form_begins="requests your input",
    form_rows=3,
    say_yes_once=_claude_yes,
)


def _codex_settled(world: HostWorld, model: ScriptedModel) -> None:
    _write(
        world.home / ".codex/config.toml",
        f"""
model = "scripted"
model_provider = "ours"
check_for_update_on_startup = false
analytics.enabled = false
feedback.enabled = false

[model_providers.ours]
name = "ours"
base_url = "{model.address}/v1"
wire_api = "responses"

[projects."{world.project}"]
trust_level = "trusted"
""",
    )


def _press_enter(screen: HostScreen) -> None:
    screen.press("\r", "the answer that is first")


def _codex_yes(screen: HostScreen) -> None:
    screen.press("1", "the first answer")
    screen.capture("chosen")
    if screen.has("Field 1/1"):
        screen.press("\r", "submit")


CODEX = Host(
    name="codex",
    argv=("codex",),
    settle=_codex_settled,
    ready="\u203a",
    gates={"Allow the skillkit MCP server to run tool": "\r"},
    form=r"Field 1/1 \(1 required",
    form_begins="Field 1/1",
    say_yes_once=_codex_yes,
)


def _gemini_environment(_: HostWorld, model: ScriptedModel) -> Mapping[str, str]:
    return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": model.address, "GEMINI_CLI_NO_RELAUNCH": "true"}


def _gemini_settled(world: HostWorld, _: ScriptedModel) -> None:
    settings = {
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "telemetry": {"enabled": False},
    }
    _write(world.home / ".gemini/settings.json", json.dumps(settings))


GEMINI = Host(
    name="gemini",
    argv=("gemini", "--model", "gemini-2.5-flash"),
    environment=_gemini_environment,
    settle=_gemini_settled,
    ready="Type your message",
    gates={"Allow execution|Allow once": "\r"},
    cancels_by_quitting=True,
)


def _copilot_environment(_: HostWorld, model: ScriptedModel) -> Mapping[str, str]:
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{model.address}/v1",
        "COPILOT_PROVIDER_API_KEY": "none",
        "COPILOT_MODEL": "scripted",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    }


def _copilot_settled(world: HostWorld, _: ScriptedModel) -> None:
    _write(
        world.home / ".copilot/config.json", json.dumps({"trusted_folders": [str(world.project)], "banner": "never"})
    )


COPILOT = Host(
    name="copilot",
    argv=("copilot",),
    environment=_copilot_environment,
    settle=_copilot_settled,
    ready=PROMPT,
    gates={"Do you want to use this tool": "\r"},
    form=r"ctrl\+d decline",
    say_yes_once=_press_enter,
    cancel=("\x1b[27u", "\x1b[27u"),  # as terminals send Esc that it asks to tell keys apart
)


def _opencode_settled(world: HostWorld, model: ScriptedModel) -> None:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{model.address}/v1", "apiKey": "none"},
        "models": {"scripted": {"tool_call": True}},
    }
    settings = {
        "model": "ours/scripted",
        "small_model": "ours/scripted",
        "autoupdate": False,
        "share": "disabled",
        "provider": {"ours": provider},
    }
    _write(world.home / ".config/opencode/opencode.json", json.dumps(settings))


def _opencode_environment(_: HostWorld, __: ScriptedModel) -> Mapping[str, str]:
    return {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }


OPENCODE = Host(
    name="opencode",
    argv=("opencode",),
    environment=_opencode_environment,
    settle=_opencode_settled,
    ready="Ask anything|esc|ctrl",
    cancel=("\x1b", "\x1b"),
)


def _qwen_environment(_: HostWorld, model: ScriptedModel) -> Mapping[str, str]:
    return {"OPENAI_BASE_URL": f"{model.address}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "scripted"}


def _qwen_settled(world: HostWorld, _: ScriptedModel) -> None:
    settings = {
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
        "telemetry": {"enabled": False},
    }
    _write(world.home / ".qwen/settings.json", json.dumps(settings))


QWEN = Host(
    name="qwen",
    argv=("qwen", "--approval-mode", "default"),
    environment=_qwen_environment,
    settle=_qwen_settled,
    ready="Type your message",
    gates={"Allow execution|Yes, allow once": "\r"},
)


def _goose_environment(_: HostWorld, model: ScriptedModel) -> Mapping[str, str]:
    return {
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": "gpt-4o",
        "OPENAI_HOST": model.address,
        "OPENAI_API_KEY": "none",
        "GOOSE_DISABLE_KEYRING": "1",
        "GOOSE_TELEMETRY_ENABLED": "false",
    }


GOOSE = Host(
    name="goose",
    argv=("goose", "session"),
    environment=_goose_environment,
    ready="Enter to send",
    form="◆ ",
    say_yes_once=_press_enter,
    cancels_by_quitting=True,
)


def _continue_settled(world: HostWorld, model: ScriptedModel) -> None:
    _write(
        world.home / ".continue/config.yaml",
        f"""
name: ours
version: 0.0.1
schema: v1
models:
  - name: scripted
    provider: openai
    model: gpt-4o
    apiBase: {model.address}/v1
    apiKey: none
    roles: [chat]
""",
    )


def _continue_environment(_: HostWorld, __: ScriptedModel) -> Mapping[str, str]:
    return {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_METRICS_ENABLED": "0"}


CONTINUE = Host(
    name="continue",
    argv=("cn", "--config", "{home}/.continue/config.yaml"),
    environment=_continue_environment,
    settle=_continue_settled,
    ready="Ask anything",
    gates={r"Would you like to continue\?": "\t"},
    cancels_by_quitting=True,
)


def _cline_settled(world: HostWorld, model: ScriptedModel) -> None:
    run(f"cline auth -p openai -k none -m gpt-4o -b {model.address}/v1", world, world.environment(model))


CLINE = Host(
    name="cline",
    argv=("cline", "--tui"),
    settle=_cline_settled,
    ready="Auto-approve",
    gates={"any other key to close": "\x1b"},
    cancels_by_quitting=True,
)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


HOSTS = {host.name: host for host in (CLAUDE_CODE, CODEX, OPENCODE, GEMINI, COPILOT, QWEN, GOOSE, CONTINUE, CLINE)}
