"""How a policy of a user's own is named: `./mine.py:Class:option=value,...`, `package.module:Class`.

Rule: a SPEC with a dot or a slash before its first colon is such a name; whether there is such a class, and what it
takes, is for who loads it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import ConfigError

FORMS = "./file.py:Class or package.module:Class, then :option=value,..."
_FORM = re.compile(r"(?P<where>.+\.py|\w+(?:\.\w+)*):(?P<name>[^\W\d]\w*)(?::(?P<options>.*))?")


@dataclass(frozen=True, slots=True)
class Own:
    """A class in a file or module; the options that it is made with, as they are written."""

    where: str
    name: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def is_file(self) -> bool:
        """Whether it is in a file that is given, not in a module that is to be found."""
        return self.where.endswith(".py")

    def __str__(self) -> str:
        options = ",".join(f"{key}={value}" for key, value in self.options)
        return ":".join(filter(None, (self.where, self.name, options)))


def is_own(text: str) -> bool:
    """Whether a SPEC names a policy of a user's own."""
    return bool(re.search(r"[./\\]", text.partition(":")[0]))


def parse_own(text: str) -> Own:
    """What a SPEC names. Raises ConfigError."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise ConfigError("policy", "", f"{text!r}", FORMS)
    options: dict[str, str] = {}
    for word in filter(None, (form["options"] or "").split(",")):
        key, equals, value = word.partition("=")
        if not equals or key in options:
            problem = "given twice" if equals else f"{word!r}"
            raise ConfigError("policy", f"{form['name']}:{key}", problem, "once" if equals else f"{key}=...")
        options[key] = value
    return Own(form["where"], form["name"], tuple(options.items()))
