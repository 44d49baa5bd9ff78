"""Who signed a skill is known to all machines of a shared world, and only a person with the right changes that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.databases import Database

from skillkit import ConfigurationError, StateUnavailableError
from skillkit.core.store.opening import open_store
from skillkit.core.store.skills import Installed, InstalledSkills

pytest.importorskip("psycopg")
pytestmark = pytest.mark.slow
ALICE = Installed("/skills/pdf", "pdf", "d1", "alice", "SHA256:a", 100, "d1")
MALLORY = ALICE._replace(signer="mallory", key="SHA256:m", signed_at=200, digest="d2", signed="d2")


class Machines:
    """Each with a state folder and a login of its own."""

    def __init__(self, database: Database, world: str, folder: Path, stack: ExitStack) -> None:
        self._database, self._world, self._folder, self._stack = database, world, folder, stack

    def one(self, *roles: str) -> InstalledSkills:
        login = self._database.new_login(self._world, *roles)
        store = open_store(self._folder / login, self._database.address(self._world, login=login))
        self._stack.callback(store.close)
        return InstalledSkills(store)


@pytest.fixture
def machines(database: Database, tmp_path: Path) -> Iterator[Machines]:
    world = database.new_world()
    with ExitStack() as stack:
        yield Machines(database, world, tmp_path, stack)
    database.drop_world(world)


def test_what_one_machine_noted_counts_on_another(machines: Machines) -> None:
    one, other = machines.one("front"), machines.one("front")
    assert not other.knows_signers()
    one.keep([ALICE])
    assert other.knows_signers()
    assert other.signing_of("/elsewhere/pdf", "d1", "pdf") == ("alice", "")
    assert other.signing_of("/elsewhere/pdf", "d2", "pdf") == ("", "alice"), "changed since"
    assert other.signing_of("/elsewhere/csv", "d1", "csv") == ("", "")
    known = other.of("/elsewhere/pdf", "pdf")
    assert known is not None
    assert (known.folder, known.key, known.digest) == ("/elsewhere/pdf", "SHA256:a", ""), "what lies here is not known"
    assert other.of("/elsewhere/pdf") is None
    found = other.named("pdf", Path("/elsewhere"))
    assert found is not None
    assert found.shown == "alice"


def test_two_versions_of_one_signer_are_both_signed_and_the_later_one_counts(machines: Machines) -> None:
    one, other = machines.one("front"), machines.one("front")
    one.keep([ALICE])
    other.keep([ALICE._replace(digest="d2", signed="d2", signed_at=200)])
    assert [one.signing_of("/x", digest, "pdf").signer for digest in ("d1", "d2")] == ["alice", "alice"]
    found = one.of("/skills/pdf")
    assert found is not None
    assert (found.digest, found.signed_at) == ("d1", 200), "an older signature is refused from now on, here too"


def test_a_front_cannot_put_another_signer_in_the_place_of_the_first(machines: Machines) -> None:
    front, approver = machines.one("front"), machines.one("front", "approver")
    front.keep([ALICE])
    for row in (MALLORY, ALICE._replace(key="", signed="")):
        with pytest.raises(StateUnavailableError, match="does not let this login"):
            front.keep([row])
    with pytest.raises(ConfigurationError, match=r"another signer\. Nothing was changed\. Use a login with the role"):
        front.require_right("SHA256:m", ALICE, is_changed=False)
    with pytest.raises(ConfigurationError, match=r"Nothing was changed"):
        front.require_right("SHA256:a", ALICE, is_changed=True)
    front.require_right("SHA256:a", ALICE, is_changed=False)
    assert front.signing_of("/x", "d2", "pdf") == ("", "alice")
    approver.require_right("SHA256:m", ALICE, is_changed=True)
    approver.keep([MALLORY])
    assert front.signing_of("/x", "d2", "pdf") == ("mallory", ""), "control: a person with the right says so"
    assert front.signing_of("/x", "d1", "pdf") == ("", "mallory")
    approver.keep([MALLORY._replace(key="", signed="")])
    assert not front.knows_signers()


def test_a_worker_notes_no_signer(machines: Machines) -> None:
    worker = machines.one("worker")
    with pytest.raises(ConfigurationError, match=r"may not note who signed a skill"):
        worker.require_right("SHA256:a", None, is_changed=False)
    with pytest.raises(StateUnavailableError, match="does not let this login"):
        worker.keep([ALICE])
    assert not worker.knows_signers()
