"""The audit log on real files, with other processes writing, dying and meddling."""

from __future__ import annotations

import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from skillkit.core.exceptions import AuditUnavailableError, ScriptError
from skillkit.core.record import JSON, AuditLog, Checkpoint, Record, Verification
from skillkit.core.store.base import Store
from skillkit.core.store.opening import open_store
from skillkit.core.store.state import StateStore
from skillkit.core.values.records import canonical_json, chained_row, exact_fields, first_link, record_from

RUN: dict[str, JSON] = {"skill": "pdf", "session": "one", "script": "scripts/extract.py", "exit_code": 0}

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture
def store(tmp_path: Path, each_database: str) -> Iterator[Store]:
    folder = tmp_path / "state"
    store = StateStore(folder, busy_timeout=0.2) if each_database == "sqlite" else open_store(folder)
    yield store
    store.close()


@pytest.fixture
def log(store: Store) -> AuditLog:
    return AuditLog(store)


def tamper(store: Store, *statements: str) -> None:
    """What someone with the file and time can do: drop the guards, then edit."""
    if store.is_shared:
        with store.connection() as shared:
            guards = [f"alter table {name} disable trigger all" for name in ("audit", "meta")]
            for statement in (*guards, *statements):
                shared.execute(statement)
        return
    store.close()
    connection = sqlite3.connect(store.place)
    names = [row[0] for row in connection.execute("select name from sqlite_master where type = 'trigger'")]
    for statement in (*(f"drop trigger {name}" for name in names), *statements):
        connection.execute(statement)
    connection.commit()
    connection.close()


def fill(log: AuditLog, count: int) -> list[Record]:
    return [log.append("finished", {**RUN, "exit_code": number}) for number in range(count)]


def test_a_record_comes_back_as_it_was_appended(log: AuditLog, store: Store) -> None:
    record = log.append("started", RUN)
    told = {"world": store.world(), **({"login": "owner"} if store.is_shared else {})}
    assert (record.seq, record.kind, record.fields) == (1, "started", {**RUN, **told})
    assert record.previous == first_link(store.world())
    assert list(log.records()) == [record]


def test_every_record_names_its_world_whatever_the_caller_says(log: AuditLog, store: Store, tmp_path: Path) -> None:
    for kind in ("started", "finished", "refused"):
        log.append(kind, {"skill": "demo", "world": "another"})
    assert {record.fields["world"] for record in log.records()} == {store.world()}
    assert str(tmp_path) not in "".join(log.export()), "an id, not a place"
    assert log.verify().ok


@pytest.mark.own_file
def test_records_from_before_there_was_a_world_in_them_still_verify(log: AuditLog, store: Store) -> None:
    fields = canonical_json(exact_fields(RUN))
    row = chained_row(
        seq=1,
        timestamp="2026-01-01T00:00:00.000000Z",
        kind="started",
        fields=fields,
        previous=first_link(store.world()),
    )
    with store.connection() as connection:
        connection.execute("insert into audit values (?, ?, ?, ?, ?, ?)", row)
    log.append("finished", RUN)
    assert log.verify() == replace(log.verify(), ok=True, count=2)
    assert ["world" in record.fields for record in log.records()] == [False, True]


def test_records_outlive_the_store(log: AuditLog, store: Store) -> None:
    records = fill(log, 3)
    store.close()
    assert list(AuditLog(open_store(store.folder)).records()) == records


def test_each_record_follows_the_one_before(log: AuditLog) -> None:
    records = fill(log, 4)
    assert [record.previous for record in records[1:]] == [record.hash for record in records[:-1]]
    assert log.verify() == Verification(ok=True, count=4, head=records[-1].hash)


def test_an_unknown_kind_is_refused_and_nothing_is_written(log: AuditLog) -> None:
    with pytest.raises(ValueError, match="'ended' is no kind of record; known: finished, refused, started"):
        log.append("ended", RUN)
    assert list(log.records()) == []


def test_fields_that_cannot_be_exact_are_refused_and_nothing_is_written(log: AuditLog) -> None:
    with pytest.raises(TypeError, match="duration is float"):
        log.append("finished", {"duration": 0.5})  # type: ignore[dict-item]  # the mistake under test
    assert list(log.records()) == []


def test_records_are_found_by_skill_session_kind_and_place(log: AuditLog) -> None:
    log.append("started", RUN)
    log.append("finished", RUN)
    log.append("finished", {**RUN, "session": "two"})
    log.append("refused", {"skill": "other", "nested": {"skill": "pdf"}})

    def seqs(**filters: object) -> list[int]:
        return [record.seq for record in log.records(**filters)]  # type: ignore[arg-type]  # the names are the fact

    assert seqs(skill="pdf") == [1, 2, 3]
    assert seqs(skill="pd") == []
    assert seqs(skill="pdf", session="one", kind="finished") == [2]
    assert seqs(kind="refused") == [4]
    assert seqs(after=2) == [3, 4]
    assert seqs(after=1, limit=2) == [2, 3]
    assert seqs(limit=0) == []
    assert seqs(newest_first=True, limit=3) == [4, 3, 2]
    assert seqs(newest_first=True, skill="pdf", limit=1) == [3]


