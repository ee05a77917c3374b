"""SPECs of policies."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.energy.power_policies import (
    EnergyBudget,
    Inertial,
    Opportunistic,
    PowerCap,
    ReducePC,
)
from pilotfish.simulate.queue_policies.policy_options import Amount, format_options
from pilotfish.simulate.queue_policies.policy_specs import (
    PARTS,
    POLICIES,
    Conservative,
    Easy,
    Saving,
    Strict,
    parse,
    text_of,
)


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("easy", Easy()),
        ("easy:order=sjf", Easy("sjf")),
        ("strict:order=random", Strict("random")),
        ("easy:", Easy()),
        ("conservative:allocation=local,order=sjf", Conservative("sjf", "local")),
        ("easy+opportunistic:t_idle=300", Saving(Easy(), Opportunistic(300.0))),
        ("conservative+powercap", Saving(Conservative(), limit=PowerCap())),
        ("easy:order=wfp3+opportunistic", Saving(Easy("wfp3"), Opportunistic(0.0))),
        (
            "strict:order=f1+energybud:budget=62.5%,begin=10,end=20+opportunistic",
            Saving(Strict("f1"), Opportunistic(), EnergyBudget(10.0, 20.0, Amount(0.625, share=True))),
        ),
        (
            "easy+inertial:v_ub=1e5+reducepc:budget=1e9",
            Saving(Easy(), None, ReducePC(budget=Amount(1e9)), Inertial(1e5)),
        ),
        (
            "easy+powercap:begin=1970-01-02T00:00Z,end=1970-01-02T02:00:00.5+01:00,cap=1e+3+opportunistic",
            Saving(Easy(), Opportunistic(), PowerCap(86400.0, 90000.5, Amount(1000.0))),
        ),
    ],
)
def test_parse(text: str, policy: object) -> None:
    assert parse(text) == policy


@pytest.mark.parametrize("name", POLICIES | PARTS)
def test_printed_specs_can_be_parsed(name: str) -> None:
    kind = (POLICIES | PARTS)[name]
    for option in fields(kind):
        words = option.metadata.get("words") or {"0.5": "", "12": "", "40%": "", "2026-12-01T08:00+01:00": ""}
        for word in words:
            value = option.metadata["read"](word)
            if value is not None:
                part = kind(**{option.name: value})
                policy = part if name in POLICIES else parse(f"easy+{name}:{format_options(part)}")
                assert parse(text_of(policy)) == policy


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("esy", "did you mean easy"),
        ("", "unknown"),
        ("easy:sjf", "order=..."),
        ("easy:order=", "fcfs, sjf"),
        ("easy:order=sjf,order=fcfs", "given twice"),
        ("easy:size=3", "order=..."),
        ("conservative:order=wfp3", "fcfs, sjf"),
        ("conservative:allocation=left", "best-effort-local"),
        ("conservative+opportunistic", "does not go with 'opportunistic': it promises each waiting job a start"),
        ("conservative+energybud", "does not go with 'energybud': .* is not known in advance"),
        ("conservative+powercap+inertial", "does not go with 'inertial': .* how many machines are off at that time"),
        ("easy+oportunistic", "did you mean opportunistic"),
        ("easy+easy", "'easy' is unknown"),
        ("easy+", "unknown"),
        ("easy+inertial+proportional", "do not go together"),
        ("easy+powercap+energybud", "do not go together"),
        ("easy+opportunistic:t_idle=-1", "0 or more"),
        ("easy+opportunistic:t_idle=nan", "0 or more"),
        ("easy+energybud:budget=half", "percentage"),
        ("easy+proportional:rho=1.5", "0 to 1"),
        ("easy+inertial:growth=fast", "plus-one, double"),
        ("easy+powercap:begin=5,end=5", "more than begin=5"),
        ("easy+powercap:begin=2026-12-01T08:00", "a date with its zone"),
        ("easy+powercap:begin=2026-13-01T08:00Z", "a date with its zone"),
        ("easy+powercap:begin=2026-12-01T08:00Z,end=5", "more than begin=2026-12-01T08:00:00Z"),
    ],
)
def test_invalid_specs_are_rejected(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse(text)


@pytest.mark.parametrize("option", ["begin", "end"])
def test_a_trace_has_no_dates(option: str) -> None:
    policy = parse(f"easy+powercap:{option}=2026-12-01T08:00Z")
    jobs = Workload("w", np.arange(2), np.array([0.0, 9.0]), np.ones(2), np.ones(2), np.ones(2, np.int64))
    assert isinstance(policy, Saving) and policy.limit is not None
    with pytest.raises(ConfigError, match="'2026-12-01T08:00:00Z' is a date, and the times of a trace are not"):
        policy.limit.window(jobs)
