"""The state file: where it is, who may read it, and how it behaves when the world is unkind."""

from __future__ import annotations

import gc
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

import pytest
from support.interrupts import interrupted_at

from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.store import state
from skillkit.core.store.state import StateStore, state_folder

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    store = StateStore(tmp_path / "state", busy_timeout=0.2)
    yield store
    store.close()


def test_a_place_that_nobody_can_look_at_is_not_an_empty_world(store: StateStore) -> None:
    store.folder.parent.mkdir(exist_ok=True)
    store.folder.symlink_to(store.folder)  # what a closed folder is to an ordinary user, this is to root too
    for question in (store.exists, store.change_mark):
        with pytest.raises(StateUnavailableError, match="cannot be used"):
            question()


def test_a_place_that_is_not_there_is_an_empty_world(store: StateStore) -> None:
    assert (store.exists(), store.change_mark()) == (False, (0, 0, 0))
    store.folder.write_text("a file where a folder would be")
    assert not store.exists()


def python(code: str, *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_the_given_folder_comes_before_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLKIT_STATE_DIR", str(tmp_path / "variable"))
    assert state_folder(tmp_path / "given") == tmp_path / "given"
    assert state_folder() == tmp_path / "variable"
    assert list(tmp_path.iterdir()) == []


def test_without_a_word_the_platforms_folder_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLKIT_STATE_DIR", "")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder().name == "skillkit"


def test_a_relative_folder_stays_the_same_after_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert state_folder("here") == tmp_path / "here"


def test_importing_and_making_a_store_touches_nothing(store: StateStore) -> None:
    assert not store.folder.exists()


def test_only_the_owner_can_read_the_folder_and_the_files(store: StateStore) -> None:
    with store.connection() as connection:
        connection.execute("create table t (x)")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in store.folder.iterdir()}
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert modes == {"state.sqlite3": 0o600, "state.sqlite3-shm": 0o600, "state.sqlite3-wal": 0o600}