def test_a_log_of_many_pages_is_read_whole_in_both_directions(log: AuditLog) -> None:
    fill(log, 1203)
    assert [record.seq for record in log.records()] == list(range(1, 1204))
    assert [record.seq for record in log.records(newest_first=True)] == list(range(1203, 0, -1))
    assert log.verify().count == 1203


def test_appending_while_reading_neither_blocks_nor_breaks(log: AuditLog) -> None:
    fill(log, 3)
    for record in log.records(limit=3):
        log.append("finished", {**RUN, "copy_of": record.seq})
    assert log.verify().count == 6


@pytest.mark.own_file
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("update audit set kind = 'refused' where seq = 1", "never changed"),
        ("delete from audit where seq = 1", "never removed"),
        ("insert or replace into audit select 1, timestamp, kind, fields, previous, hash from audit", "only appended"),
        ("insert into audit select 9, timestamp, kind, fields, previous, hash from audit", "only appended"),
        ("insert into audit select null, timestamp, kind, fields, previous, hash from audit", "only appended"),
    ],
)
def test_the_file_itself_refuses_to_change_records(log: AuditLog, store: Store, statement: str, message: str) -> None:
    record = log.append("started", RUN)
    with pytest.raises(sqlite3.IntegrityError, match=message), store.connection() as connection:
        connection.execute(statement)
    assert list(log.records()) == [record]


def test_a_changed_record_is_named(log: AuditLog, store: Store) -> None:
    records = fill(log, 5)
    tamper(store, "update audit set fields = replace(fields, '\"exit_code\":2', '\"exit_code\":0') where seq = 3")
    problem = "Record 3 was altered: its content does not give its hash."
    assert log.verify() == Verification(ok=False, count=2, head=records[1].hash, broken_at=3, problem=problem)


def test_a_removed_record_is_named(log: AuditLog, store: Store) -> None:
    fill(log, 5)
    tamper(store, "delete from audit where seq = 2")
    verification = log.verify()
    assert (verification.ok, verification.broken_at) == (False, 2)
    assert verification.problem == "Record 2 is missing: the next one there is record 3."


def test_reordered_records_are_named(log: AuditLog, store: Store) -> None:
    fill(log, 5)
    moves = ((3, 99), (4, 3), (99, 4))
    tamper(store, *(f"update audit set seq = {new} where seq = {old}" for old, new in moves))
    verification = log.verify()
    assert (verification.ok, verification.broken_at) == (False, 3)


def test_an_inserted_record_is_named(log: AuditLog, store: Store) -> None:
    fill(log, 3)
    columns = "timestamp, kind, fields, previous, hash"
    tamper(store, f"insert into audit (seq, {columns}) select -7, {columns} from audit where seq = 1")
    assert log.verify().problem == "Record -7 was inserted: records are numbered from 1."


def test_a_log_moved_into_another_world_is_noticed(log: AuditLog, store: Store) -> None:
    fill(log, 2)
    tamper(store, f"update meta set value = '{'0' * 32}' where key = 'world'")
    assert log.verify().broken_at == 1


def test_a_removed_end_shows_against_a_checkpoint_kept_elsewhere(log: AuditLog, store: Store) -> None:
    fill(log, 5)
    checkpoint = log.checkpoint()
    tamper(store, "delete from audit where seq > 3", "delete from meta where key = 'checkpoint'")
    assert log.verify().ok
    verification = log.verify(checkpoint=checkpoint)
    assert (verification.ok, verification.broken_at, verification.count) == (False, 4, 3)


def test_a_careless_cut_shows_against_the_checkpoint_in_the_file(log: AuditLog, store: Store) -> None:
    fill(log, 5)
    log.checkpoint()
    tamper(store, "delete from audit where seq > 3")
    assert log.verify().broken_at == 4
    tamper(store, "update meta set value = 'x' where key = 'checkpoint'")
    assert log.verify().problem == "The checkpoint that the file keeps of itself is unreadable: it was altered."


def test_a_checkpoint_tells_where_the_log_ends(log: AuditLog, store: Store) -> None:
    empty = log.checkpoint()
    assert empty == Checkpoint(store.world(), 0, first_link(store.world()), empty.timestamp)
    record = fill(log, 2)[-1]
    later = log.checkpoint()
    assert later == Checkpoint(store.world(), 2, record.hash, later.timestamp)
    fill(log, 2)
    assert log.verify(checkpoint=empty).ok
    assert log.verify(checkpoint=later).ok


