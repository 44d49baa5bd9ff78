"""Where skills come from: a source is read without running anything of it, written all or not at all, and locked.

A source (`given`) is opened (`opening`) as a tree that only lists (`git`, `archives`, `index`); the skills
in it are chosen and held against the rules (`choosing`, `listing`), written beside their place and renamed (`placing`),
and noted in `skills.lock` (`lock`). Nothing here approves anything.
"""
