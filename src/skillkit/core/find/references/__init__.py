"""What a skill's instructions say about its scripts: which they mention, and which they write as a command."""

from __future__ import annotations

from skillkit.core.find.references.reader import References, ScriptReference, references_in

__all__ = ["References", "ScriptReference", "references_in"]
