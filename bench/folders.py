"""Made-up skills on disk, shaped like real ones."""

from __future__ import annotations

from pathlib import Path

BODY = "Read the report, find the key figures, and write a short summary. " * 60
PYTHON = '#!/usr/bin/env python3\n"""Turn report {number} into a table.\n\nReads the file named first."""\nimport sys\n'
SHELL = "#!/usr/bin/env bash\n# Count the lines of part {number}.\nset -eu\nwc -l\n"
NODE = "#!/usr/bin/env node\n/**\n * Print the keys of document {number}.\n */\nconsole.log(1);\n"


def make_skills(root: Path, count: int) -> Path:
    for number in range(count):
        folder = root / f"skill-{number:05d}"
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            f"---\nname: {folder.name}\n"
            f"description: Summarise report {number}. Use when the user asks for key figures of a long report.\n"
            "license: Apache-2.0\nallowed-tools: Bash(git:*) Read\n"
            f"metadata:\n  author: someone\n  version: '1.{number}'\n---\n\n# Report {number}\n\n{BODY}\n"
        )
        (folder / "scripts" / "run.py").write_text(PYTHON.format(number=number))
    return root


def make_scripts(root: Path, count: int) -> Path:
    """Scripts of three languages in five nested folders."""
    kinds = ((".py", PYTHON), (".sh", SHELL), (".js", NODE))
    for number in range(count):
        suffix, text = kinds[number % 3]
        folder = root / "scripts" / "/".join(f"part{level}" for level in range(number % 5))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"script{number:02d}{suffix}").write_text(text.format(number=number))
    (root / "SKILL.md").write_text("---\nname: scripts\ndescription: Many scripts.\n---\n")
    return root
