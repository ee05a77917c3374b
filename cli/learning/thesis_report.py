"""`pilotfish evaluate --as thesis`: networks that choose pairs, against the rules of the thesis and its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...formats.model_file import read_model, write_model
from ...formats.models.pair_model import PairModel
from ...formats.text import count
from ...learning.agents.pair_training import AGENTS
from ...learning.environments import thesis
from ...learning.environments.pairs import KERNEL, OBJECTIVES
from ...learning.thesis_table import RULES, Ratio, ThesisTable, thesis_table
from ...simulate.arrays import Array
from ...simulate.errors import ConfigError
from ...simulate.learned.pair_heads import PairChooser
from ...simulate.learned.pair_network import KERNEL as SCORES
from ..kernel_loading import load_kernels
from ..output.documents import print_json
from ..output.text import Screen, TextColumn, hanging, numbers, progress_bar
from ..streams import note
from .pair_tasks import PairInput

#: Objectives in words.
_WORDS = {"bsld": "mean bounded slowdown", "sld": "mean slowdown", "wait": "mean wait, s"}


def judge_as_thesis(models: Sequence[Path], trace: Path, *, save: bool, as_json: bool) -> int:
    """Print the table of each objective that a model was trained for; without a model, of all, with the rules alone.

    Args:
        models: files of networks that choose pairs; those of one objective and one agent are its training seeds.
        trace: the trace that the windows are of.
        save: write the verdicts into the files of models that were not trained on the trace.
        as_json: print a document.

    Raises:
        ConfigError: a file is wrong, or a model is of another kind or another machine.
        OSError: the trace cannot be read.
    """
    load_kernels("swf.parser", KERNEL, SCORES)
    named = {path: _pair_model(path) for path in models}
    source = PairInput.of(trace)
    by_objective = {name: [path for path, one in named.items() if one.objective == name] for name in OBJECTIVES}
    judged = {name: paths for name, paths in by_objective.items() if paths or not named}
    with _progress(len(RULES) * len(judged) + len(named)) as advance:
        tables = [
            thesis_table(source.jobs(), name, _choosers(paths, named), progress=advance)
            for name, paths in judged.items()
        ]
    if as_json:
        print_json("thesis", {"trace": source.name, "tables": list(map(_document, tables))})
    else:
        for table in tables:
            _show(Screen(), source.name, table, _by_agent(judged[table.objective], named))
    trained = [path for path, one in named.items() if _digests(one) & {source.digest}]
    if trained:
        note(
            f"{count(len(trained), 'model')} of {len(named)} trained on jobs of {trace.name}: it says nothing of others"
        )
    if save:
        for table in tables:
            for agent, paths in _by_agent(judged[table.objective], named).items():
                _save([path for path in paths if path not in trained], named, source, table, agent)
    return 0


def _choosers(paths: Sequence[Path], models: Mapping[Path, PairModel]) -> dict[str, list[PairChooser]]:
    return {agent: [models[path].chooser for path in same] for agent, same in _by_agent(paths, models).items()}


def _by_agent(paths: Sequence[Path], models: Mapping[Path, PairModel]) -> dict[str, list[Path]]:
    """Return the files of each agent, in the order of AGENTS."""
    agents = {models[path].agent for path in paths}
    return {
        agent: [path for path in paths if models[path].agent == agent]
        for agent in [*(name for name in AGENTS if name in agents), *sorted(agents - AGENTS.keys())]
    }


def _pair_model(path: Path) -> PairModel:
    """Read a model. Raises ConfigError: it is of another kind, or for another machine or another view of the jobs."""
    model = read_model(path)
    if not isinstance(model, PairModel):
        raise ConfigError(str(path), "kind", f"{model.kind}: it chooses no pairs of a job and a node", PairModel.kind)
    options = thesis.options(model.objective)
    view = (options.due, options.rows, options.longest, options.logarithmic)
    sight = model.sight
    nodes = tuple((node.processors, node.speed) for node in thesis.NODES)
    if model.nodes != nodes or (sight.due, sight.rows, sight.longest, sight.logarithmic) != view:
        raise ConfigError(
            str(path), "sight", "another machine, or another view of the jobs", "`train squared --as thesis`"
        )
    return model


def _digests(model: PairModel) -> set[str]:
    return {row["sha256"] for row in model.trained.get("traces", ())}


@contextmanager
def _progress(steps: int) -> Iterator[Callable[[], None]]:
    """Show a bar on a terminal; what is yielded counts a step."""
    bar = progress_bar(steps, "rules and agents")
    try:
        yield lambda: None if bar is None else bar.advance(bar.task_ids[0])
    finally:
        if bar is not None:
            bar.stop()


def _document(table: ThesisTable) -> dict[str, Any]:
    return {
        "objective": table.objective,
        "agents": {
            agent: {
                "windows": costs.tolist(), "published": thesis.PUBLISHED_AGENTS.get((agent, table.objective)),
            }
            for agent, costs in table.agents.items()
        },
        "rules": [
            {
                "rule": one.rule.name, "blocks": one.blocks, "windows": one.costs.tolist(),
                "published": None if np.isnan(one.published) else one.published,
                "ratios": {agent: asdict(ratio) for agent, ratio in one.ratios.items()},
            }
            for one in table.contests
        ],
    }  # fmt: skip


def _show(screen: Screen, trace: str, table: ThesisTable, files: Mapping[str, Sequence[Path]]) -> None:
    """Print a table: all rules by their means, those that block with the figure of the thesis, and the agents.

    The last column compares with the first agent. `files`: of the models of each agent, in the order of the seeds.
    """
    main = next(iter(table.agents), "")
    screen.title(f"{trace}: {_WORDS[table.objective]}, {count(table.windows, 'window')}")
    rows = [
        (
            float(one.costs.mean()),
            (
                f"  {one.rule.job}",
                one.rule.node,
                *_cells(one.costs),
                _shown(one.published),
                _against(one.ratios[main]) if main else "",
            ),
        )
        for one in table.contests
    ]
    for agent, seeds in table.agents.items():
        figure = _shown(thesis.PUBLISHED_AGENTS.get((agent, table.objective), np.nan))
        for number, costs in enumerate(seeds, 1):
            rows.append((float(costs.mean()), (f"> {agent}", f"model {number}", *_cells(costs), figure, "")))
    columns = [
        *map(TextColumn, ("  JOB", "NODE")),
        *numbers("MEAN", "MEDIAN", "MOST", "THESIS"),
        TextColumn(f"{main or 'agent'} / it".upper(), right=True),
    ]
    screen.table(columns, [cells for _, cells in sorted(rows)])
    screen.put("")
    for agent, paths in files.items():
        for number, path in enumerate(paths, 1):
            screen.put(*hanging("> ", f"{agent}, model {number}: {path}", screen.cells))
    screen.put(
        "MEAN, MEDIAN, MOST: over the windows. THESIS: its mean, on its own trace. Rules with such a figure block: "
        "they wait until the job fits that they chose; the others choose among what fits, as agents do."
    )
    if main:
        screen.put(
            f"{main.upper()} / IT: the geometric mean, over windows and models, of the agent's cost over the rule's in "
            "the same window, with an interval of 95 %. A few windows with long queues weigh more in MEAN.", "",
        )  # fmt: skip
    for blocks, kind in ((True, "that blocks"), (False, "with the choice of the agents")) if main else ():
        best = table.best(blocks=blocks)
        screen.put(f"best rule {kind}: {best.rule.name}")
        for agent in table.agents:
            beaten, rules = table.beaten(agent, blocks=blocks)
            ratio = best.ratios[agent]
            screen.put(
                f"  {agent}: {beaten} of {rules} beaten; to the best {_against(ratio)}, smaller in {ratio.won:.0%}"
            )
    for agent in list(table.agents)[1:]:
        screen.put(f"{agent} / {main}: {_against(table.against(agent, main))}")
    screen.put("")


def _cells(costs: Array) -> tuple[str, ...]:
    return tuple(_shown(float(number)) for number in (costs.mean(), np.median(costs), costs.max()))


def _shown(number: float) -> str:
    return "" if np.isnan(number) else f"{number:,.0f}" if number >= 1000.0 else f"{number:.3g}"


def _against(one: Ratio) -> str:
    return f"{one.ratio:.2f} ({one.low:.2f} to {one.high:.2f})"


def _save(
    paths: Sequence[Path], models: Mapping[Path, PairModel], source: PairInput, table: ThesisTable, agent: str
) -> None:
    """Write the verdicts against the best rules of both kinds into files, in place of those on the same jobs."""
    rows = [
        {
            "trace": source.name, "sha256": source.digest, "rival": best.rule.name + ", blocks" * best.blocks,
            "number": table.objective, "ratio": best.ratios[agent].ratio, "low": best.ratios[agent].low,
            "high": best.ratios[agent].high,
            "windows": table.windows, "models": len(paths),
        }
        for best in (table.best(blocks=True), table.best(blocks=False))
    ]  # fmt: skip
    for path in paths:
        others = [row for row in models[path].evaluated if row.get("sha256") != source.digest]
        write_model(path, replace(models[path], evaluated=(*others, *rows)))
