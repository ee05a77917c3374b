"""OAR's own configuration, /etc/oar/oar.conf: how its database and its server are reached.

Rule: it is read, never run by a shell. OAR lets only root and its own account read it. Its passwords are never shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CONFIG = Path("/etc/oar/oar.conf")
_LINE = re.compile(r"""^\s*([A-Z][A-Z0-9_]*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s#]*))""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SiteConfig:
    """The read-only account of OAR's database, with how it connects in libpq's words; and OAR's server."""

    kind: str  #: of the database: Pg or mysql
    connection: str
    password: str
    server: str = "127.0.0.1:6666"  #: host and port of Almighty


def site_config(path: Path = CONFIG) -> SiteConfig:
    """Return what OAR's configuration says of its database. Raises OSError."""
    text = path.read_text(errors="replace")
    settings = {name: double or single or plain for name, double, single, plain in _LINE.findall(text)}
    words = {
        "host": settings.get("DB_HOSTNAME") or "localhost",
        "port": settings.get("DB_PORT") or "5432",
        "dbname": settings.get("DB_BASE_NAME") or "oar",
        "user": settings.get("DB_BASE_LOGIN_RO") or "oar_ro",
    }
    connection = " ".join(f"{name}={_quoted(value)}" for name, value in words.items())
    server = f"{settings.get('SERVER_HOSTNAME') or 'localhost'}:{settings.get('SERVER_PORT') or 6666}"
    return SiteConfig(settings.get("DB_TYPE") or "Pg", connection, settings.get("DB_BASE_PASSWD_RO", ""), server)


def _quoted(value: str) -> str:
    """Return a value as libpq quotes it."""
    if re.fullmatch(r"[\w./:-]+", value):
        return value
    return "'" + value.replace("\\", r"\\").replace("'", r"\'") + "'"
