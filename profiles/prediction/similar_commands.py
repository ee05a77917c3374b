"""The profile of a command that never ran, from runs of the same program with other arguments.

Rule: the runs of commands that differ in numbers and sizes of input files alone say how the need grows with these (see
`growth`). Without such runs the answer is the profile of one command of that program, at the quantile of their isolated
times, never a blend. It stays within the user's limits, is labelled as predicted, and names its source and its bounds.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from ...formats.text import count
from ...simulate.model.job import Job, Profile, Provenance, ThreadGroup
from ..estimate import estimate, on_one_machine, undisturbed
from ..identity import signature, words_checksum
from ..measurement import Measurement
from .predictors import LATEST_RUNS, QUANTILE, weighted_quantiles

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
#: The end of a command's name with its variables for threads, and its nodes.
_EXTENT = re.compile(r"(?: [A-Z]+_NUM_THREADS=\S*)*(?: on [0-9]+ nodes)?$")
_LOW, _HIGH = 0.1, 0.9
#: The 90 % quantile of a standard normal distribution; power of these quantiles that gives two deviations of the
#: logarithm.
_NINETY = 1.2816
_TO_INTERVAL = 2.0 / _NINETY
#: Scatter between commands of one program with other options, as a standard deviation of the logarithm, and the
#: commands that this stands for: how alike they are is known only once many have run.
_OPTIONS_SCATTER, _OPTIONS_SEEN = 0.7, 2.0
_LEAST_S = 1e-4
#: An exponent that lies between bounds farther apart is not known; one nearer to 0 is not worth a word.
_UNKNOWN, _FLAT = 1.0, 0.1


def shape(name: str) -> str:
    """Return a command's name with its numbers replaced, except those that give threads and nodes."""
    extent = _extent(name)
    return _NUMBER.sub("#", name[: len(name) - len(extent)]) + extent


def amounts(name: str, inputs: Mapping[str, float]) -> dict[str, float]:
    """Return the amounts of a command: the numbers in its name, in their order, and the sizes of its input files.

    Args:
        name: of the command.
        inputs: see `Job.inputs`.
    """
    sizes = {f"input {place}": size for place, size in inputs.items() if 0.0 <= size < math.inf}
    return {**_numbers(name), **sizes}


@lru_cache(1000)
def _numbers(name: str) -> Mapping[str, float]:
    numbers = _NUMBER.findall(name[: len(name) - len(_extent(name))])
    return {f"number {place}": float(number) for place, number in enumerate(numbers, 1)}


def grown_profile(
    name: str, inputs: Mapping[str, float], runs: Sequence[tuple[str, Measurement]], walltime: float | None = None,
    memory: float = 0.0,
) -> Profile | None:  # fmt: skip
    """Return a command's profile from runs of commands of the same shape, None without a successful one.

    It is the profile of the runs that are nearest in what they were given, with more or less work. O(runs) for each
    combination that `growth` weighs.

    Args:
        name: of the command.
        inputs: see `Job.inputs`.
        runs: with the names of their commands, oldest first.
        walltime: the user's limit, s; None = none.
        memory: the user's limit, bytes; 0 = none.
    """
    from .growth import grown  # numpy takes a while to import, and most commands predict nothing

    used = on_one_machine([run for _, run in runs])
    if not used:
        return None
    names = {id(run): other for other, run in runs}
    # the only run of a size is worth more than one that nothing disturbed
    by_amounts = defaultdict[Hashable, list[Measurement]](list)
    for run in used:
        by_amounts[tuple(amounts(names[id(run)], run.inputs).items())].append(run)
    counts = {id(run) for same in by_amounts.values() for run in undisturbed(same)}
    used = [run for run in used if id(run) in counts]
    run_amounts = [amounts(names[id(run)], run.inputs) for run in used]
    job_amounts = amounts(name, inputs)
    growth = grown(run_amounts, [max(run.isolated_s, _LEAST_S) for run in used], job_amounts)
    near = [_distance(one, job_amounts) for one in run_amounts]
    model = estimate(name, [run for run, away in zip(used, near, strict=True) if away <= min(near)])
    assert model is not None
    value, limit = growth.value, math.inf if walltime is None else walltime
    value = min(value, limit)
    low, high = min(growth.low, value) / value, min(growth.high, max(limit, value)) / value
    note = _explained(len(used), len({names[id(run)] for run in used}), growth.exponents)
    longer = lasting(model, value, (low * value, high * value), len(used), note)
    return replace(
        longer,
        memory=min(model.memory, memory) if memory > 0 else model.memory,
        provenance=replace(longer.provenance, inputs=tuple(inputs.items())),
    )


def lasting(model: Profile, value: float, bounds: tuple[float, float], runs: int, note: str) -> Profile:
    """Return a profile with more or less work, as predicted.

    Args:
        model: what is needed in each second.
        value: isolated run time, seconds.
        bounds: its 10 % and 90 % quantile.
        runs: behind the prediction.
        note: what it rests on, in words.
    """
    value = max(value, _LEAST_S)
    low, high = min(bounds[0], value) / value, max(bounds[1], value) / value
    times = value / model.isolated_time
    return replace(
        model,
        groups=tuple(replace(group, service_demand=group.demand * times) for group in model.groups),
        instructions=model.instructions and model.instructions * times,
        io_bytes=model.io_bytes and model.io_bytes * times,
        provenance=replace(
            model.provenance,
            source="predicted",
            runs=runs,
            note=note,
            interval=(low**_TO_INTERVAL, high**_TO_INTERVAL),
            spread=0.0,  # the interval has it
        ),
    )


