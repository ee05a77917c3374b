"""What pilotfish promises from 1.0.0 on, read from the product, and compared with the recorded list.

Rule: a removal or a rename is a breaking change, which needs a new major version. An addition is recorded:

    python -m tests.promises        write docs/reference/promised.yaml again; refuses a removal
    python -m tests.promises --break  write it although something is removed (a new major version)
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

import pilotfish
from pilotfish import api
from tests.support.sources import tree_of

ROOT = Path(pilotfish.__file__).resolve().parent
RECORDED = ROOT / "docs/reference/promised.yaml"
#: Section -> its names. `journal` names each version with a checksum of its tables and columns.
Promises = dict[str, list[str]]
#: Every command has them; the parser shows them of those that were called before.
HELP = ("-h", "--help")
_HEAD = "# Made by `python -m tests.promises`; docs/reference/stability.md says what it promises.\n"


def present() -> Promises:
    """Return what this source offers, each section sorted."""
    from pilotfish.daemon.config import DaemonConfig

    generate = generator()
    schema = DaemonConfig.model_json_schema()
    offered = {
        "python": _python(generate),
        "commands": _commands(generate.command_tree()),
        "configuration": [name for name, _ in generate._keys(schema, schema, "")] + _adapter_options(),
        "metrics": [f"{name}{{{labels}}}" for name, _, labels, _ in generate.metric_rows()],
        "documents": _documents(),
        "journal": _journals(),
    }
    return {section: sorted(set(names)) for section, names in offered.items()}


def recorded() -> Promises:
    """Return the recorded list."""
    return yaml.safe_load(RECORDED.read_text(encoding="utf-8"))


def removed(before: Promises, now: Promises) -> list[str]:
    """Return what is missing now, as `section: name`."""
    return [f"{section}: {name}" for section, names in before.items() for name in names if name not in now[section]]


def added(before: Promises, now: Promises) -> list[str]:
    """Return what is not recorded yet, as `section: name`."""
    return [
        f"{section}: {name}" for section, names in now.items() for name in names if name not in before.get(section, ())
    ]


def _python(generate: ModuleType) -> list[str]:
    """Return the names of `pilotfish.api`, the parameters of its functions, and the public members of its classes."""
    names = []
    for name in api.__all__:
        value = getattr(api, name)
        names.append(name)
        if inspect.isclass(value):
            names += [f"{name}.{member}" for member in generate.members_of(value)]
        names += [f"{name}({one})" for one in _parameters(value) if f"{name}.{one}" not in names]
    return names


def _parameters(value: object) -> list[str]:
    try:
        return [name for name in inspect.signature(value).parameters if name not in ("self", "args", "kwargs")]
    except (TypeError, ValueError):
        return []


def _commands(command: Any) -> list[str]:
    path = " ".join(command.path)
    words = [word.rstrip(",") for how, _ in command.options for word in how.split() if word[0] == "-"]
    options = [f"{path} {word}" for word in words if word not in HELP]
    return [path, *options, *(line for part in command.commands for line in _commands(part))]


def _adapter_options() -> list[str]:
    from pilotfish.adapters import local, oar, slurm

    return [
        f"adapter.options.{option} ({name})"
        for name, module in (("local", local), ("oar", oar), ("slurm", slurm))
        for option in inspect.signature(module.create).parameters
        if option != "cluster"
    ]


def _documents() -> list[str]:
    """Return the schemas of documents of `--json`, with those keys that stand in the source as words."""
    return [name for file in sorted((ROOT / "cli").rglob("*.py")) for name in _documents_of(tree_of(file))]


def _documents_of(tree: ast.Module) -> Iterator[str]:
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print_json":
            kind, content = call.args
            if isinstance(kind, ast.Constant):
                yield f"pilotfish/{kind.value!s}/v1"
                keys = [content.generators[0].iter] if isinstance(content, ast.DictComp) else [content]
                for node in keys:
                    parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
                    for key in parts:
                        if isinstance(key, ast.Constant):
                            yield f"pilotfish/{kind.value!s}/v1 {key.value!s}"


def _journals() -> list[str]:
    """Return the versions of the journal that can be opened, each with a checksum of its tables and their columns."""
    from pilotfish.daemon.state import journal_db

    older = {version for version in journal_db.UPGRADES if version < journal_db.VERSION}
    before = recorded()["journal"] if RECORDED.exists() else []
    return [*(line for line in before if int(line.split()[1].rstrip(",")) in older), _journal(journal_db)]


def _journal(journal_db: ModuleType) -> str:
    database = sqlite3.connect(":memory:")
    try:
        for statement in filter(str.strip, journal_db._SCHEMA.split(";\n")):
            database.execute(statement)
        tables = [
            name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        ]
        columns = [(name, database.execute(f"PRAGMA table_info({name})").fetchall()) for name in tables]
    finally:
        database.close()
    return f"version {journal_db.VERSION}, tables {hashlib.sha256(repr(columns).encode()).hexdigest()[:16]}"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main(arguments: list[str]) -> int:
    """Record what is present; return 1 if that would remove a promise."""
    now = present()
    missing = removed(recorded(), now) if RECORDED.exists() else []
    if missing and "--break" not in arguments:
        print("\n".join(f"removed: {name}" for name in missing), file=sys.stderr)
        print("docs/reference/stability.md says what to do; --break records it all the same", file=sys.stderr)
        return 1
    RECORDED.write_text(_HEAD + yaml.safe_dump(now, sort_keys=False, width=120), encoding="utf-8")
    print(f"{RECORDED.relative_to(ROOT)}: {sum(map(len, now.values()))} names")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
