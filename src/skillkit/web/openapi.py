"""The API -> its description in OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from skillkit._version import __version__

__all__ = ["openapi_description"]

JSON = dict[str, Any]


def ref(name: str) -> JSON:
    return {"$ref": f"#/components/schemas/{name}"}


TEXT: JSON = {"type": "string"}
SECONDS: JSON = {"type": "number", "description": "Seconds since 1970, UTC."}
OPTION: JSON = {"type": "object", "required": ["id", "label"], "properties": {"id": TEXT, "label": TEXT}}
ANSWER: JSON = {
    "type": "object",
    "required": ["option_id", "channel", "answered_at", "request_id"],
    "properties": {"option_id": TEXT, "channel": TEXT, "answered_at": SECONDS, "request_id": TEXT},
}
SUMMARY: JSON = {
    "type": "object",
    "required": ["id", "state", "title", "message", "options", "session_id", "created_at", "expires_at", "answer"],
    "properties": {
        "id": TEXT,
        "state": {"enum": ["pending", "answered", "expired", "withdrawn", "abandoned"]},
        "title": TEXT,
        "message": TEXT,
        "options": {"type": "array", "items": ref("Option")},
        "session_id": {"type": ["string", "null"]},
        "created_at": SECONDS,
        "expires_at": SECONDS,
        "answer": {"oneOf": [ref("Answer"), {"type": "null"}]},
    },
}
CONTEXT: JSON = {
    "type": "object",
    "description": "What the asker wants shown; `prompt` for scripts. Text from a skill is untrusted. Empty when over.",
}
CHOICE: JSON = {
    "type": "object",
    "required": ["option_id"],
    "properties": {
        "option_id": TEXT,
        "created_at": {**SECONDS, "description": "Of the request as it was shown: an answer to no later question."},
    },
}
ERROR: JSON = {
    "type": "object",
    "required": ["schema_version", "error"],
    "properties": {
        "schema_version": {"const": 1},
        "error": {"type": "object", "required": ["code", "message"], "properties": {"code": TEXT, "message": TEXT}},
        "answer": ref("Answer"),
    },
}
REQUEST_ID: JSON = {"name": "request_id", "in": "path", "required": True, "schema": TEXT}
REASONS = {
    "400": "Not one of the request's options.",
    "401": "The token is missing or wrong.",
    "403": "Sent by a page of another origin.",
    "404": "No such request.",
    "409": "Answered before; `answer` says how and by whom.",
    "410": "Expired, withdrawn, or whoever asked is gone.",
    "413": "The body is too large.",
    "421": "Not the address of this server.",
    "429": "Too many wrong tokens.",
    "503": "The state cannot be read, or too many streams are open.",
}
EVERYWHERE = ("401", "403", "421", "429", "503")


def openapi_description(address: str) -> JSON:
    """For the API at this address."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "skillkit approvals",
            "version": __version__,
            "description": "Requests that wait for a person, and their answers. The first answer wins.",
        },
        "servers": [{"url": address}],
        "security": [{"token": []}],
        "paths": paths(),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Option": OPTION,
                "Answer": ANSWER,
                "RequestSummary": SUMMARY,
                "Request": {**SUMMARY, "properties": {**SUMMARY["properties"], "context": CONTEXT}},
                "Choice": CHOICE,
                "Error": ERROR,
            },
        },
    }


def paths() -> JSON:
    one = {"parameters": [REQUEST_ID]}
    listed = {"type": "array", "items": ref("RequestSummary")}
    told = "First what waits now, then every change: event `pending`, data {version, pending: [id]}."
    stream = {"200": {"description": told, "content": {"text/event-stream": {"schema": TEXT}}}}
    return {
        "/requests": {"get": operation("listRequests", "What waits, the oldest first", enveloped("requests", listed))},
        "/requests/{request_id}": {
            **one,
            "get": operation(
                "getRequest", "One request with all it carries", enveloped("request", ref("Request")), "404"
            ),
        },
        "/requests/{request_id}/answer": {
            **one,
            "post": {
                "requestBody": {"required": True, "content": {"application/json": {"schema": ref("Choice")}}},
                **operation(
                    "answer", "Answer it", enveloped("answer", ref("Answer")), "400", "404", "409", "410", "413"
                ),
            },
        },
        "/events": {"get": operation("follow", "Follow what waits", stream)},
        "/login-links": {
            "post": operation("newLoginLink", "A path that logs a browser in, once", enveloped("path", TEXT))
        },
        "/openapi.json": {
            "get": {
                **operation("describe", "This description", {"200": {"description": "OpenAPI 3.1"}}),
                "security": [],
            }
        },
    }


def operation(name: str, told: str, responses: JSON, *problems: str) -> JSON:
    content = {"application/json": {"schema": ref("Error")}}
    refused = {code: {"description": REASONS[code], "content": content} for code in (*problems, *EVERYWHERE)}
    return {"operationId": name, "summary": told, "responses": {**responses, **refused}}


def enveloped(name: str, schema: JSON) -> JSON:
    content = {
        "type": "object",
        "required": ["schema_version", name],
        "properties": {"schema_version": {"const": 1}, name: schema},
    }
    return {"200": {"description": "Done.", "content": {"application/json": {"schema": content}}}}
