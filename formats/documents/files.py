"""Read files: bytes, gzip, UTF-8 text, and YAML or JSON documents as plain Python values.

Rule: a file that cannot be read, or that does not hold a mapping, raises one ConfigError that names the file. Whatever
the text, the value is of bounded size, or the error names the line. YAML follows the core schema of YAML 1.2 (`2.4e9`
is a number, `no` and `00:10:00` are text). Keys are text and unique, tags are refused, aliases count in full (so alias
bombs are refused), and nothing recurses.
"""

from __future__ import annotations

import codecs
import gc
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ...simulate.errors import ConfigError, ConfigErrors, did_you_mean
from .document_errors import MOST_ERRORS, found, join, shown
from .open_input import open_input

if TYPE_CHECKING:
    import pydantic


#: Most values of a YAML document, and most values and keys of a JSON one: about 1 GB in memory at the worst.
MOST_VALUES, MOST_JSON_VALUES = 5_000_000, 10_000_000
#: Most values and keys of a JSON document that only a command of a user reads.
MOST_TRACE_VALUES = 30_000_000
DEEPEST = 64
_CONSTANTS: dict[str, bool | None] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_CONSTANTS |= {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,38})")
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_NUMBER_STARTS = frozenset("0123456789+-.")
_NO_KEY: Any = object()
_MERGE: Any = object()


@contextmanager
def without_collections() -> Iterator[None]:
    """Suspend the garbage collector, which would go through many new objects without cycles again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class WrittenFloat(float):
    """A float that keeps its spelling, so that `sleep 0.50` stays `0.50` where text is required."""

    written: str

    def __str__(self) -> str:
        return self.written


def _plain(text: str) -> Any:
    """Return the value of an unquoted scalar (YAML 1.2.2, section 10.3.2, without octal and hexadecimal numbers)."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_STARTS or len(text) > 400:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if not _FLOAT.fullmatch(text):
        return text
    value = float(text)
    if repr(value) == text:
        return value
    written = WrittenFloat(value)
    written.written = text
    return written


class _Frame:
    """A mapping or list that is still open; `key` is the mapping key whose value comes next, None in a list."""

    __slots__ = ("anchor", "began", "key", "line", "merged", "value")

    def __init__(self, value: Any, anchor: str | None, began: int) -> None:
        self.value, self.anchor, self.began = value, anchor, began
        self.key: Any = _NO_KEY if type(value) is dict else None
        self.line = 0
        self.merged: list[Any] = []

    def place(self, value: Any) -> None:
        if self.key is None:
            self.value.append(value)
            return
        if self.key is _MERGE:
            self.merged.append(value)
        else:
            self.value[self.key] = value
        self.key = _NO_KEY


