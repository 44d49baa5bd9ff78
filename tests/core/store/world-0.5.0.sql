-- A world as skillkit 0.5.0 left it: runs, a refusal, a yes for a session, trust, an answered question.
-- @SKILL@ stands for the skill's folder where approvals name it.
BEGIN TRANSACTION;
CREATE TABLE approvals (
            seq integer primary key,
            kind text not null check (kind = 'session' and session <> '' or kind = 'trust' and session = ''),
            session text not null,
            skill text not null,
            folder text not null,
            digest text not null,
            channel text not null,
            approved_at real not null,
            unique (kind, session, skill, folder)
        );
INSERT INTO "approvals" VALUES(1,'session','s-1','demo','@SKILL@','00c501ca9f6a2a6a731a8e11c688db8a460efd945315d8a09ed63b73b50b8797','scripted',1.79493548315418839449e+09);
INSERT INTO "approvals" VALUES(2,'trust','','demo','@SKILL@','00c501ca9f6a2a6a731a8e11c688db8a460efd945315d8a09ed63b73b50b8797','cli',1.79493548479568839075e+09);
CREATE TABLE askers (
            asker integer primary key,
            request integer not null references requests (seq) on delete cascade,
            boot text not null,
            leased_until real not null
        );
CREATE TABLE audit (
            seq integer primary key,
            timestamp text not null,
            kind text not null,
            fields text not null,
            previous text not null,
            hash text not null
        );
