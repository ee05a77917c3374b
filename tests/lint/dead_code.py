"""Code of the rooms that neither the rooms, the tests nor the benchmarks use, as vulture sees it.

Rule: tests and benchmarks count as users, but only the rooms are reported. EXPECTED names what a library calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from vulture import Vulture

from tests.lint.layout import product_files
from tests.support.sources import nodes_of, tree_of

CONFIDENCE = 60
#: Decorators whose functions a library calls: numba, typer, pydantic.
DECORATORS = ["@overload*", "@unbox*", "@*.command*", "@*_validator*", "@lower*", "@grouped"]
#: Names that a base class, a protocol or the language calls or reads, and fields that are part of an interface.
EXPECTED = {
    "__dir__", "__getattr__", "_new_conn", "on_start", "on_end", "buffer_text", "CharacterDataHandler", "daemon_threads", "EndElementHandler",
    "EntityDeclHandler", "format_commands", "generic_resolve", "get_connection", "handle_error", "log_message",
    "model_config", "rich_markup_mode", "sock", "StartDoctypeDeclHandler", "StartElementHandler", "text_factory", "trust_env", "typ",
    "verify", "whatif", "bundle",
    "BINDINGS", "CSS", "ENABLE_COMMAND_PALETTE", "TITLE", "action_find", "action_span", "action_state", "compose", "on_data_table_row_selected",
    "on_input_changed", "on_input_submitted", "on_mount", "on_resize", "on_tabbed_content_tab_activated",
    "first_invalid", "max_slowdown", "mean_slowdown", "nb_computing_machines", "NO_LIMIT", "UNICEP",
}  # fmt: skip
#: Bokeh's models are configured by assigning attributes.
EXEMPT = {"cli/charts/bokeh_backend.py"}


def used_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names of variables and attributes that a file reads, with those that it asks for by a string."""
    for node in nodes_of(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load() | ast.Del()) | ast.Attribute(attr=name, ctx=ast.Load()):
                yield name
            case ast.Call(func=ast.Name("getattr" | "hasattr"), args=[_, ast.Constant(str(name)), *_]):
                yield name
            case ast.MatchClass(kwd_attrs=names):
                yield from names


def check(root: Path, files: Iterable[str]) -> Iterator[str]:
    """Yield one message for each unused name in the rooms."""
    sources = [name for name in files if name.endswith(".py")]
    rooms = {*product_files(sources), "api.py"}
    finder = Vulture(ignore_decorators=DECORATORS)
    finder.scavenge([root / name for name in sorted(rooms)])
    for name in set(sources) - rooms:
        finder.used_names.update(used_names(tree_of(root / name)))
    for item in finder.get_unused_code(min_confidence=CONFIDENCE):
        name = Path(item.filename).relative_to(root).as_posix()
        if name in rooms - EXEMPT and item.name not in EXPECTED:
            yield f"{name}:{item.first_lineno}: {item.typ} {item.name!r} is unused"
