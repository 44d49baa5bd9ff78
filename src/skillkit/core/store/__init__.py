"""Where a world keeps its state, and beside it the copies of skills that were approved.

Theory of operation. `Store` (base.py) is what every database gives: connections, transactions, a clock, a mark of
change, and the append to the audit. `StateStore` (state.py) holds one SQLite file: it opens it, brings it up to date,
shares one connection among threads, survives forks and says what is wrong; `open_store` (opening.py) chooses. The
tables are reached through a few classes whose methods each are one transaction and take and give plain frozen values:
`Requests` (requests.py; its statements in request_rows.py), `StandingApprovals` (trust.py), `StandingGrants`
(grants.py) and the rows of the audit. `World` puts waiting on top. All SQL is in this folder, and no connection is for
anybody outside of it.

Every store has to keep these promises: the first answer is
written and no later one; an answer for one asker is taken by one; leases and deadlines are judged by one clock that
no asker can set; what a person was shown is gone once nobody can be shown it; audit records are only appended, each
after the one it names. The copies of skills (snapshots.py) stay with each machine: they are made of what is run there.
"""