def test_a_record_made_unreadable_is_still_shown_and_exported(log: AuditLog, store: Store) -> None:
    fill(log, 3)
    tamper(store, "update audit set fields = '{\"x\": 1.5' where seq = 2")
    assert [record.fields for record in log.records()][1] == {"unreadable": '{"x": 1.5'}
    assert len(list(log.export())) == 3
    assert log.verify().broken_at == 2


def test_an_export_holds_what_was_hashed_line_by_line(log: AuditLog) -> None:
    records = fill(log, 3)
    lines = [json.loads(line) for line in log.export()]
    rows = [
        (line["seq"], line["timestamp"], line["kind"], json.dumps(line["fields"]), line["prev"], line["hash"])
        for line in lines
    ]
    assert [record_from(row) for row in rows] == records
    assert list(log.export(after=2)) == list(log.export())[2:]


@pytest.mark.own_file
def test_a_trigger_that_swallows_records_is_noticed(log: AuditLog, store: Store) -> None:
    fill(log, 1)
    tamper(store, "create trigger quiet before insert on audit begin select raise(ignore); end")
    with pytest.raises(AuditUnavailableError, match=r"does not start\. Something in the state file .* swallows"):
        log.append("started", RUN)


def refusal(log: AuditLog) -> str:
    with pytest.raises(AuditUnavailableError, match="The audit cannot be written") as caught:
        log.append("started", RUN)
    assert isinstance(caught.value, ScriptError)
    assert caught.value.result is None
    return str(caught.value)


@pytest.mark.own_file
def test_a_full_disk_refuses_the_record_and_leaves_the_rest(log: AuditLog, store: Store) -> None:
    records = fill(log, 2)
    with store.connection() as connection:
        pages = connection.execute("pragma page_count").fetchone()[0]
        connection.execute(f"pragma max_page_count = {pages}")
    with pytest.raises(AuditUnavailableError, match=r"does not start\. .*the disk is full .*Free some space"):
        log.append("finished", {**RUN, **{f"text{number}": "x" * 1_000 for number in range(10)}})
    assert list(log.records()) == records
    with store.connection() as connection:
        connection.execute("pragma max_page_count = 1000000")
    assert log.append("finished", RUN).seq == 3
    assert log.verify().ok


WRITE_UNTIL_IT_FAILS = """
import resource, sys
from skillkit.core.exceptions import AuditUnavailableError
from skillkit.core.record import AuditLog
from skillkit.core.store.base import Store
from skillkit.core.store.opening import open_store
from skillkit.core.store.state import StateStore
log = AuditLog(open_store(sys.argv[1]))
log.append("started", {})
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
kept = 1
try:
    while True:
        log.append("finished", {"text": "x" * 500})
        kept += 1
except AuditUnavailableError as error:
    print(kept, error)
"""


@pytest.mark.own_file
@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
def test_a_write_that_the_system_refuses_loses_nothing_written_before(log: AuditLog, store: Store) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WRITE_UNTIL_IT_FAILS, store.folder], capture_output=True, text=True, check=True
    )
    kept, _, message = done.stdout.partition(" ")
    assert "Check the disk" in message or "Free some space" in message
    verification = log.verify()
    assert (verification.ok, verification.count) == (True, int(kept))


@pytest.mark.own_file
def test_a_locked_file_refuses_the_record_until_it_is_free(log: AuditLog, store: Store) -> None:
    fill(log, 1)
    holder = sqlite3.connect(store.place, isolation_level=None)
    holder.execute("begin immediate")
    assert "is locked by another process" in refusal(log)
    holder.execute("rollback")
    holder.close()
    assert log.append("started", RUN).seq == 2