INSERT INTO "audit" VALUES(1,'2026-11-17T17:11:23.050096Z','started','{"answer":"yes_once","arguments":"argv [\"one\"]","arguments_digest":"f500b9cde7e7add933404538bb289f962440879c9773b0f742b1523f433a81c2","channel":"scripted","decision":"ask","digest":"00c501ca9f6a2a6a731a8e11c688db8a460efd945315d8a09ed63b73b50b8797","interpreter":"/usr/bin/bash","path":"/home/somebody/skills/demo/scripts/run.sh","reasons":["Policy asks a person before a skill''s first run."],"script":"scripts/run.sh","session":"s-1","skill":"demo","stdin_digest":null}','2cd8f6e9d960f598b9e8fcfee3df3b3515ca46e42e56e5e6ddedf0d9e170e3ac','87fce96a02d8598c3b6629f7b3a705331bcf6f872fc0d1ef46f6a46f75414bf5');
INSERT INTO "audit" VALUES(2,'2026-11-17T17:11:23.128846Z','finished','{"cancelled":false,"digest":"00c501ca9f6a2a6a731a8e11c688db8a460efd945315d8a09ed63b73b50b8797","duration_us":73508,"exit_code":0,"isolation":{"degraded":["the limit of processes does not hold for root","root could change the modes of /dev/null, zero, full, random, urandom and tty"],"files":"mount namespace","kill":"pid namespace","limits":["1024 MB data a process","100 MB a file","256 open files a process","64 MB temporary files","35 s processor time a process"],"network":"none (network namespace, system call filter); unix sockets inside the walls","processes":"pid, ipc, uts and user namespaces, no capabilities, system call filter","skill":"mounted snapshot","status":"128+N read as signal N for crashes","tier":"bubblewrap"},"leftovers_killed":0,"script":"scripts/run.sh","session":"s-1","signal":null,"skill":"demo","started":1,"stderr_bytes":0,"stdout_bytes":8,"timed_out":false}','87fce96a02d8598c3b6629f7b3a705331bcf6f872fc0d1ef46f6a46f75414bf5','ccde915286781f9737afd7ca11e33048c2244be60f21314229d6e113b68a41fd');
INSERT INTO "audit" VALUES(3,'2026-11-17T17:11:23.131875Z','refused','{"answer":"no","arguments":"argv [\"two\",\"--token\",\"[masked]\"]","arguments_digest":"02d5daccc663eae1178fbf216e3bbc853c1b0b382379a197c9c0e06903ce4c77","channel":"scripted","decision":"ask","digest":"00c501ca9f6a2a6a731a8e11c688db8a460efd945315d8a09ed63b73b50b8797","error":"ApprovalDeclinedError","interpreter":"/usr/bin/bash","path":"/home/somebody/skills/demo/scripts/run.sh","reasons":["demo: scripts/run.sh may not run. Declined by a person (scripted)."],"script":"scripts/run.sh","session":"s-1","skill":"demo","stdin_digest":null}','ccde915286781f9737afd7ca11e33048c2244be60f21314229d6e113b68a41fd','2d4c6e84c13f90aa1c784197533ae467a8e86b3240137a284392c6dc90b095fb');
INSERT INTO "audit" VALUES(4,'2026-11-17T17:11:23.154945Z','started','{"answer":"yes_in_session","arguments":"argv [\"three\"]","arguments_digest":"73923a99003658ccf2ec59145967c0602ab7e6a6accae5b68eba91dcaf8456f3","channel":"scripted","decision":"ask","digest":"00c501ca9f6a2a6a731a8e11c688db8a460efd945315d8a09ed63b73b50b8797","interpreter":"/usr/bin/bash","path":"/home/somebody/skills/demo/scripts/run.sh","reasons":["Policy asks a person before a skill''s first run."],"script":"scripts/run.sh","session":"s-1","skill":"demo","stdin_digest":null}','2d4c6e84c13f90aa1c784197533ae467a8e86b3240137a284392c6dc90b095fb','ef6158b68045a1b7e23b9ebe6393404e23f77dde596e6a4d226c2ac15ed10fce');
INSERT INTO "audit" VALUES(5,'2026-11-17T17:11:23.181432Z','finished','{"cancelled":false,"digest":"00c501ca9f6a2a6a731a8e11c688db8a460efd945315d8a09ed63b73b50b8797","duration_us":20232,"exit_code":0,"isolation":{"degraded":["the limit of processes does not hold for root","root could change the modes of /dev/null, zero, full, random, urandom and tty"],"files":"mount namespace","kill":"pid namespace","limits":["1024 MB data a process","100 MB a file","256 open files a process","64 MB temporary files","35 s processor time a process"],"network":"none (network namespace, system call filter); unix sockets inside the walls","processes":"pid, ipc, uts and user namespaces, no capabilities, system call filter","skill":"mounted snapshot","status":"128+N read as signal N for crashes","tier":"bubblewrap"},"leftovers_killed":0,"script":"scripts/run.sh","session":"s-1","signal":null,"skill":"demo","started":4,"stderr_bytes":0,"stdout_bytes":10,"timed_out":false}','ef6158b68045a1b7e23b9ebe6393404e23f77dde596e6a4d226c2ac15ed10fce','18f681e56a53eab06b427060d5cb1eb2f5695c537f4fd48b01fbed290574761c');
INSERT INTO "audit" VALUES(6,'2026-11-17T17:11:23.183326Z','started','{"answer":null,"arguments":"","arguments_digest":"da02e594dbf681f3c06ef6c237008373c92df3776355e68cf792d9bbff9b19d2","channel":"scripted","decision":"allow","digest":"00c501ca9f6a2a6a731a8e11c688db8a460efd945315d8a09ed63b73b50b8797","interpreter":"/usr/bin/bash","path":"/home/somebody/skills/demo/scripts/fail.sh","reasons":["Approved in this session."],"script":"scripts/fail.sh","session":"s-1","skill":"demo","stdin_digest":null}','18f681e56a53eab06b427060d5cb1eb2f5695c537f4fd48b01fbed290574761c','fa66a761603cd8f3aada916446055778b79cad444644a09ed49593b42bdb25f0');
INSERT INTO "audit" VALUES(7,'2026-11-17T17:11:23.206132Z','finished','{"cancelled":false,"digest":"00c501ca9f6a2a6a731a8e11c688db8a460efd945315d8a09ed63b73b50b8797","duration_us":19143,"exit_code":3,"isolation":{"degraded":["the limit of processes does not hold for root","root could change the modes of /dev/null, zero, full, random, urandom and tty"],"files":"mount namespace","kill":"pid namespace","limits":["1024 MB data a process","100 MB a file","256 open files a process","64 MB temporary files","35 s processor time a process"],"network":"none (network namespace, system call filter); unix sockets inside the walls","processes":"pid, ipc, uts and user namespaces, no capabilities, system call filter","skill":"mounted snapshot","status":"128+N read as signal N for crashes","tier":"bubblewrap"},"leftovers_killed":0,"script":"scripts/fail.sh","session":"s-1","signal":null,"skill":"demo","started":6,"stderr_bytes":0,"stdout_bytes":0,"timed_out":false}','fa66a761603cd8f3aada916446055778b79cad444644a09ed49593b42bdb25f0','c521bff00a07277f622250a5d1a146fb968aa7beb2d4066c16fb83e8f2b1331c');
INSERT INTO "audit" VALUES(8,'2026-11-17T17:11:23.208199Z','started','{"answer":null,"arguments":"argv [\"four\"] arguments {\"a\":1}","arguments_digest":"aeb5fc5869e1cd449b42b5f622c146ebaee71629783d825427cbe3996f52c2ab","channel":"scripted","decision":"allow","digest":"00c501ca9f6a2a6a731a8e11c688db8a460efd945315d8a09ed63b73b50b8797","interpreter":"/usr/bin/bash","path":"/home/somebody/skills/demo/scripts/run.sh","reasons":["Approved in this session."],"script":"scripts/run.sh","session":"s-1","skill":"demo","stdin_digest":"f9d86028c6e0d64e225186f96acb69338b2c59764df79162107f5c4bb34d1310"}','c521bff00a07277f622250a5d1a146fb968aa7beb2d4066c16fb83e8f2b1331c','f8929774f8d037f2587d4bf61af8453a6649863235eead202087e0aedfde824c');
INSERT INTO "audit" VALUES(9,'2026-11-17T17:11:23.241500Z','finished','{"cancelled":false,"digest":"00c501ca9f6a2a6a731a8e11c688db8a460efd945315d8a09ed63b73b50b8797","duration_us":27511,"exit_code":0,"isolation":{"degraded":["the limit of processes does not hold for root","root could change the modes of /dev/null, zero, full, random, urandom and tty"],"files":"mount namespace","kill":"pid namespace","limits":["1024 MB data a process","100 MB a file","256 open files a process","64 MB temporary files","35 s processor time a process"],"network":"none (network namespace, system call filter); unix sockets inside the walls","processes":"pid, ipc, uts and user namespaces, no capabilities, system call filter","skill":"mounted snapshot","status":"128+N read as signal N for crashes","tier":"bubblewrap"},"leftovers_killed":0,"script":"scripts/run.sh","session":"s-1","signal":null,"skill":"demo","started":8,"stderr_bytes":0,"stdout_bytes":9,"timed_out":false}','f8929774f8d037f2587d4bf61af8453a6649863235eead202087e0aedfde824c','1221fb9b2dc5c7896a830a60bfd93b4ff9624a8e13e5f8b66677b03e9bc9b887');
CREATE TABLE meta (key text primary key, value text not null) without rowid;
INSERT INTO "meta" VALUES('world','97bd66d3ed69f0fca3b4f1dcd8c4cc9d');
CREATE TABLE requests (
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
        );
