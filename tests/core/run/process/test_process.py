from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skillkit.core.run import process as process_module
from skillkit.core.run.process import ProcessRequest, run_process, survivors
from skillkit.core.run.sandbox.base import descriptor
from skillkit.core.values.runs import ProcessExit, RunControl

ENVIRONMENT = {"PATH": os.defpath, "GREETING": "hello"}


def request_for(*argv: str, stdin: bytes = b"", timeout: float = 30, output_limit: int = 10_000_000) -> ProcessRequest:
    return ProcessRequest(argv, "/", ENVIRONMENT, stdin, timeout, output_limit)


def bash(text: str, *, stdin: bytes = b"", timeout: float = 30, output_limit: int = 10_000_000) -> ProcessExit:
    return run_process(request_for("/bin/bash", "-c", text, stdin=stdin, timeout=timeout, output_limit=output_limit))


def python(text: str, *, stdin: bytes = b"", timeout: float = 30) -> ProcessExit:
    return run_process(request_for(sys.executable, "-c", text, stdin=stdin, timeout=timeout))


def open_descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def said_by_a_program(text: str) -> object:
    """What a separate Python program, with warnings as errors, writes as JSON to the descriptor `SAY`."""
    preamble = f"import sys; sys.path[:0] = {sys.path!r}\n"
    reader, writer = os.pipe()
    with os.fdopen(reader, encoding="utf-8") as said:
        code = preamble + f"SAY = {writer}\n" + textwrap.dedent(text)
        program = subprocess.run(
            [sys.executable, "-W", "error", "-c", code], pass_fds=[writer], check=False, timeout=100
        )
        os.close(writer)
        assert program.returncode == 0
        return json.load(said)


def test_everything_a_process_did_is_told() -> None:
    ended = bash("echo out; echo err >&2; exit 3")

    assert ended._replace(duration_ms=0) == ProcessExit(
        status=3,
        stdout=b"out\n",
        stderr=b"err\n",
        stdout_bytes=4,
        stderr_bytes=4,
        duration_ms=0,
        timed_out=False,
        cancelled=False,
        leftovers_killed=0,
        kill="best-effort",
    )
    assert 0 < ended.duration_ms < 30_000


@pytest.mark.parametrize(
    ("text", "status"),
    [
        pytest.param("exit 0", 0, id="success"),
        pytest.param("exit 124", 124, id="exit 124 is no timeout"),
        pytest.param("exit 139", 139, id="exit 139 is no signal"),
        pytest.param("kill -SEGV $$", -11, id="SIGSEGV"),
        pytest.param("kill -KILL $$", -9, id="SIGKILL by itself"),
        pytest.param("trap '' TERM; kill -TERM $$; exit 7", 7, id="SIGTERM ignored"),
    ],
)
def test_exit_codes_and_signals_are_told_apart(text: str, status: int) -> None:
    ended = bash(text)

    assert (ended.status, ended.timed_out, ended.cancelled) == (status, False, False)


def test_the_environment_is_the_given_one_and_the_mark_of_the_run(tmp_path: Path) -> None:
    request = request_for("/usr/bin/env")._replace(cwd=str(tmp_path))

    lines = run_process(request).stdout.decode().splitlines()

    assert sorted(line for line in lines if not line.startswith("SKILLKIT_RUN=")) == [
        "GREETING=hello",
        f"PATH={os.defpath}",
    ]
    assert len(lines) == 3


def test_the_process_has_its_folder_its_session_and_no_descriptor_of_the_caller(tmp_path: Path) -> None:
    text = (
        "import os\n"
        "print(os.getcwd() == os.path.realpath('.'), os.getsid(0) == os.getpid())\n"
        "print([fd for fd in map(int, os.listdir('/proc/self/fd')) if fd < 200])\n"
        "print(os.readlink('/proc/self/fd/0'))"
    )
    with (tmp_path / "secret").open("w", encoding="utf-8") as secret:
        os.set_inheritable(secret.fileno(), True)
        ended = run_process(request_for(sys.executable, "-c", text)._replace(cwd=str(tmp_path)))

    assert ended.stdout == b"True True\n[0, 1, 2, 3]\n/dev/null\n"  # 3 is the listing itself


def test_bytes_that_are_no_text_survive_both_ways() -> None:
    content = bytes(range(256)) * 3

    assert bash("cat", stdin=content).stdout == content


