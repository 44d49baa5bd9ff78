"""Skills -> what is published of them: `skill://` addresses with digests and bytes, prompts, skill entries."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from skillkit.core.exceptions import SkillKitError, SkillNotFoundError
from skillkit.core.find.validation import NAME, NAME_LIMIT
from skillkit.core.find.walk import SKILL_FILE
from skillkit.core.manager import SkillManager
from skillkit.core.models import SkillMetadata, open_at_once, skill_file_bytes
from skillkit.core.models.digest import LEFT_OUT, file_hash, manifest_of
from skillkit.core.models.frontmatter import read_frontmatter
from skillkit.core.paths import FilePathResolver, real_path
from skillkit.integrations.mcp import in_unicode

__all__ = ["EXTENSION", "Publishing", "SkillUriParams"]

SCHEME = "skill://"
# What every host must accept; a larger skill may be loadable by none (SEP-2640).
FILE_LIMIT = 512
BYTE_LIMIT = 16 * 1024 * 1024
EXTENSION = "io.modelcontextprotocol/skills"
DIGEST_KEY = "io.modelcontextprotocol.skills/digest"
TEMPLATE = "skill://{skill}/{+path}"
ARGUMENTS = "arguments"
KINDS = {".md": "text/markdown", ".ts": "text/x-typescript"}  # systems differ about the first, and take .ts for video
PAGE_SKILLS = 50
# Files change while a server runs, and they are one user's.
FRESH = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

Context = ServerRequestContext[Any, Any]
Page = types.PaginatedRequestParams | None


class SkillUriParams(types.RequestParams):
    """What `skills/get` and `resources/directory/read` are given."""

    uri: str


class Publishing:
    """The handlers that only read; each look goes to the files as they are now, in a thread."""

    def __init__(self, manager: SkillManager) -> None:
        self.manager = manager

    async def list_resources(self, _: Context, params: Page) -> types.ListResourcesResult:
        return await asyncio.to_thread(self._resources, params)

    async def list_templates(self, _: Context, __: Page) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="skill-file", title="A file of a skill", uri_template=TEMPLATE, description="Any file of any skill."
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, _: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return types.ReadResourceResult(contents=[await asyncio.to_thread(self._contents, str(params.uri))])

    async def read_directory(self, _: Context, params: SkillUriParams) -> types.ListResourcesResult:
        """What lies directly in a folder; all of it at once."""
        return types.ListResourcesResult(resources=await asyncio.to_thread(self._children, params.uri))

    async def list_prompts(self, _: Context, params: Page) -> types.ListPromptsResult:
        skills, following = await asyncio.to_thread(self._page, params)
        return types.ListPromptsResult(prompts=[_prompt(skill) for skill in skills], next_cursor=following)

    async def get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """A skill's instructions, as its user asked for them; nothing runs by reading them."""
        given = (params.arguments or {}).get(ARGUMENTS, "")
        try:
            skill = self.manager.get_skill(params.name)
            text = await self.manager.ainvoke_skill(params.name, given)
        except SkillKitError as error:
            raise _invalid(str(error)) from error
        message = types.PromptMessage(role="user", content=types.TextContent(text=in_unicode(text)))
        return types.GetPromptResult(description=in_unicode(skill.description), messages=[message])

    async def list_skills(self, _: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        return await asyncio.to_thread(self._entries, params)

    async def get_skill(self, _: Context, params: SkillUriParams) -> dict[str, Any]:
        return {"skill": await asyncio.to_thread(self._entry_at, params.uri), **FRESH}

    def _page(self, params: Page) -> tuple[list[SkillMetadata], str | None]:
        """Some skills in order of precedence, found again, and where the next page starts."""
        self.manager.discover()
        skills = self.manager.list_skills()
        cursor = params.cursor if params is not None else None
        if cursor is not None and not (cursor.isascii() and cursor.isdecimal()):
            raise _invalid(f"{cursor!r} is no cursor of this server. Start again without one.")
        start = int(cursor or 0)
        end = start + PAGE_SKILLS
        return skills[start:end], str(end) if end < len(skills) else None

    def _resources(self, params: Page) -> types.ListResourcesResult:
        skills, following = self._page(params)
        found: list[types.Resource] = []
        for skill in skills:
            with suppress(SkillKitError):  # one bad skill never stops the others
                found += _files(skill)[:FILE_LIMIT]
        return types.ListResourcesResult(resources=found, next_cursor=following)

    def _entries(self, params: types.PaginatedRequestParams) -> dict[str, Any]:
        skills, following = self._page(params)
        result = {"skills": list(filter(None, map(_entry, skills))), **FRESH}
        return {**result, "nextCursor": following} if following else result

    def _entry_at(self, uri: str) -> dict[str, Any]:
        """For the address of a SKILL.md."""
        skill, relative = self._locate(uri)
        entry = _entry(skill) if relative == SKILL_FILE else None
        if entry is None:
            raise _no_such(uri)
        return entry

    def _contents(self, uri: str) -> types.TextResourceContents | types.BlobResourceContents:
        """As text where the text is those very bytes, so that a digest of it holds."""
        skill, relative = self._locate(uri)
        try:
            path = _published_path(skill.base_directory, relative)
            if path is None:
                raise _no_such(uri)
            with open(path, "rb", opener=open_at_once) as file:
                content = file.read(BYTE_LIMIT + 1) or b""
        except (OSError, SkillKitError) as error:
            raise _no_such(uri) from error
        if len(content) > BYTE_LIMIT:
            raise _invalid(f"{uri!r} has more than {BYTE_LIMIT} bytes, which is more than can be read.")
        kind = _kind_of(relative)
        with suppress(UnicodeDecodeError):
            text = content.decode("utf-8")
            if "\0" not in text:
                return types.TextResourceContents(uri=uri, mime_type=kind, text=text)
        return types.BlobResourceContents(uri=uri, mime_type=kind, blob=base64.b64encode(content).decode())

    def _children(self, uri: str) -> list[types.Resource]:
        """Of a folder's address: the files that lie directly in it, and its folders."""
        name, slash, path = uri.removeprefix(SCHEME).partition("/")
        skill, _ = self._locate(f"{SCHEME}{name}/{SKILL_FILE}")
        try:
            below = {file.uri.removeprefix(f"{uri}/"): file for file in _files(skill) if file.uri.startswith(f"{uri}/")}
        except SkillKitError as error:
            raise _no_such(uri) from error
        if not below or bool(slash) != bool(path):
            raise _no_such(uri)
        folders = sorted({rest.partition("/")[0] for rest in below if "/" in rest})
        files = [file for rest, file in below.items() if "/" not in rest]
        return [*files, *(_folder_resource(f"{uri}/{folder}") for folder in folders)]

    def _locate(self, uri: str) -> tuple[SkillMetadata, str]:
        """By the skill's whole name: no other spelling of an address is the same one."""
        name, slash, path = uri.removeprefix(SCHEME).partition("/")
        relative = os.fsdecode(unquote_to_bytes(path))
        wanted = os.fsdecode(unquote_to_bytes(name))
        try:
            skill = self.manager.get_skill(wanted)
        except SkillNotFoundError as error:
            raise _no_such(uri) from error
        if not slash or skill.name != wanted or _address(skill, relative) != uri:
            raise _no_such(uri)
        return skill, relative


def _address(skill: SkillMetadata, relative: str) -> str:
    return f"{SCHEME}{quote(skill.name, safe='')}/{quote(os.fsencode(relative), safe='/')}"


def _files(skill: SkillMetadata) -> list[types.Resource]:
    """SKILL.md first, then by path; what is not a readable file inside the skill is left out."""
    entries = sorted(manifest_of(skill.base_directory).entries, key=lambda entry: (entry[0] != SKILL_FILE, entry[0]))
    found = [_file(skill, relative, content) for relative, content in entries]
    return [file for file in found if file is not None]


def _file(skill: SkillMetadata, relative: str, content: str) -> types.Resource | None:
    """With the digest of what a reader of this path gets; a link counts as the file it leads to, inside the skill."""
    try:
        path = _published_path(skill.base_directory, relative)
        if path is None:
            return None
        digest = content.removeprefix("sha256 ") if content.startswith("sha256 ") else file_hash(str(path))[1]
        size = path.stat().st_size
    except (OSError, SkillKitError):  # it leads out, or cannot be read
        return None
    is_main = relative == SKILL_FILE
    return types.Resource(
        uri=_address(skill, relative),
        name=in_unicode(skill.name if is_main else f"{skill.name}/{relative}"),
        description=in_unicode(skill.description) if is_main else None,
        mime_type=_kind_of(relative),
        size=size,
        _meta={DIGEST_KEY: f"sha256:{digest}"},
    )


def _published_path(folder: Path, relative: str) -> Path | None:
    """Where the file behind this path really is; None for what is not a file, and for a repository's own."""
    path = FilePathResolver.resolve_path(folder, relative)
    inside = (Path(relative), path.relative_to(real_path(folder)))
    return path if os.path.isfile(path) and not any(LEFT_OUT in each.parts for each in inside) else None


def _entry(skill: SkillMetadata) -> dict[str, Any] | None:
    """As the skills extension describes one; None for a skill that it does not allow to be served."""
    try:
        fields = read_frontmatter(skill_file_bytes(skill.skill_path)).fields
        files = _files(skill)
    except SkillKitError:
        return None
    is_named = NAME.fullmatch(skill.name) and len(skill.name) <= NAME_LIMIT
    is_small = len(files) <= FILE_LIMIT and sum(file.size or 0 for file in files) <= BYTE_LIMIT
    if not (is_named and is_small and fields.get("name") == skill.name and fields.get("description")):
        return None
    resources = [{"uri": file.uri, "digest": (file.meta or {})[DIGEST_KEY], "size": file.size} for file in files]
    return {"uri": _address(skill, SKILL_FILE), "frontmatter": fields, "resources": resources}


def _folder_resource(uri: str) -> types.Resource:
    name = os.fsdecode(unquote_to_bytes(uri.removeprefix(SCHEME)))
    return types.Resource(uri=uri, name=in_unicode(name), mime_type="inode/directory")


def _prompt(skill: SkillMetadata) -> types.Prompt:
    argument = types.PromptArgument(name=ARGUMENTS, description="What the skill is to work on.", required=False)
    return types.Prompt(name=in_unicode(skill.name), description=in_unicode(skill.description), arguments=[argument])


def _kind_of(path: str) -> str:
    known = KINDS.get(os.path.splitext(path)[1]) or mimetypes.guess_type(path)[0]
    return known or "application/octet-stream"


def _invalid(message: str) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message=in_unicode(message))


def _no_such(uri: str) -> MCPError:
    return _invalid(f"Nothing is published at {uri!r}. `resources/list` tells what is.")
