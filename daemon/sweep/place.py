"""The machines of a sweep, read from their files.

Rule: what a policy demands of a machine is found out here, before anything runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from ...simulate.batch.demands import refuse_machine
from ...simulate.batch.machine import Machine, machine_of, speeds_of, storages_of
from ...simulate.batch.spec import text_of
from ...simulate.errors import ConfigError
from ...simulate.formats.machines import read_machine
from ...simulate.platform import Cluster
from ...simulate.sweep.grid import Chosen, Site, Sweep
from .trace import Abilities
from .wording import in_a_sweep


@dataclass(frozen=True, slots=True)
class Place:
    """A machine.

    Args:
        machine: None = as large as the trace says.
        cluster: of which it is made; None: it is but a number.
        abilities: see there.
    """

    machine: Machine | None = None
    cluster: Cluster | None = None
    abilities: Abilities = field(default_factory=Abilities)

    @property
    def alike(self) -> Machine | None:
        """The machine for jobs that run as long wherever they are."""
        return None if self.machine is None else replace(self.machine, network=None)


def places_of(sweep: Sweep, folder: Path) -> dict[int | Site | None, Place]:
    """The machines of a sweep, each fit for each of its policies. Raises ConfigError."""
    places = {one: _place(one, folder) for one in sweep.machines}
    for one, place in places.items():
        for policy in sweep.policies:
            _refuse(sweep, policy, one, place)
    return places


def _place(one: int | Site | None, folder: Path) -> Place:
    if isinstance(one, Site):
        cluster = read_machine(folder / one.file)
        storages = storages_of(cluster)
        abilities = Abilities(speeds_of(cluster), None if storages is None else tuple(storages))
        return Place(machine_of(cluster, whole_nodes=one.whole_nodes), replace(cluster, wiring=None), abilities)
    return Place() if one is None else Place(Machine(one))


def _refuse(sweep: Sweep, policy: Chosen, one: int | Site | None, place: Place) -> None:
    if place.machine is None:
        return
    try:
        refuse_machine(policy, place.machine, place.cluster)
    except ConfigError as error:
        where = "" if error.source == "policy" else f"{error.source}: "
        what = f"{text_of(policy)} on {one}: {where}{error.key}: {error.problem}".replace(": : ", ": ")
        raise ConfigError(sweep.source, "machines", what, in_a_sweep(error.allowed)) from None
