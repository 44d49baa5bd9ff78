"""What a skill uses beyond its folder, read from its files."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.skill_folders import skill_in

from skillkit.core.find.needs import SkillNeeds, needs_of
from skillkit.core.values.needs import Need


def told(folder: Path, files: dict[str, str], script: str | None = None, head: str = "", body: str = "") -> list[str]:
    """`kind:name source where` of each need."""
    return [f"{need.kind}:{need.name} {need.source} {need.where}" for need in needs(folder, files, script, head, body)]


def names(folder: Path, files: dict[str, str], script: str | None = None, head: str = "", body: str = "") -> list[str]:
    return [f"{need.kind}:{need.name}" for need in needs(folder, files, script, head, body)]


def needs(folder: Path, files: dict[str, str], script: str | None, head: str, body: str) -> tuple[Need, ...]:
    return needs_of(skill_in(folder, files, head=head, body=body), script)


PYTHON = '''#!/usr/bin/env python3
"""Reads https://nobody.goes-here.dev and ~/.not-this."""
import os, json
import requests, yaml
from PIL import Image
from pathlib import Path

KEY = os.environ["GITHUB_TOKEN"]
REGION = os.getenv("MY_REGION")
LEVEL = os.environ.get("LOG_LEVEL", "info")
STATE = Path.home() / ".config" / "mine" / "state.json"
URL = "https://api.github.com"

def main():
    requests.get(f"{URL}/repos", headers={"xmlns": "http://www.w3.org/2000/svg"})
    print("see https://shown-only.dev")
    STATE.write_text("{}")
    subprocess.run(["ffmpeg", "-i", "x"])
    (Path.home() / "Downloads" / "x").read_text()
