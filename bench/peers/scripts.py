"""The scripts that every runtime is given, by skill; names in braces are filled in by the stage.

Each has a name of its own: one of the runtimes does not tell noop.sh from noop.py. All but one are python: another
finds no others. Those that do nothing say so, lest an error count as a quick answer.
"""

from __future__ import annotations

__all__ = ["SCRIPTS"]

BASH, PYTHON = "#!/usr/bin/env bash\n", "#!/usr/bin/env python3\n"
RAN = "print('it-ran')\n"

TREE = """\
import subprocess
subprocess.Popen(["sleep", "{child}"])
subprocess.Popen(["sleep", "{own_session}"], start_new_session=True)
subprocess.run(["sleep", "{foreground}"])
"""
DAEMON = """\
import subprocess
nowhere = {{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}}
subprocess.Popen(["sleep", "{child}"], **nowhere)
subprocess.Popen(["sleep", "{own_session}"], start_new_session=True, **nowhere)
"""
HOLDER = """\
import subprocess
subprocess.Popen(["sleep", "{child}"])
"""
FLOOD = """\
for _ in range({output} // 1_000_000):
    print("x" * 1_000_000, end="")
"""
SECRET = """\
import os
print("it-is-seen" if os.environ.get("{secret}") else "it-is-absent")
"""
INSTALL = """\
import subprocess
pip = ["python3", "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--no-deps"]
subprocess.run([*pip, "--index-url", "{index}", "--target", "{home}/installed", "zebra"])
"""
NEED = """\
# /// script
# dependencies = ["zebra"]
# ///
import zebra
print("it-is-there")
"""
# By the proxy that this network has, where the environment names no other.
HOSTS = """\
import os, sys, urllib.request
proxy = os.environ.get("HTTP_PROXY") or "http://127.0.0.1:{port}"
opener = urllib.request.build_opener(urllib.request.ProxyHandler({{"http": proxy}}))
failed = 0
for host in ("{granted}", "{other}"):
    try:
        print(host, opener.open(f"http://{{host}}/", timeout=5).status)
    except OSError as error:
        print(host, error, file=sys.stderr)
        failed = 1
sys.exit(failed)
"""

SCRIPTS = {
    "work": {
        "noop.sh": BASH + "echo it-ran\n",
        "pass.py": PYTHON + RAN,
        "usual.py": PYTHON + "import argparse, json, re\n" + RAN,
        "hang.py": PYTHON + "import time\ntime.sleep({lasts})\n",
        "tree.py": PYTHON + TREE,
        "daemon.py": PYTHON + DAEMON,
        "holder.py": PYTHON + HOLDER,
        "flood.py": PYTHON + FLOOD,
        "secret.py": PYTHON + SECRET,
        "read.py": PYTHON + 'print(open("{home}/private.txt").read())\n',
        "write.py": PYTHON + 'open("{home}/written.txt", "w").write("here")\n',
        "connect.py": PYTHON + 'import socket\nsocket.create_connection(("127.0.0.1", {port}), 5).close()\n',
        "install.py": PYTHON + INSTALL,
    },
    "packaged": {"need.py": PYTHON + NEED},
    "calls": {"hosts.py": PYTHON + HOSTS},
    "unseen": {"greet.py": PYTHON + RAN},
}