def test_ten_megabytes_go_in_and_come_out() -> None:
    content = json.dumps({"text": "x" * 9_990_000}).encode()

    ended = python("import json, sys; print(len(json.load(sys.stdin)['text']))", stdin=content)

    assert (ended.stdout, ended.status) == (b"9990000\n", 0)
    assert bash("cat", stdin=content).stdout == content


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("echo ok", id="never reads"),
        pytest.param("exec <&-; sleep 0.1; echo ok", id="closes its input"),
        pytest.param("head -c 10 >/dev/null; echo ok", id="reads a little"),
    ],
)
def test_a_script_need_not_read_its_input(text: str) -> None:
    ended = bash(text, stdin=b"x" * 1_000_000)

    assert (ended.status, ended.stdout) == (0, b"ok\n")


def test_a_script_may_close_its_output_and_go_on() -> None:
    ended = bash("echo before; exec >&- 2>&-; sleep 0.3; exit 5")

    assert (ended.status, ended.stdout) == (5, b"before\n")
    assert ended.duration_ms > 290


def test_output_beyond_the_limit_is_read_and_counted() -> None:
    ended = bash("head -c 3000000 /dev/zero; head -c 500 /dev/zero >&2", output_limit=1000)

    assert (ended.stdout, ended.stdout_bytes) == (bytes(1000), 3_000_000)
    assert (ended.stderr, ended.stderr_bytes) == (bytes(500), 500)
    assert ended.status == 0


def test_endless_output_ends_at_the_timeout_in_bounded_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    ended = bash("yes & exec yes >&2", timeout=1, output_limit=1_000_000)

    assert (ended.status, ended.timed_out) == (-9, True)
    assert (len(ended.stdout), len(ended.stderr)) == (1_000_000, 1_000_000)
    assert min(ended.stdout_bytes, ended.stderr_bytes) > 1_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64_000  # kilobytes


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("sleep 60", id="sleeps"),
        pytest.param("trap '' TERM INT HUP; while :; do sleep 60; done", id="ignores SIGTERM"),
        pytest.param("kill -STOP $$", id="stopped"),
        pytest.param("while :; do :; done", id="spins"),
        pytest.param("exec >&- 2>&-; sleep 60", id="closed its output"),
        pytest.param("while :; do (setsid sleep 60 &) ; sleep 0.01; done", id="starts sessions without end"),
        pytest.param("f() { sleep 0.05; f & f & }; f; sleep 60", id="multiplies"),
    ],
)
def test_a_timeout_ends_whatever_runs(text: str) -> None:
    started = time.monotonic()

    ended = bash(text, timeout=0.3)

    assert (ended.status, ended.timed_out, ended.cancelled, ended.kill) == (-9, True, False, "best-effort")
    assert ended.duration_ms >= 300
    assert time.monotonic() - started < 20


def test_an_event_cancels() -> None:
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()

    ended = run_process(request_for("/bin/sleep", "60"), RunControl(cancel=cancel))

    assert (ended.status, ended.timed_out, ended.cancelled) == (-9, False, True)


def test_a_readable_descriptor_cancels() -> None:
    reader, writer = os.pipe()
    try:
        threading.Timer(0.2, os.write, (writer, b"!")).start()

        ended = run_process(request_for("/bin/sleep", "60"), RunControl(wakeup_fd=reader))

        assert (ended.status, ended.timed_out, ended.cancelled) == (-9, False, True)
    finally:
        os.close(reader)
        os.close(writer)


