"""Needs of kind package -> a lock, a person's yes, and an environment that runs of the skill find their packages in.

    prepare_packages(manager, skill, script=None, *, approver, ...) -> Preparation

Theory of operation. What a skill needs (`wanted`) becomes a lock with versions and hashes (`python` by uv, `node` by
npm), made in walls whose only hosts are the index's (`tools`, `index`, `pages`, `registry`). A person sees every
package of it (`question`). Then the environment is built from the lock alone, in a place of its own (`workshop`), and
kept where runs find it (`core/store/environments.py`). Nothing of a package runs before a script of the skill imports
it. Needs the extra `packages`.
"""

from __future__ import annotations

from importlib.util import find_spec

from skillkit.core.exceptions import ConfigurationError

__all__ = ["require_packages"]


def require_packages() -> None:
    """Raises where the libraries of the extra are missing."""
    if find_spec("packaging") is None:
        raise ConfigurationError(
            "Preparing packages needs the extra 'packages': pip install 'skillkit-runtime[packages]'"
        )
