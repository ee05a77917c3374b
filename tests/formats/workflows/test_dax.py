"""Pegasus DAX, versions 2 and 3."""

from __future__ import annotations

import pytest

from pilotfish.formats.workflows.dax import dax_tasks
from pilotfish.formats.workflows.workflow import read_workflow
from pilotfish.formats.workflows.workflow_tasks import TINY_S, workflow_of
from pilotfish.simulate.errors import ConfigError, InvalidJobError
from pilotfish.simulate.model.job import DEFAULT_PROFILE


def parse_dax(data, source):
    return workflow_of(dax_tasks(data, source))


VERSION_2 = """<?xml version="1.0" encoding="UTF-8"?>
<!-- generated -->
<adag xmlns="http://pegasus.isi.edu/schema/DAX" version="2.1" count="1" index="0" name="test">
  <job id="ID0" namespace="Genome" name="split" version="1.0" runtime="35.79">
    <uses file="a" link="input" size="249228055"/>
  </job>
  <job id="ID1" name="filter" runtime="2.5"/>
  <job id="ID2" name="join" runtime="0"/>
  <child ref="ID1"><parent ref="ID0"/></child>
  <child ref="ID2"><parent ref="ID1"/><parent ref="ID0"/></child>
</adag>
"""
VERSION_3 = """
<p:adag xmlns:p="http://pegasus.isi.edu/schema/DAX" version="3.6" name="a/b">
  <p:file name="f"/>
  <p:job id="a" name="x">
    <p:profile namespace="pegasus" key="runtime"> 12 </p:profile>
    <p:profile namespace="pegasus" key="cores">4</p:profile>
    <p:profile namespace="pegasus" key="memory">100</p:profile>
    <p:profile namespace="env" key="id">evil</p:profile>
    <p:profile namespace="pegasus" key="id">evil</p:profile>
  </p:job>
  <p:dag id="b" file="sub.dag"/>
  <p:child ref="b"><p:parent ref="a" edge-label="x"/></p:child>
</p:adag>
"""


def test_version_2(tmp_path):
    path = tmp_path / "w.dax"
    path.write_text(VERSION_2)
    workflow = read_workflow(path)
    assert workflow.name == "test"
    assert [(job.id, job.after) for job in workflow.jobs] == [
        ("ID0", ()),
        ("ID1", ("ID0",)),
        ("ID2", ("ID1", "ID0")),
    ]
    assert [job.profile.groups[0].service_demand for job in workflow.jobs] == [35.79, 2.5, TINY_S]
    assert len(workflow.warnings) == 2


def test_version_3_with_a_prefix():
    workflow = parse_dax(VERSION_3.strip().encode(), "f")
    a, b = workflow.jobs
    assert workflow.name == "a-b"
    assert (a.id, a.profile.memory, a.profile.groups[0].count, a.profile.groups[0].service_demand) == (
        "a",
        1e8,
        4,
        12.0,
    )
    assert b.profile is DEFAULT_PROFILE
    assert b.after == ("a",)
    assert any("b" in warning and "default" in warning for warning in workflow.warnings)


def test_other_encodings_are_read_as_declared():
    text = '<?xml version="1.0" encoding="ISO-8859-1"?><adag name="caf\xe9"><job id="a" runtime="1"/></adag>'
    assert parse_dax(text.encode("latin-1"), "f").name == "caf\xe9"


def test_graph_faults_are_refused():
    cycle = VERSION_2.replace('<child ref="ID1">', '<child ref="ID0"><parent ref="ID2"/></child><child ref="ID1">')
    with pytest.raises(InvalidJobError, match="cycle"):
        parse_dax(cycle.encode(), "f")
    with pytest.raises(InvalidJobError, match="ID9"):
        parse_dax(VERSION_2.replace('parent ref="ID1"', 'parent ref="ID9"').encode(), "f")
    with pytest.raises(InvalidJobError, match="twice"):
        parse_dax(
            VERSION_2.replace('id="ID2"', 'id="ID1"').replace('child ref="ID2"', 'child ref="ID1"').encode(),
            "f",
        )
    with pytest.raises(ConfigError, match="line 10: child 'ID9'"):
        parse_dax(VERSION_2.replace('child ref="ID2"', 'child ref="ID9"').encode(), "f")


def test_a_bomb_is_refused_before_it_is_read():
    bomb = '<!DOCTYPE adag [<!ENTITY a "x"><!ENTITY b "&a;&a;">]><adag name="&b;"><job id="a"/></adag>'
    with pytest.raises(ConfigError, match="document type"):
        parse_dax(bomb.encode(), "f")
