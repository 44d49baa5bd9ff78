"""The table of names that others execute or obey: families without end, and what is as ordinary as it looks."""

from __future__ import annotations

import pytest

from skillkit.core.paths.guarded_names import (
    BEGINNINGS,
    FAMILIES,
    GROUPS,
    guarded_inside,
    is_guarded_name,
    sentence_of_groups,
)

OBEYED = """
    irb.rc _irbrc $irbrc .irbrc .perldb perldb.ini .RData .erlang .rdebugrc startup.m
    prek.toml lefthook.yml .lefthook.yaml lefthook-local.toml .lefthook-local.json lefthook.jsonc .lefthook.jsonc
    lefthook-local.jsonc .lefthook-local.jsonc .lefthook-local.yml hk.pkl .local-overcommit.yml .lfsconfig
    .lintstagedrc.json lint-staged.config.mjs husky.config.js .huskyrc .hooks.yml grumphp.yml simple-git-hooks.mjs
    gptme.toml .roorules .roorules-architect .clinerules-code .continuerules .traerules .kilocoderules-ask
    .aiassistant .sourcegraph .tabnine .rovodev .serena .grok .kimi .devin .firebender .aider.model.settings.yml
    .geminiignore .agent.md AGENTS.local.md GROK.md .idx .codesandbox .lazy.lua .ycm_extra_conf.py .lite_project.lua
    mise.toml .mise.toml mise.local.toml mise.production.toml .mise.test.local.toml .rtx.toml .python-version
    .go-version .terraform-version rust-toolchain.toml uv.toml .pnp.cjs .bazeliskrc
    .gitlab-ci.yml .circleci Jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml .woodpecker .buildkite .cirrus.yml
"""
ORDINARY = """
    .env .env.local .gitignore .gitattributes .dockerignore .editorconfig .eslintrc.json .prettierrc .firestore.rules
    rules rules-x lefthook.md mise.md mise.json misery.toml promise.toml version config.toml irb perldb
    husky.md lint-staged.log .versions data.RData notes.agent.txt README.md package.json Makefile env.rc
"""


@pytest.mark.parametrize("name", OBEYED.split())
def test_what_others_obey_is_guarded_whatever_its_case(name: str) -> None:
    assert is_guarded_name(name)
    assert is_guarded_name(name.swapcase())


@pytest.mark.parametrize("name", ORDINARY.split())
def test_what_is_as_ordinary_as_it_looks_is_not(name: str) -> None:
    assert not is_guarded_name(name)


@pytest.mark.parametrize(
    ("folder", "guarded", "ordinary"),
    [
        (".config", {"irb", "mise"}, {"app.toml"}),
        (".github", {"copilot", "lsp.json", "hooks"}, {"settings.json", "FUNDING.yml"}),
        (".gitlab", {"ci", "duo"}, {"issue_templates", "CODEOWNERS"}),
        (".forgejo", {"workflows", "actions"}, {"issue_template"}),
        ("mise", {"config.toml", "config.prod.toml", "Config.local.toml", "conf.d"}, {"main.toml", "configure.py"}),
        ("agents", {"writer.toml"}, {"writer.md"}),
        ("src", set(), {"config.toml", "irb", "lsp.json"}),
    ],
)
def test_some_names_are_guarded_in_one_folder_only(folder: str, guarded: set[str], ordinary: set[str]) -> None:
    assert set(guarded_inside(folder, guarded | ordinary)) == guarded


@pytest.mark.parametrize("name", [name for name in OBEYED.split() if FAMILIES.fullmatch(name.lower())])
def test_every_member_of_a_family_begins_as_one(name: str) -> None:
    assert name.lower().startswith(BEGINNINGS)


def test_the_sentence_names_every_group_of_what_is_obeyed() -> None:
    assert sentence_of_groups() == (
        "git and its hooks, pipelines of forges, instructions and settings of agents, settings of editors, "
        "start-up files of shells, start-up files of interpreters, settings of package managers, and skills and "
        "skillkit's settings"
    )
    assert all(name == name.lower() for names in GROUPS.values() for name in names)
