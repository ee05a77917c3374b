"""The options of a command or a script, without what identifies its user.

Rule: only options that a replay reads, or reports as not followed, stay. What is read from them is the same as before:
a reader of the anonymous command sees the same requests, in the same order.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from functools import partial

from .anonymous_names import AnonymousNames
from .site_jobs import UNFOLLOWED
from .submit_line import SubmitOptions, has_value

#: Options that stay as they are.
_PLAIN = UNFOLLOWED | frozenset((
    "array", "begin", "constraint", "contiguous", "cpus-per-task", "deadline", "dependency", "exclusive", "gpus",
    "gpus-per-node", "gpus-per-task", "gres", "hold", "licenses", "mem", "mem-per-cpu", "mem-per-gpu", "mincpus",
    "nice", "no-requeue", "nodes", "ntasks", "ntasks-per-node", "partition", "priority", "qos", "requeue", "time",
    "time-min",
))  # fmt: skip
_FORM = re.compile(r"[\w\[\]().:,;*&|!?@+%=<> -]*", re.ASCII)
_PROGRAMS = ("sbatch", "srun", "salloc")
WRAPPED = "--wrap=x"


class AnonymousOptions:
    """Writes options again; `names` are the other names of the site."""

    def __init__(self, names: AnonymousNames) -> None:
        self.other: Mapping[str, Callable[[str], str]] = {
            "account": lambda text: names.one("account", text.lower()),
            "job-name": partial(names.one, "job"),
            "reservation": partial(names.each, "reservation"),
            "nodelist": names.nodes,
            "exclude": names.nodes,
        }

    def command(self, line: str, options: SubmitOptions, component: int) -> str:
        """Return a command without names, as sacct prints it.

        Args:
            line: the command.
            options: what was read from it.
            component: which part of a heterogeneous job it describes.
        """
        program, *words = line.split(maxsplit=1) or [""]
        if not program:
            return ""
        name = program.rpartition("/")[2]
        parts = [name if name in _PROGRAMS else "salloc", *([":"] * component), *self.words(options)]
        if "wrap" in options.values:
            parts.append(WRAPPED)
        elif words and not options.is_whole:
            parts.append("script")
        return " ".join(parts)

    def script(self, options: SubmitOptions) -> str:
        """Return a script that has only options."""
        words = " ".join(map(shlex.quote, self.words(options)))
        return f"#!/bin/sh\n#SBATCH {words}\n" if words else "#!/bin/sh\n"

    def words(self, options: SubmitOptions) -> list[str]:
        """Return the options that stay, each once, in the order of their last places."""
        last = dict.fromkeys(reversed(options.order))
        return [word for name in reversed(last) if (word := self._word(name, options.values[name]))]

    def _word(self, name: str, value: str) -> str:
        if name in self.other:
            value = self.other[name](value)
        elif name not in _PLAIN:
            return ""
        elif not _FORM.fullmatch(value):
            value = "/x" if "/" in value else "x"
        return f"--{name}={value}" if value or has_value(name) else f"--{name}"