class _Builder:
    """Build the value of a document from the events of the YAML parser; the first open list holds the document."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.open = [_Frame([], None, 0)]
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.count = 0

    def fail(self, event: Any, problem: str, allowed: str = "") -> ConfigError:
        return ConfigError(self.source, f"line {event.start_mark.line + 1}", problem, allowed)

    def grow(self, event: Any, by: int = 1) -> None:
        self.count += by
        if self.count > MOST_VALUES:
            raise self.fail(event, f"more than {MOST_VALUES} values (aliases count in full)")

    def scalar(self, event: Any) -> None:
        self.grow(event)
        frame, value, plain = self.open[-1], event.value, event.implicit[0] and event.tag is None
        if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
            raise self.fail(event, f"found the tag {event.tag[:60]!r}", "values without tags")
        if frame.key is _NO_KEY:
            if value in frame.value:
                raise self.fail(event, f"the key {value[:60]!r} is given twice", "each key once")
            frame.key, frame.line = (_MERGE if plain and value == "<<" else value), event.start_mark.line + 1
        else:
            value = _plain(value) if plain else value
            frame.place(value)
        if event.anchor:
            self.anchors[event.anchor] = (value, 1)

    def begin(self, value: Any, event: Any) -> None:
        self.grow(event)
        if event.tag not in (None, "!"):
            raise self.fail(event, f"found the tag {event.tag[:60]!r}", "values without tags")
        if len(self.open) > DEEPEST:
            raise self.fail(event, f"nested more than {DEEPEST} deep")
        if self.open[-1].key is _NO_KEY:
            raise self.fail(event, "a key is a list or mapping", "text as keys")
        self.open.append(_Frame(value, event.anchor, self.count))

    def end(self) -> None:
        frame = self.open.pop()
        for merged in frame.merged:
            for mapping in merged if isinstance(merged, list) else [merged]:
                if not isinstance(mapping, dict):
                    raise ConfigError(self.source, f"line {frame.line}", f"{found(mapping)} after '<<'", "a mapping")
                frame.value.update({key: part for key, part in mapping.items() if key not in frame.value})
        if frame.anchor:
            self.anchors[frame.anchor] = (frame.value, self.count - frame.began + 1)
        self.open[-1].place(frame.value)

    def alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            raise self.fail(event, f"the alias *{event.anchor[:60]} is undefined or contains itself")
        value, size = self.anchors[event.anchor]
        self.grow(event, size)
        if self.open[-1].key is _NO_KEY:
            raise self.fail(event, "a key is an alias", "text as keys")
        self.open[-1].place(value)


def parse_yaml(text: str, source: str) -> Any:
    """Return the value of a YAML document. O(text); 0.4 s for the 1.5 MB of a 10,000-job workflow.

    Args:
        text: the document.
        source: the file's name, for messages.

    Raises:
        ConfigError: not YAML (with the line), a duplicate key, a tag, several documents, too deep or too large.
    """
    import yaml

    builder = _Builder(source)
    documents = 0
    event: Any
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            kind = type(event)
            if kind is yaml.ScalarEvent:
                builder.scalar(event)
            elif kind is yaml.MappingStartEvent:
                builder.begin({}, event)
            elif kind is yaml.SequenceStartEvent:
                builder.begin([], event)
            elif kind is yaml.AliasEvent:
                builder.alias(event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                builder.end()
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    raise builder.fail(event, "a second document begins", "one document")
    except yaml.MarkedYAMLError as error:
        line = getattr(error.problem_mark, "line", None)
        where = "" if line is None else f"line {line + 1}"
        raise ConfigError(source, where, f"not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise ConfigError(source, "", f"not YAML: {' '.join(str(error).split())[:200]}") from None
    return builder.open[0].value[0] if builder.open[0].value else None


_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


def count_values(text: str) -> int:
    """Return an upper bound of the values and keys in a JSON text. O(text), and without memory for them."""
    return 1 + sum(map(text.count, ",:[{"))


def parse_json(text: str, source: str, *, most: int | None = None, remedy: str = "") -> Any:
    """Return the value of a JSON document. O(text).

    Args:
        text: the document.
        source: the file's name, for messages.
        most: most values and keys; None = MOST_JSON_VALUES.
        remedy: what to do if it has more.

    Raises:
        ConfigError: not JSON (with the line), a duplicate key, nested too deep, too many values, or too many digits.
    """
    most = MOST_JSON_VALUES if most is None else most
    if count_values(text) > most and count_values(_STRING.sub("", text)) > most:
        raise ConfigError(source, "", "too large", f"at most {most:,} values and keys{remedy and f'; {remedy}'}")

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise ConfigError(source, "", f"the key {twice[:60]!r} is given twice", "each key once")
        return value

    try:
        return json.loads(text, object_pairs_hook=mapping)
    except json.JSONDecodeError as error:
        raise ConfigError(source, f"line {error.lineno}", f"not JSON: {error.msg}") from None
    except RecursionError:
        raise ConfigError(source, "", "nested too deep") from None
    except ValueError as error:
        raise ConfigError(source, "", f"not JSON: {error}") from None


def parse_trace(text: str, source: str) -> Any:
    """Return the value of a JSON document that may be a trace, as `parse_json` does.

    A job of Batsim has 11 values and keys: 2,700,000 jobs are read, in 2 GB of memory.
    """
    return parse_json(text, source, most=MOST_TRACE_VALUES, remedy="split a trace, and give each part with --workload")


LARGEST_FILE = 256 * 2**20
_CONTROL = bytes((*range(9), *range(14, 32)))


def read_bytes(path: str | Path, most: int | None = None, *, may_be_empty: bool = False) -> bytes:
    """Return a file's bytes.

    Args:
        path: the file.
        most: the largest size, bytes; None: LARGEST_FILE.
        may_be_empty: whether an empty file is no error.

    Raises:
        ConfigError: it cannot be read, has no end, is empty, or is larger than that.
    """
    source = str(path)
    most = LARGEST_FILE if most is None else most
    try:
        with open_input(path) as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(source, "", f"cannot be read: {reason}") from None
    if len(data) > most:
        raise ConfigError(source, "", "too large", f"at most {most // 2**20} MiB")
    if not may_be_empty and not data.strip():
        raise ConfigError(source, "line 1", "the file is empty")
    return data


def is_file(path: Path) -> bool:
    """Return whether `path` is a regular file; False also for impossible names, such as too long ones."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_xml(data: bytes) -> bool:
    """Return whether the first bytes are those of XML."""
    return data.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"<")


