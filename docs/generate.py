"""Generate the reference pages and the man pages from the product itself.

Rule: nothing is written twice. Commands come from the command line's own parser, configuration keys from their model
and from the comments of the sample files, metrics from the registry, the Python interface from `pilotfish.api`.

Usage: python docs/generate.py [PAGES [MAN]]
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

import pilotfish
from pilotfish import api
from pilotfish.cli.__main__ import app
from pilotfish.cli.lazy import help_rows

DOCS = Path(__file__).resolve().parent
SAMPLES = Path(pilotfish.__file__).resolve().parent / "systemd"
EXIT_CODES = {
    0: "The command did what was asked.",
    1: "It failed. One line on standard error names the reason.",
    64: "The command line is wrong.",
    75: "The awaited end could not be learned (`submit --wait`).",
    130: "Interrupted.",
    141: "The reader of standard output went away.",
}
API_GROUPS = {
    "Read files": ("read_cluster", "read_workflow", "read_workload"),
    "Jobs and machines": (
        "Cluster", "Node", "NodeType", "Power", "Job", "Profile", "ThreadGroup", "Workflow", "Workload", "lublin",
    ),
    "Map a workflow": ("plan", "Plan", "PlannedJob", "Objective", "Simulation", "Outcome", "choosing"),
    "Replay a trace": (
        "replay", "ReplayOptions", "Part", "Replayed", "summarise", "Summary", "parse_policy", "read_slurm_policy",
        "read_learned_policy", "machine_of", "Machine",
    ),
    "Write a queue policy": (
        "QueuePolicy", "QueueView", "QueuedJob", "Running", "Start", "Reserve", "Reject", "Wake", "Switch", "Kill",
        "Submit", "Backfill", "Forecast", "Decision", "NodeLoads", "MachineStates", "Switching",
    ),
    "Train a policy": (
        "PairEnvironment", "PairOptions", "PairNode", "RuleChoiceEnvironment", "RuleOptions", "OrderEnvironment",
        "OrderOptions",
    ),
    "Profiles": ("ProfileStore", "profile_store_path"),
    "Errors": ("PilotfishError", "ConfigError", "InvalidJobError", "PolicyError"),
}  # fmt: skip


# --- commands ---
@dataclass(frozen=True, slots=True)
class Command:
    """One command as its parser knows it.

    Args:
        path: the words that call it, such as ("pilotfish", "profile", "run").
        usage: the words after them.
        summary: its one line in the list of commands.
        text: paragraphs of its description.
        examples: example command lines.
        arguments, options: (how it is written, what it means).
        commands: its sub-commands.
    """

    path: tuple[str, ...]
    usage: str
    summary: str
    text: tuple[str, ...]
    examples: tuple[str, ...]
    arguments: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]
    commands: tuple[Command, ...] = ()


def command_tree() -> Command:
    """Return the whole command line, read from the typer application."""
    root = typer.main.get_command(app)
    return _command(root, ("pilotfish",), None, "")


def _command(command: Any, path: tuple[str, ...], parent: Any, summary: str) -> Command:
    context = command.context_class(command, info_name=path[-1], parent=parent, **command.context_settings)
    words, examples = _paragraphs(command.help or "")
    rows = help_rows(command, context)
    children = []
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        line = command.get_command(context, name).get_short_help_str(200)
        _, child, _ = command.resolve_command(context, [name])
        children.append(_command(child, (*path, name), context, line))
    return Command(
        path,
        " ".join(command.collect_usage_pieces(context)),
        summary or (words[0] if words else ""),
        tuple(words),
        tuple(examples),
        tuple(rows.pop("Arguments")),
        tuple(row for group in rows.values() for row in group),
        tuple(children),
    )


def _paragraphs(text: str) -> tuple[list[str], list[str]]:
    """Split a help text into its paragraphs and its example lines (the block after a backspace character)."""
    plain, _, literal = inspect.cleandoc(text).partition("\b\n")
    paragraphs = [" ".join(part.split()) for part in plain.split("\n\n") if part.strip()]
    examples: list[str] = []
    for line in map(str.strip, literal.splitlines()):
        if line.startswith("pilotfish "):
            examples.append(line)
        elif examples and line:
            examples[-1] += f" {line}"
    return paragraphs, examples


def command_page(command: Command) -> str:
    """Return the Markdown page of a top-level command, with a section for each sub-command."""
    return "\n".join(_command_section(command, 1)) + "\n"


def _command_section(command: Command, level: int) -> Iterator[str]:
    name = " ".join(command.path)
    yield f"{'#' * level} {name}\n"
    yield f"```text\n{name} {command.usage}\n```\n"
    yield from (f"{escape(paragraph)}\n" for paragraph in command.text)
    for title, rows in (("Argument", command.arguments), ("Option", command.options)):
        if rows:
            yield table((title, "Meaning"), [(code(left), escape(right)) for left, right in rows])
    if command.examples:
        yield "```console\n" + "\n".join(f"$ {line}" for line in command.examples) + "\n```\n"
    for child in command.commands:
        yield from _command_section(child, level + 1)


def man_page(command: Command) -> str:
    """Return the manual page of a command in roff."""
    name = "-".join(command.path[:2])
    lines = [f'.TH {name.upper()} 1 "" "pilotfish {pilotfish.__version__}" "pilotfish manual"', ".SH NAME",
             f"{name} \\- {roff(command.summary.rstrip('.'))}", ".SH SYNOPSIS"]  # fmt: skip
    lines += [f".B {roff(' '.join(command.path))}", roff(command.usage)]
    lines += [".SH DESCRIPTION", *_man_text(command.text)]
    lines += _man_rows("ARGUMENTS", command.arguments) + _man_rows("OPTIONS", command.options)
    for child in command.commands:
        lines += [f".SH {roff(' '.join(child.path).upper())}"]
        if child.path[:-1] == ("pilotfish",):
            lines += [roff(child.summary), ".PP", f"See \\fB{'-'.join(child.path)}\\fR(1)."]
            continue
        lines += [f".B {roff(' '.join(child.path))}", roff(child.usage), ".PP", *_man_text(child.text)]
        lines += _man_entries((*child.arguments, *child.options))
    if command.examples:
        lines += [".SH EXAMPLES", ".nf", *map(roff, command.examples), ".fi"]
    lines += [".SH EXIT STATUS", *_man_entries([(str(number), text) for number, text in EXIT_CODES.items()])]
    return "\n".join(lines) + "\n"


def _man_text(paragraphs: Iterable[str]) -> list[str]:
    return [line for paragraph in paragraphs for line in (".PP", roff(paragraph))][1:]


def _man_rows(title: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    entries = _man_entries(rows)
    return [f".SH {title}", *entries] if entries else []


def _man_entries(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [line for left, right in rows for line in (".TP", f".B {roff(left)}", roff(right) or "\\&")]


def roff(text: str) -> str:
    """Escape a line of text for roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return f"\\&{text}" if text.startswith((".", "'")) else text


