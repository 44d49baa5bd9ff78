"""Skills -> the protocol's resources, prompts and skill entries."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
import os
from typing import Any
from urllib.parse import unquote_to_bytes

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from skillkit.core.exceptions import SkillKitError
from skillkit.core.find.walk import SKILL_FILE
from skillkit.core.models import SkillMetadata
from skillkit.integrations.mcp.catalog import FILE_LIMIT, SCHEME, NoSuchAddressError, PublishedFile, SkillCatalog
from skillkit.integrations.mcp.wording import in_unicode

__all__ = ["EXTENSION", "Publishing", "SkillUriParams"]

EXTENSION = "io.modelcontextprotocol/skills"
DIGEST_KEY = "io.modelcontextprotocol.skills/digest"
TEMPLATE = "skill://{skill}/{+path}"
ARGUMENTS = "arguments"
KINDS = {".md": "text/markdown", ".ts": "text/x-typescript"}  # systems differ about the first, and take .ts for video
PAGE_SKILLS = 50

Context = ServerRequestContext[Any, Any]
Page = types.PaginatedRequestParams | None


class SkillUriParams(types.RequestParams):
    """What `skills/get` and `resources/directory/read` are given."""

    uri: str


class Publishing:
    """The handlers that only read; each look goes to the files, in a thread."""

    def __init__(self, catalog: SkillCatalog) -> None:
        self.catalog = catalog

    async def list_resources(self, _: Context, params: Page) -> types.ListResourcesResult:
        return await asyncio.to_thread(self._resources, params)

    def _resources(self, params: Page) -> types.ListResourcesResult:
        skills, following = page_of(self.catalog.skills(), params)
        found: list[types.Resource] = []
        for skill in skills:
            try:
                files = self.catalog.files(skill)[:FILE_LIMIT]
            except SkillKitError:  # one bad skill never stops the others
                continue
            found += [resource(skill, file) for file in files]
        return types.ListResourcesResult(resources=found, next_cursor=following)

    async def list_templates(self, _: Context, __: Page) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="skill-file", title="A file of a skill", uri_template=TEMPLATE, description="Any file of any skill."
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, _: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        try:
            path, content = await asyncio.to_thread(self.catalog.read, str(params.uri))
        except NoSuchAddressError as error:
            raise invalid(str(error)) from error
        return types.ReadResourceResult(contents=[contents(str(params.uri), path, content)])

    async def read_directory(self, _: Context, params: SkillUriParams) -> types.ListResourcesResult:
        """What lies directly in a folder; all of it at once."""
        try:
            skill, files, folders = await asyncio.to_thread(self.catalog.children, params.uri)
        except NoSuchAddressError as error:
            raise invalid(str(error)) from error
        found = [resource(skill, file) for file in files] + [folder_resource(uri) for uri in folders]
        return types.ListResourcesResult(resources=found)

    async def list_prompts(self, _: Context, params: Page) -> types.ListPromptsResult:
        skills, following = page_of(await asyncio.to_thread(self.catalog.skills), params)
        return types.ListPromptsResult(prompts=[prompt(skill) for skill in skills], next_cursor=following)

    async def get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """A skill's instructions, as its user asked for them; nothing runs by reading them."""
        given = (params.arguments or {}).get(ARGUMENTS, "")
        try:
            skill = self.catalog.manager.get_skill(params.name)
            text = await self.catalog.manager.ainvoke_skill(params.name, given)
        except SkillKitError as error:
            raise invalid(str(error)) from error
        message = types.PromptMessage(role="user", content=types.TextContent(text=in_unicode(text)))
        return types.GetPromptResult(description=in_unicode(skill.description), messages=[message])

    async def list_skills(self, _: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        return await asyncio.to_thread(self._entries, params)

    def _entries(self, params: types.PaginatedRequestParams) -> dict[str, Any]:
        skills, following = page_of(self.catalog.skills(), params)
        result = {"skills": list(filter(None, map(self.catalog.entry, skills))), **FRESH}
        return {**result, "nextCursor": following} if following else result

    async def get_skill(self, _: Context, params: SkillUriParams) -> dict[str, Any]:
        try:
            return {"skill": await asyncio.to_thread(self.catalog.entry_at, params.uri), **FRESH}
        except NoSuchAddressError as error:
            raise invalid(str(error)) from error


# Files change while a server runs, and they are one user's.
FRESH = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def page_of(skills: list[SkillMetadata], params: Page) -> tuple[list[SkillMetadata], str | None]:
    """Some skills, and where the next page starts."""
    cursor = params.cursor if params is not None else None
    if cursor is not None and not (cursor.isascii() and cursor.isdecimal()):
        raise invalid(f"{cursor!r} is no cursor of this server. Start again without one.")
    start = int(cursor or 0)
    end = start + PAGE_SKILLS
    return skills[start:end], str(end) if end < len(skills) else None


def resource(skill: SkillMetadata, file: PublishedFile) -> types.Resource:
    is_main = file.path == SKILL_FILE
    return types.Resource(
        uri=file.uri,
        name=in_unicode(skill.name if is_main else f"{skill.name}/{file.path}"),
        description=in_unicode(skill.description) if is_main else None,
        mime_type=kind_of(file.path),
        size=file.size,
        _meta={DIGEST_KEY: file.digest},
    )


def folder_resource(uri: str) -> types.Resource:
    name = os.fsdecode(unquote_to_bytes(uri.removeprefix(SCHEME)))
    return types.Resource(uri=uri, name=in_unicode(name), mime_type="inode/directory")


def prompt(skill: SkillMetadata) -> types.Prompt:
    argument = types.PromptArgument(name=ARGUMENTS, description="What the skill is to work on.", required=False)
    return types.Prompt(name=in_unicode(skill.name), description=in_unicode(skill.description), arguments=[argument])


def contents(uri: str, path: str, content: bytes) -> types.TextResourceContents | types.BlobResourceContents:
    """As text where the text is those very bytes, so that a digest of it holds."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return types.BlobResourceContents(uri=uri, mime_type=kind_of(path), blob=base64.b64encode(content).decode())
    return types.TextResourceContents(uri=uri, mime_type=kind_of(path), text=text)


def kind_of(path: str) -> str:
    known = KINDS.get(os.path.splitext(path)[1]) or mimetypes.guess_type(path)[0]
    return known or "application/octet-stream"


def invalid(message: str) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message=in_unicode(message))
