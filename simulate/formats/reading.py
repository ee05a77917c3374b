"""The one place where a file becomes a mapping.

Rule: a file that cannot be read, or holds anything but the mapping that was asked for, is one ConfigError
that names the file.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ..errors import ConfigError
from .documents import parse_json, parse_yaml
from .shape import join, nearest, shown
from .units import found

if TYPE_CHECKING:
    import pydantic

LARGEST_FILE = 256 * 2**20
#: What a file begins with that gzip packed.
GZIP = b"\x1f\x8b"
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")


def read_bytes(path: str | Path) -> bytes:
    """Return a file's bytes.

    Raises:
        ConfigError: it cannot be read, is empty, or is larger than LARGEST_FILE.
    """
    source = str(path)
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(source, "", f"cannot be read: {reason}") from None
    if len(data) > LARGEST_FILE:
        raise ConfigError(source, "", "too large", f"at most {LARGEST_FILE // 2**20} MiB")
    if not data.strip():
        raise ConfigError(source, "", "the file is empty")
    return data


def unpacked(data: bytes, source: str, most: int = LARGEST_FILE) -> bytes:
    """Return what gzip packed, and other bytes as they are. Raises ConfigError: damaged, or more than `most` bytes."""
    if not data.startswith(GZIP):
        return data
    pieces, size = list[bytes](), 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while size <= most and (piece := file.read(2**20)):
                pieces.append(piece)
                size += len(piece)
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(source, "", f"it cannot be unpacked: {error}", "gzip, whole") from None
    if size > most:
        raise ConfigError(source, "", "too large, unpacked", f"at most {most // 2**20} MiB")
    return b"".join(pieces)


def decode(data: bytes, source: str) -> str:
    """Return UTF-8 bytes as text. Raises ConfigError where they are something else, with the line."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(source, f"line {line}", "not UTF-8 text", "a text file in UTF-8") from None
    if control := _CONTROL.search(text):
        line = text.count("\n", 0, control.start()) + 1
        raise ConfigError(source, f"line {line}", "a control character: binary?", "a text file")
    return text


def parse_document(text: str, source: str) -> dict[str, Any]:
    """Return the mapping that YAML or JSON text holds. Raises ConfigError."""
    if text.lstrip()[:1] == "{":
        try:
            data = parse_json(text, source)
        except ConfigError:
            if source.endswith(".json"):
                raise
            data = parse_yaml(text, source)
    else:
        data = parse_yaml(text, source)
    if not isinstance(data, dict):
        raise ConfigError(source, "", found(data), "a mapping of keys to values")
    return data


def read_document(path: str | Path) -> dict[str, Any]:
    """Return the mapping in a YAML or JSON file. Raises ConfigError for a file that is anything else."""
    return parse_document(decode(read_bytes(path), str(path)), str(path))


def check_schema(data: dict[str, Any], kind: str, source: str) -> dict[str, Any]:
    """Return `data` without its `schema` key, which must say pilotfish/<kind>/v1. Raises ConfigError."""
    wanted = f"pilotfish/{kind}/v1"
    if data.get("schema") != wanted:
        problem = found(data["schema"]) if "schema" in data else "missing"
        raise ConfigError(source, "schema", problem, wanted)
    return {key: value for key, value in data.items() if key != "schema"}


def config_error(
    error: pydantic.ValidationError, source: str, model: type[pydantic.BaseModel]
) -> ConfigError:
    """Return pydantic's verdict as one ConfigError: the dotted key, what was found, what is allowed.

    Args:
        error: what validating raised; its first complaint is told, the others are counted.
        model: the model that was validated, for the names that a key may have.
    """
    complaints = error.errors(include_url=False)
    first = complaints[0]
    *path, last = first["loc"] or ("",)
    names = _field_names(model, tuple(path))
    key = ""
    for part in first["loc"]:
        key = join(key, f"[{part}]" if isinstance(part, int) else shown(part))
    if first["type"] == "extra_forbidden":
        problem, allowed = f"unknown key{nearest(str(last), names)}", ", ".join(names)
    elif first["type"] == "missing":
        problem, allowed = "missing", "it is required"
    else:
        problem, allowed = found(first["input"]), _plainly(first["msg"])
    if len(complaints) > 1:
        problem += f", and {len(complaints) - 1} more wrong"
    return ConfigError(source, key, problem, allowed)


def _plainly(message: str) -> str:
    """What pydantic allows, in our words."""
    if "instance of" in message:
        return "a mapping of keys to values"
    return message.removeprefix("Value error, ").removeprefix("Input should be ")


def _field_names(model: Any, path: tuple[Any, ...]) -> list[str]:
    """The keys allowed at `path` inside a pydantic model, looking through Optional, list and dict."""
    level = [model]
    for part in path:
        inner = [field.annotation for name, field in _fields(level) if part in (name, field.alias)]
        level = [kind for annotation in inner or level for kind in (annotation, *_inner_kinds(annotation))]
    return [field.alias or name for name, field in _fields(level)]


def _fields(kinds: list[Any]) -> list[tuple[str, Any]]:
    return [item for kind in kinds for item in getattr(kind, "model_fields", {}).items()]


def _inner_kinds(annotation: Any) -> list[Any]:
    return [deep for kind in get_args(annotation) for deep in (kind, *_inner_kinds(kind))]
