"""`pilotfish evaluate`: judge models against every exact rival, on shaken copies, with intervals."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...formats.documents.atomic_write import check_file
from ...formats.model_file import Model, read_model
from ...formats.models.order_model import OrderModel
from ...formats.models.verdicts import only_rule
from ...formats.text import count
from ...simulate.queue_policies.learned_order import MODEL_SUFFIX
from .. import options
from ..kernel_loading import load_kernels
from ..options import argument, flag, option
from ..output.documents import print_json
from ..output.model_decisions import use_document
from ..output.text import Screen, hanging
from ..streams import note
from ..usage_errors import bad, not_among
from .contests import contest_of
from .irmasim_report import show_irmasim
from .learning_tasks import PARTS
from .net_replays import show_uses, uses_of
from .thesis_report import judge_as_thesis
from .unseen_systems import Trainings, judge_unseen
from .verdict_report import results_of, save_verdicts, show_results, trained_on

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


#: Published works whose tables are printed.
PUBLISHED = ("thesis", "irmasim")


def evaluate(
    files: Annotated[
        list[Path] | None,
        argument("MODEL... TRACE...", f"Models (*{MODEL_SUFFIX}), and traces or sites to judge them on."),
    ] = None,
    copies: Annotated[int, option("N", "Shaken copies of each trace.", min=2, max=1000)] = 20,
    part: Annotated[str, option("PART", "Jobs of each trace that count.", words=PARTS)] = PARTS[0],
    setting: Annotated[
        str | None, option("NAME", "The tables of a published work, next to its figures.", "--as", words=PUBLISHED)
    ] = None,
    no_predictions: Annotated[
        bool, flag("--no-predictions", "Use no predicted run times, which take most of the time.")
    ] = False,
    save: Annotated[
        bool, flag("--save", "Write the verdicts about jobs that a model has not seen into its file.")
    ] = False,
    leave_one_out: Annotated[
        bool, flag("--leave-one-out", "Judge each trace under orders that are trained on the other traces.")
    ] = False,
    seeds: options.Seeds = Trainings.seeds,
    generations: options.Generations = Trainings.generations,
    resume: options.Resume = None,
    procs: options.Procs = None,
    cluster: options.ClusterFile = None,
    workers: options.Workers = None,
    as_json: options.Json = False,
) -> int:
    """Judge models. Each is one training seed of the same recipe; the table is about all of them.

    All replay the same copies, whose submissions are moved by up to five minutes. A ratio below 1 is better than the
    rival; its interval of 95 % is of a bootstrap over copies and models. The rival is EASY in any order, by limits or
    by predicted run times, conservative backfilling, or a simple rule with the model's bound on waits. One verdict is
    about the rival that was chosen in training, one about the best in hindsight. What is worse is printed, too. With
    --save, a model's file says what was found; without a verdict that it beats its rival, no service trusts it.

    Models that choose jobs and nodes are replayed with their nets on the nodes of their training. Rivals are EASY by
    limits, and the rules that choose among the same pairs. Slowdowns are then relative to the requested time.

    Models that choose rules are judged on the nodes of --cluster, in windows of the trace that are as long as the
    episodes of their training, one for each of --copies, against each pair of rules alone.

    `--leave-one-out` takes traces of three or more systems and no model. It says how an order does on a system that no
    search has seen: for each trace it trains linear orders on the others, as `train linear` does, and judges them on
    the one left out. --seeds, --generations and --resume are of these trainings. With some ten thousand jobs a trace,
    that takes an hour or more of CPU time.

    `--as thesis` prints the thesis's tables: its rules, the same rules with the choice of the agent, the agents, and
    its figures. Without a model, the rules alone. `--as irmasim` takes no files: it trains the agents of IRMaSim, which
    choose rules, and prints its examples, its figure 9, and where agents end; one to two minutes of CPU time.

    \b
    Examples:
      pilotfish evaluate mine.pfmodel.json year.swf.gz --part second-half
      pilotfish evaluate mine.pfmodel.json other.swf --no-predictions --json
      pilotfish evaluate --leave-one-out a.swf b.swf c.swf --no-predictions
      pilotfish evaluate --as thesis pairs.pfmodel.json other.swf
      pilotfish evaluate --as irmasim
    """
    if part not in PARTS:
        raise not_among("--part", part, "a part of a trace", PARTS)
    files = files or []
    if cluster is not None and (setting is not None or leave_one_out):
        raise bad("--cluster", "with --as or --leave-one-out (allowed: with models that choose rules)")
    for path in files if save else ():
        if path.name.endswith(MODEL_SUFFIX):
            check_file(path)
    if setting is not None:
        return _as_published(setting, files, save=save, as_json=as_json)
    trainings = Trainings(seeds, generations, resume)
    if trainings != Trainings() and not leave_one_out:
        raise bad("--seeds, --generations, --resume", "without --leave-one-out (allowed: with it alone)")
    if leave_one_out:
        if part != PARTS[0] or save or any(path.name.endswith(MODEL_SUFFIX) for path in files):
            raise bad("--leave-one-out", "with a model, --part or --save (allowed: traces alone)")
        return judge_unseen(
            files, trainings, copies, procs, workers, predicting=not no_predictions, as_json=as_json
        )  # fmt: skip
    models = {path: read_model(path) for path in files if path.name.endswith(MODEL_SUFFIX)}
    traces = [path for path in files if path not in models]
    if twice := [path for place, path in enumerate(files) if path in files[:place]]:
        raise bad("MODEL... TRACE...", f"{twice[0]} twice (allowed: each file once)")
    if not models or not traces:
        raise bad(
            "MODEL... TRACE...",
            f"{count(len(models), 'model')}, {count(len(traces), 'trace')} (allowed: one of each, or more)",
        )
    load_kernels("swf.parser")
    contest = contest_of(models, traces, part, copies, procs, predicting=not no_predictions, cluster=cluster)
    load_kernels(*contest.kernels)
    scored = contest.scores(workers)
    results, uses = results_of(contest, scored), uses_of(contest.nets, workers)
    if as_json:
        plain = [row | {"against": asdict(row["against"])} for row in results]
        nets = [{"model": name, "trace": trace, **use_document(use)} for name, trace, use in uses]
        print_json("evaluation", {"copies": copies, "part": part, "results": plain, "model_use": nets})
    else:
        show_results(contest, scored, results)
        _show_doubts(models)
        if uses:
            without = "" if contest.has_nets else "; the table is about the model without it"
            screen = Screen()
            screen.put(f"With its net, as a service uses it{without}:")
            show_uses(screen, uses)
    if save:
        for path, model in models.items():
            save_verdicts(path, model, contest, results, part, copies)
    digests = {digest for model in models.values() for digest in trained_on(model)}
    if repeated := [path.name for path, one in zip(traces, contest.traces, strict=True) if one.digest in digests]:
        trained = "; ".join(dict.fromkeys(str(model.trained.get("part", PARTS[0])) for model in models.values()))
        note(f"{', '.join(repeated)}: the training had the same file ({trained}), and this is about: {part}")
    return 0


def _show_doubts(models: Mapping[Path, Model]) -> None:
    """Print which models are only the rule that their search began with; `models` by file."""
    screen = Screen()
    for path, model in models.items():
        if isinstance(model, OrderModel) and model.rule is not None:
            screen.put(*hanging("", f"{path}: {only_rule(model.rule)}", screen.cells))


def _as_published(setting: str, files: Sequence[Path], *, save: bool, as_json: bool) -> int:
    """Judge models as a published work did. Raises ConfigError, OSError, typer.BadParameter."""
    if setting not in PUBLISHED:
        raise not_among("--as", setting, "a published work", PUBLISHED)
    if setting == "irmasim":
        if files or save:
            raise bad("--as irmasim", "with files or --save (allowed: neither, its jobs and agents are its own)")
        return show_irmasim(as_json=as_json)
    models = [path for path in files if path.name.endswith(MODEL_SUFFIX)]
    traces = [path for path in files if path not in models]
    if len(traces) != 1:
        raise bad("MODEL... TRACE...", f"{count(len(traces), 'trace')} (allowed: one)")
    return judge_as_thesis(models, traces[0], save=save, as_json=as_json)
