"""Names of variables."""

from __future__ import annotations

import pytest

from skillkit.cli.people.grant import grant
from skillkit.core.values.hosts import NOT_LISTED, HostUse
from skillkit.core.values.names import grant_command, is_grantable_name, is_secret_name


@pytest.mark.parametrize(
    "name",
    "PATH HOME LD_PRELOAD PYTHONPATH NODE_OPTIONS BASH_ENV HTTPS_PROXY https_proxy NO_PROXY SKILL_DIR SKILLKIT_X "
    "SSL_CERT_FILE PIP_INDEX_URL npm_config_registry GIT_CONFIG_GLOBAL SSH_AUTH_SOCK PYTHONUSERBASE "
    "GLIBC_TUNABLES LUA_INIT LUA_INIT_5_4 DOTNET_STARTUP_HOOKS PHPRC PHP_INI_SCAN_DIR R_PROFILE R_PROFILE_USER "
    "R_ENVIRON R_ENVIRON_USER JULIA_LOAD_PATH GIT_EXTERNAL_DIFF GIT_PAGER GIT_EDITOR GIT_ASKPASS GIT_TRACE2_EVENT "
    "GIT_SSL_NO_VERIFY GIT_PROXY_COMMAND GIT_DIR DYLD_INSERT_LIBRARIES MY_PRELOAD JDK_JAVA_OPTIONS JAVA_OPTS "
    "ERL_FLAGS ERL_AFLAGS ERL_OTP26_FLAGS GUILE_LOAD_PATH TCLLIBPATH LESSOPEN MANPAGER EDITOR VISUAL BROWSER PAGER "
    "editor CORECLR_PROFILER CLASSPATH VIMINIT TAR_OPTIONS XDG_CONFIG_HOME IRBRC MAKEFLAGS".split(),
)
def test_what_steers_a_program_or_its_walls_can_be_neither_needed_nor_given(name: str) -> None:
    assert not is_grantable_name(name)


@pytest.mark.parametrize(
    "name",
    "GITHUB_TOKEN DATABASE_URL openai_api_key AWS_REGION GIT_TOKEN GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL GIT_BRANCH "
    "GIT_REPO_URL GITLAB_TOKEN R_VERSION JULIA_API_KEY LUA_VERSION PHP_VERSION EDITORIAL_KEY PAGERDUTY_TOKEN "
    "BROWSER_USE_API_KEY BROWSERBASE_API_KEY JAVA_VERSION ERL_COOKIE LESSON_ID CHROME_PATH OLLAMA_HOST "
    "CORAL_REGION MAKE_API_KEY COR_ID".split(),
)
def test_what_services_are_configured_by_can_be_given(name: str) -> None:
    assert is_grantable_name(name)


@pytest.mark.parametrize("name", ["", "A B", "1A", "A=B", "X\n", "A" * 101, "$(id)"])
def test_what_is_no_name_cannot_be_given(name: str) -> None:
    assert not is_grantable_name(name)


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("GITHUB_TOKEN", True),
        ("OPENAI_API_KEY", True),
        ("STRIPE_KEY", True),
        ("DB_PASSWORD", True),
        ("MAX_TOKENS", False),
        ("AWS_REGION", False),
        ("TOKEN_FILE", False),
        ("KEYBOARD", False),
    ],
)
def test_a_key_is_known_by_its_name(name: str, is_secret: bool) -> None:
    assert is_secret_name(name) is is_secret


@pytest.mark.parametrize("skill", ["add", "list", "remove"])
def test_the_grant_of_a_skill_named_like_a_command_is_typed_with_add(skill: str) -> None:
    assert grant_command(skill) == f"skillkit grant add {skill}"
    assert HostUse("a.example:443", NOT_LISTED).remedy(skill) == f"skillkit grant add {skill} --host a.example"
    assert grant_command("weather") == "skillkit grant weather"
    assert grant_command("it's") == """skillkit grant 'it'"'"'s'"""
    assert skill in grant.commands