# --- configuration ---
def meanings(text: str, known: Callable[[str], bool]) -> dict[str, str]:
    """Return what a sample file says of each key: the comment above it, or the one behind it.

    Args:
        text: the sample, YAML. A key that is commented out counts where `known` accepts its dotted name.
        known: whether a dotted name is a key.
    """
    found: dict[str, str] = {}
    above: list[str] = []
    parents: list[tuple[int, str]] = []
    for line in text.splitlines():
        form = re.match(r"(\s*)(# )?([a-z_]+):(?:\s+(.*))?$", line)
        if form:
            indent = len(form[1])
            while parents and parents[-1][0] >= indent:
                parents.pop()
            name = ".".join([*(word for _, word in parents), form[3]])
            if form[2] is None or known(name):
                _, _, behind = (form[4] or "").partition("# ")
                found[name] = " ".join([*above, behind]).strip()
                above = []
                if form[2] is None:
                    parents.append((indent, form[3]))
                continue
        comment = re.match(r"\s*# ?(.*)$", line)
        above = [*above, comment[1].strip()] if comment else []
    return found


def configuration_page() -> str:
    """Return the page of the daemon's configuration: every key with its type, default and meaning."""
    from pilotfish.adapters import local, oar, slurm
    from pilotfish.daemon.config import RELOADABLE, DaemonConfig

    schema = DaemonConfig.model_json_schema()
    rows = dict(_keys(schema, schema, ""))
    said = meanings((SAMPLES / "pilotfish.yaml").read_text(), lambda name: name in rows or "options." in name)
    lines = [
        "# Configuration of the daemon\n",
        "`pilotfish daemon --config FILE` reads one YAML file and checks it whole before anything starts. An unknown"
        " key or a wrong value is one error that names the file, the key, and what is allowed. Paths are relative to"
        " the file. The smallest file has two lines:\n",
        "```yaml\nschema: pilotfish/daemon/v1\ncluster: cluster.yaml\n```\n",
        "[The sample](../../../systemd/pilotfish.yaml) has every key with its default. A key with *yes* under *reload*"
        " takes effect on `systemctl reload pilotfishd`; the others need a restart.\n",
        table(
            ("Key", "Type", "Default", "Reload", "Meaning"),
            [
                (code(name), escape(kind), default, "yes" if name.split(".")[0] in RELOADABLE else "",
                 escape(said.get(name, "").replace("(reload)", "").strip()))
                for name, (kind, default) in rows.items()
            ],
        ),
    ]  # fmt: skip
    for name, module, sample in (
        ("local", local, "pilotfish.yaml"),
        ("slurm", slurm, "pilotfish.slurm.yaml"),
        ("oar", oar, "pilotfish.oar.yaml"),
    ):
        described = meanings((SAMPLES / sample).read_text(), lambda key: "options." in key)
        lines += [f"## Options of the adapter `{name}`\n", "Below `adapter.options`.\n",
                  table(("Option", "Default", "Meaning"), list(_options(module.create, described)))]  # fmt: skip
    return "\n".join(lines)


