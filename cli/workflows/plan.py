"""`pilotfish plan`: simulate a workflow, or the queue of a resource manager; print the mapping; start nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Workflow
from ...simulate.model.plan import Plan
from .. import options
from ..charts import picture_files
from ..inputs import Profiles, read_cluster, refuse_trace
from ..options import flag, option
from ..output.documents import print_json
from ..streams import show_document, warn
from ..usage_errors import bad, not_among
from .plan_request import PlanRequest

if TYPE_CHECKING:
    from ...simulate.planning.stochastic import Replicated


def plan(
    workflow: options.OptionalWorkflowFile = None,
    cluster: options.ClusterFile = None,
    policy: options.MappingPolicy = "lookahead",
    compare: Annotated[bool, flag("--compare", "Plan with every policy and show the plans side by side.")] = False,
    objective: options.Goal = "makespan",
    seed: options.Seed = 0,
    budget: options.Budget = None,
    time_limit: options.TimeLimit = None,
    replicates: options.Replicates = None,
    as_json: options.Json = False,
    everything: options.All = False,
    plot: picture_files.PlotFile = None,
    export: Annotated[
        str | None,
        option("FORM", "Print the mapping for another scheduler: slurm, oar or json.", words=("slurm", "oar", "json")),
    ] = None,
    adapter: Annotated[str | None, options.ThisSite] = None,
    config: Annotated[Path | None, option("FILE", "Configuration of the service (YAML).")] = None,
    as_if: Annotated[
        list[str] | None,
        option(
            "NAME",
            "Plan as if all jobs of this partition or queue were handed over; `all`: of each. May be repeated.",
            "--as-if-handed-over",
        ),
    ] = None,
    show_commands: options.ShowCommands = False,
    store: options.Store = None,
) -> None:
    """Simulate a workflow on a cluster; print where each job would run, when, and why there.

    Nothing is started. The search is deterministic: its effort is counted in simulations (--budget). With --adapter
    or --config, plan the queue of a resource manager once: what the service would do now, with the jobs that are
    handed over to it, or with those of more partitions or queues, as if they were.

    \b
    Examples:
      pilotfish plan dag.yaml --cluster lab.yaml
      pilotfish plan dag.yaml --cluster lab.yaml --compare
      pilotfish plan dag.yaml --cluster lab.yaml --policy mom --plot plan.html
      pilotfish plan dag.yaml --cluster lab.yaml --replicates 20
      pilotfish plan montage.json --cluster lab.yaml --json | jq .makespan
      pilotfish plan dag.yaml --cluster lab.yaml --export slurm > submit.sh
      pilotfish plan --adapter slurm --as-if-handed-over all --show-commands
    """
    _check_combination(compare, as_json, plot, export)
    of_queue = adapter is not None or config is not None
    if of_queue is (workflow is not None):
        raise bad("WORKFLOW", "give either a workflow, or --adapter or --config to plan a queue")
    if of_queue and (compare or replicates or plot or export):
        lacks = "no --compare, --replicates, --plot or --export"
        raise bad("--adapter", f"a queue is planned once, by one policy: {lacks}")
    if compare and replicates:
        raise bad("--compare", "not with --replicates: one makes a plan of each policy, the other many of one policy")
    request = PlanRequest(policy, objective, seed, budget, time_limit, replicates)
    if workflow is None:
        from ...daemon.planning.problem import Options
        from .plan_queue import show_queue

        planning = Options(policy, objective, seed, budget, time_limit)
        printed = {"commands": show_commands, "as_json": as_json, "everything": everything}
        show_queue(adapter, config, cluster, planning, store, as_if or (), **printed)
        return
    for value, name in ((show_commands, "--show-commands"), (as_if, "--as-if-handed-over")):
        if value:
            raise bad(name, "only with --adapter or --config")
    refuse_trace(workflow)
    if cluster is None:
        raise bad("--cluster", "missing: the nodes to plan for (`pilotfish cluster` prints those of this machine)")
    site, profiles = read_cluster(cluster), Profiles(store)
    flow = profiles.read_workflow(workflow, site)
    site = profiles.scored(site, flow)
    if compare:
        _compare(flow, site, request, as_json)
        return
    drawn = request.replicated(flow, site) if replicates else None
    shown_plan = drawn.plan if drawn else request.plan(flow, site)
    if export not in (None, "json"):
        from ...adapters import registry

        show_document(registry.export(str(export), shown_plan, flow, site))
    elif as_json or export:
        print_json("plan", _document(shown_plan, flow, site))
    else:
        _show(shown_plan, flow, site, everything, drawn)
    if plot is not None:
        from ..charts.plan_gantt import plan_gantt
        from ..output import tables

        picture_files.save(plan_gantt(shown_plan, flow, site, tables.subtitle(shown_plan, flow, site)), plot)
    warn(*flow.warnings, *shown_plan.warnings)


def _check_combination(compare: bool, as_json: bool, plot: Path | None, export: str | None) -> None:
    if export not in (None, "json"):
        from ...adapters import registry

        if export not in (forms := registry.exporters()):
            raise not_among("--export", str(export), "a form", (*forms, "json"))
    if compare and (plot or export):
        raise bad("--compare", f"it makes several plans, and {'--plot' if plot else '--export'} takes one")
    if as_json and export not in (None, "json"):
        raise bad("--json", f"stdout can hold JSON or --export {export}, not both")
    picture_files.check(plot)


def _compare(flow: Workflow, site: Cluster, request: PlanRequest, as_json: bool) -> None:
    from ...simulate.planning.planner import POLICIES

    plans = [request.plan(flow, site, policy) for policy in POLICIES]
    if as_json:
        print_json("comparison", {"plans": [_document(plan, flow, site) for plan in plans]})
    else:
        from ..output import tables
        from ..output.text import Screen

        screen, score = Screen(), request.scores(plans)
        screen.title(tables.header(plans[0], flow, site, several=True))
        screen.put(tables.comparison(plans, score, screen), "")
        screen.put(*tables.comparison_notes(plans, score, site, request.goal))
    warn(*flow.warnings, *(warning for plan in plans for warning in plan.warnings))


def _show(plan: Plan, flow: Workflow, site: Cluster, everything: bool, drawn: Replicated | None) -> None:
    from ...daemon.learning.job_profiles import classes_of
    from ...daemon.state.profile_labels import has_default_profile
    from ..charts import terminal_backend
    from ..charts.plan_gantt import plan_gantt
    from ..output import tables
    from ..output.text import Screen, class_lines

    screen, chart = Screen(), plan_gantt(plan, flow, site, "")
    screen.title(tables.header(plan, flow, site))
    guessed = {job.id for job in flow.jobs if has_default_profile(job)}
    screen.put(tables.plan_table(plan, screen, everything=everything, guessed=guessed))
    if not everything and (hidden := tables.left_out(len(plan.jobs))):
        screen.put(hidden)
    screen.put(*tables.sharing_note(plan, flow, site))
    bars = terminal_backend.draw(chart, screen.cells, ascii_only=screen.ascii_only, colour=screen.colour, headed=False)
    screen.put("", *bars, "", *tables.summary(plan, site, guessed), *(tables.replicates(drawn) if drawn else ()))
    screen.put(*class_lines(classes_of(plan, flow.jobs, site), screen.cells))


def _document(plan: Plan, flow: Workflow, site: Cluster) -> dict[str, Any]:
    from ...daemon.learning.job_profiles import classes_of, with_classes
    from ...formats.plan import plan_to_dict

    return with_classes(plan_to_dict(plan), classes_of(plan, flow.jobs, site))
