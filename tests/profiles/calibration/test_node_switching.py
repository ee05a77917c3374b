"""A node that takes known seconds and draws known watts is switched off and on, in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
import yaml

from pilotfish.formats.cluster import parse_cluster
from pilotfish.profiles.calibration.calibration_records import changes, switching_values, type_values
from pilotfish.profiles.calibration.node_switching import (
    CommandResult,
    SwitchingCommands,
    SwitchingError,
    SwitchTiming,
    measure,
)
from pilotfish.profiles.calibration.report import power_text
from pilotfish.simulate.model.cluster import NodeType

COMMANDS = SwitchingCommands("off", "on", "up", "down", "watts")
#: Grid'5000 Taurus (Poquet's thesis): W, and s there and back.
WATTS = {"idle": 95.0, "off": 9.75, "going": 101.0, "coming": 125.17}
GO_S, COME_S = 6.1, 151.52
WITHIN = 0.02


@dataclass
class Done:
    answer: CommandResult | None
    stopped: list[str]
    command: str = ""

    def poll(self) -> CommandResult | None:
        return self.answer

    def stop(self) -> None:
        self.stopped.append(self.command)


@dataclass
class Lab:
    """A site with one node, whose clock advances only in `pause`."""

    time: float = 1000.0
    state: str = "idle"
    since: float = 0.0
    go_s: float = GO_S
    come_s: float = COME_S
    failing: int = 0  # times that `on` fails
    watts: str = "{:.2f} Watts\n"
    interrupt_in: str = ""  # a state in which the operator gives up
    launched: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    def now(self) -> float:
        return self.time

    def pause(self, seconds: float) -> None:
        self.time += seconds
        if self._now_is() == self.interrupt_in:
            self.interrupt_in = ""
            raise KeyboardInterrupt

    def launch(self, command: str) -> Done:
        self.launched.append(command)
        return Done(self.ask(command, 1.0), self.stopped, command)

    def ask(self, command: str, limit_s: float) -> CommandResult:
        state = self._now_is()
        if command == "watts":
            return CommandResult(0, self.watts.format(WATTS[state]))
        if command in ("up", "down"):
            return CommandResult(0 if state == {"up": "idle", "down": "off"}[command] else 1, "")
        if command == "on" and self.failing:
            self.failing -= 1
            return CommandResult(3, "BMC timeout")
        if command == "on" and state == "off":
            self.state, self.since = "coming", self.time
        if command == "off" and state == "idle":
            self.state, self.since = "going", self.time
        return CommandResult(0, "")

    def _now_is(self) -> str:
        for state, after_s, then in (("going", self.go_s, "off"), ("coming", self.come_s, "idle")):
            if self.state == state and self.time >= self.since + after_s:
                self.state = then
        return self.state


PATIENCE = SwitchTiming(limit_s=300.0, settle_s=10.0, every_s=0.1)


def test_times_and_powers_are_found_and_fit_a_cluster_file() -> None:
    found = measure("n1", COMMANDS, Lab(), PATIENCE, repeat=2)
    assert found.idle is not None and found.off is not None
    assert (found.idle.value, found.off.value) == (95.0, 9.75)
    for way, seconds, watts in ((found.switch_off, GO_S, 101.0), (found.switch_on, COME_S, 125.17)):
        assert way.seconds.value == pytest.approx(seconds, rel=WITHIN) and way.seconds.runs == 2
        assert way.watts is not None and way.watts.value == pytest.approx(watts)
        assert 0.0 < way.step_s < 0.2
    power = yaml.safe_load(power_text(found))["power"]
    kind = {"cores": 12, "memory": "32GiB", "memory_bandwidth": "42GB/s", "power": power}
    data = {"schema": "pilotfish/cluster/v1", "node_types": {"t": kind}, "nodes": [{"names": "n", "type": "t"}]}
    (node,) = parse_cluster(data, "x").nodes
    assert node.type.power is not None and node.type.power.switch_on is not None
    assert node.type.power.switch_on.seconds == pytest.approx(COME_S, rel=WITHIN)
    assert {state for _, _, state in found.trace} == {"idle", "switch_off", "off", "switch_on"}


def test_switching_changes_are_found() -> None:
    old = measure("n1", COMMANDS, Lab(), PATIENCE)
    slow = measure("n1", COMMANDS, Lab(come_s=200.0), PATIENCE)
    assert [change.key for change in changes(switching_values(old), switching_values(slow), 0.1)] == [
        "power.switch_on.seconds"
    ]
    power = old.power()
    assert power is not None
    assert changes(type_values(NodeType("t", 1, 1.0, 1.0, power=power)), switching_values(old), 0.01) == ()


def test_without_power_readings_times_are_known() -> None:
    found = measure("n1", replace(COMMANDS, power=None, down=None), Lab(), PATIENCE)
    assert found.power() is None and found.idle is None and found.trace == ()
    assert found.switch_on.seconds.value == pytest.approx(COME_S, rel=WITHIN)
    assert all(line.startswith("#") for line in power_text(found).splitlines())


@pytest.mark.parametrize(
    ("lab", "why"),
    [
        (Lab(state="off"), "n1 is not up"),
        (Lab(watts="hot"), "must print watts, and printed 'hot'"),
        (Lab(watts="9e9"), "must print watts"),
        (Lab(watts="-5"), "must print watts"),
    ],
)
def test_an_unexpected_state_is_left_alone(lab: Lab, why: str) -> None:
    with pytest.raises(SwitchingError, match=why):
        measure("n1", COMMANDS, lab, PATIENCE)
    assert lab.launched == []


def test_waiting_for_switch_off_is_limited() -> None:
    lab = Lab(go_s=1e9)
    with pytest.raises(SwitchingError, match=r"after 300 s of `off` the node is not off"):
        measure("n1", COMMANDS, lab, PATIENCE)
    assert lab.time < 2000.0 and lab.stopped == ["off"]


def test_a_node_that_does_not_come_back_is_an_explicit_error() -> None:
    lab = Lab(come_s=1e9)
    with pytest.raises(SwitchingError, match=r"n1 DID NOT COME BACK, switch it on by hand: after 300 s of `on`"):
        measure("n1", COMMANDS, lab, PATIENCE)
    assert lab.time < 2000.0


def test_a_failed_switch_on_is_tried_again() -> None:
    lab, lines = Lab(failing=3), list[str]()
    found = measure("n1", COMMANDS, lab, PATIENCE, progress=lines.append)
    assert lab.state == "idle" and lab.launched == ["off", "on", "on", "on", "on"]
    assert any("BMC timeout" in line for line in lines)
    assert found.switch_on.seconds.value > COME_S


@pytest.mark.parametrize("state", ["going", "off", "coming"])
def test_an_interrupt_does_not_leave_the_node_off(state: str) -> None:
    lab = Lab(interrupt_in=state)
    with pytest.raises(KeyboardInterrupt):
        measure("n1", COMMANDS, lab, PATIENCE)
    lab.time += 1000.0
    assert lab.ask("up", 1.0).code == 0


def test_one_failed_check_is_not_enough() -> None:
    @dataclass
    class Flaky(Lab):
        checks: int = 0

        def ask(self, command: str, limit_s: float) -> CommandResult:
            self.checks += command == "up"
            lost = command == "up" and self.checks % 3 == 2 and self._now_is() == "idle"
            return CommandResult(1, "") if lost else super().ask(command, limit_s)

    found = measure("n1", replace(COMMANDS, down=None), Flaky(), PATIENCE)
    assert found.switch_on.seconds.value == pytest.approx(COME_S, rel=WITHIN)
