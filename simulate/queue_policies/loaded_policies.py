"""Policies that are loaded from a file or a module: a class in Python, or the model of a learned order.

Rule: a SPEC with a dot or a slash before its first colon, or a capital letter after it, names a class in Python. One
that begins with LEARNED names the file of a model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import ConfigError
from .learned_order import MODEL_SUFFIX
from .policy_facts import PolicySpec

#: What the SPEC of Slurm's own rules begins with; the folder of a site follows.
SITE = "slurm:"
#: What the SPEC of a guarded learned order begins with; the file of its model follows.
LEARNED = "learned:"
FORMS = "./file.py:Class or package.module:Class, then :option=value,..."
_FORM = re.compile(r"(?P<where>.+\.py|\w+(?:\.\w+)*):(?P<name>[^\W\d]\w*)(?::(?P<options>.*))?")


@dataclass(frozen=True, slots=True)
class Own(PolicySpec):
    """A Python policy: a class in a file or module, and the options of its constructor as text."""

    where: str
    name: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def is_file(self) -> bool:
        """Return whether `where` is the path of a file, not the name of a module."""
        return self.where.endswith(".py")

    def __str__(self) -> str:
        options = ",".join(f"{key}={value}" for key, value in self.options)
        return ":".join(filter(None, (self.where, self.name, options)))


@dataclass(frozen=True, slots=True)
class Learned(Own):
    """A guarded learned order; `where` is the file of its model."""

    name: str = ""

    @property
    def is_file(self) -> bool:
        """Return True: it is in a file."""
        return True

    @property
    def is_model(self) -> bool:
        """Return True: it is one."""
        return True

    def __str__(self) -> str:
        return LEARNED + self.where


def is_python_policy(text: str) -> bool:
    """Return whether a SPEC names a policy that is loaded from a file or module: a Python policy, or a model."""
    if text.startswith(LEARNED):
        return True
    is_form = re.search(r"[./\\]", text.partition(":")[0]) or re.match(r"\w+:[A-Z]\w*(:|$)", text)
    return bool(is_form) and not text.startswith(SITE)


def parse_python_policy(text: str) -> Own:
    """Parse the SPEC of a Python policy or a model, which is checked when it is loaded. Raises ConfigError."""
    if text.startswith(LEARNED):
        if not text.endswith(MODEL_SUFFIX):
            raise ConfigError("policy", "", f"{text!r}", f"{LEARNED}FILE, the file of a model (*{MODEL_SUFFIX})")
        return Learned(text.removeprefix(LEARNED))
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
