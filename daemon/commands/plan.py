"""`pilotfish plan`: the dry run. It simulates, prints the mapping it proposes and why, and starts nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...simulate.errors import ConfigError
from ...simulate.job import Workflow
from ...simulate.plan import Plan
from ...simulate.platform import Cluster
from . import inputs

if TYPE_CHECKING:
    from ...simulate.stochastic import Replicated
    from ..render.chart import Chart

_PICTURES = (".svg", ".html", ".png")
_FORMS = ("slurm", "oar", "json")
_WORKFLOW = {True: "missing: the nodes to plan for", False: "it goes with --adapter or --config"}


def plan(
    workflow: Annotated[
        Path | None,
        typer.Argument(metavar="WORKFLOW", help="The workflow: ours (YAML), WfCommons (JSON) or Pegasus DAX."),
    ] = None,
    cluster: Annotated[
        Path | None, typer.Option("--cluster", "-c", metavar="FILE", help="The nodes to plan for (YAML).")
    ] = None,
    policy: inputs.Policy = "lookahead",
    compare: Annotated[
        bool, typer.Option("--compare", help="Plan with every policy and show them side by side.")
    ] = False,
    objective: inputs.Goal = "makespan",
    seed: inputs.Seed = 0,
    budget: inputs.Budget = None,
    time_limit: inputs.TimeLimit = None,
    replicates: inputs.Replicates = None,
    engine: inputs.Engine = "fluid",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of tables.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every job, however many there are.")
    ] = False,
    gantt: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw the Gantt chart into FILE.svg, .html or .png."),
    ] = None,
    export: Annotated[
        str | None,
        typer.Option(metavar="FORM", help="Print the mapping for another scheduler to follow: slurm, oar or json."),
    ] = None,
    adapter: Annotated[
        str | None,
        typer.Option("--adapter", metavar="NAME", help="Instead of a workflow: the queue of this one as it is: slurm."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="The same, as the daemon's configuration says."),
    ] = None,
    show_commands: Annotated[
        bool, typer.Option("--show-commands", help="Of a queue: print the commands that would be run.")
    ] = False,
    store: inputs.Store = None,
) -> None:
    """Simulate a workflow on a cluster and print where each job would run, when, and why there.

    Nothing is started. The search is deterministic: its effort is counted in simulations (--budget). With --adapter
    or --config it is the queue of a resource manager, once: what the daemon would do now.

    \b
    Examples:
      pilotfish plan dag.yaml --cluster lab.yaml
      pilotfish plan dag.yaml --cluster lab.yaml --compare
      pilotfish plan dag.yaml --cluster lab.yaml --policy mom --gantt plan.html
      pilotfish plan dag.yaml --cluster lab.yaml --replicates 20
      pilotfish plan montage.json --cluster lab.yaml --json | jq .makespan
      pilotfish plan dag.yaml --cluster lab.yaml --export slurm > submit.sh
      pilotfish plan --adapter slurm --show-commands
    """
    _check_combination(compare, as_json, gantt, export)
    of_queue = adapter is not None or config is not None
    if of_queue is (workflow is not None):
        raise inputs.bad("WORKFLOW", "one thing to plan: a workflow, or the queue of --adapter or --config")
    if of_queue:
        _check_queue(compare or replicates or gantt or export or engine != "fluid")
    if compare and replicates:
        raise inputs.bad("--compare", "it makes one plan of each policy, and --replicates many of one")
    wishes = inputs.wishes(policy, objective, seed, budget, time_limit, engine, replicates)
    if workflow is None:
        from ..planning import Options
        from . import glance

        where = glance.source(adapter, config, cluster, Options(policy, objective, seed, budget, time_limit), store)
        glance.show(where, commands=show_commands, as_json=as_json, everything=everything)
        return
    if cluster is None or show_commands:
        raise inputs.bad("--cluster" if cluster is None else "--show-commands", _WORKFLOW[cluster is None])
    site = inputs.read_cluster(cluster)
    profiles = inputs.Profiles(store)
    flow = profiles.read_workflow(workflow)
    if engine == "fluid":  # the other one has no pairs
        site = profiles.scored(site, flow)
    inputs.load_simulator(engine)
    if compare:
        _compare(flow, site, wishes, as_json)
        return
    drawn = wishes.replicated(flow, site) if replicates else None
    made = drawn.plan if drawn else wishes.plan(flow, site)
    if export in ("slurm", "oar"):
        print(_exporter(export)(made, flow, site), end="")
    elif as_json or export:
        print(json.dumps(_document(made, flow, site), indent=2, allow_nan=False))
    else:
        _show(made, flow, site, everything, drawn)
    if gantt is not None:
        _draw(made, flow, site, gantt)
    for warning in dict.fromkeys((*flow.warnings, *made.warnings)):
        inputs.warn(warning)


def _check_combination(compare: bool, as_json: bool, gantt: Path | None, export: str | None) -> None:
    if export is not None and export not in _FORMS:
        raise inputs.not_among("--export", export, "a form", _FORMS)
    if compare and (gantt or export):
        raise inputs.bad(
            "--compare", f"it makes several plans, and {'--gantt' if gantt else '--export'} takes one"
        )
    if as_json and export in ("slurm", "oar"):
        raise inputs.bad("--json", f"stdout can hold JSON or --export {export}, not both")
    if gantt and gantt.suffix.lower() not in _PICTURES:
        raise inputs.bad("--gantt", f"{gantt.name!r} has no known ending (allowed: {', '.join(_PICTURES)})")
    if gantt and not gantt.parent.is_dir():  # found now, not after a long search
        raise ConfigError(str(gantt), "", "cannot be written: there is no such folder")
    if gantt and gantt.suffix.lower() == ".png":
        from ..render.png import demand_matplotlib

        demand_matplotlib()


def _check_queue(other: object) -> None:
    if other:
        raise inputs.bad("--adapter", "a queue is planned once, by one policy: no --compare, --replicates, --gantt, "
                         "--export or --engine")  # fmt: skip


def _compare(flow: Workflow, site: Cluster, wishes: inputs.Wishes, as_json: bool) -> None:
    from ...simulate.planner import POLICIES

    plans = [wishes.plan(flow, site, policy) for policy in POLICIES]
    if as_json:
        document = {
            "schema": "pilotfish/comparison/v1",
            "plans": [_document(made, flow, site) for made in plans],
        }
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        from ..render import tables
        from ..render.screen import Screen

        screen, score = Screen(), wishes.scores(plans)
        screen.title(tables.header(plans[0], flow, site, several=True))
        screen.put(tables.comparison(plans, score, screen.cells, ascii_only=screen.ascii_only), "")
        screen.put(*tables.comparison_notes(plans, score, site, wishes.goal))
    for warning in dict.fromkeys((*flow.warnings, *(warning for made in plans for warning in made.warnings))):
        inputs.warn(warning)


def _show(made: Plan, flow: Workflow, site: Cluster, everything: bool, drawn: Replicated | None) -> None:
    from ..classed import classes_of
    from ..render import chart, tables, terminal
    from ..render.classes import class_lines
    from ..render.screen import Screen

    screen, picture = Screen(), chart.build(made, flow, site)
    screen.title(tables.header(made, flow, site))
    screen.put(tables.plan_table(made, screen.cells, ascii_only=screen.ascii_only, everything=everything))
    if not everything and (note := tables.left_out(len(made.jobs))):
        screen.put(note)
    bars = terminal.gantt(picture, screen.cells, ascii_only=screen.ascii_only, colour=screen.colour)
    screen.put("", *bars, "", *tables.summary(made, site), *(tables.replicates(drawn) if drawn else ()))
    screen.put(*class_lines(classes_of(made, flow.jobs, site), screen.cells))


def _document(made: Plan, flow: Workflow, site: Cluster) -> dict[str, Any]:
    from ..classed import classes_of, with_classes

    return with_classes(inputs.plan_to_dict(made), classes_of(made, flow.jobs, site))


def _draw(made: Plan, flow: Workflow, site: Cluster, target: Path) -> None:
    from ...simulate.formats.writing import write_whole
    from ..render import chart, tables

    picture, subtitle = chart.build(made, flow, site), tables.subtitle(made, flow, site)
    if target.suffix.lower() == ".png":
        from ..render.png import png

        png(picture, target, subtitle)
    else:
        from ..render import page, svg

        draw: Callable[[Chart, str], str] = svg.svg if target.suffix.lower() == ".svg" else page.html
        write_whole(target, draw(picture, subtitle))
    inputs.note(f"the Gantt chart is in {target}")


def _exporter(form: str) -> Callable[[Plan, Workflow, Cluster], str]:
    from ...simulate.formats.mapping import export_oar, export_slurm

    return export_slurm if form == "slurm" else export_oar
