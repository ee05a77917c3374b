"""How a user's commands reach pilotfish: through the daemon's socket, or over the resource manager itself.

Rule: what is said on the command line goes before PILOTFISH_ADAPTER, that before a socket that was named, that before
the user's file, and that, key by key, before the site's. A wrong key is one ConfigError that names its file.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...simulate.errors import ConfigError
from ..paths import client_files

if TYPE_CHECKING:
    from .model import Settings

ADAPTERS = ("daemon", "slurm")


def chosen(adapter: str | None, socket: str | None) -> Settings | None:
    """The settings for workflows over the resource manager; None: the daemon is to be asked.

    Args:
        adapter, socket: as on the command line.

    Raises:
        ConfigError: there is no such way, or a file that says how is wrong.
    """
    way = adapter or (None if socket else os.environ.get("PILOTFISH_ADAPTER")) or None
    if way is not None and way not in ADAPTERS:
        near = difflib.get_close_matches(way, ADAPTERS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        source = "--adapter" if adapter else "PILOTFISH_ADAPTER"
        raise ConfigError(source, "", f"found {way!r}{hint}", ", ".join(ADAPTERS))
    if way == "daemon" or (way is None and (socket or os.environ.get("PILOTFISH_SOCKET"))):
        return None
    files = [path for path in client_files() if path.exists() or os.environ.get("PILOTFISH_CLIENT")]
    if way is None and not files:
        return None
    settings = read(files)
    return settings if (way or settings.adapter) == "slurm" else None


def read(files: Iterable[Path]) -> Settings:
    """The settings in these files, of which a later one goes before. Raises ConfigError."""
    from pydantic import ValidationError

    from ...simulate.formats.reading import check_schema, config_error, read_document
    from .model import Settings

    found: dict[str, Any] = {}
    for path in files:
        document = check_schema(read_document(path), "client", str(path))
        try:
            Settings.model_validate(document)
        except ValidationError as error:
            raise config_error(error, str(path), Settings) from None
        if document.get("cluster"):
            document["cluster"] = str(path.absolute().parent / Path(document["cluster"]).expanduser())
        found |= document
    return Settings.model_validate(found)