INSERT INTO "requests" VALUES(1,'2a6ab7eee0b2b35d56c29d0f9e7938c2','{"id": "2a6ab7eee0b2b35d56c29d0f9e7938c2", "title": "Which?", "message": "Choose one.", "options": [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}], "session_id": "s-2"}','{}','[]',1,1.79493548325664758679e+09,1.79493578325664758683e+09,'547ee687-0368-4bc0-8c0e-486001e0e374',4593.622070031,'answered','b','cli',1.79493548327959036824e+09,1);
CREATE TRIGGER audit_is_never_changed before update on audit
            begin select raise(abort, 'audit records are never changed'); end;
CREATE TRIGGER audit_is_never_shortened before delete on audit
            begin select raise(abort, 'audit records are never removed'); end;
CREATE TRIGGER audit_only_grows before insert on audit
            when new.seq is not (select coalesce(max(seq), 0) + 1 from audit)
            begin select raise(abort, 'audit records are only appended'); end;
CREATE UNIQUE INDEX requests_pending on requests (state, id) where state = 'pending';
CREATE INDEX requests_by_id on requests (id);
CREATE INDEX askers_by_request on askers (request);
CREATE INDEX approvals_by_skill on approvals (skill, folder);
COMMIT;
PRAGMA user_version = 2;