def of_same_words(job: Job, known: Profile | None, runs: Sequence[tuple[str, Measurement]]) -> Profile | None:
    """Return a job's profile from the runs of the very same words, whose files most likely had the sizes to come.

    It is predicted; but measured if no run of these words ever showed the size of a file.

    Args:
        job: none of its files is there yet.
        known: the profile under the name of its command.
        runs: with the names of their commands, oldest first.
    """
    name, words = signature(job), words_checksum(job)
    same = [run for other, run in runs if other == name and run.words == words]
    profile = estimate(name, same, known) if name else None
    if profile is None or not any(size >= 0.0 for run in same for size in run.inputs.values()):
        return profile
    note = f"from {count(profile.provenance.runs, 'run')} of the same words; its files are not there yet"
    return replace(profile, provenance=replace(profile.provenance, source="predicted", note=note))


def _distance(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return the distance of the amounts of two commands, as the sum of logarithms of ratios."""
    both = one.keys() & other.keys()
    return sum(abs(math.log((1.0 + abs(one[name])) / (1.0 + abs(other[name])))) for name in both)


def _explained(runs: int, commands: int, exponents: Mapping[str, tuple[float, float]]) -> str:
    """Return in words what a prediction rests on."""
    of = "of this command" if commands == 1 and not exponents else "with other numbers or input sizes"
    words = f"from {count(runs, 'run')} {of}"
    for name, (low, high) in exponents.items():
        amount_name = (
            f"number {name.split()[1]}" if name.startswith("number") else f"the size of word {name.split()[1]}"
        )
        if high - low > _UNKNOWN:
            words += f"; how it grows with {amount_name} is not known yet"
        elif abs(low + high) / 2 >= _FLAT:
            words += f"; grows with {amount_name} to the power of {(low + high) / 2:.2g}"
    return words


def relatives(name: str, others: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the commands of the same shape; without such, others of the program; at most `LATEST_RUNS`.

    Args:
        name: of the command.
        others: names of commands of the same program, the one that ran last first.
    """
    alike = [other for other in others if shape(other) == shape(name)][:LATEST_RUNS]
    return alike, [] if alike else [other for other in others if _extent(other) == _extent(name)][:LATEST_RUNS]


def predicted(
    name: str, profiles: Sequence[Profile], walltime: float | None = None, memory: float = 0.0
) -> Profile | None:
    """Return a command's profile from those of other commands of its program, None without any.

    Args:
        name: of the command.
        profiles: the one that ran last first; those of other node types than its are ignored.
        walltime: the user's limit, s; None = none.
        memory: the user's limit, bytes; 0 = none.
    """
    used = [one for one in profiles if one.measured_on == profiles[0].measured_on][:LATEST_RUNS]
    if not used:
        return None
    times = [one.isolated_time for one in used]
    middle, low, high = weighted_quantiles(times, (QUANTILE, _LOW, _HIGH))
    model = used[times.index(middle)]
    most = weighted_quantiles([one.memory for one in used if one.memory] or [0.0], (_HIGH,))[0]
    value = min(middle, math.inf if walltime is None else walltime)
    least, longest = _bounds(times)
    least, longest = min(low, least, value), min(max(high, longest, value), math.inf if walltime is None else walltime)
    interval = (least / value) ** _TO_INTERVAL, (longest / value) ** _TO_INTERVAL
    dates = [one.provenance.date for one in used if one.provenance.date]
    commands = f"{count(len(used), 'command')}" if len(used) > 1 else "1 command"
    return replace(
        model,
        name=name,
        groups=tuple(_within(group, middle, walltime) for group in model.groups),
        memory=min(most, memory) if memory > 0 else most,
        provenance=Provenance(
            "predicted",
            max(dates, default=None),
            sum(one.provenance.runs for one in used),
            model.provenance.node_type,
            f"from {commands} of the same program; isolated run times {low:.4g} to {high:.4g} s",
            interval,
            model.provenance.spread or 0.0,
        ),
    )


def _bounds(times: Sequence[float]) -> tuple[float, float]:
    """Return the 10 % and the 90 % quantile of a time from those of other commands of the program, seconds."""
    logs = [math.log(max(time, _LEAST_S)) for time in times]
    centre = sum(logs) / len(logs)
    squares = sum((log - centre) ** 2 for log in logs) + _OPTIONS_SEEN * _OPTIONS_SCATTER**2
    away = _NINETY * math.sqrt(squares / (len(logs) + _OPTIONS_SEEN) * (1.0 + 1.0 / len(logs)))
    return math.exp(centre - away), math.exp(centre + away)


def _within(group: ThreadGroup, isolated_s: float, walltime: float | None) -> ThreadGroup:
    """Return the group with its work reduced so that the whole ends within the walltime."""
    if walltime is None or isolated_s <= walltime:
        return group
    return replace(group, service_demand=group.demand * walltime / isolated_s)


def _extent(name: str) -> str:
    match = _EXTENT.search(name)
    return match.group() if match else ""
