"""Extension and shebang decide the language; the language names the interpreters."""

from __future__ import annotations

import pytest

from skillkit.core.models.detect.languages import (
    INTERPRETER_MAP,
    LANGUAGE_INTERPRETERS,
    language_of,
    languages_by_extension,
    shebang_program,
)
from skillkit.core.values.skills import SCRIPT_TYPES


def test_the_interpreter_map_holds_the_eight_agreed_entries() -> None:
    agreed = {
        ".py": "python3",
        ".sh": "bash",
        ".js": "node",
        ".rb": "ruby",
        ".pl": "perl",
        ".bat": "cmd",
        ".cmd": "cmd",
        ".ps1": "powershell",
    }
    assert {extension: INTERPRETER_MAP[extension] for extension in agreed} == agreed


def test_every_script_type_has_interpreters() -> None:
    assert set(LANGUAGE_INTERPRETERS) == SCRIPT_TYPES


@pytest.mark.parametrize(
    ("suffix", "language"),
    [
        (".py", "python"),
        (".PY", "python"),
        (".sh", "shell"),
        (".bash", "shell"),
        (".js", "javascript"),
        (".mjs", "javascript"),
        (".cjs", "javascript"),
        (".ts", "typescript"),
        (".mts", "typescript"),
        (".cts", "typescript"),
        (".rb", "ruby"),
        (".pl", "perl"),
        (".ps1", "powershell"),
        (".cs", None),
        (".json", None),
        ("", None),
    ],
)
def test_without_a_shebang_the_extension_decides(suffix: str, language: str | None) -> None:
    assert language_of(suffix, "") == language


def test_batch_files_are_scripts_on_windows_only() -> None:
    windows = languages_by_extension(windows=True)
    elsewhere = languages_by_extension(windows=False)
    assert {suffix: windows[suffix] for suffix in windows.keys() - elsewhere.keys()} == {
        ".bat": "batch",
        ".cmd": "batch",
    }


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("#!/bin/bash", "bash"),
        ("#!/bin/bash\r", "bash"),
        ("\ufeff#!/bin/bash", "bash"),
        ("#!   /bin/sh -e", "sh"),
        ("#!/usr/bin/env python3", "python"),
        ("#!/usr/bin/env -S python3 -u", "python"),
        ("#!/usr/bin/env -Spython3 -u", "python"),
        ("#!/usr/bin/env -S LANG=C python3", "python"),
        ("#!/usr/bin/env -S uv run --script", "uv"),
        ("#!/usr/bin/python3.11", "python"),
        ("#!/abs/venv/bin/python", "python"),
        ("#!C:\\Python311\\python.exe", "python"),
        ("#!/usr/bin/env npx tsx", "tsx"),
        ("#!/usr/bin/env -S npx --yes tsx@4", "tsx"),
        ("#!/usr/bin/env -S pnpm dlx ts-node", "ts-node"),
        ("#!/usr/bin/env", ""),
        ("#!", ""),
        ("# no shebang", ""),
        ("", ""),
    ],
)
def test_a_shebang_names_its_program_in_any_spelling(line: str, program: str) -> None:
    assert shebang_program(line) == program


@pytest.mark.parametrize(
    ("suffix", "line", "language"),
    [
        pytest.param(".sh", "#!/usr/bin/env python3", "python", id="a .sh file that is Python"),
        pytest.param(".py", "#!/bin/bash", "shell", id="a .py file that is shell"),
        pytest.param(".py", "#!/usr/bin/env -S uv run --script", "python", id="uv runs Python"),
        pytest.param(".ts", "#!/usr/bin/env node", "typescript", id="node runs TypeScript"),
        pytest.param(".ts", "#!/usr/bin/env bun", "typescript", id="bun runs TypeScript"),
        pytest.param(".ts", "#!/usr/bin/env -S deno run -A", "typescript", id="deno runs TypeScript"),
        pytest.param(".ts", "#!/usr/bin/env ts-node", "typescript", id="ts-node runs TypeScript"),
        pytest.param(".js", "#!/usr/bin/env bun", "javascript", id="bun runs JavaScript"),
        pytest.param(".mjs", "#!/usr/bin/env tsx", "javascript", id="tsx runs JavaScript"),
        pytest.param(".js", "#!/usr/bin/osascript -l JavaScript", None, id="osascript is not ours"),
        pytest.param(".py", "#!/opt/strange/thing", "python", id="an unknown program leaves the extension"),
        pytest.param("", "#!/bin/sh", "shell", id="no extension"),
        pytest.param("", "#!/usr/bin/env zsh", "shell", id="zsh is a shell"),
        pytest.param("", "#!/usr/bin/env node", "javascript", id="node without extension"),
        pytest.param("", "#!/usr/bin/env bun", "typescript", id="bun without extension"),
        pytest.param("", "#!/usr/bin/env pwsh", "powershell", id="pwsh without extension"),
        pytest.param("", "#!/usr/bin/env ruby", "ruby", id="ruby without extension"),
        pytest.param("", "#!/usr/bin/perl -w", "perl", id="perl without extension"),
        pytest.param("", "#!/opt/strange/thing", None, id="unknown program, no extension"),
        pytest.param(".zsh", "#!/bin/zsh", "shell", id="unknown extension, known program"),
        pytest.param(".swift", "#!/usr/bin/env swift", None, id="unknown extension, foreign program"),
        pytest.param(".md", "#!/bin/bash", None, id="a document that quotes a shebang"),
        pytest.param(".json", "#!/usr/bin/env node", None, id="data that quotes a shebang"),
    ],
)
def test_a_known_program_outranks_an_extension_it_cannot_run(suffix: str, line: str, language: str | None) -> None:
    assert language_of(suffix, line) == language


def test_interpreters_come_in_order_of_preference() -> None:
    assert LANGUAGE_INTERPRETERS["typescript"] == ("tsx", "bun", "deno", "node", "ts-node")
    assert LANGUAGE_INTERPRETERS["powershell"] == ("pwsh", "powershell")
