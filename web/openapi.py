"""The description of the pages' data, OpenAPI 3.1: for programs, and for those who test the server."""

from __future__ import annotations

from typing import Any

from ..daemon.report.board import JOB_COLUMNS, NODE_COLUMNS

_KEY = {
    "name": "key",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1, "maxLength": 512},
    "description": "A job as the service names it, such as slurm/123 or align-1/sort; or its id alone.",
}
_ROWS = {
    "type": "array",
    "items": {"type": "array", "minItems": len(JOB_COLUMNS), "maxItems": len(JOB_COLUMNS)},
    "description": f"A job a row: {', '.join(JOB_COLUMNS)}. Times are epoch seconds, null where they are not known.",
}
_BOARD = {
    "type": "object",
    "required": ["version", "about", "facts", "users", "nodes", "columns", "jobs", "past", "trouble"],
    "properties": {
        "version": {"type": "integer", "description": "It counts the changes since the server began."},
        "about": {"type": "object", "description": "The mode, policy and trouble of the service, as in `status`."},
        "facts": {
            "type": "array",
            "items": {"type": "array", "minItems": 3, "maxItems": 3},
            "description": "What the guard rails say: a name, a text, and the times before it in epoch seconds.",
        },
        "users": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
        "nodes": {
            "type": "object",
            "properties": {name: {"type": "array"} for name in NODE_COLUMNS},
            "description": "One list for each value of the nodes, in the order of the cluster.",
        },
        "columns": {"type": "array", "items": {"type": "string"}},
        "jobs": _ROWS,
        "past": _ROWS,
        "trouble": {"type": "string", "description": "Why the service does not answer; empty if it does."},
    },
}
_TABLE = {
    "type": "object",
    "required": ["title", "columns", "rows", "text"],
    "properties": {
        "title": {"type": "string"},
        "columns": {"type": "array", "items": {"type": "string"}},
        "rows": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        "text": {"type": "string", "description": "What the numbers are, or why no row is there."},
        "time": {"type": "number", "description": "When it was made, epoch seconds."},
    },
}
_QUALITY = {
    "type": "object",
    "required": ["tables"],
    "properties": {"tables": {"type": "array", "items": _TABLE}},
}
_ERROR = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}


def document() -> dict[str, Any]:
    """Return the description."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "pilotfish", "version": "1", "description": "The cluster now, its queue and its future."},
        "paths": {
            "/api/v1/board": {"get": _operation("All nodes and jobs that the viewer may see.", _BOARD)},
            "/api/v1/jobs/{key}": {
                "get": _operation("What is known of a job, and its story.", {"type": "object"}, [_KEY], unknown=True)
            },
            "/api/v1/quality": {
                "get": _operation("How good the forecasts were, and the card, as tables.", _QUALITY, forbidden=True)
            },
            "/api/v1/openapi.json": {"get": _operation("This description.", {"type": "object"})},
            "/healthz": {
                "get": _operation("Whether the service answers.", {"type": "object"}, failing={"type": "object"})
            },
        },
    }


def _operation(
    summary: str,
    schema: dict[str, Any],
    parameters: list[dict[str, Any]] | None = None,
    *,
    unknown: bool = False,
    forbidden: bool = False,
    failing: dict[str, Any] | None = None,
) -> dict[str, Any]:
    answers = {"200": ("It answers.", schema), "503": ("The service does not answer.", failing or _ERROR)}
    if unknown:
        answers["404"] = ("There is no such job, or the viewer may not see it.", _ERROR)
    if forbidden:
        answers["403"] = ("The viewer may not see the jobs of all users.", _ERROR)
    responses = {
        code: {"description": text, "content": {"application/json": {"schema": shape}}}
        for code, (text, shape) in answers.items()
    }
    return {"summary": summary, "parameters": parameters or [], "responses": responses}