@pytest.mark.own_file
def test_a_damaged_file_refuses_the_record(log: AuditLog, store: Store) -> None:
    fill(log, 50)
    store.close()
    content = bytearray(Path(store.place).read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    Path(store.place).write_bytes(content)
    message = refusal(log)
    assert "keep it as evidence" in message
    with pytest.raises(AuditUnavailableError, match="The audit cannot be read"):
        log.verify()


@pytest.mark.own_file
def test_a_folder_in_place_of_the_file_refuses_the_record(log: AuditLog, store: Store) -> None:
    Path(store.place).mkdir(parents=True)
    assert "not a regular file" in refusal(log)


@pytest.mark.own_file
def test_a_missing_table_refuses_the_record(log: AuditLog, store: Store) -> None:
    fill(log, 1)
    tamper(store, "drop table audit")
    assert "does not look as skillkit made it (no such table: audit)" in refusal(log)


WRITER = """
import sys
from skillkit.core.record import AuditLog
from skillkit.core.store.base import Store
from skillkit.core.store.opening import open_store
from skillkit.core.store.state import StateStore
log = AuditLog(open_store(sys.argv[1]))
for number in range(int(sys.argv[2])):
    record = log.append("finished", {"writer": sys.argv[3], "number": number})
    print(record.seq, record.hash, flush=True)
"""


def writer(store: Store, count: int, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(store.folder), str(count), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_four_processes_writing_at_once_keep_one_chain(log: AuditLog, store: Store) -> None:
    writers = [writer(store, 150, str(name)) for name in range(4)]
    assert [process.communicate()[1] for process in writers] == [""] * 4
    assert (log.verify().ok, log.verify().count) == (True, 600)
    for name in range(4):
        numbers = [record.fields["number"] for record in log.records() if record.fields["writer"] == str(name)]
        assert numbers == list(range(150))


def test_threads_writing_at_once_keep_one_chain(log: AuditLog) -> None:
    threads = [threading.Thread(target=fill, args=(log, 50)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (log.verify().ok, log.verify().count) == (True, 400)


@pytest.mark.own_file
def test_a_file_that_another_thread_began_anew_keeps_a_chain_of_its_own(log: AuditLog, store: Store) -> None:
    """The numbers fit: one record was in the file that is gone, and one is in the new one."""
    log.append("started", RUN)
    Path(store.place).rename(Path(store.place).with_suffix(".gone"))
    other = threading.Thread(target=AuditLog(store).append, args=("started", RUN))
    other.start()
    other.join()
    log.append("finished", RUN)
    assert (log.verify().ok, log.verify().count) == (True, 2)


def test_two_stores_of_one_world_in_one_process_keep_one_chain(log: AuditLog, store: Store) -> None:
    other = open_store(store.folder)
    for _ in range(5):
        log.append("started", RUN)
        AuditLog(other).append("finished", RUN)
    other.close()
    assert log.verify().count == 10


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killing_the_writer_loses_no_acknowledged_record(log: AuditLog, store: Store) -> None:
    acknowledged: dict[int, str] = {}
    for after in (1, 7, 40, 200):
        process = writer(store, 1_000_000, "victim")
        assert process.stdout is not None
        for _ in range(after):
            seq, digest = process.stdout.readline().split()
            acknowledged[int(seq)] = digest
        os.kill(process.pid, signal.SIGKILL)
        # Not by communicate(): it would begin behind what readline() has taken in already.
        with process:
            rest = process.stdout.read()
        # A last line that the kill cut short acknowledged nothing.
        for line in rest.splitlines(keepends=True):
            if line.endswith("\n"):
                seq, digest = line.split()
                acknowledged[int(seq)] = digest
    kept = {record.seq: record.hash for record in log.records()}
    assert acknowledged.items() <= kept.items()
    assert log.append("started", RUN).seq == len(kept) + 1
    assert log.verify().ok


@pytest.mark.parametrize(
    ("kind", "fields", "level"),
    [
        pytest.param("started", {}, logging.INFO, id="a start"),
        pytest.param("finished", {"exit_code": 0, "signal": None, "timed_out": False}, logging.INFO, id="success"),
        pytest.param("finished", {"exit_code": 3}, logging.WARNING, id="a failure of the script"),
        pytest.param("finished", {"exit_code": 124, "timed_out": True, "signal": "SIGKILL"}, 30, id="a timeout"),
        pytest.param("finished", {"exit_code": -11, "signal": "SIGSEGV"}, logging.ERROR, id="a crash"),
        pytest.param("finished", {"error": "the walls fell"}, logging.ERROR, id="our own failure"),
        pytest.param("refused", {"reasons": ["no"]}, logging.WARNING, id="a refusal"),
    ],
)
def test_each_record_is_mirrored_once_at_the_level_of_its_outcome(
    log: AuditLog, store: Store, caplog: pytest.LogCaptureFixture, kind: str, fields: dict[str, JSON], level: int
) -> None:
    caplog.set_level(logging.DEBUG, logger="skillkit.audit")
    record = log.append(kind, fields)
    (entry,) = [entry for entry in caplog.records if entry.name == "skillkit.audit"]
    assert (entry.levelno, entry.getMessage()) == (level, next(log.export()))
    content = {**fields, "world": store.world(), **({"login": "owner"} if store.is_shared else {})}
    mirrored = {"seq": 1, "timestamp": record.timestamp, "kind": kind, **content, "hash": record.hash}
    assert entry.__dict__["skillkit"] == mirrored


def test_a_program_without_logging_prints_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from skillkit.core.record import AuditLog; from skillkit.core.store.opening import open_store; "
        "AuditLog(open_store(sys.argv[1])).append('refused', {})"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
