"""The umask and the environment of the jobs of a submission, as with `sbatch`: `--export` says ALL, NONE, or names.

Rule: values are sent to the service and nowhere else; no message shows a value.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from ...simulate.errors import ConfigError

#: What a job has of its user without `ALL`, as a login has.
_OF_A_LOGIN = ("HOME", "LOGNAME", "SHELL", "USER")


def exported(spec: str, own: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of a job.

    Args:
        spec: `ALL`, `NONE`, or a list of `NAME` (as in `own`) and `NAME=VALUE`, which may begin with one of the two.
        own: the environment of the submitting user.

    Raises:
        ConfigError: an empty name, or a name that is not set.
    """
    words = spec.split(",")
    variables = {name: own[name] for name in _OF_A_LOGIN if name in own} | {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    if words[0] == "ALL":
        variables = {name: value for name, value in own.items() if _is_text(name) and _is_text(value)}
    for word in words[words[0] in ("ALL", "NONE") :]:
        name, equals, value = word.partition("=")
        if not name or (not equals and name not in own):
            problem = f"{name[:60]!r} is not set" if name else "a name is missing"
            raise ConfigError("--export", "", problem, "ALL, NONE, or names such as A,B=1")
        variables[name] = value if equals else own[name]
    return variables


def own_umask() -> int:
    """Return the umask of this process, which its jobs get, too."""
    mask = os.umask(0o077)  # it can only be read by setting it
    os.umask(mask)
    return mask


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