def decode(data: bytes, source: str) -> str:
    """Return UTF-8 bytes as text. Raises ConfigError, with the line, for anything else."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(source, f"line {line}", "not UTF-8 text", "a text file in UTF-8") from None
    if len(data.translate(None, _CONTROL)) < len(data):
        first = min(place for code in _CONTROL if (place := data.find(code)) >= 0)
        line = data.count(b"\n", 0, first) + 1
        raise ConfigError(source, f"line {line}", "a control character; is this a binary file?", "a text file")
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
    """Return the mapping in a YAML or JSON file. Raises ConfigError for any other file."""
    return parse_document(decode(read_bytes(path), str(path)), str(path))


def check_schema(data: dict[str, Any], kind: str, source: str) -> dict[str, Any]:
    """Return `data` without its `schema` key, which must be pilotfish/<kind>/v1. Raises ConfigError."""
    schema = f"pilotfish/{kind}/v1"
    if data.get("schema") != schema:
        problem = found(data["schema"]) if "schema" in data else "missing"
        raise ConfigError(source, "schema", problem, schema)
    return {key: value for key, value in data.items() if key != "schema"}


def config_error(error: pydantic.ValidationError, source: str, model: type[pydantic.BaseModel]) -> ConfigError:
    """Return the errors that pydantic found: each has the dotted key, what was found and what is allowed.

    Args:
        error: what the validation raised.
        source: the file.
        model: the model that was validated, for the names that a key may have.
    """
    every = [_complaint(one, source, model) for one in error.errors(include_url=False)[:MOST_ERRORS]]
    return ConfigErrors(every) if len(every) > 1 else every[0]


def _complaint(one: Any, source: str, model: type[pydantic.BaseModel]) -> ConfigError:
    *path, last = one["loc"] or ("",)
    names = _field_names(model, tuple(path))
    key = ""
    for part in one["loc"]:
        key = join(key, f"[{part}]" if isinstance(part, int) else shown(part))
    if one["type"] == "extra_forbidden":
        return ConfigError(source, key, f"unknown key{did_you_mean(str(last), names)}", ", ".join(names))
    if one["type"] == "missing":
        return ConfigError(source, key, "missing", "it is required")
    cause = getattr(one.get("ctx", {}).get("error"), "__cause__", None)
    if isinstance(cause, ConfigError):
        return ConfigError(source, key, f"{cause.key}: {cause.problem}".removeprefix(": "), cause.allowed)
    return ConfigError(source, key, found(one["input"]), _plainly(one["msg"]))


def _plainly(message: str) -> str:
    """Return what pydantic allows, in our words."""
    if "instance of" in message:
        return "a mapping of keys to values"
    return message.removeprefix("Value error, ").removeprefix("Input should be ")


def _field_names(model: Any, path: tuple[Any, ...]) -> list[str]:
    """Return the keys allowed at `path` inside a pydantic model, also inside Optional, list and dict."""
    level = [model]
    for part in path:
        inner = [field.annotation for name, field in _fields(level) if part in (name, field.alias)]
        level = [kind for annotation in inner or level for kind in (annotation, *_inner_kinds(annotation))]
    return [field.alias or name for name, field in _fields(level)]


def _fields(kinds: list[Any]) -> list[tuple[str, Any]]:
    return [item for kind in kinds for item in getattr(kind, "model_fields", {}).items()]


def _inner_kinds(annotation: Any) -> list[Any]:
    return [deep for kind in get_args(annotation) for deep in (kind, *_inner_kinds(kind))]
