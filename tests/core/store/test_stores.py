"""What every store does, whichever database stands behind it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.store.base import Store
from skillkit.core.store.opening import open_store

pytestmark = pytest.mark.usefixtures("each_database")
INSERT = "insert into meta (key, value) values (?, ?)"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path / "state")
    yield store
    store.close()


def python(code: str, *arguments: str | Path) -> tuple[str, str]:
    ended = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return ended.stdout, ended.stderr


def test_a_world_keeps_its_id_and_differs_from_others(store: Store, tmp_path: Path) -> None:
    world = store.world()
    store.close()
    assert store.world() == world
    with closing(open_store(tmp_path / "other", "")) as other:
        assert other.world() != world


def test_what_is_not_committed_is_rolled_back(store: Store) -> None:
    def write_and_fail() -> None:
        with store.connection() as connection:
            connection.execute("begin")
            connection.execute(INSERT, ("a", "b"))
            raise KeyboardInterrupt("stop")

    with pytest.raises(KeyboardInterrupt, match="stop"):
        write_and_fail()
    with store.connection() as connection:
        assert connection.execute("select count(*) from meta where key = 'a'").fetchone() == (0,)
        assert not connection.in_transaction


def test_a_transaction_is_kept_as_a_whole_or_not_at_all(store: Store) -> None:
    def write_and_fail() -> None:
        with store.transaction() as connection:
            connection.execute(INSERT, ("b", "lost"))
            raise ValueError("stop")

    with store.transaction() as connection:
        connection.execute(INSERT, ("a", "kept"))
    with pytest.raises(ValueError, match="stop"):
        write_and_fail()
    with store.connection() as connection:
        assert connection.execute("select key from meta where key in ('a', 'b')").fetchall() == [("a",)]


def test_a_broken_rule_of_the_schema_leaves_no_transaction_open(store: Store) -> None:
    def write_twice() -> None:
        with store.connection() as connection:
            connection.execute("begin")
            connection.execute(INSERT, ("world", "x"))

    with pytest.raises((sqlite3.IntegrityError, StateUnavailableError), match=r"UNIQUE|unique constraint"):
        write_twice()
    with store.connection() as connection:
        assert not connection.in_transaction


FORK = """
import multiprocessing, os, sys
from skillkit.core.store.opening import open_store
store = open_store(sys.argv[1])
def write(name):
    with store.transaction() as connection:
        connection.execute("insert into meta (key, value) values (?, ?)", (name, str(os.getpid())))
write("before")
children = [multiprocessing.get_context("fork").Process(target=write, args=(f"child{i}",)) for i in range(3)]
for child in children: child.start()
write("parent")
for child in children: child.join()
with store.connection() as connection:
    rows = dict(connection.execute("select key, value from meta where key not in ('world', 'version')").fetchall())
print(sorted(rows), len(set(rows.values())), store.world() != "")
store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork_the_child_connects_for_itself(tmp_path: Path) -> None:
    assert python(FORK, tmp_path) == ("['before', 'child0', 'child1', 'child2', 'parent'] 4 True\n", "")


BARE_FORK = """
import ctypes, os, sys
from skillkit.core.store.opening import open_store
store = open_store(sys.argv[1])
store.world()
child = ctypes.PyDLL(None).fork()
if child == 0:
    with store.connection() as connection:
        connection.execute("insert into meta (key, value) values ('child', 'x')")
    os._exit(0)
os.waitpid(child, 0)
with store.connection() as connection:
    print(connection.execute("select value from meta where key = 'child'").fetchone())
store.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_a_fork_that_python_does_not_see_is_noticed_by_the_process_id(tmp_path: Path) -> None:
    assert python(BARE_FORK, tmp_path) == ("('x',)\n", "")
