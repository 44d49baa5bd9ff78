"""A world in PostgreSQL: its address, its versions, its clock, and what the database lets each role do."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.asking import request_named
from support.commands import BOUNDS
from support.databases import Database

from skillkit import ConfigurationError, SkillManager, StateUnavailableError, World
from skillkit.core.record import AuditLog
from skillkit.core.store import request_rows as rows
from skillkit.core.store.opening import open_store
from skillkit.core.store.processes import own_mark
from skillkit.core.store.shared import postgres
from skillkit.core.store.shared.copying import copy_world
from skillkit.core.store.shared.postgres import SharedStore, WorldAddress, make_world
from skillkit.core.store.skills import Installed, InstalledSkills, StandingGrants
from skillkit.core.store.state import StateStore
from skillkit.core.store.trust import StandingApprovals
from skillkit.core.values.bounds import walls_digest
from skillkit.core.values.needs import Grant
from skillkit.core.values.questions import KEEPS, OPTIONS, WALLS, OptionRequest

psycopg = pytest.importorskip("psycopg")
InsufficientPrivilege, CheckViolation = psycopg.errors.InsufficientPrivilege, psycopg.errors.CheckViolation
pytestmark = pytest.mark.slow
SECRET = "hunter2hunter2"


@pytest.fixture
def world(database: Database) -> Iterator[str]:
    name = database.new_world()
    yield name
    database.drop_world(name)


def test_an_address_with_a_password_is_refused_and_nowhere_shown() -> None:
    for text in (
        f"postgresql://me:{SECRET}@host/db?world=acme",
        f"postgresql://host/db?world=acme&password={SECRET}",
        f"postgresql://host/db?world=acme&sslpassword={SECRET}",
        f"mysql://me:{SECRET}@host/db",
        f"postgresql://me:{SECRET}@[host/db?world=acme",
    ):
        with pytest.raises(ConfigurationError) as caught:
            WorldAddress.from_text(text)
        assert SECRET not in repr(caught.value)
        assert SECRET not in repr(caught.value.__cause__)


@pytest.mark.parametrize("name", ["", "Acme", "a-b", "a b", 'a"b', "public", "pg_x", "1a", "a" * 41, "a;drop", "ä"])
def test_a_world_has_a_plain_name(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is no name of a world"):
        WorldAddress.from_text(f"postgresql://host/db?world={name}")


def test_what_is_shown_of_an_address_is_where_and_which_world() -> None:
    address = WorldAddress.from_text(
        "postgresql://me@host:5433/db?world=acme&sslmode=require&options=-csearch_path%3Dx"
    )
    assert address.shown == "postgresql://me@host:5433/db?world=acme"
    assert address.conninfo == "postgresql://me@host:5433/db?sslmode=require"


def test_a_password_comes_from_the_file_and_is_in_no_error(
    database: Database, world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.connect() as connection:
        connection.execute(f"drop role if exists passworded; create role passworded login password '{SECRET}'")
        connection.execute(f"grant {world}_front to passworded")
    file = tmp_path / "pgpass"
    file.touch(mode=0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    with closing(open_store(tmp_path, database.address(world, login="passworded"))) as store:
        with pytest.raises(StateUnavailableError, match="cannot be used") as caught:
            store.world()
        file.write_text(f"*:*:*:passworded:{SECRET}\n")
        assert store.world()
        assert SECRET not in repr(caught.value) + repr(store) + store.place
    with database.connect() as connection:
        connection.execute("drop owned by passworded; drop role passworded")


def test_a_world_that_is_not_there_is_told_and_not_made(database: Database, tmp_path: Path) -> None:
    with (
        closing(open_store(tmp_path, database.address("nowhere"))) as store,
        pytest.raises(StateUnavailableError, match=r"nowhere is not there .*skillkit fleet init"),
    ):
        store.world()
    with (
        closing(open_store(tmp_path, "postgresql:///db?host=/nonexistent&world=acme")) as store,
        pytest.raises(StateUnavailableError, match="Check that the database runs"),
    ):
        store.world()


def test_made_again_a_world_stays_what_it_is(database: Database, world: str, tmp_path: Path) -> None:
    with closing(open_store(tmp_path, database.address(world))) as store:
        before = store.world()
        AuditLog(store).append("refused", {})
    assert make_world(WorldAddress.from_text(database.address(world))) > 0
    with closing(open_store(tmp_path, database.address(world))) as store:
        assert store.world() == before
        assert AuditLog(store).verify().count == 1


@pytest.mark.parametrize(("version", "says"), [("0", "older skillkit .*fleet init"), ("999", "newer skillkit")])
def test_a_world_of_another_version_is_not_touched(
    database: Database, world: str, tmp_path: Path, version: str, says: str
) -> None:
    with database.connect(world) as connection:
        connection.execute("update meta set value = %s where key = 'version'", (version,))
    with (
        closing(open_store(tmp_path, database.address(world))) as store,
        pytest.raises(StateUnavailableError, match=says),
    ):
        store.world()
    if version == "999":
        with pytest.raises(StateUnavailableError, match=says):
            make_world(WorldAddress.from_text(database.address(world)))


def test_an_older_world_is_brought_up_to_date_and_keeps_all(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = postgres._migrations()[:1]
    with monkeypatch.context() as before:
        before.setattr(postgres, "_migrations", lambda: first)
        name = database.new_world()
        with closing(open_store(tmp_path, database.address(name))) as store:
            AuditLog(store).append("refused", {})
    with (
        closing(open_store(tmp_path, database.address(name))) as store,
        pytest.raises(StateUnavailableError, match=r"older skillkit .*version 1.*fleet init"),
    ):
        store.world()
    assert make_world(WorldAddress.from_text(database.address(name))) == 1
    with closing(open_store(tmp_path, database.address(name))) as store:
        assert AuditLog(store).verify().count == 1
        with store.connection() as connection:
            assert connection.execute("select count(*) from runs").fetchone() == (0,)
    database.drop_world(name)


def test_a_step_that_fails_leaves_the_world_as_it_was(
    database: Database, world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = postgres._migrations()
    with monkeypatch.context() as later:
        later.setattr(postgres, "_migrations", lambda: (*known, "create table later (id text); nonsense"))
        with pytest.raises(StateUnavailableError, match="syntax error"):
            make_world(WorldAddress.from_text(database.address(world)))
    with closing(open_store(tmp_path, database.address(world))) as store, store.connection() as connection:
        assert connection.execute("select to_regclass('later')").fetchone() == (None,)


def test_machines_that_make_a_world_together_get_one(database: Database, tmp_path: Path) -> None:
    name = "together"
    address = WorldAddress.from_text(database.address(name))
    with ThreadPoolExecutor(6) as pool:
        versions = [*pool.map(lambda _: make_world(address), range(6))]
    assert sorted(versions) == [0, *[len(postgres._migrations())] * 5], "one made it, the others found it"
    with closing(open_store(tmp_path, database.address(name))) as store:
        assert store.world()
    database.drop_world(name)


def test_a_lock_that_lasts_is_named_and_passes(
    database: Database, world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = postgres._options
    monkeypatch.setattr(postgres, "_options", lambda address: usual(address).replace("20s", "200ms"))
    other = SharedStore(WorldAddress.from_text(database.address(world)), tmp_path / "other")
    with closing(open_store(tmp_path, database.address(world))) as store, closing(other):
        store.world()
        with ThreadPoolExecutor(1) as pool, other.transaction():

            def wait_in_vain() -> None:
                with store.transaction():
                    pass

            with pytest.raises(StateUnavailableError, match=r"is locked by another .*Wait"):
                pool.submit(wait_in_vain).result()
        with store.transaction() as connection:
            assert connection.in_transaction


def test_the_variable_names_the_world_and_an_empty_text_the_folder(
    database: Database, world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILLKIT_STATE", database.address(world))
    with closing(open_store(tmp_path)) as store:
        assert store.is_shared
    assert isinstance(open_store(tmp_path, ""), StateStore)
    manager = SkillManager("", "", state_dir=tmp_path, state="")
    assert not manager.flow.store.is_shared
    manager.close()


def test_what_a_person_approves_on_one_machine_holds_on_another(database: Database, world: str, tmp_path: Path) -> None:
    with (
        closing(open_store(tmp_path / "here", database.address(world))) as here,
        closing(open_store(tmp_path / "there", database.address(world))) as there,
    ):
        word = {"skill": "pdf", "channel": "web", "walls": BOUNDS}
        StandingApprovals(here).approve_in_session("one", folder="/home/me/pdf", digest="d1", **word)  # type: ignore[arg-type]
        StandingApprovals(here).trust(folder="/home/me/pdf", digest="d2", **word)  # type: ignore[arg-type]
        StandingGrants(here).give(
            [Grant("variable", "LANG")], skill="pdf", folder="/home/me/pdf", digest="d1", channel="web"
        )
        other = StandingApprovals(there)
        assert other.covering("one", "pdf", "d1", BOUNDS)
        assert other.covering("two", "pdf", "d2", BOUNDS)
        assert other.covering("one", "pdf", "d3", BOUNDS) is None, "another content asks again"
        assert other.last_approved_digest("pdf", "/srv/skills/pdf") == "d2"
        (kept,) = StandingGrants(there).of("pdf", "/srv/skills/pdf")
        assert (kept.digest, kept.grant) == ("d1", Grant("variable", "LANG"))
        other.trust(folder="/srv/skills/pdf", digest="d9", **word)  # type: ignore[arg-type]
        assert StandingApprovals(here).covering("two", "pdf", "d2", BOUNDS), "machines may have different versions"
        with pytest.raises(ConfigurationError, match="not by its folder"):
            other.remove_trust("pdf", folder="/srv/skills/pdf")


def test_askers_of_another_machine_live_as_long_as_their_lease(database: Database, world: str, tmp_path: Path) -> None:
    with closing(open_store(tmp_path, database.address(world))) as store, store.transaction() as connection:
        there = replace(store.now(), host="another machine")
        question = rows.Question(request_named("run"), "{}", 60, (), is_held=True)
        ticket = rows.join(connection, question, there)
        dead = "1-1-1@another machine"  # no process of this machine has such a mark
        connection.execute("update askers set process = ?", (dead,))
        row = rows.row_at(connection, ticket.seq)
        assert row is not None
        assert rows.is_alive(connection, row.life, store.now())
        assert not rows.is_alive(connection, row.life, store.now().after(rows.LEASE_SECONDS + 1))
        gone = f"999999999-1-{own_mark().rpartition('-')[2]}"
        connection.execute("update askers set process = ?", (f"{gone}@{store.now().host}",))
        assert not rows.is_alive(connection, row.life, store.now()), "of this machine it can be looked up"


def test_a_fork_uses_connections_of_its_own(database: Database, world: str, tmp_path: Path) -> None:
    with closing(open_store(tmp_path, database.address(world))) as store:
        log = AuditLog(store)
        log.append("refused", {})
        child = os.fork()  # noqa: TID251 - what a caller may do
        if child == 0:
            try:
                AuditLog(store).append("refused", {})
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        log.append("refused", {})
        assert (log.verify().ok, log.verify().count) == (True, 3)


def test_a_server_that_came_back_is_used_again(database: Database, world: str, tmp_path: Path) -> None:
    with closing(open_store(tmp_path, database.address(world))) as store:
        AuditLog(store).append("refused", {})
        with database.connect() as connection:
            others = "from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"
            assert connection.execute(f"select count(pg_terminate_backend(pid, 10000)) {others}").fetchone() != (0,)
        AuditLog(store).append("refused", {})
        assert AuditLog(store).verify().count == 2


# A copy of a folder's world.


def test_a_copied_world_is_the_same_world_and_its_chain_goes_on(database: Database, world: str, tmp_path: Path) -> None:
    source, target = StateStore(tmp_path), SharedStore(WorldAddress.from_text(database.address(world)), tmp_path)
    for number in range(3):
        AuditLog(source).append("finished", {"exit_code": number, "text": "\0 \udcff é"})
    checkpoint = AuditLog(source).checkpoint()
    for folder in ("/a/pdf", "/b/pdf"):
        StandingApprovals(source).trust(skill="pdf", folder=folder, digest="d1", channel="terminal", walls=BOUNDS)
    InstalledSkills(source).keep([Installed("/a/pdf", "pdf", "d1", "alice", "SHA256:a", 100, "d1")])
    with World(tmp_path, state="") as old:
        old.open(request_named("run"))
        old.answer("run", "no", "web")
    copied = copy_world(source, target)
    assert copied == {"audit": 3, "approvals": 1, "on_load": 0, "grants": 0, "signers": 1, "requests": 1}
    with closing(open_store(tmp_path, database.address(world))) as store:
        log = AuditLog(store)
        assert store.world() == source.world()
        assert list(log.records()) == list(AuditLog(source).records())
        log.append("refused", {})
        assert log.verify(checkpoint=checkpoint).count == 4
        assert StandingApprovals(store).covering(None, "pdf", "d1", BOUNDS)
        assert InstalledSkills(store).signing_of("/a/pdf", "d1", "pdf") == ("alice", "")
        with World(tmp_path, state=database.address(world)) as new:
            assert [past.outcome for past in new.history()] == ["answered"]
        with pytest.raises(StateUnavailableError, match="has records of its own"):
            copy_world(source, SharedStore(WorldAddress.from_text(database.address(world)), tmp_path))
    source.close()


def test_a_chain_that_was_altered_is_not_copied(database: Database, world: str, tmp_path: Path) -> None:
    source, target = StateStore(tmp_path), SharedStore(WorldAddress.from_text(database.address(world)), tmp_path)
    for _ in range(3):
        AuditLog(source).append("finished", {"exit_code": 0})
    with source.connection() as connection:
        connection.execute("drop trigger audit_is_never_changed")
        connection.execute("update audit set kind = 'refused' where seq = 2")
    with pytest.raises(StateUnavailableError, match="only appended"):
        copy_world(source, target)
    with closing(open_store(tmp_path, database.address(world))) as store:
        assert list(AuditLog(store).records()) == []
    source.close()


# What each role may not do is impossible in the database. Each test shows first who may.


@pytest.fixture
def asked(database: Database, world: str) -> str:
    """A front with one question, which holds a session."""
    front = database.new_login(world, "front")
    with World(state=database.address(world, login=front)) as fronts:
        fronts.open(replace(request_named("run"), session_id="one"))
    return front


def test_a_front_cannot_answer_and_an_approver_can(database: Database, world: str, asked: str) -> None:
    approver = database.new_login(world, "approver")
    with (
        World(state=database.address(world, login=asked)) as front,
        pytest.raises(StateUnavailableError, match="does not let this login do that"),
    ):
        front.answer("run", "yes_once", "web")
    with database.connect(world, login=asked) as connection:
        for statement in (
            "update requests set state = 'answered', option_id = 'yes_once'",
            "update requests set option_id = 'yes_once'",
            "insert into requests (id, content, context, single_use, is_held, created_at, expires_at, boot, deadline, "
            "state, option_id) values ('x', '{}', '{}', '[]', 0, 0, 0, '', 0, 'answered', 'yes_once')",
            "update requests set content = '{}'",
            "insert into approvals (kind, session, skill, folder, digest, channel, approved_at) "
            "values ('trust', '', 'pdf', '', 'd', 'web', 0)",
            "insert into grants (skill, folder, digest, kind, name, channel, granted_at) "
            "values ('pdf', '', 'd', 'secret', 'secret:X', 'web', 0)",
            f"grant {world}_approver to {asked}",
            "create function append(text) returns text language sql as 'select 1::text'",
        ):
            with pytest.raises(InsufficientPrivilege):
                connection.execute(statement)
        with pytest.raises(CheckViolation):
            connection.execute("update requests set state = 'answered'")
    with World(state=database.address(world, login=approver)) as people:
        assert people.answer("run", "yes_once", "web").option_id == "yes_once"


def test_a_worker_cannot_approve_and_nobody_changes_a_record(database: Database, world: str, asked: str) -> None:
    worker = database.new_login(world, "worker")
    approver = database.new_login(world, "approver")
    with closing(open_store(Path(), database.address(world, login=worker))) as store:
        record = AuditLog(store).append("started", {"skill": "pdf"})
        assert record.fields["login"] == worker
    with (
        World(state=database.address(world, login=worker)) as workers,
        pytest.raises(StateUnavailableError, match="does not let this login do that"),
    ):
        workers.answer("run", "yes_once", "web")
    changes = ("update audit set kind = 'refused'", "delete from audit", "truncate audit", "truncate audit cascade")
    for login in (worker, asked, approver, "owner"):
        with database.connect(world, login=login) as connection:
            for statement in (*changes, "insert into audit values (2, 'now', 'started', '{}', '', '')"):
                with pytest.raises(InsufficientPrivilege):
                    connection.execute(statement)
    with database.connect(world, login=worker) as connection:
        fields = json.dumps({"world": record.fields["world"], "login": approver})
        with pytest.raises(InsufficientPrivilege, match="names its world and the login"):
            connection.execute("select * from append('started', %s)", (fields,))
        for statement in (
            "insert into approvals (kind, session, skill, folder, digest, channel, approved_at) "
            "values ('trust', '', 'pdf', '', 'd', 'web', 0)",
            "update meta set value = 'x'",
            "alter table audit disable trigger all",
        ):
            with pytest.raises(InsufficientPrivilege):
                connection.execute(statement)
    with closing(open_store(Path(), database.address(world, login=asked))) as store:
        AuditLog(store).append("refused", {})
        with pytest.raises(StateUnavailableError, match="only a worker records what ran"):
            store.append(
                lambda head: (1, "", "started", json.dumps({"world": head.world, "login": head.login}), "", "")
            )
        assert AuditLog(store).verify().count == 2
    with database.connect(world) as connection:  # without the guard it works: the owner of all can take it away
        connection.execute("alter table audit disable trigger audit_is_kept; update audit set kind = 'finished'")


def test_a_front_cannot_use_the_session_or_the_answers_of_another(database: Database, world: str, asked: str) -> None:
    other, approver = database.new_login(world, "front"), database.new_login(world, "approver")
    with World(state=database.address(world, login=other)) as others:
        with pytest.raises(StateUnavailableError, match="the session belongs to another login"):
            others.open(replace(request_named("mine"), session_id="one"))
        with pytest.raises(StateUnavailableError, match="cannot be used"):  # however the question is spelt
            others.open(replace(request_named("mine"), title="\0", session_id="\u00f6ne"))
        others.open(replace(request_named("mine"), session_id="two"))
    with database.connect(world, login=other) as connection:
        assert connection.execute("update requests set state = 'withdrawn' where id = 'run'").rowcount == 0
        assert connection.execute("update requests set state = 'withdrawn' where id = 'mine'").rowcount == 1
        with pytest.raises(InsufficientPrivilege):
            connection.execute("update sessions set login = session_user")
        with pytest.raises(InsufficientPrivilege):
            connection.execute("insert into sessions values ('three', 'somebody')")
    with World(state=database.address(world, login=approver)) as people:
        people.answer("run", "yes_once", "web")
    with database.connect(world, login=other) as connection:
        assert connection.execute("update requests set is_taken = 1 where id = 'run'").rowcount == 0
    with World(state=database.address(world, login=asked)) as front:
        answer = front.collect("run")
        assert answer is not None
        assert answer.option_id == "yes_once"
        assert front.collect("run") is None
    with (
        database.connect(world, login=asked) as connection,
        pytest.raises(InsufficientPrivilege, match="never changed"),
    ):
        connection.execute("update requests set is_taken = 0 where id = 'run'")


def test_a_yes_for_the_session_is_kept_by_who_answers_and_only_for_what_was_shown(
    database: Database, world: str, tmp_path: Path
) -> None:
    front, approver = database.new_login(world, "front", "worker"), database.new_login(world, "approver")
    kept = {"skill": "pdf", "digest": "d1", "walls": BOUNDS.to_text(), "on_load": "", "offered": {}}
    prompt = {"skill": "pdf", "digest": "d1"}
    honest = {"prompt": prompt, WALLS: walls_digest([BOUNDS]), KEEPS: kept}
    lie = {**honest, KEEPS: {**kept, "digest": "d2"}}
    with (
        World(state=database.address(world, login=front)) as asking,
        World(state=database.address(world, login=approver)) as people,
        closing(open_store(tmp_path, database.address(world, login=front))) as store,
    ):
        for name, context in (("honest", honest), ("lie", lie)):
            asking.open(OptionRequest(name, "Run?", "", OPTIONS, context, "one"))
        people.answer("honest", "yes_in_session", "web")
        with pytest.raises(ConfigurationError, match="shows another skill"):
            people.answer("lie", "yes_in_session", "web")
        standing = StandingApprovals(store)
        assert standing.covering("one", "pdf", "d1", BOUNDS)
        assert standing.covering("one", "pdf", "d2", BOUNDS) is None
        with pytest.raises(StateUnavailableError, match="does not let this login do that"):
            standing.approve_in_session("one", skill="pdf", folder="", digest="d2", channel="web", walls=BOUNDS)


def test_a_store_that_the_collector_lets_go_of_while_another_is_opened_holds_nobody_up(
    database: Database, world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_pool = postgres._new_pool

    def collecting(address: postgres.WorldAddress) -> object:
        """As the collector may do at any step: what it finds it lets go of, in this thread."""
        left.pop().close()
        return new_pool(address)

    left = [open_store(Path(), database.address(world))]
    assert left[0].exists()
    monkeypatch.setattr(postgres, "_new_pool", collecting)
    with closing(open_store(Path(), database.address(world, login=database.new_login(world, "front")))) as store:
        assert store.exists()
    assert not postgres._POOLS._left
