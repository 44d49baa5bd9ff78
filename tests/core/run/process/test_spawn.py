"""A start through the C library's posix_spawn and one through Popen give the script the same world."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from skillkit.core.run.process import ProcessRequest, run_process, spawn
from skillkit.core.run.sandbox.base import descriptor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems start through Popen alone")


@pytest.fixture(params=["posix_spawn", "Popen"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "Popen":
        monkeypatch.setattr(spawn, "_LIBRARY", None)
    elif spawn._LIBRARY is None:
        pytest.skip("this C library has no closefrom for posix_spawn")
    return str(request.param)


def shell(
    text: str, *, environment: Mapping[str, str] | None = None, cwd: str = "/", contents: tuple[bytes, ...] = ()
) -> str:
    argv = ("/bin/bash", "-c", text, "bash", *(descriptor(number) for number in range(len(contents))))
    ended = run_process(ProcessRequest(argv, cwd, environment or {"PATH": os.defpath}, b"", 30, contents=contents))
    assert ended.status == 0, ended.stderr
    return os.fsdecode(ended.stdout)


def test_only_the_standard_streams_and_the_runner_s_own_descriptor_are_open(tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as low, (tmp_path / "other").open("w") as other:
        high = os.dup2(other.fileno(), 260)
        os.set_inheritable(low.fileno(), True)
        try:
            listed = shell("exec ls -l /proc/self/fd")
        finally:
            os.close(high)
    assert str(tmp_path) not in listed
    numbers = sorted(int(line.split(" -> ")[0].split()[-1]) for line in listed.splitlines()[1:])
    assert numbers[:4] == [0, 1, 2, 3], listed  # 3 is the listing itself
    assert [number >= 200 for number in numbers[4:]] == [True], listed


def test_each_content_is_readable_under_the_number_in_its_place() -> None:
    assert shell('cat <&"$2"; cat <&"$1"', contents=(b"first", b"second")) == "secondfirst"


def test_the_process_leads_a_session_of_its_own() -> None:
    session, pid = shell("cut -d' ' -f6 /proc/$$/stat; echo $$").split()
    assert session == pid


def test_signals_that_python_ignores_work_in_the_script() -> None:
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    ignored = int(shell("sed -n 's/^SigIgn:\\t//p' /proc/self/status"), 16)
    assert ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)) == 0


def test_the_folder_and_the_environment_are_as_asked(tmp_path: Path) -> None:
    said = shell("pwd; echo $WORD", environment={"WORD": "a=b \udcff"}, cwd=str(tmp_path))
    assert said == f"{tmp_path}\na=b \udcff\n"


@pytest.mark.parametrize("argv", [("/nowhere/program",), ("/etc/passwd",)], ids=["missing", "no program"])
def test_what_cannot_be_started_is_an_error_of_the_system(argv: tuple[str, ...]) -> None:
    with pytest.raises(OSError, match=r"No such file|Permission denied"):
        run_process(ProcessRequest(argv, "/", {}, b"", 30))


def test_a_folder_that_is_gone_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_process(ProcessRequest(("/bin/true",), str(tmp_path / "gone"), {}, b"", 30))


@pytest.mark.parametrize(
    ("argv", "cwd", "environment"),
    [
        (("/bin/echo", "a\0b"), "/", {}),
        (("/bin/echo",), "/\0tmp", {}),
        (("/bin/echo",), "/", {"NAME": "a\0b"}),
        (("/bin/echo",), "/", {"NA=ME": "a"}),
    ],
    ids=["word", "folder", "value", "name"],
)
def test_what_would_be_cut_short_on_its_way_is_refused(
    argv: tuple[str, ...], cwd: str, environment: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match=r"null byte|illegal environment|holds '='"):
        run_process(ProcessRequest(argv, cwd, environment, b"", 30))


def test_a_program_without_standard_streams_can_start_others() -> None:
    code = (
        "import os, sys\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from skillkit.core.run.process import ProcessRequest, run_process\n"
        "from skillkit.core.run.process import spawn\n"
        f"if {spawn._LIBRARY is None}: spawn._LIBRARY = None\n"
        "os.closerange(0, 3)\n"
        "ended = run_process(ProcessRequest(('/bin/sh', '-c', 'cat; echo out; echo err >&2'), '/', {}, b'in ', 30))\n"
        "os._exit(0 if (ended.stdout, ended.stderr) == (b'in out\\n', b'err\\n') else 1)\n"
    )
    assert run_process(ProcessRequest((sys.executable, "-c", code), "/", dict(os.environ), b"", 60)).status == 0
