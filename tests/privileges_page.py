"""The page of every listener, account, file mode, capability and privilege, read from the units, the package and the lists
of test_privileges.

    python -m tests.privileges_page     write docs/reference/privileges.md again
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pilotfish
from tests.test_privileges import LISTENERS, PRIVILEGED

ROOT = Path(pilotfish.__file__).resolve().parent
PAGE = ROOT / "docs/reference/privileges.md"
HEAD = """# Listeners, accounts, file modes and privileges
Made by `python -m tests.privileges_page` from the units, the package and the lists of a test. A change of a unit, a new
listener or a new file mode changes this page, and a test fails until it is written again. No unit runs as root, has a
capability, or may gain one. `systemd-analyze security UNIT` judges them on your machine.
"""
#: Directives that add or take rights -> the heading of their column, and what an absent one means.
COLUMNS = (
    (("User", "Group", "SupplementaryGroups"), "Account", "root"),
    (("CapabilityBoundingSet", "AmbientCapabilities"), "Capabilities", "all"),
    (("NoNewPrivileges",), "New privileges", "yes"),
    (("StateDirectory", "CacheDirectory", "RuntimeDirectory"), "Writes", ""),
    (("RestrictAddressFamilies", "PrivateNetwork", "IPAddressDeny", "IPAddressAllow"), "Network", "all"),
    (("SystemCallFilter",), "System calls", "all"),
)


def directives(unit: str) -> dict[str, list[str]]:
    """Return the values of each directive of a unit, in order."""
    values: dict[str, list[str]] = {}
    for line in (ROOT / "systemd" / unit).read_text(encoding="utf-8").splitlines():
        name, sign, value = line.partition("=")
        if sign and not line.startswith(("#", "[")):
            values.setdefault(name, []).append(value.strip())
    return values


def unit_row(unit: str) -> list[str]:
    """Return what a unit may do."""
    values = directives(unit)
    row = [f"`{unit}`"]
    for names, heading, default in COLUMNS:
        present = [name for name in names if name in values]
        if heading == "New privileges":
            row.append("no" if values.get("NoNewPrivileges") == ["yes"] else default)
        elif heading == "Capabilities":
            row.append("none" if values.get(names[0]) == [""] and len(present) == 1 else default)
        elif heading == "Writes":
            modes = {"StateDirectory": "/var/lib", "CacheDirectory": "/var/cache", "RuntimeDirectory": "/run"}
            row.append("; ".join(f"{modes[n]}/{values[n][0]} {values.get(n + 'Mode', ['0755'])[0]}" for n in present))
        elif heading == "Account":
            accounts = [value for name in present for value in values[name]]
            row.append(", ".join(dict.fromkeys(accounts)) or default)
        elif heading == "Network":
            row.append("; ".join(f"{name} {' '.join(values[name])}" for name in present) or default)
        else:
            row.append(" ".join(value for name in present for value in values[name]) or default)
    protected = sorted(name for name in values if re.match(r"(Protect|Private|Restrict|Lock|Memory|Remove)", name))
    return [*row, str(len([name for name in protected if values[name] != ["no"]]))]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def page() -> str:
    """Return the page."""
    units = sorted(path.name for path in (ROOT / "systemd").glob("*.service"))
    heads = ["Unit", *(heading for _, heading, _ in COLUMNS), "Other restrictions"]
    accounts = [line.split('"') for line in _lines("pilotfish.sysusers.conf")]
    files = [line.split() for line in _lines("pilotfish.tmpfiles.conf")]
    return "\n".join((
        HEAD,
        "## Listeners\n",
        table(("Source", "What listens"), [(f"`{name}`", text) for name, text in LISTENERS.items()]),
        "## Source that changes rights, or whose a file is\n",
        table(("Source", "Why"), [(f"`{name}`", text) for name, text in PRIVILEGED.items()]),
        "## Units\n",
        table(heads, map(unit_row, units)),
        "## Accounts\nNeither has a password, a shell or a home that can be used.\n",
        table(("Account", "For"), [(f"`{words[0].split()[1]}`", words[1]) for words in accounts]),
        "## Folders and files that tmpfiles makes\n",
        table(("Path", "Kind", "Mode", "Owner"), [
            (f"`{path}`", {"d": "folder", "f": "file"}[kind], mode, f"{user}:{group}")
            for kind, path, mode, user, group, *_ in files
        ]),
        "## The package\nEvery file and folder belongs to root, none can be written by others, and none is setuid or setgid or"
        " has a capability:\nmode 0644, programs and folders 0755. Its scripts run as root at the installation: they make the"
        " accounts and folders,\ncompile byte code, and start the unit that compiles the simulator. All that the service writes"
        " itself has mode 0600, in\nfolders of mode 0700, but for the sockets above, and the file that OAR's account reads"
        " (0644).\n",
    ))  # fmt: skip


def _lines(name: str) -> list[str]:
    lines = (ROOT / "systemd" / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
