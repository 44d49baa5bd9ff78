"""Commands by which a person looks at what ran and decides what may: approvals, trust, grants, keys, the record."""
