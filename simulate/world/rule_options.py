"""The options of decisions that choose a pair of rules: one for the next job, one for the cores of its tasks.

Source: IRMaSim (Herrera et al., CCGrid 2021), IV.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..errors import ConfigError
from ..kernels.mapping import choice_tables as tables
from ..kernels.mapping import layout
from ..queue_policies.policy_specs import JOBS, RESOURCES

KERNEL = "mapping.rule_choice"
#: What an episode costs, by name: seconds, joules, and the sum of joules x seconds between decisions.
OBJECTIVES = {"makespan": tables.MAKESPAN, "energy": tables.ENERGY, "energy-delay": tables.ENERGY_DELAY}
#: What a policy sees, by name.
LEVELS = {"minimal": tables.MINIMAL, "small": tables.SMALL, "normal": tables.NORMAL}
#: Further rules for cores, those of IRMaSim's program: by what a core has at its peak, whatever runs there.
PEAKS = {"peak_gflops": layout.PEAK_GFLOPS, "peak_power": layout.PEAK_POWER}
#: Start nothing until the next decision.
VOID = "void"
#: The 36 pairs of rules, and VOID: table II of the paper.
ALL_PAIRS: tuple[tuple[str, str] | str, ...] = (*((job, core) for job in JOBS for core in RESOURCES), VOID)


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """The options of the environment.

    Args:
        objective: a key of OBJECTIVES.
        observation: a key of LEVELS.
        actions: pairs of a rule for jobs and a rule for cores, and VOID; at least one pair.
        one: an action starts one job; if not, it starts jobs until the next one does not fit.
        always: a decision is due at each instant at which a job waits and a core is free, as in IRMaSim's program. If
            not, only when a job has ended, or was submitted while none waited or none ran, as in its paper.
        sensitivity: relative change of the number of waiting jobs that is seen as 1; its opposite is seen as 0.
    """

    objective: str = "energy"
    observation: str = "normal"
    actions: tuple[tuple[str, str] | str, ...] = field(default=ALL_PAIRS)
    one: bool = False
    always: bool = False
    sensitivity: float = 0.005

    def __post_init__(self) -> None:
        for key, names in (("objective", OBJECTIVES), ("observation", LEVELS)):
            if getattr(self, key) not in names:
                raise ConfigError("environment", key, repr(getattr(self, key)), ", ".join(names))
        for action in self.actions:
            if action != VOID and not (len(action) == 2 and action[0] in JOBS and action[1] in RESOURCES | PEAKS):
                allowed = f"{VOID!r}, or one of {', '.join(JOBS)} and one of {', '.join(RESOURCES | PEAKS)}"
                raise ConfigError("environment", "actions", repr(action), allowed)
        if not self.pairs or len(set(self.actions)) < len(self.actions):
            raise ConfigError("environment", "actions", repr(self.actions), "at least one pair, each action once")
        if not 0.0 < self.sensitivity < np.inf:
            raise ConfigError("environment", "sensitivity", repr(self.sensitivity), "above 0")

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The actions without VOID."""
        return [action for action in self.actions if isinstance(action, tuple)]
