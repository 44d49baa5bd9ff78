"""A world that many machines share: its tables in PostgreSQL, its address, news of what changed, and a way into it."""
