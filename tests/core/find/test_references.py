"""How real instructions write about scripts, and what is a command of all that."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.skill_folders import skill_folder

from skillkit import Skill, SkillMetadata
from skillkit.core.find.references import LINKED_FILES, References, references_in

FILES = {
    "scripts/x.py": "print('x')\n",
    "scripts/run.sh": "echo run\n",
    "scripts/tool.ts": "console.log(1)\n",
    "scripts/cli.js": "console.log(1)\n",
    "scripts/utils/parse.py": "print('parse')\n",
    "scripts/twin.py": "print('twin')\n",
    "scripts/twin.sh": "echo twin\n",
    "scripts/wrapper": "#!/bin/bash\necho\n",
    "bin/cli.mjs": "console.log(1)\n",
    "assets/data.csv": "a,b\n",
    "references/guide.md": "Nothing here.\n",
}


def skill_with(folder: Path, body: str, files: dict[str, str] | None = None) -> Skill:
    base = skill_folder(folder / "skills", "demo", body=body, files={**FILES, **(files or {})})
    return Skill(SkillMetadata("demo", "d", base / "SKILL.md"))


def read(folder: Path, body: str, files: dict[str, str] | None = None) -> References:
    return references_in(skill_with(folder, body, files))


def seen(references: References) -> list[tuple[str, ...]]:
    """`script, *argv` of what is ready; `status, script` of the rest."""
    return [
        (each.script, *each.argv) if each.status == "command" else (each.status, each.script)
        for each in references.commands
    ]


def fenced(text: str, label: str = "bash") -> str:
    return f"Do it:\n\n```{label}\n{text}\n```\n"


X, RUN, TS, JS = "scripts/x.py", "scripts/run.sh", "scripts/tool.ts", "scripts/cli.js"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("scripts/x.py a b", (X, "a", "b")),
        ("python scripts/x.py", (X,)),
        ("python3 scripts/x.py --sample", (X, "--sample")),
        ("python3.12 scripts/x.py", (X,)),
        ("/usr/bin/env python3 scripts/x.py", (X,)),
        ("python3 -I -u scripts/x.py", (X,)),
        ("python3 -W ignore scripts/x.py", (X,)),
        ("python3 {baseDir}/scripts/x.py a", (X, "a")),
        ("python3 {{baseDir}}/scripts/x.py a", (X, "a")),
        ("./scripts/run.sh", (RUN,)),
        ("bash scripts/run.sh -v", (RUN, "-v")),
        ("bash -x scripts/run.sh", (RUN,)),
        ("sh ./scripts/run.sh", (RUN,)),
        ("$SKILL_DIR/scripts/run.sh", (RUN,)),
        ("${SKILL_DIR}/scripts/run.sh", (RUN,)),
        ('"${CLAUDE_SKILL_DIR}/scripts/run.sh" a', (RUN, "a")),
        ("python $CLAUDE_SKILL_DIR/scripts/x.py", (X,)),
        ("SKILL_DIR/scripts/run.sh", (RUN,)),
        ("python <skill-dir>/scripts/x.py", (X,)),
        ("python <path-to-skill>/scripts/x.py", (X,)),
        ("python {skill_dir}/scripts/x.py", (X,)),
        ("python /path/to/skill/scripts/x.py", (X,)),
        ("python skills/demo/scripts/x.py", (X,)),
        ("python .claude/skills/demo/scripts/x.py", (X,)),
        ("python ~/.claude/skills/demo/scripts/x.py", (X,)),
        ("python ${CLAUDE_PLUGIN_ROOT}/skills/demo/scripts/x.py", (X,)),
        ("python -m scripts.x --sample", (X, "--sample")),
        ("python3 -m scripts.utils.parse", ("scripts/utils/parse.py",)),
        ("uv run scripts/x.py", (X,)),
        ("uv run python scripts/x.py", (X,)),
        ("uv run --with requests scripts/x.py a", (X, "a")),
        ("uv run --script scripts/x.py", (X,)),
        ("poetry run python scripts/x.py", (X,)),
        ("node scripts/cli.js go", (JS, "go")),
        ("node --import tsx scripts/cli.js", (JS,)),
        ("npx tsx scripts/tool.ts", (TS,)),
        ("npx -y tsx scripts/tool.ts", (TS,)),
        ("npx ts-node scripts/tool.ts", (TS,)),
        ("bun scripts/tool.ts", (TS,)),
        ("bun run scripts/tool.ts", (TS,)),
        ("deno run -A scripts/tool.ts", (TS,)),
        ("node bin/cli.mjs", ("bin/cli.mjs",)),
        ("scripts/run", (RUN,)),
        ("python scripts/x", (X,)),
        ("scripts/wrapper go", ("scripts/wrapper", "go")),
        ("python x.py", (X,)),
        ("python utils/parse.py", ("scripts/utils/parse.py",)),
        ("python scripts\\x.py", (X,)),
        ("$ python scripts/x.py a", (X, "a")),
        ("python scripts/x.py 'two words' \"and more\"", (X, "two words", "and more")),
        ("python scripts/x.py a\\ b", (X, "a b")),
        ("python scripts/x.py \\\n  --top 10 \\\n  --json", (X, "--top", "10", "--json")),
        ("python scripts/x.py --top 10  # the first ten", (X, "--top", "10")),
        ("python scripts/x.py '{\"a\": [1, 2]}'", (X, '{"a": [1, 2]}')),
        ("python scripts/x.py assets/data.csv", (X, "assets/data.csv")),
        ("python scripts/x.py '$5 off'", (X, "$5 off")),
        ("cd {baseDir} && python scripts/x.py", (X,)),
        ("cd scripts && python x.py", (X,)),
        ("pip install requests && python scripts/x.py", (X,)),
        ("python scripts/x.py https://github.com/a/b", (X, "https://github.com/a/b")),
    ],
)
def test_each_spelling_of_a_command_is_recognised(tmp_path: Path, line: str, expected: tuple[str, ...]) -> None:
    assert seen(read(tmp_path, fenced(line))) == [expected]


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"], ["--top", "10"], ["--port", "8080"], ["--width", "1920"], ["--year", "2025"], ["--grid", "wide"],
        ["--bytes", "65536"], ["sha256"], ["--size", "1920x1080"], ["--bitrate", "320k"], ["us-east-1"], ["gpt-4"],
        ["two words"], ["a & b"], ["https://github.com/a/b?x=y z"], ["--format", "json"], ["domains.getList"], ["3.11"], ["v1.2.3"], ["7"], ["1000"], ["42.37", "-71.11"],
        ["https://api.github.com/status"], ["--paid"], ["#0066CC"], ["[]"], ["[1, 2]"], ['{"a": {"b": [true, null, 2.5]}}'],
        ["{}"], ['{"mode": "fast"}'],
    ],
)  # fmt: skip
def test_arguments_that_fit_everywhere_are_kept(tmp_path: Path, arguments: list[str]) -> None:
    assert seen(read(tmp_path, fenced(f"python scripts/x.py {shlex.join(arguments)}"))) == [(X, *arguments)]


def test_calls_that_differ_by_a_name_are_examples_of_each_other(tmp_path: Path) -> None:
    lines = (
        "volume 'Living Room' 40",
        "volume Kitchen 15",
        "volume",
        "--room Kitchen",
        "play --room Bath",
        "stop",
        "go 1",
        "go 2",
    )
    found = seen(read(tmp_path, fenced("\n".join(f"python scripts/x.py {line}" for line in lines))))
    assert found == [("needs_arguments", X), (X, "volume"), (X, "stop"), (X, "go", "1"), (X, "go", "2")]


def test_a_name_that_stands_there_once_is_kept(tmp_path: Path) -> None:
    assert seen(read(tmp_path, fenced("python scripts/x.py greet Ann\nscripts/run.sh greet Bob"))) == [
        (X, "greet", "Ann"),
        (RUN, "greet", "Bob"),
    ]


def test_a_file_of_the_workspace_is_no_example(tmp_path: Path) -> None:
    skill = skill_with(tmp_path / "skill", fenced("python scripts/x.py report.csv"))
    (tmp_path / "work").mkdir()
    assert seen(references_in(skill, workspace=tmp_path / "work")) == [("needs_arguments", X)]
    (tmp_path / "work" / "report.csv").write_text("")
    assert seen(references_in(skill, workspace=tmp_path / "work")) == [(X, "report.csv")]


def test_the_skills_own_folder_in_an_argument_is_filled_in(tmp_path: Path) -> None:
    skill = skill_with(tmp_path, fenced("python {baseDir}/scripts/x.py {baseDir}/assets/data.csv"))
    assert seen(references_in(skill)) == [(X, "./assets/data.csv")]
    elsewhere = str(skill.base_directory)
    assert seen(references_in(skill, own_folder=elsewhere)) == [(X, f"{elsewhere}/assets/data.csv")]


@pytest.mark.parametrize(
    "arguments",
    [
        "<file>", "<input file>", "FILE", "INPUT_FILE", "{input}", "{{input}}", "[options]", "...", "a b ...", "$1",
        '"$FILE"', "$(date)", "`date`", "path/to/report.pdf", "/path/to/x", "input.pdf", "--output out.csv",
        "--output=out.csv", "--name=NAME", "*.csv", "~/data", "your-file", "'your query'", '"query"',
        '"search terms"', "YYYY-MM-DD", "https://example.com/x", "--key <key>", "a|b", "{a,b}",
        # what names one thing among many exists where the author is
        "12345 12346 12347", "delete --id abc123xyz -y", "delete --id=7", "--tweetId 9", "task_id=abc", "0x...", "0xYourAddress",
        "0x9787436458A36a9CC72364BaC18ba78fdEf83997", "7C403BC5-6016-410A-810D-9A0F924682F9", "cnv_abc123", "a09f3680",
        "+15551234567", "PROJ-1234", "ann@somewhere.org", "--api-key secret", "--password secure", "YOUR_KEY",
        "--since 2026-01-01", "https://mysite.com/page", "https://shop.example/x", "my-project", "--name 'My Wallet'",
        "https://github.com/owner/repo", "key=value", "--limit N", "'book a table for two'",
        # what may be left out, or has another end than the usual ones
        "[--limit 20]", "list [--limit 20] [--all]", "[a", "--all]", "[a|b]", "diagram.excalidraw", "data.parquet",
        "--out=map.geojson", "model.safetensors",
        # the same inside JSON
        """'{"to": "0x..."}'""", """'{"to": ["a", {"b": "<id>"}]}'""", """'{"<key>": 1}'""", """'{"user": {"id": 7}}'""",
        """'{"file": "missing.csv"}'""", """--data='{"url": "https://example.com"}'""", """'["YOUR_KEY"]'""",
        """'{"text": "some words of mine"}'""", """'{"number": 12345}'""",
    ],
)  # fmt: skip
def test_arguments_that_only_the_user_knows_are_not_made_up(tmp_path: Path, arguments: str) -> None:
    assert seen(read(tmp_path, fenced(f"python scripts/x.py {arguments}"))) == [("needs_arguments", X)]


@pytest.mark.parametrize(
    "line",
    [
        "python scripts/x.py | head", "cat a | python scripts/x.py", "python scripts/x.py > out", "scripts/x.py < in",
        "python scripts/x.py 2>&1", "KEY=1 python scripts/x.py", "python scripts/x.py &", "(python scripts/x.py)",
        "python scripts/x.py <<EOF\ntext\nEOF", "true || python scripts/x.py", "if python scripts/x.py; then\n:\nfi",
        "for f in a b; do\n  python scripts/x.py go\ndone", "cd /elsewhere && python scripts/x.py",
        "cd ../project\npython scripts/x.py", "python scripts/x.py 'open",
    ],
)  # fmt: skip
def test_what_only_a_shell_can_do_is_not_run_without_it(tmp_path: Path, line: str) -> None:
    assert seen(read(tmp_path, fenced(line))) == [("needs_arguments", X)]


@pytest.mark.parametrize(
    "body",
    [
        "Never run `python scripts/x.py`.",
        f"Never, {'and I mean that, ' * 100} run `python scripts/x.py`.",
        f"Run {'all of these ' * 100} `python scripts/x.py`.",
        "Do not run `python scripts/x.py` by hand.",
        "Don't run `scripts/x.py`.",
        "Don\u2019t ever run `scripts/x.py a`.",
        "You must not execute `python scripts/x.py`.",
        "Do not, under any circumstances, run `python scripts/x.py`.",
        "Avoid `python scripts/x.py`.",
        "`python scripts/x.py` must never be run in production.",
        "`python scripts/x.py` is deprecated.",
        "There is no need to run `python scripts/x.py`.",
        "Under no circumstances run `python scripts/x.py`.",
        "No one should run `python scripts/x.py`.",
        "Please refrain from running `python scripts/x.py`.",
        "It is forbidden to run `python scripts/x.py`.",
        "Forbidden: `python scripts/x.py`",
        "Skip `python scripts/x.py`.",
        "`python scripts/x.py` won't work.",
        "`python scripts/x.py` no longer exists.",
        "`python scripts/x.py` is not allowed here.",
        "`python scripts/x.py` was removed.",
        "## Prohibited\n\n```bash\npython scripts/x.py\n```\n",
        "Before you run anything, read `scripts/x.py`.",
        "To run it, see [the source](scripts/x.py).",
        "Never run [the script](scripts/x.py).",
        "Run [this](https://host.test/scripts/x.py), or [that](../other/scripts/x.py).",
        "Read the file instead of running `python scripts/x.py`.",
        "Never run this:\n\n```bash\npython scripts/x.py\n```\n",
        "Never do this:\n\n- `python scripts/x.py`\n- `scripts/run.sh a`\n",
        "## Do not run\n\n`python scripts/x.py`\n\n```bash\nscripts/run.sh\n```\n",
        "```bash\n# never run this\npython scripts/x.py\n```\n",
        "```bash\npython scripts/x.py  # WRONG\n```\n",
        "```bash\n# python scripts/x.py\n```\n",
        "See `scripts/x.py` for details.",
        "Read scripts/x.py and run.sh.",
        "The script [x](scripts/x.py) holds the rules.",
        "Get it from https://host.test/scripts/x.py or `https://host.test/scripts/x.py a`.",
        "Copy `python ../other/scripts/x.py`.",
        "Use `python skills/other/scripts/x.py a`.",
        "Use `python ~/.claude/skills/other/scripts/x.py`.",
        "Use `python /opt/scripts/x.py`.",
        "Use `python ${CLAUDE_PLUGIN_ROOT}/scripts/x.py`.",
        "```bash\ncat scripts/x.py\nchmod +x scripts/run.sh\nvim scripts/x.py\nsource scripts/run.sh\n```\n",
        "```bash\npython -c 'import x' scripts/x.py\nbash -c scripts/run.sh\n```\n",
        "```python\nsubprocess.run(['python', 'scripts/x.py'])\n```\n",
        '```json\n{"run": "python scripts/x.py"}\n```\n',
        "```text\npython scripts/x.py\n```\n",
        "It prints:\n\n```\npython scripts/x.py\n```\n",
        "The layout:\n\n```\nscripts/x.py\nscripts/run.sh\n```\n",
        "```\nscripts/x.py\n```\n",
        "```bash\ncat > a.sh <<'EOF'\npython scripts/x.py\nEOF\n```\n",
        "```console\n$ ls\npython scripts/x.py\n```\n",
        "<!-- python scripts/x.py -->\n",
        "<div>\npython scripts/x.py\n</div>\n",
        "| script | use |\n|---|---|\n| `scripts/x.py` | counts |\n",
        "Install with `pip install x.py-tools`, then `python manage.py run`.",
        "```bash\npython manage.py migrate\nnpm run build\n./gradlew test\n```\n",
        "```bash\nscripts/twin\n```\n",
    ],
)  # fmt: skip
def test_what_is_no_command_is_none(tmp_path: Path, body: str) -> None:
    assert seen(read(tmp_path, body)) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Run `scripts/x.py`.", [(X,)]),
        ("First run `x.py`, then `run.sh`.", [(X,), (RUN,)]),
        ("Run `x.py` and look at `run.sh`.", [(X,)]),
        ("1. **Lint**: Run `run.sh` to check style\n", [(RUN,)]),
        ("Execute the script `scripts/run.sh` now.", [(RUN,)]),
        ("Run [the script](scripts/run.sh).", [(RUN,)]),
        ("Run [`scripts/run.sh`](scripts/run.sh), then read [x](scripts/x.py).", [(RUN,)]),
        ("Try `python scripts/x.py --help`.", [(X, "--help")]),
        ("See `scripts/x.py --help`.", [(X, "--help")]),
        ("Don't run `scripts/x.py`, run `scripts/run.sh` instead.", [(RUN,)]),
        ("Instead of `scripts/x.py a`, run `scripts/run.sh`.", [(RUN,)]),
        ("Run `scripts/run.sh`, never `scripts/x.py a`.", [(RUN,)]),
        ("Do not forget to run `scripts/run.sh`.", [(RUN,)]),
        ("If it does not build, run `scripts/run.sh`.", [(RUN,)]),
        ("Never guess. Run `scripts/run.sh`.", [(RUN,)]),
        ("| do | by |\n|---|---|\n| count | `python scripts/x.py --all` |\n", [(X, "--all")]),
        ("    python scripts/x.py\n", [(X,)]),
        ("```\npython scripts/x.py\n```\n", [(X,)]),
        ("```\n./scripts/run.sh\n```\n", [(RUN,)]),
        ("```\n$ scripts/run.sh a\nprinted\n```\n", [(RUN, "a")]),
        ("```console\n$ python scripts/x.py\nok\n$ scripts/run.sh \\\n  -v\n```\n", [(X,), (RUN, "-v")]),
        ("- item:\n\n  ```sh\n  scripts/run.sh\n  ```\n", [(RUN,)]),
        ("> ```bash\n> scripts/run.sh\n> ```\n", [(RUN,)]),
        (fenced("scripts/run.sh && python scripts/x.py --a; node scripts/cli.js"), [(RUN,), (X, "--a"), (JS,)]),
        (fenced("python scripts/x.py\npython scripts/x.py\npython3 ./scripts/x.py"), [(X,)]),
        (fenced("python scripts/x.py <a>\npython scripts/x.py <b>"), [("needs_arguments", X)]),
        (fenced("python scripts/gone.py"), [("not_found", "scripts/gone.py")]),
        (fenced("bash {baseDir}/tools/gone.sh"), [("not_found", "tools/gone.sh")]),
    ],
)  # fmt: skip
def test_commands_stand_where_authors_put_them(tmp_path: Path, body: str, expected: list[tuple[str, ...]]) -> None:
    assert seen(read(tmp_path, body)) == expected


def test_a_script_that_only_lies_in_the_folder_is_not_referred_to(tmp_path: Path) -> None:
    assert read(tmp_path, "Do it.\n") == References((), ("SKILL.md",))


def test_linked_texts_are_read_once_behind_the_one_that_links_them(tmp_path: Path) -> None:
    files = {
        "references/guide.md": "Run `scripts/run.sh`, `../scripts/x.py a`. Back: [s](../SKILL.md), [g](guide.md)\n"
        "and [more](more.md#part).\n",
        "references/more.md": "[deeper](deeper.md) `node scripts/cli.js`\n",
        "references/deeper.md": "`python scripts/utils/parse.py`\n",
        "unlinked.md": "`python scripts/twin.py`\n",
    }
    found = read(
        tmp_path, "[guide](references/guide.md) [again](./references/guide.md) `bash scripts/run.sh -q`\n", files
    )
    assert found.files == ("SKILL.md", "references/guide.md", "references/more.md")
    assert seen(found) == [(RUN, "-q"), (RUN,), (X, "a"), (JS,)]


def test_a_text_named_in_code_is_read_too(tmp_path: Path) -> None:
    found = read(tmp_path, "See `references/guide.md`.\n", {"references/guide.md": "`bash scripts/run.sh`\n"})
    assert seen(found) == [(RUN,)]


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("`python scripts/x.py`\n")
    skill = skill_with(tmp_path, "[a](../../outside.md) [b](link.md) [c](/etc/x.md) [d](https://host.test/x.md)\n")
    (skill.base_directory / "link.md").symlink_to(tmp_path / "outside.md")
    assert references_in(skill) == References((), ("SKILL.md",))
    (skill.base_directory / "link.md").unlink()
    (skill.base_directory / "link.md").write_text("`python scripts/x.py`\n")
    assert seen(references_in(skill)) == [(X,)]


def test_another_skill_below_this_one_keeps_its_own_texts(tmp_path: Path) -> None:
    files = {"inner/SKILL.md": "---\nname: inner\n---\n", "inner/guide.md": "`python scripts/x.py`\n"}
    assert read(tmp_path, "[g](inner/guide.md)\n", files).files == ("SKILL.md",)


def test_the_number_of_texts_is_bounded(tmp_path: Path) -> None:
    names = [f"n{number}.md" for number in range(LINKED_FILES + 10)]
    body = " ".join(f"[x]({name})" for name in names)
    assert len(read(tmp_path, body, dict.fromkeys(names, "x")).files) == LINKED_FILES + 1


def test_the_same_files_give_the_same_references(tmp_path: Path) -> None:
    body = fenced("python scripts/x.py a\nscripts/run.sh <f>") + "[g](references/guide.md)"
    assert read(tmp_path / "a", body) == read(tmp_path / "b", body)


@pytest.mark.parametrize(
    "text",
    ["`", "$(", "${", "'", "<a", "a\\", "never run ", "x.py ", "[", "- ", "\ue000/", "1", "a1", "my-", "-id", '{"a":'],
)
def test_no_text_makes_reading_slow(tmp_path: Path, text: str) -> None:
    read(tmp_path, f"```bash\n{text * 9_999}\n```\n")
    read(tmp_path, f"Run `scripts/x.py`. {text * 9_999}\n")
    read(tmp_path, f"Run `scripts/x.py --{text * 9_999}! {text * 9_999}!`\n")


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab \n`'\"$(){}<>|&;#\\-*[]./~=:!\ue000\0\r"), max_size=200))
def test_any_text_can_be_read(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("any")
    for body in (text, fenced(text), f"Run `{text}` `python scripts/x.py {text}`"):
        for each in read(folder, body).commands:
            assert each.status in {"command", "needs_arguments", "not_found"}