import subprocess
'''


def test_python_is_read_from_its_tree(tmp_path: Path) -> None:
    assert told(tmp_path, {"scripts/a.py": PYTHON}) == [
        "host:api.github.com inferred scripts/a.py:12",
        "secret:GITHUB_TOKEN inferred scripts/a.py:8",
        "variable:MY_REGION inferred scripts/a.py:9",
        "read:~/Downloads/x inferred scripts/a.py:19",
        "package:pillow inferred scripts/a.py:5",
        "package:pyyaml inferred scripts/a.py:4",
        "package:requests inferred scripts/a.py:4",
        "home:~/.config/mine inferred scripts/a.py:11",
        "program:ffmpeg inferred scripts/a.py:18",
    ]


SHELL = """#!/bin/bash
set -euo pipefail
DATA="$HOME/.mine.json"
helper() { echo "https://not-asked.dev"; }
helper
: "${OPENAI_API_KEY:?set it}"
case "$1" in start|stop) curl -s "https://api.openai.com:8443/v1" -H "Bearer $OPENAI_API_KEY" ;; esac
command -v jq >/dev/null || exit 1
python3 - <<'END'
import numpy
END
git rev-parse --show-toplevel
curl http://localhost:3000/health
"""


def test_a_shell_script_is_read_by_its_commands(tmp_path: Path) -> None:
    assert told(tmp_path, {"scripts/a.sh": SHELL}) == [
        "host:api.openai.com:8443 inferred scripts/a.sh:7",
        "secret:OPENAI_API_KEY inferred scripts/a.sh:6",
        "working_directory:workspace inferred scripts/a.sh:12",
        "package:numpy inferred scripts/a.sh:10",
        "home:~/.mine.json inferred scripts/a.sh:3",
        "loopback:localhost inferred scripts/a.sh:13",
        "program:curl inferred scripts/a.sh:7",
        "program:git inferred scripts/a.sh:12",
        "program:jq inferred scripts/a.sh:8",
        "program:python3 inferred scripts/a.sh:9",
    ]


JAVASCRIPT = """#!/usr/bin/env node
// import nothing from "commented-out";
import fs from "node:fs";
import { Client } from "@notionhq/client";
import axios from 'axios';
import { helper } from "./lib/helper.js";
const { SLACK_TOKEN } = process.env;
const file = path.join(os.homedir(), ".notion", "cache.json");
await fetch(`https://${process.env.TEAM}.atlassian.net/rest`);
console.log("https://only-shown.dev");
"""


def test_javascript_is_read_without_its_comments(tmp_path: Path) -> None:
    assert told(tmp_path, {"scripts/a.mjs": JAVASCRIPT}) == [
        "host:*.atlassian.net inferred scripts/a.mjs:9",
        "secret:SLACK_TOKEN inferred scripts/a.mjs:7",
        "variable:TEAM inferred scripts/a.mjs:9",
        "package:npm:@notionhq/client inferred scripts/a.mjs:4",
        "package:npm:axios inferred scripts/a.mjs:5",
        "home:~/.notion inferred scripts/a.mjs:8",
    ]


def test_typescript_and_powershell_need_an_interpreter_of_their_own(tmp_path: Path) -> None:
    files = {"scripts/a.ts": "console.log(1)", "scripts/b.ts": "Bun.file('x')", "scripts/c.ps1": "$env:MY_SETTING"}
    assert names(tmp_path, files) == ["variable:MY_SETTING", "interpreter:bun", "interpreter:pwsh", "interpreter:tsx"]


FIELDS = """requires:
  bins: [jq, gh]
  env:
    - LINEAR_API_KEY
metadata:
  openclaw:
    primaryEnv: NOTION_TOKEN
    requires: {anyBins: [rg]}
compatibility: Needs `ffmpeg` and DEEPL_API_KEY; make sure that it is there.
"""


def test_fields_of_the_frontmatter_declare(tmp_path: Path) -> None:
    assert told(tmp_path, {}, head=FIELDS) == [
        "secret:DEEPL_API_KEY declared SKILL.md:12",
        "secret:LINEAR_API_KEY declared SKILL.md:7",
        "secret:NOTION_TOKEN declared SKILL.md:10",
        "program:ffmpeg declared SKILL.md:12",
        "program:gh declared SKILL.md:5",
        "program:jq declared SKILL.md:5",
        "program:rg declared SKILL.md:11",
    ]


def test_lists_of_packages_declare(tmp_path: Path) -> None:
    files = {
        "requirements.txt": "# none\nrequests[socks]>=2; python_version > '3'\n-r other.txt\ngit+https://x.dev/y\n",
        "scripts/pyproject.toml": '[project]\nname = "x"\ndependencies = ["Rich>=13"]\n',
        "scripts/package.json": '{"dependencies": {"zod": "^3", "mine": "file:../mine"}, "devDependencies": {"jest": "1"}}',
        "assets/template/package.json": '{"dependencies": {"react": "19"}}',
        "scripts/a.py": '# /// script\n# dependencies = ["polars==1"]\n# ///\nimport polars\n',
    }
    assert told(tmp_path, files) == [
        "package:npm:zod declared scripts/package.json:1",
        "package:polars declared scripts/a.py:2",
        "package:requests declared requirements.txt:2",
        "package:rich declared scripts/pyproject.toml:3",
    ]


BODY = """# X
Never type pip install nothing-of-this; use `pip install pypdf` instead.

```bash
sudo apt-get install -y poppler-utils
uv pip install "pandas>=2" -r requirements.txt && npm install zod@3
brew install jq
export NOTION_TOKEN="secret_..."
export MODE=fast
npm install -g docx
npm install -g vercel
vercel deploy
```
"""


def test_instructions_tell_by_their_code_not_by_their_prose(tmp_path: Path) -> None:
    assert told(tmp_path, {}, body=BODY) == [
        "secret:NOTION_TOKEN instructed SKILL.md:12",
        "package:npm:docx instructed SKILL.md:14",
        "package:npm:zod instructed SKILL.md:10",
        "package:pandas instructed SKILL.md:10",
        "package:pypdf instructed SKILL.md:6",
        "program:jq instructed SKILL.md:11",
        "program:pdftotext instructed SKILL.md:9",
        "program:vercel instructed SKILL.md:15",
    ]


FILES = {
    "scripts/one.py": "import helper\nimport os\nos.getenv('ONE_TOKEN')\n",
    "scripts/helper.py": "import pandas\n",
    "scripts/two.sh": "source ./lib/common.sh\n",
    "scripts/lib/common.sh": "curl https://api.two.dev\n",
    "scripts/three.mjs": "import './part.mjs'\n",
    "scripts/part.mjs": "import 'zod'\n",
}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("scripts/one.py", ["secret:ONE_TOKEN", "package:pandas", "program:jq"]),
        ("one", ["secret:ONE_TOKEN", "package:pandas", "program:jq"]),
        ("two.sh", ["host:api.two.dev", "program:curl", "program:jq"]),
        ("scripts/three.mjs", ["package:npm:zod", "program:jq"]),
        ("absent", ["program:jq"]),
    ],
)
def test_a_script_needs_what_its_own_files_use_and_what_the_skill_says(
    tmp_path: Path, script: str, expected: list[str]
) -> None:
    assert names(tmp_path, FILES, script, head="requires: {bins: [jq]}\n") == expected


def test_lists_of_another_languages_packages_are_not_a_scripts_own(tmp_path: Path) -> None:
    files = {**FILES, "requirements.txt": "rich\n", "package.json": '{"dependencies": {"ws": "1"}}'}
    assert names(tmp_path, files, "helper") == ["package:pandas", "package:rich"]
    assert names(tmp_path / "other", files, "part") == ["package:npm:ws", "package:npm:zod"]


def test_modules_of_the_skill_and_of_python_are_no_packages(tmp_path: Path) -> None:
    files = {
        "scripts/a.py": "import json, tomllib, utils.deep, lib.x\nfrom scripts.common import y\nfrom . import near\n"
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy\n",
        "scripts/utils/deep.py": "",
        "lib/x.py": "",
        "scripts/common.py": "",
        "scripts/near.py": "",
    }
    assert names(tmp_path, files) == []


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "PATH", "HOME", "HTTPS_PROXY", "PYTHONPATH", "SKILL_TOKEN", "NODE_OPTIONS"]
)
def test_what_steers_a_program_cannot_be_needed(tmp_path: Path, name: str) -> None:
    files = {"scripts/a.py": f"import os\nos.environ[{name!r}]\n", "scripts/b.sh": f"echo ${{{name}:?}}\n"}
    head = f"requires: {{env: [{name}]}}\n"
    assert names(tmp_path, files, head=head, body=f"`export {name}=...`") == []


def test_who_talks_without_naming_anybody_needs_any_host(tmp_path: Path) -> None:
    assert told(tmp_path, {"scripts/a.py": "import sys, requests\nrequests.get(sys.argv[1])\n"}) == [
        "host:* inferred scripts/a.py:1",
        "package:requests inferred scripts/a.py:1",
    ]


def test_a_package_for_one_service_names_its_host(tmp_path: Path) -> None:
    assert "host:api.openai.com" in names(tmp_path, {"scripts/a.py": "import openai\n"})


def test_addresses_in_what_never_talks_are_no_hosts(tmp_path: Path) -> None:
    assert names(tmp_path, {"scripts/a.py": "HELP = 'https://github.com/x/y'\n"}) == []


def test_code_that_is_only_shown_or_tested_counts_when_it_is_asked_for(tmp_path: Path) -> None:
    files = {"examples/a.py": "import numpy\n", "scripts/test_a.py": "import pytest\n"}
    assert names(tmp_path, files) == []
    assert names(tmp_path / "other", files, "examples/a.py") == ["package:numpy"]


def test_another_skill_inside_and_a_link_out_are_not_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("import numpy\n")
    files = {"scripts/inner/SKILL.md": "x", "scripts/inner/a.py": "import pandas\n"}
    skill = skill_in(tmp_path / "skill", files)
    (tmp_path / "skill" / "scripts" / "b.py").symlink_to(outside)
    assert SkillNeeds(skill).of() == ()
    assert SkillNeeds(skill).of("scripts/b.py") == ()
    assert SkillNeeds(skill).of("../outside.py") == ()


def test_a_need_keeps_its_surest_source(tmp_path: Path) -> None:
    files = {"scripts/a.py": "import requests\n", "requirements.txt": "requests\n"}
    body = "`pip install requests`"
    assert "package:requests declared requirements.txt:1" in told(tmp_path, files, body=body)


def test_of_very_many_hosts_any_is_needed(tmp_path: Path) -> None:
    lines = "\n".join(f"get('https://feed{number}.news.dev/x')" for number in range(30))
    assert names(tmp_path, {"scripts/a.py": f"import urllib.request\n{lines}\n"}) == ["host:*"]


def test_programs_are_known_by_the_name_that_is_started_and_those_of_windows_are_none(tmp_path: Path) -> None:
    text = "```bash\nbrew install awscli azure-cli\ngem install bundler\nwinget install Microsoft.AzureCLI\n```\n"
    text += '- `winget install "Microsoft Store Developer CLI"`\n'
    script = 'const { spawn } = require("child_process");\nspawn("cmd", ["/c", "start"]);\nspawn("xdg-open", ["x"]);\n'
    found = names(tmp_path, {"scripts/a.js": script}, body=text)
    assert [each for each in found if each.startswith("program:")] == [
        "program:aws",
        "program:az",
        "program:bundler",
        "program:xdg-open",
    ]
