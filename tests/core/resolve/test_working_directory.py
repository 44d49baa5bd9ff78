"""Where a script starts under `auto`: by what it opens, sources or starts of its own skill."""

from __future__ import annotations

import pytest

from skillkit.core.resolve.working_directory import starts_in_skill

OWN = (
    *("SKILL.md", "config.json", "template.docx", "scripts/run.py", "scripts/helper.py", "scripts/lib.sh"),
    *("templates/page.html", "templates/mail/text.txt", "data/list.csv", "bin/tool"),
)

IN_SKILL = {
    "python3": [
        "open('config.json')",
        "with open('./config.json') as f: pass",
        "import json\njson.load(open('data/list.csv'))",
        "from pathlib import Path\nPath('templates/page.html').read_text()",
        "from pathlib import Path\nfor p in Path('templates').iterdir(): pass",
        "import os\nos.listdir('templates')",
        "import glob\nglob.glob('templates/*.html')",
        "import os\nos.path.join('templates', name)",
        "CONFIG = 'config.json'\ndef load():\n    return open(CONFIG)",
        "def load(path='config.json'):\n    return open(path)",
        "parser.add_argument('--config', default='config.json')",
        "import subprocess\nsubprocess.run(['python3', 'scripts/helper.py', '-v'])",
        "import os\nos.system('bash scripts/lib.sh x')",
        "open(f'templates/{name}.html')",
        "import pandas as pd\npd.read_csv('data/list.csv')",
        "Document('template.docx')",
    ],
    "bash": [
        "source scripts/lib.sh",
        ". ./scripts/lib.sh",
        'python3 scripts/helper.py "$1"',
        "./bin/tool",
        "cat templates/page.html",
        "while read -r line; do :; done < data/list.csv",
        'CONFIG=config.json\njq . "$CONFIG"',
        "tool --config=config.json",
    ],
    "node": [
        "fs.readFileSync('config.json', 'utf8')",
        'const x = JSON.parse(fs.readFileSync("./data/list.csv"))',
        "execSync('node scripts/helper.py')",
        "spawn('python3', ['scripts/helper.py', word])",
        "path.join('templates/mail', name)",
    ],
    "ruby": ["File.read('config.json')", "load 'scripts/helper.py'", "require './scripts/lib.sh'"],
    "perl": ["open(my $fh, '<', 'data/list.csv');", "do 'scripts/helper.py';"],
}  # fmt: skip
ELSEWHERE = {
    "python3": [
        "open('out.json', 'w')",
        "open('package.json')",
        "from pathlib import Path\nopen(Path(__file__).parent.parent / 'config.json')",
        "import os\nos.path.join(os.path.dirname(__file__), 'templates/page.html')",
        "import os\nopen(os.path.join(base, 'config.json'))",
        "print('config.json')",
        "'''Run: python scripts/run.py config.json'''",
        "parser.add_argument('--config', help='config.json')",
        "base.joinpath('config.json')",
        "if name == 'config.json': pass",
        "open('../config.json')",
        "open('/config.json')",
        "names.get('data')",
        "x = {'config.json': 1}",
        "run('data')",
    ],
    "bash": [
        "echo 'usage: scripts/run.py FILE'",
        "echo scripts/run.py config.json",
        "cat <<EOF\npython3 scripts/run.py\nEOF",
        "# cat config.json",
        'cat "$(dirname "$0")/../config.json"',
        'NAME=config.json\ncat "$DIR/$NAME"',
        "git rev-parse --show-toplevel",
        "echo x > out.txt",
    ],
    "node": [
        "const x = require('./scripts/helper.py')",
        "import x from './config.json'",
        "fs.readFileSync(path.join(__dirname, 'config.json'))",
        "new URL('./config.json', import.meta.url)",
        "// fs.readFileSync('config.json')",
        "console.log('config.json')",
    ],
    "ruby": ["require_relative 'scripts/helper.py'", "puts 'config.json'"],
    "perl": ["print 'config.json';"],
}  # fmt: skip


@pytest.mark.parametrize(("interpreter", "text"), [(name, text) for name, texts in IN_SKILL.items() for text in texts])
def test_who_uses_its_own_files_by_a_relative_name_starts_in_its_skill(interpreter: str, text: str) -> None:
    assert starts_in_skill(text.encode(), interpreter, OWN, "a")


@pytest.mark.parametrize(("interpreter", "text"), [(name, text) for name, texts in ELSEWHERE.items() for text in texts])
def test_who_does_not_starts_in_the_workspace(interpreter: str, text: str) -> None:
    assert not starts_in_skill(text.encode(), interpreter, OWN, "a")


@pytest.mark.parametrize("interpreter", ["python3", "bash", "node", "ruby", "perl", "tsx"])
@pytest.mark.parametrize(
    "text", [b"", b"\xff\x00\xfe", b"(" * 5000, b"'" * 100_000, b"open('" * 50_000, b"$(" * 10_000]
)
def test_no_text_fails(interpreter: str, text: bytes) -> None:
    assert starts_in_skill(text, interpreter, OWN, "a") in (True, False)
