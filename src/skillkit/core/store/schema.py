"""The tables of a world's file, as the steps by which each version of it came to be."""

from __future__ import annotations

__all__ = ["MIGRATIONS"]

# One entry of statements for each version of the file. To change the schema append one; never edit one.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "create table meta (key text primary key, value text not null) without rowid",
        "insert into meta (key, value) values ('world', lower(hex(randomblob(16))))",
        """create table audit (
            seq integer primary key,
            timestamp text not null,
            kind text not null,
            fields text not null,
            previous text not null,
            hash text not null
        )""",
        """create trigger audit_is_never_changed before update on audit
            begin select raise(abort, 'audit records are never changed'); end""",
        """create trigger audit_is_never_shortened before delete on audit
            begin select raise(abort, 'audit records are never removed'); end""",
        # `insert or replace` deletes without firing the delete trigger, so a number in use is refused here.
        """create trigger audit_only_grows before insert on audit
            when new.seq is not (select coalesce(max(seq), 0) + 1 from audit)
            begin select raise(abort, 'audit records are only appended'); end""",
    ),
    (
        # `boot` and `deadline` judge expiry by a clock that nobody can set; the `_at` columns are for people.
        """create table requests (
            seq integer primary key,
            id text not null,
            content text not null,
            context text not null,
            single_use text not null,
            is_held integer not null,
            created_at real not null,
            expires_at real not null,
            boot text not null,
            deadline real not null,
            state text not null default 'pending',
            option_id text,
            channel text,
            answered_at real,
            is_taken integer not null default 0
        )""",
        "create unique index requests_pending on requests (state, id) where state = 'pending'",
        "create index requests_by_id on requests (id)",
        """create table askers (
            asker integer primary key,
            request integer not null references requests (seq) on delete cascade,
            boot text not null,
            leased_until real not null
        )""",
        "create index askers_by_request on askers (request)",
        """create table approvals (
            seq integer primary key,
            kind text not null check (kind = 'session' and session <> '' or kind = 'trust' and session = ''),
            session text not null,
            skill text not null,
            folder text not null,
            digest text not null,
            channel text not null,
            approved_at real not null,
            unique (kind, session, skill, folder)
        )""",
        "create index approvals_by_skill on approvals (skill, folder)",
    ),
    # What was approved before this was kept covers no run, so that a person is asked once more.
    ("alter table approvals add column walls text not null default ''",),
    (
        "alter table requests add column owner text not null default ''",
        "alter table askers add column process text not null default ''",
        # Which commands a person saw that run when a skill is loaded; the session is empty for trust.
        """create table on_load (session text not null, skill text not null, folder text not null, digest text not null,
            commands text not null, channel text not null, approved_at real not null, walls text not null,
            ticks text not null default '',
            primary key (session, skill, folder)
        ) without rowid""",
    ),
    (
        """create table grants (
            seq integer primary key,
            skill text not null,
            folder text not null,
            digest text not null,
            kind text not null,
            name text not null,
            channel text not null,
            granted_at real not null,
            unique (skill, folder, name)
        )""",
        # What a person ticked with a yes for a session, and what they left, as JSON.
        "alter table approvals add column ticks text not null default ''",
        "alter table requests add column grants text not null default '[]'",
        "alter table requests add column reason text not null default ''",
    ),
    (
        # What skillkit put into a folder of skills last, and who had signed it; the signer outlives the skill.
        """create table installed (folder text primary key, skill text not null, digest text not null,
            signer text not null, key text not null, signed_at integer not null, signed text not null
        ) without rowid""",
    ),
    (
        # Runs that go on and used a host; `run` is the number of the record of their start.
        """create table running (run integer primary key, process text not null, skill text not null,
            script text not null, session text not null, began_at real not null, hosts text not null
        )""",
    ),
    (
        # What a run wrote that was approved on the page, as JSON; it stays for some minutes after the run.
        "alter table running add column output text not null default '[]'",
        "alter table running add column written integer not null default 0",
        "alter table running add column ended_at real not null default 0",
    ),
    (
        # Signers are looked up by the skill's name; most skills have none.
        "create index installed_signed on installed (skill) where key != ''",
    ),
)
