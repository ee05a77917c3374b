"""SPECs of policies."""

from __future__ import annotations

from dataclasses import fields

import pytest

from pilotfish.simulate.errors import ConfigError
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
    ],
)
def test_parse(text: str, policy: object) -> None:
    assert parse(text) == policy


@pytest.mark.parametrize("name", POLICIES | PARTS)
def test_printed_specs_can_be_parsed(name: str) -> None:
    kind = (POLICIES | PARTS)[name]
    for option in fields(kind):
        words = option.metadata.get("words") or {"0.5": "", "12": "", "40%": ""}
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
        ("conservative+energybud", "does not go with 'energybud': .* depends on what is measured until then"),
        ("conservative+powercap+inertial", "does not go with 'inertial': .* how many machines are off then"),
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
    ],
)
def test_invalid_specs_are_rejected(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse(text)