def test_a_command_cancelled_beforehand_does_not_start(tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()

    ended = run_process(request_for("/bin/touch", str(tmp_path / "ran")), RunControl(cancel=cancel))

    assert (ended.status, ended.cancelled, list(tmp_path.iterdir())) == (-9, True, [])


def test_output_is_heard_while_the_script_runs() -> None:
    heard: list[tuple[str, bytes]] = []
    cancel = threading.Event()

    def listen(stream: str, chunk: bytes) -> None:
        heard.append((stream, chunk))
        cancel.set()

    ended = run_process(
        request_for("/bin/bash", "-c", "echo now; sleep 60"), RunControl(cancel=cancel, on_output=listen)
    )

    assert (heard, ended.cancelled) == ([("stdout", b"now\n")], True)


def test_what_the_listener_raises_kills_the_run_and_comes_out(tmp_path: Path) -> None:
    def refuse(stream: str, chunk: bytes) -> None:
        raise RuntimeError(f"no more of {stream}: {chunk!r}")

    descriptors = open_descriptors()
    text = 'setsid sleep 60 & echo $! > "$0"; echo text; sleep 60'
    with pytest.raises(RuntimeError, match=r"no more of stdout: b'text\\n'"):
        run_process(request_for("/bin/bash", "-c", text, str(tmp_path / "pid")), RunControl(on_output=refuse))

    assert open_descriptors() == descriptors
    assert not is_alive(int((tmp_path / "pid").read_text(encoding="utf-8")))


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def test_a_listener_that_hangs_does_not_lengthen_the_life_of_the_script() -> None:
    alive: list[bool] = []

    def hang(_: str, chunk: bytes) -> None:
        time.sleep(1)
        alive.append(is_alive(int(chunk)))

    ended = run_process(request_for("/bin/sh", "-c", "echo $$; sleep 60", timeout=0.3), RunControl(on_output=hang))

    assert (alive, ended.status, ended.timed_out) == ([False], -9, True)


@pytest.mark.parametrize(
    ("changes", "number"),
    [
        pytest.param({"argv": ("/no/such/program",)}, errno.ENOENT, id="no program"),
        pytest.param({"argv": ("/etc/passwd",)}, errno.EACCES, id="not executable"),
        pytest.param({"cwd": "/no/such/folder"}, errno.ENOENT, id="no folder"),
        pytest.param({"argv": ("/bin/true", "x" * 3_000_000)}, errno.E2BIG, id="huge argument"),
        pytest.param({"environment": {f"V{n}": "x" * 100_000 for n in range(100)}}, errno.E2BIG, id="huge environment"),
    ],
)
def test_a_command_that_cannot_start_raises_and_leaves_nothing_open(changes: dict[str, object], number: int) -> None:
    run_process(request_for("/bin/true"))
    descriptors = open_descriptors()

    with pytest.raises(OSError, match=os.strerror(number).replace("[", r"\[")) as raised:
        run_process(request_for("/bin/true", stdin=b"input")._replace(**changes))  # type: ignore[arg-type]

    assert raised.value.errno == number
    assert open_descriptors() == descriptors


def test_a_shortage_of_descriptors_raises_and_leaves_nothing_behind() -> None:
    said = said_by_a_program("""
        import errno, json, os, resource
        from skillkit.core.run.process import ProcessRequest, run_process
        os.closerange(SAY + 1, 1024)
        for fd in range(3, SAY):
            os.dup2(0, fd)
        request = ProcessRequest(("/bin/sleep", "0.01"), "/", {}, b"input", 30)
        run_process(request)
        before = os.listdir("/proc/self/fd")
        outcomes = []
        for limit in range(SAY + 2, SAY + 20):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, 4096))
            try:
                outcomes.append(run_process(request).status)
            except OSError as error:
                outcomes.append(-error.errno)
            assert os.listdir("/proc/self/fd") == before
        try:
            os.waitpid(-1, os.WNOHANG)
            outcomes.append("a child is left")
        except ChildProcessError:
            pass
        os.write(SAY, json.dumps(sorted(set(outcomes))).encode())
    """)

    assert said == [-errno.EMFILE, 0]


def test_nothing_stays_open_after_a_run() -> None:
    run_process(request_for("/bin/true"))
    descriptors = open_descriptors()

    bash("cat", stdin=b"x" * 200_000)
    bash("sleep 60 & exit 1")
    bash("sleep 60", timeout=0.1)

    assert open_descriptors() == descriptors


def test_256_runs_at_a_time_are_all_right() -> None:
    def outcome(number: int) -> tuple[int, bytes, int]:
        ended = bash(f"echo {number}; /bin/true; setsid sleep 60 >/dev/null & exit {number % 200}", timeout=100)
        return ended.status, ended.stdout, ended.leftovers_killed

    with ThreadPoolExecutor(256) as pool:
        outcomes = list(pool.map(outcome, range(256)))

    assert outcomes == [(number % 200, f"{number}\n".encode(), 1) for number in range(256)]


def test_runs_wait_for_each_other_where_descriptors_are_short() -> None:
    said = said_by_a_program("""
        import json, os, resource
        from concurrent.futures import ThreadPoolExecutor
        from skillkit.core.run.process import ProcessRequest, run_process
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 4096))
        def outcome(number):
            argv = ("/bin/sh", "-c", f"sleep 0.05; setsid sleep 60 & exit {number}")
            ended = run_process(ProcessRequest(argv, "/", {"PATH": os.defpath}, b"input", 100))
            return [ended.status, ended.leftovers_killed]
        with ThreadPoolExecutor(64) as pool:
            outcomes = list(pool.map(outcome, range(64)))
        os.write(SAY, json.dumps(outcomes).encode())
    """)

    assert said == [[number, 1] for number in range(64)]


def test_threads_that_end_at_once_do_not_take_their_runs_along() -> None:
    results: list[bytes] = []

    def start_and_leave() -> None:
        thread = threading.Thread(target=lambda: results.append(bash("sleep 0.2; echo here").stdout))
        thread.start()

    for _ in range(4):
        starter = threading.Thread(target=start_and_leave)
        starter.start()
        starter.join()
    until = time.monotonic() + 30
    while len(results) < 4 and time.monotonic() < until:
        time.sleep(0.01)

    assert results == [b"here\n"] * 4


def test_descriptors_above_1024_work() -> None:
    said = said_by_a_program("""
        import json, os, resource
        from skillkit.core.run.process import ProcessRequest, run_process
        resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
        ended = run_process(ProcessRequest(("/bin/cat",), "/", {}, b"x" * 100_000, 30))
        os.write(SAY, json.dumps([ended.status, ended.stdout_bytes]).encode())
    """)

    assert said == [0, 100_000]


def test_a_run_waits_a_moment_for_descriptors_also_where_no_other_run_is_known() -> None:
    """Of many that begin at once, those that are short see none that has begun."""
    said = said_by_a_program("""
        import json, os, resource, threading
        from skillkit.core.run.process import ProcessRequest, run_process
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 4096))
        request = ProcessRequest(("/bin/cat",), "/", {}, b"input", 30)
        run_process(request)
        held = []
        try:
            while True:
                held.append(os.dup(SAY))
        except OSError:
            pass
        threading.Timer(0.2, lambda: [os.close(each) for each in held]).start()
        os.write(SAY, json.dumps(run_process(request).stdout.decode()).encode())
    """)

    assert said == "input"


def test_a_program_without_standard_streams_can_run_scripts() -> None:
    said = said_by_a_program("""
        import json, os
        os.closerange(0, 3)
        from skillkit.core.run.process import ProcessRequest, orphans, run_process
        orphans.start_keeper()  # stays, and whatever the program prints does not go to it
        before = os.listdir("/proc/self/fd")  # a library may have taken 0 for itself
        text = "cat; echo err >&2; ls /proc/self/fd | wc -l >&2"
        ended = run_process(ProcessRequest(("/bin/sh", "-c", text), "/", {"PATH": os.defpath}, b"input", 30))
        leaked = sorted(set(os.listdir("/proc/self/fd")) - set(before))
        said = [ended.status, ended.stdout.decode(), ended.stderr.decode(), leaked, orphans._keeper._writer > 2]
        os.write(SAY, json.dumps(said).encode())
    """)

    # The child lists 0, 1, 2, the liveness pipe and the listing.
    assert said == [0, "input", "err\n5\n", [], True]


@pytest.mark.parametrize(
    "thief",
    [
        pytest.param("signal.signal(signal.SIGCHLD, signal.SIG_IGN)", id="SIGCHLD ignored"),
        pytest.param("threading.Thread(target=steal, daemon=True).start()", id="another thread waits for all"),
    ],
)
def test_a_status_that_somebody_else_took_is_still_told(thief: str) -> None:
    """Exactly where the kernel remembers it (Linux 6.15); as 255 elsewhere."""
    said = said_by_a_program(f"""
        import json, os, signal, threading, time
        from skillkit.core.run.process import ProcessRequest, run_process
        def steal():
            while True:
                try:
                    os.waitpid(-1, 0)
                except ChildProcessError:
                    time.sleep(0.001)
        {thief}
        def ended(text, timeout=30):
            request = ProcessRequest(("/bin/sh", "-c", text), "/", {{"PATH": os.defpath}}, b"", timeout)
            result = run_process(request)
            return [result.status, result.stdout.decode(), result.timed_out, result.leftovers_killed]
        results = [
            ended("sleep 0.1; echo a; exit 3"),
            ended("sleep 0.1; echo b; kill -SEGV $$"),
            ended("sleep 60", 0.2),
            ended("setsid sleep 60 & sleep 0.1; exit 0"),
        ]
        os.write(SAY, json.dumps(results).encode())
        os._exit(0)
    """)

    exact = [[3, "a\n", False, 0], [-11, "b\n", False, 0], [-9, "", True, 0], [0, "", False, 1]]
    assert said in (exact, [[255, *rest] for _, *rest in exact])


def test_a_caller_that_forks_in_the_middle_of_runs_can_run_in_the_copy() -> None:
    said = said_by_a_program("""
        import json, os, threading, time
        from skillkit.core.run.process import ProcessRequest, run_process
        def run(*argv):
            return run_process(ProcessRequest(argv, "/", {}, b"", 30)).status
        threads = [threading.Thread(target=run, args=("/bin/sleep", "0.5")) for _ in range(8)]
        for thread in threads:
            thread.start()
        copy = os.fork()
        if copy == 0:
            os._exit(run("/bin/true"))
        status = os.waitpid(copy, 0)[1]
        for thread in threads:
            thread.join()
        os.write(SAY, json.dumps(status).encode())
    """)

    assert said == 0


def test_an_interrupt_kills_the_run(tmp_path: Path) -> None:
    said = said_by_a_program(f"""
        import json, os, signal, threading
        from skillkit.core.run.process import ProcessRequest, run_process
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            argv = ("/bin/sh", "-c", "echo $$ > {tmp_path}/pid; sleep 60")
            run_process(ProcessRequest(argv, "/", {{"PATH": os.defpath}}, b"", 60))
        except KeyboardInterrupt:
            os.write(SAY, json.dumps("interrupted").encode())
    """)

    assert said == "interrupted"
    assert not is_alive(int((tmp_path / "pid").read_text(encoding="utf-8")))


def test_importing_works_without_pidfd_poll_and_fcntl() -> None:
    said = said_by_a_program("""
        import json, logging, os, select, signal, subprocess, tempfile, threading
        del os.pidfd_open, os.readv, os.register_at_fork, os.killpg, select.poll, signal.SIGPIPE
        sys.modules["fcntl"] = None
        sys.platform = "win32"
        from skillkit.core.run.process import ProcessRequest, run_process
        ended = run_process(ProcessRequest(("/bin/cat",), "/", {}, b"input", 30))
        os.write(SAY, json.dumps([ended.status, ended.stdout.decode(), ended.kill]).encode())
    """)

    assert said == [0, "input", "best-effort"]


def test_where_pidfds_are_forbidden_the_plain_way_runs_and_kills_the_group(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process_module, "pidfds_work", lambda: False)
    heard: list[tuple[str, bytes]] = []

    ended = run_process(
        request_for(
            "/bin/bash",
            "-c",
            "cat; echo err >&2; sleep 60 & echo $! > $0; exit 4",
            str(tmp_path / "pid"),
            stdin=b"x" * 200_000,
        ),
        RunControl(on_output=lambda stream, chunk: heard.append((stream, chunk))),
    )

    assert (ended.status, ended.stdout, ended.stderr) == (4, b"x" * 200_000, b"err\n")
    assert (b"".join(chunk for stream, chunk in heard if stream == "stdout")) == ended.stdout
    while is_alive(int((tmp_path / "pid").read_text(encoding="utf-8"))):  # killed, which takes a moment
        time.sleep(0.01)


def test_the_plain_way_is_cancelled_by_a_readable_descriptor_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "pidfds_work", lambda: False)
    readable, writable = os.pipe()
    threading.Timer(0.2, os.write, (writable, b"x")).start()

    try:
        cancelled = run_process(request_for("/bin/sleep", "60"), RunControl(wakeup_fd=readable))
        never_started = run_process(request_for("/nonexistent"), RunControl(wakeup_fd=readable))
    finally:
        os.close(readable)
        os.close(writable)

    assert (cancelled.status, cancelled.timed_out, cancelled.cancelled) == (-9, False, True)
    assert never_started.cancelled