def _keys(schema: Mapping[str, Any], whole: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield every key with its (type, default)."""
    for name, field in schema["properties"].items():
        reference = field.get("$ref") or next((part["$ref"] for part in field.get("allOf", ()) if "$ref" in part), None)
        if reference:
            yield from _keys(whole["$defs"][reference.rpartition("/")[2]], whole, f"{prefix}{name}.")
        else:
            required = name in schema.get("required", ())
            yield f"{prefix}{name}", (_kind(field), "required" if required else code(_yaml(field.get("default"))))


def _kind(field: Mapping[str, Any]) -> str:
    """Return a type of a JSON schema in words."""
    if "anyOf" in field:
        return " or ".join(_kind(part) for part in field["anyOf"])
    if "enum" in field:
        return " or ".join(map(str, field["enum"]))
    words = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false",
             "array": "list", "object": "keys and values", "null": "null"}[field["type"]]  # fmt: skip
    bounds = (("minimum", "at least"), ("exclusiveMinimum", "above"), ("maximum", "at most"),
              ("exclusiveMaximum", "below"))  # fmt: skip
    limits = [f"{how} {field[key]:.10g}" for key, how in bounds if key in field]
    return ", ".join([words, *limits])


def _yaml(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return "{}" if value == {} else f"{value:g}" if isinstance(value, float) else str(value) or '""'


def _options(create: Callable[..., object], said: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name, each in inspect.signature(create).parameters.items():
        if name != "cluster":
            default = [] if each.default == () else each.default
            shown = "set by the daemon" if each.default is each.empty else code(_yaml(default))
            yield code(name), shown, escape(said.get(f"adapter.options.{name}", ""))


# --- metrics ---
def metric_rows() -> list[tuple[str, str, str, str]]:
    """Return (name, kind, labels, meaning) of every metric that the daemon can export."""
    from pilotfish.adapters.base import Load
    from pilotfish.daemon.report.adapter_metrics import LoadMetrics
    from pilotfish.daemon.report.calibration_metrics import Calibrations
    from pilotfish.daemon.report.metrics import Metrics
    from pilotfish.simulate.model.cluster import Cluster

    metrics = Metrics()
    metrics._make_energy()
    collectors: list[Any] = [each for each in metrics.registry._collector_to_names if hasattr(each, "_labelnames")]
    rows = {
        each._name: (f"{each._name}{'_total' if each._type == 'counter' else ''}", each._type, each._labelnames,
                     each._documentation)
        for each in collectors
    }  # fmt: skip
    empty = Calibrations(Path("/nonexistent"), Cluster("", ()), 0.1)
    for family in (*LoadMetrics("", Load).collect(), *empty.collect()):
        ending = "_total" if family.type == "counter" else ""
        rows[family.name] = (f"{family.name}{ending}", family.type, family._labelnames, family.documentation)
    return [(name, kind, ", ".join(labels), text) for name, kind, labels, text in sorted(rows.values())]


def metrics_page() -> str:
    """Return the page of the metrics."""
    lines = [
        "# Metrics\n",
        "The daemon serves metrics for Prometheus at `http://ADDRESS:PORT/metrics` and health checks at `/healthz` and"
        " `/readyz` (keys `metrics.address` and `metrics.port`, default 127.0.0.1:9836). A scrape reads memory only:"
        " it sends no request to the resource manager. No label names a job or a user. Each series has the label"
        " `cluster`, too: the name in the file of the cluster.\n",
        "Alert rules ([calibration](../../../monitoring/calibration.rules.yaml),"
        " [resource manager](../../../monitoring/adapter.rules.yaml)) and"
        " [dashboards for Grafana](../../guides/dashboards.md) are in the folder `monitoring`.\n",
        table(("Metric", "Type", "Labels", "Meaning"),
              [(code(name), kind, escape(labels), escape(text)) for name, kind, labels, text in metric_rows()]),
    ]  # fmt: skip
    return "\n".join(lines)


# --- the Python interface ---
def api_page() -> str:
    """Return the page of `pilotfish.api`."""
    lines = [
        "# Python interface\n",
        "`pilotfish.api` is the one stable import. Everything else is internal: it may change in any version.\n",
        "```python\nfrom pilotfish.api import read_workload, replay, summarise\n```\n",
    ]
    for title, names in API_GROUPS.items():
        lines.append(f"## {title}\n")
        for name in names:
            lines += _api_entry(name, getattr(api, name))
    return "\n".join(lines)


def _api_entry(name: str, found: Any) -> Iterator[str]:
    yield f"### {name}\n"
    if not (inspect.isclass(found) or inspect.isfunction(found)):
        yield f"The type `{' | '.join(part.__name__ for part in found.__args__)}`.\n"
        return
    yield f"```python\n{_signature(name, found)}\n```\n"
    yield docstring(found.__doc__ or "")
    for method, function in members_of(found).items() if inspect.isclass(found) else ():
        described = function.func if hasattr(function, "func") else getattr(function, "fget", function)
        if not method.startswith("_") and inspect.isfunction(described) and described.__doc__:
            kind = "" if inspect.isfunction(function) else "*property* "
            shown = _signature(method, described) if not kind else method
            first = inspect.cleandoc(described.__doc__).partition("\n\n")[0]
            yield f"- {kind}{code(' '.join(shown.split()))}: {escape(' '.join(first.split()))}"
    yield ""


def members_of(offered: type) -> dict[str, Any]:
    """Return the public members of a class by name, its own first, then those of bases that `pilotfish.api` has not."""
    bases = [one for one in offered.__mro__ if one.__module__.startswith("pilotfish.")]
    members = dict[str, Any]()
    for one in bases:
        for name, member in vars(one).items() if one is offered or one.__name__ not in api.__all__ else ():
            if not name.startswith("_"):
                members.setdefault(name, member)
    return members


def _signature(name: str, found: Any) -> str:
    """Return the call of a function or class, one parameter a line where it is long."""
    if inspect.isclass(found) and issubclass(found, Exception) and found.__init__ is Exception.__init__:
        return f"{name}(message)"
    parameters = [each for each in inspect.signature(found).parameters.values() if each.name != "self"]
    words = [_parameter(each) for each in parameters]
    named = next((i for i, each in enumerate(parameters) if each.kind is each.KEYWORD_ONLY), None)
    if named is not None:
        words.insert(named, "*")
    flat = f"{name}({', '.join(words)})"
    return flat if len(flat) <= 100 else f"{name}(\n" + "".join(f"    {word},\n" for word in words) + ")"


#: What Python shows of an object that has no text of its own, with its address, which differs each time.
_OBJECT = r"<(?:[^<>]|<\w+>)*>"


def _parameter(each: inspect.Parameter) -> str:
    """Return a parameter with its annotation and default as a person would write them."""
    shown = each.name if each.annotation is each.empty else f"{each.name}: {each.annotation}"
    if each.default is each.empty:
        return shown
    value = each.default
    text = str(value) if isinstance(value, StrEnum) else repr(value)
    return f"{shown} = {re.sub(_OBJECT, '...', text)}"


def docstring(text: str) -> str:
    """Return a Google-style docstring as Markdown."""
    out: list[str] = []
    for block in inspect.cleandoc(text).split("\n\n"):
        head, _, rest = block.partition("\n")
        if head in ("Args:", "Raises:", "Returns:") and rest:
            out.append(f"{head}\n")
            entries = re.split(r"\n(?=\S)", textwrap.dedent(rest))
            for entry in entries:
                name, colon, meaning = " ".join(entry.split()).partition(": ")
                shown = f"{code(name)}: {escape(meaning)}" if colon else escape(name)
                out.append(f"- {shown}")
            out.append("")
        else:
            out.append(f"{escape(' '.join(block.split()))}\n")
    return "\n".join(out)


# --- Markdown ---
def code(text: str) -> str:
    """Return `text` as inline code."""
    return f"`{text}`" if "`" not in text else f"`` {text} ``"


def escape(text: str) -> str:
    """Escape what Markdown would read as markup, outside of inline code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*<\[\]_{])", r"\\\1", part) for part in parts)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """Return every generated page: its path below the folder of generated pages, and its text."""
    tree = command_tree()
    found = {f"commands/{each.path[1]}.md": command_page(each) for each in tree.commands}
    names = "\n".join(each.path[1] for each in tree.commands)
    rows = [(f"[{code(' '.join(each.path))}]({each.path[1]}.md)", escape(each.summary)) for each in tree.commands]
    codes = [(str(number), text) for number, text in EXIT_CODES.items()]
    found["commands/index.md"] = (
        "# Command line\n\nThese pages show what `pilotfish COMMAND --help` prints. `make docs` also writes manual"
        " pages to `build/man`.\n\n" + table(("Command", "What it does"), rows) + "\n## Exit codes\n\n"
        + table(("Code", "Meaning"), codes) + f"\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"
    )  # fmt: skip
    return found | {"configuration.md": configuration_page(), "metrics.md": metrics_page(), "api.md": api_page()}


def man_pages() -> dict[str, str]:
    """Return the manual pages by file name."""
    tree = command_tree()
    return {f"{'-'.join(each.path)}.1": man_page(each) for each in (tree, *tree.commands)}


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write `files` below `folder`; a file whose text is the same is left alone."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Write the pages and the manual pages to the two folders that are named."""
    folders = [Path(each) for each in arguments] + [DOCS / "reference" / "generated", DOCS.parent / "build" / "man"]
    write(folders[0], pages())
    write(folders[1] if len(arguments) != 1 else folders[2], man_pages())


if __name__ == "__main__":
    main(sys.argv[1:])
