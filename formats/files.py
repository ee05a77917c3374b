"""YAML and JSON text to plain Python values, safely and fast.

Rule: whatever the text, the result is a value of bounded size or one ConfigError with the line. YAML follows
the core schema of YAML 1.2 (`2.4e9` is a number, `no` and `00:10:00` are text); keys are always text, given
once; no tags; aliases count in full, so a bomb is refused; nothing here recurses.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from ..errors import ConfigError
from .units import found

MOST_VALUES = 5_000_000
DEEPEST = 64
_CONSTANTS: dict[str, bool | None] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_CONSTANTS |= {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,38})")
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_NUMBER_STARTS = frozenset("0123456789+-.")
_NOTHING: Any = object()


class WrittenFloat(float):
    """A float that remembers how it was written, so that `sleep 0.50` stays `0.50` where text is wanted."""

    written: str

    def __str__(self) -> str:
        return self.written


def _plain(text: str) -> Any:
    """The value of an unquoted scalar (YAML 1.2.2, section 10.3.2, without octal and hexadecimal numbers)."""
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
    """A mapping or list that is still open; `key` is the mapping key that waits for its value."""

    __slots__ = ("anchor", "began", "key", "line", "merged", "value")

    def __init__(self, value: Any, anchor: str | None, began: int) -> None:
        self.value, self.anchor, self.began = value, anchor, began
        self.key: Any = _NOTHING
        self.line = 0
        self.merged: list[Any] = []


class _Builder:
    """Builds the value from the parser's events."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.root: Any = None
        self.open: list[_Frame] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.count = 0

    def fail(self, line: int, problem: str, allowed: str = "") -> ConfigError:
        return ConfigError(self.source, f"line {line}", problem, allowed)

    def grow(self, by: int, line: int) -> None:
        self.count += by
        if self.count > MOST_VALUES:
            raise self.fail(line, f"more than {MOST_VALUES} values, aliases counted in full")

    def scalar(self, event: Any) -> None:
        line = event.start_mark.line + 1
        self.grow(1, line)
        frame = self.open[-1] if self.open else None
        plain = event.implicit[0] and event.tag is None
        if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
            raise self.fail(line, f"found the tag {event.tag[:60]!r}", "values without tags")
        if frame and frame.key is _NOTHING and type(frame.value) is dict:
            self.begin_key(frame, event.value, plain, line)
            value: Any = event.value
        else:
            value = _plain(event.value) if plain else event.value
            self.place(value, line)
        if event.anchor:
            self.anchors[event.anchor] = (value, 1)

    def begin_key(self, frame: _Frame, key: str, plain: bool, line: int) -> None:
        if key in frame.value:
            raise self.fail(line, f"the key {key[:60]!r} is given twice", "each key once")
        frame.key, frame.line = (_MERGE if plain and key == "<<" else key), line

    def begin(self, value: Any, event: Any) -> None:
        line = event.start_mark.line + 1
        self.grow(1, line)
        if event.tag not in (None, "!"):
            raise self.fail(line, f"found the tag {event.tag[:60]!r}", "values without tags")
        if len(self.open) >= DEEPEST:
            raise self.fail(line, f"nested more than {DEEPEST} deep")
        if self.open and type(self.open[-1].value) is dict and self.open[-1].key is _NOTHING:
            raise self.fail(line, "a key is a list or mapping", "text as keys")
        self.open.append(_Frame(value, event.anchor, self.count))

    def end(self, event: Any) -> None:
        frame = self.open.pop()
        for merged in frame.merged:
            self.merge(frame.value, merged, frame.line)
        if frame.anchor:
            self.anchors[frame.anchor] = (frame.value, self.count - frame.began + 1)
        self.place(frame.value, event.start_mark.line + 1)

    def merge(self, into: dict[str, Any], merged: Any, line: int) -> None:
        for mapping in merged if isinstance(merged, list) else [merged]:
            if not isinstance(mapping, dict):
                raise self.fail(line, f"{found(mapping)} after '<<'", "a mapping")
            for key, value in mapping.items():
                into.setdefault(key, value)

    def alias(self, event: Any) -> None:
        line = event.start_mark.line + 1
        if event.anchor not in self.anchors:
            raise self.fail(line, f"the alias *{event.anchor[:60]} stands for nothing, or contains itself")
        value, size = self.anchors[event.anchor]
        self.grow(size, line)
        frame = self.open[-1] if self.open else None
        if frame and type(frame.value) is dict and frame.key is _NOTHING:
            raise self.fail(line, "a key is an alias", "text as keys")
        self.place(value, line)

    def place(self, value: Any, line: int) -> None:
        if not self.open:
            self.root = value
            return
        frame = self.open[-1]
        if type(frame.value) is list:
            frame.value.append(value)
        elif frame.key is _MERGE:
            frame.merged.append(value)
            frame.key = _NOTHING
        else:
            frame.value[frame.key] = value
            frame.key = _NOTHING


_MERGE: Any = object()


def parse_yaml(text: str, source: str) -> Any:
    """Return the value of a YAML document. O(text); 0.4 s for the 1.5 MB of a 10,000-job workflow.

    Raises:
        ConfigError: not YAML (with the line), a key twice, a tag, several documents, too deep or too large.
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
                builder.end(event)
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    raise builder.fail(event.start_mark.line + 1, "a second document begins", "one document")
    except yaml.MarkedYAMLError as error:
        line = getattr(error.problem_mark, "line", None)
        where = "" if line is None else f"line {line + 1}"
        raise ConfigError(source, where, f"not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise ConfigError(source, "", f"not YAML: {' '.join(str(error).split())[:200]}") from None
    return builder.root


def parse_json(text: str, source: str) -> Any:
    """Return the value of a JSON document. O(text).

    Raises:
        ConfigError: not JSON (with the line), a key twice, nested too deep, or thousands of digits.
    """

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