def test_the_plain_way_passes_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "pidfds_work", lambda: False)
    argv = ("/bin/bash", "-c", "cat <&$0", descriptor(0))

    ended = run_process(ProcessRequest(argv, "/", {"PATH": os.defpath}, b"", 30, contents=(b"given",)))

    assert ended.stdout == b"given"


def test_the_plain_way_ends_in_time_and_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "pidfds_work", lambda: False)
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()

    def refuse(stream: str, chunk: bytes) -> None:
        raise RuntimeError(f"no more of {stream}: {chunk!r}")

    late = bash("trap '' TERM; sleep 60", timeout=0.2)
    cancelled = run_process(request_for("/bin/sleep", "60"), RunControl(cancel=cancel))

    assert (late.status, late.timed_out, late.cancelled) == (-9, True, False)
    assert (cancelled.status, cancelled.timed_out, cancelled.cancelled) == (-9, False, True)
    with pytest.raises(RuntimeError, match=r"no more of stdout: b'text\\n'"):
        run_process(request_for("/bin/bash", "-c", "echo text; sleep 60"), RunControl(on_output=refuse))


def test_what_was_found_out_about_processes_is_kept_only_while_there_are_runs() -> None:
    kept: list[int] = []

    def look(*_: object) -> None:
        for _number in range(3):
            bash("setsid sleep 60 & exit 0")
        kept.append(len(survivors._census._seen))

    bash("exit 0")
    before = len(survivors._census._seen)
    run_process(request_for("/bin/bash", "-c", "echo go; sleep 0.1"), RunControl(on_output=look))
    assert (before, len(survivors._census._seen)) == (0, 0)
    assert kept[0] >= 3, "control: while another one runs, it is"