def test_the_connection_waits_checks_keys_and_writes_ahead(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    names = ("journal_mode", "busy_timeout", "foreign_keys", "synchronous")
    with store.connection() as connection:
        found = {name: connection.execute(f"pragma {name}").fetchone()[0] for name in names}
    with store.connection(durable=True) as connection:
        durable = connection.execute("pragma synchronous").fetchone()[0]
    with store.connection() as connection:
        again = connection.execute("pragma synchronous").fetchone()[0]
    store.close()
    assert found == {"journal_mode": "wal", "busy_timeout": 5000, "foreign_keys": 1, "synchronous": 1}
    assert (durable, again) == (2, 1)


def test_threads_share_one_connection(store: StateStore) -> None:
    seen: list[int] = []

    def look() -> None:
        with store.connection() as connection:
            seen.append(id(connection))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 8
    assert len(set(seen)) == 1


def test_a_new_step_is_applied_once_to_a_file_that_has_the_old_ones(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = store.world()
    store.close()
    monkeypatch.setattr(state, "MIGRATIONS", (*state.MIGRATIONS, ("create table later (id text)",)))
    for _ in range(2):
        with store.connection() as connection:
            assert connection.execute("select count(*) from later").fetchone() == (0,)
            assert connection.execute("pragma user_version").fetchone() == (len(state.MIGRATIONS),)
        store.close()
    assert store.world() == world


def test_a_step_that_fails_leaves_the_file_as_it_was(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    world = store.world()
    store.close()
    with monkeypatch.context() as patch:
        patch.setattr(state, "MIGRATIONS", (*state.MIGRATIONS, ("create table later (id text)", "nonsense")))
        with pytest.raises(StateUnavailableError, match="syntax error"):
            store.world()
    assert store.world() == world
    with store.connection() as connection:
        assert connection.execute("select count(*) from sqlite_master where name = 'later'").fetchone() == (0,)


def test_a_file_of_a_newer_skillkit_is_left_alone(store: StateStore) -> None:
    with store.connection() as connection:
        connection.execute("pragma user_version = 99")
    store.close()
    with pytest.raises(
        StateUnavailableError,
        match=r"made by a newer skillkit \(version 99.*\)\. Use that version, or name another folder",
    ):
        store.world()


def test_a_file_that_is_no_database_is_named_with_a_remedy(store: StateStore) -> None:
    store.folder.mkdir()
    store.path.write_bytes(b"hello " * 1000)
    with pytest.raises(StateUnavailableError, match=r"state\.sqlite3 is not a SQLite file .*Move it away"):
        store.world()
    assert store.path.read_bytes() == b"hello " * 1000


def test_a_folder_in_place_of_the_file_is_named(store: StateStore) -> None:
    store.path.mkdir(parents=True)
    with pytest.raises(StateUnavailableError, match=r"cannot be used: state\.sqlite3 is not a regular file"):
        store.world()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_the_file_does_not_hang(store: StateStore) -> None:
    store.folder.mkdir()
    os.mkfifo(store.path)
    with pytest.raises(StateUnavailableError, match="not a regular file"):
        store.world()


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StateUnavailableError, match=r"cannot be used: .*SKILLKIT_STATE_DIR"):
        StateStore(tmp_path / "file" / "state").world()


def test_a_lock_that_lasts_is_named_and_passes(store: StateStore) -> None:
    store.world()
    holder = sqlite3.connect(store.path, isolation_level=None)
    holder.execute("begin immediate")
    with (
        pytest.raises(StateUnavailableError, match=r"is locked by another process .*Wait"),
        store.connection() as connection,
    ):
        connection.execute("begin immediate")
    holder.execute("rollback")
    holder.close()
    with store.connection() as connection:
        connection.execute("begin immediate")


def test_a_file_that_was_removed_is_made_anew_instead_of_written_into_nowhere(store: StateStore) -> None:
    world = store.world()
    for path in store.folder.iterdir():
        path.unlink()
    store.folder.rmdir()
    assert store.world() != world
    assert store.path.exists()


WITHOUT_PRIVILEGE = """
import ctypes, sys
from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.store.state import StateStore
# Root without capabilities obeys permission bits as everyone does.
ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)())
try:
    StateStore(sys.argv[1]).world()
except StateUnavailableError as error:
    print(error)
"""


@needs_linux
def test_a_read_only_parent_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    output, errors = python(WITHOUT_PRIVILEGE, tmp_path / "state").communicate()
    tmp_path.chmod(0o700)
    assert errors == ""
    assert "cannot be used: Permission denied. Make" in output


@needs_linux
def test_a_read_only_folder_is_named(store: StateStore) -> None:
    store.world()
    store.close()
    store.folder.chmod(0o500)
    store.path.chmod(0o400)
    output, errors = python(WITHOUT_PRIVILEGE, store.folder).communicate()
    store.folder.chmod(0o700)
    assert errors == ""
    assert "state.sqlite3 is read-only" in output or "state.sqlite3 cannot be opened" in output
    assert "writable for this user" in output


OPEN_TOGETHER = """
import sys
from skillkit.core.store.state import StateStore
sys.stdin.readline()
store = StateStore(sys.argv[1])
print(store.world())
store.close()
"""


@pytest.mark.slow
def test_processes_that_make_the_file_together_get_one_world(tmp_path: Path) -> None:
    for attempt in range(3):
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", OPEN_TOGETHER, str(tmp_path / str(attempt))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(6)
        ]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        answers = [process.communicate() for process in processes]
        assert [errors for _, errors in answers] == [""] * 6
        assert len({world for world, _ in answers}) == 1


def test_a_file_that_lost_its_worlds_id_is_not_used(store: StateStore) -> None:
    with store.connection() as connection:
        connection.execute("delete from meta")
    store.close()
    with pytest.raises(StateUnavailableError, match=r"does not look as skillkit made it \(the world's id is missing\)"):
        store.world()


def test_a_store_that_nobody_holds_lets_go_of_its_file(tmp_path: Path) -> None:
    def descriptors() -> list[str]:
        there = [Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
        return [str(each.readlink()) for each in there if each.is_symlink() and str(tmp_path) in str(each.readlink())]

    store = StateStore(tmp_path)
    store.world()
    assert descriptors()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del store
        gc.collect()
    assert descriptors() == []
    assert [str(each.message) for each in told if "unclosed" in str(each.message)] == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")  # Python 3.13 tells what an interrupt cut off
@pytest.mark.parametrize("durable", [False, True])
def test_an_interrupt_at_any_step_leaves_the_connection_to_the_next_thread(store: StateStore, durable: bool) -> None:
    store.world()

    def use() -> None:
        with store.connection(durable=durable) as connection:
            connection.execute("begin")

    def is_of_a_turn(frame: FrameType) -> bool:
        frame.f_trace_opcodes = True
        return frame.f_code.co_filename.endswith(("state.py", "contextlib.py"))

    step = 0
    while interrupted_at(step := step + 1, use, is_of_a_turn):
        with ThreadPoolExecutor(1) as pool:
            is_free = pool.submit(store._lock.acquire, timeout=0.5).result()
            assert is_free, f"the lock is still held after an interrupt at step {step}"
            pool.submit(store._lock.release).result()
    assert step > 50
    with store.connection() as connection:
        assert not connection.in_transaction
    gc.collect()  # told here, and not in somebody else's test
