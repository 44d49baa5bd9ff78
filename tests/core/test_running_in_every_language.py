"""What a caller can rely on whatever a script is written in, without walls and inside them."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from support.running import kinds, made_manager, needs, only_record, records_of

import skillkit
from skillkit import (
    STANDARD,
    TRUSTED,
    PathSecurityError,
    ScriptExecutionResult,
    ScriptPermissionError,
    SkillManager,
    ToolRestrictionError,
)

# For each interpreter: the ending of its scripts, and the same small programs.
LANGUAGES: dict[str, dict[str, str]] = {
    "python3": {
        "ending": "py",
        "sort": "import json, sys\nprint(json.dumps(sorted(json.load(sys.stdin))))\n",
        "fail": "import sys\nprint('half')\nsys.exit('no such table')\n",
        "crash": "import os\nos.kill(os.getpid(), 11)\n",
        "loop": "print('begun', flush=True)\nwhile True: pass\n",
        "environment": "import json, os\nprint(json.dumps(dict(os.environ)))\n",
        "read": "import os\nprint(open(os.environ['SKILL_BASE_DIR'] + '/data/config.yaml').read(), end='')\n",
        "mark": "import sys\nopen(sys.argv[1], 'w').close()\n",
    },
    "bash": {
        "ending": "sh",
        "sort": "printf '[%s]\\n' \"$(tr -d '[] ' | tr , '\\n' | sort -n | paste -sd, | sed 's/,/, /g')\"\n",
        "fail": "echo half\necho 'no such table' >&2\nexit 1\n",
        "crash": "kill -SEGV $$\n",
        "loop": "echo begun\nwhile :; do :; done\n",
        "environment": "python3 -c 'import json, os; print(json.dumps(dict(os.environ)))'\n",
        "read": 'cat "$SKILL_BASE_DIR/data/config.yaml"\n',
        "mark": ': > "$1"\n',
    },
    "node": {
        "ending": "js",
        "sort": "const given = JSON.parse(require('fs').readFileSync(0, 'utf8'));\n"
        "console.log('[' + given.sort((a, b) => a - b).join(', ') + ']');\n",
        "fail": "console.log('half'); console.error('no such table'); process.exitCode = 1;\n",
        "crash": "process.kill(process.pid, 'SIGSEGV'); setTimeout(() => {}, 10000);\n",
        "loop": "require('fs').writeSync(1, 'begun\\n'); while (true) {}\n",
        "environment": "console.log(JSON.stringify(process.env));\n",
        "read": "process.stdout.write(require('fs').readFileSync(process.env.SKILL_BASE_DIR + '/data/config.yaml'));\n",
        "mark": "require('fs').writeFileSync(process.argv[2], '');\n",
    },
    "ruby": {
        "ending": "rb",
        "sort": "require 'json'\nputs '[' + JSON.parse(STDIN.read).sort.join(', ') + ']'\n",
        "fail": "puts 'half'\nwarn 'no such table'\nexit 1\n",
        # Ruby turns its own into SIGABRT, after a long report.
        "crash": "exec '/bin/sh', '-c', 'kill -SEGV $$'\n",
        "loop": "STDOUT.sync = true\nputs 'begun'\nloop {}\n",
        "environment": "require 'json'\nputs JSON.generate(ENV.to_h)\n",
        "read": "print File.read(ENV['SKILL_BASE_DIR'] + '/data/config.yaml')\n",
        "mark": "File.write(ARGV[0], '')\n",
    },
    "perl": {
        "ending": "pl",
        "sort": "use JSON::PP; local $/;\n"
        "print '[', join(', ', sort { $a <=> $b } @{decode_json(<STDIN>)}), qq(]\\n);\n",
        "fail": "print qq(half\\n);\nprint STDERR qq(no such table\\n);\nexit 1;\n",
        "crash": "kill 'SEGV', $$; sleep 5;\n",
        "loop": "$| = 1; print qq(begun\\n); while (1) {}\n",
        "environment": "use JSON::PP;\nprint encode_json({%ENV}), qq(\\n);\n",
        "read": "open(my $file, '<', qq($ENV{SKILL_BASE_DIR}/data/config.yaml)) or die; print <$file>;\n",
        "mark": "open(my $file, '>', $ARGV[0]) or die;\n",
    },
}
POLICIES = {"without walls": TRUSTED, "inside walls": STANDARD}


class Language:
    """One language, and how its scripts are run."""

    def __init__(self, name: str, walls: str, folder: Path) -> None:
        needs(name)
        self.programs = LANGUAGES[name]
        self.ending = self.programs["ending"]
        self.policy = POLICIES[walls]
        self.folder = folder

    def manager(self, program: str, *, at: str = "scripts", front: str = "", **settings: Any) -> SkillManager:
        block = f"name: pdf-extractor\ndescription: Extracts.\n{front}"
        files = {f"{at}/{program}.{self.ending}": self.programs[program], "data/config.yaml": "key: value\n"}
        return made_manager(self.folder, files, frontmatter=block, policy=self.policy, **settings)

    def run(self, program: str, arguments: object = None, *, front: str = "", **call: Any) -> ScriptExecutionResult:
        with self.manager(program, front=front) as manager:
            return manager.execute_skill_script("pdf-extractor", program, arguments, **call)

    def file(self, program: str) -> Path:
        return self.folder / "skills/demo/scripts" / f"{program}.{self.ending}"


@pytest.fixture(params=POLICIES)
def walls(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=LANGUAGES)
def language(request: pytest.FixtureRequest, walls: str, tmp_path: Path) -> Language:
    return Language(request.param, walls, tmp_path)


def test_transformed_data_is_in_stdout(language: Language, walls: str) -> None:
    result = language.run("sort", [3, 1, 2])
    assert (json.loads(result.stdout), result.stderr, result.exit_code) == ([1, 2, 3], "", 0)
    assert (result.isolation.tier == "none") == (walls == "without walls")


def test_a_failure_is_a_result_with_what_the_script_said(language: Language) -> None:
    result = language.run("fail")
    assert (result.stdout, result.stderr, result.exit_code) == ("half\n", "no such table\n", 1)
    assert (result.success, result.timeout, result.signaled) == (False, False, False)


def test_a_nested_script_is_found_and_runs_in_the_skills_folder(language: Language) -> None:
    with language.manager("sort", at="scripts/utils") as manager:
        path = f"scripts/utils/sort.{language.ending}"
        result = manager.execute_skill_script("pdf-extractor", path, [2, 1])
    assert json.loads(result.stdout) == [1, 2]
    assert result.script_path == (language.folder / "skills/demo" / path).resolve()


def test_a_segmentation_fault_is_told_by_name_and_number(language: Language, caplog: pytest.LogCaptureFixture) -> None:
    result = language.run("crash")
    assert (result.exit_code, result.signal, result.signal_number) == (-11, "SIGSEGV", 11)
    assert result.stderr.endswith("Signal: SIGSEGV")
    assert [record.levelno for record in caplog.records if record.name == "skillkit.run"] == [logging.ERROR]


def test_an_endless_script_ends_at_its_timeout_with_124_and_a_warning(
    language: Language, caplog: pytest.LogCaptureFixture
) -> None:
    result = language.run("loop", timeout=2)
    assert (result.exit_code, result.stdout, result.stderr) == (124, "begun\n", "Timeout")
    assert (result.timed_out, result.signaled) == (True, False)
    assert 2000 <= result.execution_time_ms < 10_000
    assert [record.levelno for record in caplog.records if record.name == "skillkit.run"] == [logging.WARNING]


def test_every_run_is_on_record_with_what_it_was(language: Language) -> None:
    result = language.run("fail", {"file_path": "/path/to/doc.pdf"})
    started, finished = records_of(language.folder)
    assert (started.fields["skill"], started.fields["path"]) == ("pdf-extractor", str(result.script_path))
    assert "/path/to/doc.pdf" in str(started.fields["arguments"])
    assert (finished.fields["exit_code"], finished.fields["started"]) == (1, started.seq)
    assert finished.fields["duration_us"] == round(result.execution_time_ms * 1000)
    assert started.timestamp < finished.timestamp


@pytest.mark.parametrize("tools", ["Bash, Read, Write", ""])
def test_a_skill_that_lists_bash_or_nothing_may_run(language: Language, tools: str) -> None:
    assert language.run("sort", [1], front=f"allowed-tools: {tools}\n").success


def test_a_skill_that_lists_other_tools_only_may_not(language: Language) -> None:
    mark = language.folder / "ran"
    said = r"^Tool 'Bash' not allowed for skill 'pdf-extractor'\. Allowed tools: Read, Write"
    with pytest.raises(ToolRestrictionError, match=said):
        language.run("mark", front="allowed-tools: Read, Write\n", argv=[str(mark)])
    assert (mark.exists(), kinds(language.folder)) == (False, ["refused"])


def test_a_script_knows_its_skill(language: Language) -> None:
    result = language.run("environment", front='version: "1.0.0"\n')
    seen = json.loads(result.stdout)
    names = ("SKILL_NAME", "SKILL_VERSION", "SKILLKIT_VERSION")
    assert [seen[name] for name in names] == ["pdf-extractor", "1.0.0", skillkit.__version__]
    own = str((language.folder / "skills/demo").resolve())
    # Node looks for code in the folders above, so there it has a place with nothing above it.
    is_apart = language.ending == "js" and result.isolation.skill == "mounted snapshot"
    is_copy = result.isolation.skill == "snapshot"
    assert is_copy or seen["SKILL_BASE_DIR"] == ("/skill/demo" if is_apart else own)


def test_a_file_of_the_skill_is_read_through_its_base_dir(language: Language) -> None:
    assert language.run("read").stdout == "key: value\n"


@pytest.mark.parametrize("bit", [0o4000, 0o2000], ids=["setuid", "setgid"])
def test_a_script_with_a_set_id_bit_is_refused(language: Language, bit: int) -> None:
    mark = language.folder / "ran"
    with language.manager("mark") as manager:
        language.file("mark").chmod(0o755 | bit)
        if not language.file("mark").stat().st_mode & bit:
            pytest.skip("this user may not set the bit")
        with pytest.raises(ScriptPermissionError, match="set"):
            manager.execute_skill_script("pdf-extractor", "mark", argv=[str(mark)])
    assert (mark.exists(), kinds(language.folder)) == (False, ["refused"])


@pytest.mark.parametrize("form", ["dots", "link"])
def test_a_script_outside_the_skill_is_a_security_violation(
    language: Language, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    mark, outside = language.folder / "ran", language.folder / f"evil.{language.ending}"
    outside.write_text(language.programs["mark"])
    with language.manager("mark") as manager:
        language.file("link").symlink_to(outside)
        name = (
            os.path.relpath(outside, language.folder / "skills/demo") if form == "dots" else language.file("link").name
        )
        with pytest.raises(PathSecurityError):
            manager.execute_skill_script(
                "pdf-extractor", f"scripts/{name}" if form == "link" else name, argv=[str(mark)]
            )
    assert (mark.exists(), kinds(language.folder)) == (False, ["refused"])
    assert [record.levelname for record in caplog.records if record.name == "skillkit.security"] == ["WARNING"]
    assert only_record(language.folder, "refused")["error"] == "PathSecurityError"


def test_control_the_script_outside_works_when_it_is_inside(language: Language) -> None:
    workspace = language.folder / "workspace"
    workspace.mkdir()
    language.run("mark", argv=[str(workspace / "ran")], workspace=workspace)
    assert (workspace / "ran").exists()
