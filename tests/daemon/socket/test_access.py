"""Rights over the socket: by owner and administrator; quotas by user."""

from __future__ import annotations

import grp
import os
import pwd
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotfish.daemon.config_sections import AccessConfig, QuotaConfig
from pilotfish.daemon.service import Service
from pilotfish.daemon.socket.access import Access
from pilotfish.daemon.socket.rpc import MOST_LINES
from pilotfish.daemon.state.codec import encode
from pilotfish.daemon.state.queue_entry import Entry
from pilotfish.daemon.state.users import Peer
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.job import Workflow

ADA, BOB, EVE = 70001, 70002, 70003


def submit(ask, uid, *jobs, **more):
    return ask("submit", uid, workflow=encode(Workflow("flow", jobs)), directory="/home", **more)


def test_only_the_owner_and_administrators_cancel(bench, kit, caplog):
    caplog.set_level("INFO")
    ask = kit.requests(bench, AccessConfig(admins=[EVE]))
    first, second = submit(ask, ADA, kit.job("a"))["id"], submit(ask, ADA, kit.job("a"))["id"]
    for target in (first, f"{first}/a", "flow"):
        reply = ask("cancel", BOB, target=target)
        assert not reply["ok"] and reply["code"] == 403 and f"belongs to uid {ADA}" in reply["error"]
    assert bench.states(first) == {"a": "pending"}
    assert ask("cancel", ADA, target=first)["ok"] and ask("cancel", EVE, target=second)["ok"]
    (log,) = [record["text"] for record in ask("explain", BOB, job=f"{second}/a")["story"]]
    assert f"cancelled by uid {EVE}" in log
    query = "SELECT by, kind, target FROM changes WHERE kind IN ('submit', 'cancel') ORDER BY id"
    requests = [(ADA, "submit", first), (ADA, "submit", second), (ADA, "cancel", first), (EVE, "cancel", second)]
    assert bench.journal._db.execute(query).fetchall() == [(f"uid {uid}", *request) for uid, *request in requests]
    logged = "\n".join(record.message for record in caplog.records)
    assert f"uid {BOB} was refused: cancel" in logged and f"uid {EVE} cancels {second}" in logged


def test_only_administrators_reload(bench, kit):
    ask = kit.requests(bench, AccessConfig(admins=[EVE]))
    refused = ask("reload", ADA)
    assert not refused["ok"] and refused["code"] == 403 and "only an administrator may do this" in refused["error"]
    assert ask("reload", EVE)["ok"] and ask("reload", os.getuid())["ok"]
    bench.cycle.tracker.save()
    by = [row[0] for row in bench.journal._db.execute("SELECT by FROM changes WHERE kind = 'reload' ORDER BY id")]
    assert by == [f"administrator uid {EVE}", "the service's own account"]


def test_the_owner_is_shown_and_survives_a_restart(bench, kit):
    workflow = submit(kit.requests(bench), ADA, kit.job("a"))["id"]
    bench.restart()
    ask = kit.requests(bench)
    (shown,) = ask("status", BOB)["workflows"]
    assert shown["owner"] == f"uid {ADA}" == ask("explain", BOB, job=f"{workflow}/a")["owner"]
    assert not ask("cancel", BOB, target=workflow)["ok"] and ask("cancel", ADA, target=workflow)["ok"]


def test_a_workflow_whose_owner_is_not_known_is_the_administrators(bench, kit):
    workflow, ask = bench.submit(kit.job("a")), kit.requests(bench)
    assert "belongs to an unknown user" in ask("cancel", ADA, target=workflow)["error"]
    assert ask("cancel", os.geteuid(), target=workflow)["ok"]


def test_members_of_the_administrators_group_administer(bench, kit):
    group = grp.getgrgid(next(iter(os.getgroups() or [os.getgid()])))
    ask = kit.requests(bench, AccessConfig(admin_group=group.gr_name))
    workflow = submit(ask, ADA, kit.job("a"))["id"]
    assert not ask("cancel", BOB, target=workflow)["ok"]
    assert ask("cancel", BOB, group.gr_gid, target=workflow)["ok"]


def test_others_are_hidden_where_the_site_wants_it(bench, kit):
    ask = kit.requests(bench, AccessConfig(see="own"))
    mine, other = submit(ask, ADA, kit.job("a"))["id"], submit(ask, BOB, kit.job("secret"))["id"]
    bench.run(1)
    assert [each["id"] for each in ask("status", ADA)["workflows"]] == [mine]
    assert [each["id"] for each in ask("status", 0)["workflows"]] == [mine, other]
    for do, name, target in (
        ("status", "workflow", other),
        ("explain", "job", f"{other}/secret"),
        ("explain", "job", "secret"),
        ("cancel", "target", other),
    ):
        reply = ask(do, ADA, **{name: target})
        assert not reply["ok"] and "no workflow" in reply["error"] and f"mean '{other}'" not in reply["error"]
    assert not ask("accuracy", ADA)["ok"] and ask("accuracy", 0)["ok"]
    bench.run(30)
    assert [each["id"] for each in ask("status", ADA)["workflows"]] == [mine]


def test_quotas_are_of_each_user_and_of_what_has_not_ended(bench, kit):
    ask = kit.requests(bench, quotas=QuotaConfig(workflows=2, jobs=3))
    assert submit(ask, ADA, kit.job("a"))["ok"] and submit(ask, ADA, kit.job("a"))["ok"]
    assert "3 workflows that have not ended (allowed: 2" in submit(ask, ADA, kit.job("a"))["error"]
    assert "4 jobs" in submit(ask, BOB, *(kit.job(f"j{i}") for i in range(4)))["error"]
    assert submit(ask, BOB, *(kit.job(f"j{i}") for i in range(3)))["ok"]
    bench.run(60)
    assert submit(ask, ADA, kit.job("a"))["ok"]


def test_what_has_ended_still_fills_the_journal_of_its_owner(bench, kit):
    ask = kit.requests(bench, quotas=QuotaConfig(journal_mib=1))
    long = kit.job("a", environment=tuple((f"X{i}", "x" * 100_000) for i in range(6)))
    for _ in range(2):
        assert ask("cancel", ADA, target=submit(ask, ADA, long)["id"])["ok"]
        bench.run(1)
    assert "fill 1 MiB of the journal" in submit(ask, ADA, kit.job("a"))["error"]
    assert submit(ask, BOB, kit.job("a"))["ok"]


@pytest.mark.long
def test_the_workflows_of_another_hide_none_of_mine(bench, kit):
    ask = kit.requests(bench)
    for _ in range(505):
        submit(ask, EVE, kit.job("a"))
    mine = submit(ask, ADA, kit.job("mine"))["id"]
    reply = ask("status", ADA)
    assert reply["workflows_left_out"] == 6 and mine in [each["id"] for each in reply["workflows"]]


def test_a_service_next_to_a_resource_manager_takes_no_workflows_unless_switched_on(bench, kit):
    reply = submit(kit.requests(bench, operated="slurm"), ADA, kit.job("a"))
    assert not reply["ok"] and "access.submit: true" in reply["error"] and "submit to slurm itself" in reply["error"]
    assert submit(kit.requests(bench, AccessConfig(submit=True), operated="slurm"), ADA, kit.job("a"))["ok"]
    assert not submit(kit.requests(bench, AccessConfig(submit=False)), ADA, kit.job("a"))["ok"]


def test_keys_of_users_are_their_own(bench, kit):
    ask = kit.requests(bench)
    taken = submit(ask, EVE, kit.job("other"), key="nightly")["id"]
    mine = submit(ask, ADA, kit.job("a"), key="nightly")
    assert mine["ok"] and mine["id"] != taken and submit(ask, ADA, kit.job("a"), key="nightly")["again"]
    assert not submit(ask, EVE, kit.job("a"), key=f"{ADA} nightly")["again"]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (AccessConfig(admins=["no-such-user"]), "access.admins: no user"),
        (AccessConfig(admin_group="none-such"), "access.admin_group: no group"),
    ],
)
def test_an_unknown_administrator_is_one_error(config, says):
    with pytest.raises(ConfigError, match=says):
        Access(config, QuotaConfig(), operated="", file=Path("daemon.yaml"))


steps = st.lists(
    st.tuples(
        st.sampled_from([ADA, BOB, EVE]), st.sampled_from(["submit", "cancel", "explain", "status"]), st.integers(0, 5)
    ),
    max_size=14,
)


@given(steps, st.sampled_from(["everybody", "own"]))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_sequence_of_requests_changes_what_is_anothers(tmp_path_factory, kit, requests, see):
    bench = kit.Bench(tmp_path_factory.mktemp("b") / "j.sqlite", kit.Manager(kit.cluster()))
    ask, owners = kit.requests(bench, AccessConfig(see=see)), {}
    for uid, do, number in requests:
        target = next(iter([*owners][number:]), "none.aaaaaa")
        if do == "submit":
            owners[submit(ask, uid, kit.job("a", seconds=999.0))["id"]] = uid
        elif do == "cancel":
            assert ask("cancel", uid, target=target)["ok"] <= (owners.get(target) == uid)
        elif do == "explain":
            assert ask("explain", uid, job=f"{target}/a")["ok"] == (
                target in owners and (see != "own" or owners[target] == uid)
            )
        else:
            shown = {each["id"] for each in ask("status", uid)["workflows"]}
            assert shown == {id for id, owner in owners.items() if see != "own" or owner == uid}
    bench.kill()


@pytest.mark.parametrize("allowed", [False, True])
def test_as_root_the_daemon_refuses_unless_it_is_allowed(tmp_path, monkeypatch, allowed):
    (tmp_path / "c.yaml").write_text(
        "schema: pilotfish/cluster/v1\nname: here\nnode_types: {t: {cores: 1, memory: 1GiB, memory_bandwidth: 1GB/s}}\n"
        "nodes: [{names: a, type: t, cpus: '0'}]\n"
    )
    config = tmp_path / "d.yaml"
    config.write_text(
        "schema: pilotfish/daemon/v1\ncluster: c.yaml\nstate_dir: state\nmetrics: {enabled: false}\n"
        f"access: {{root: {str(allowed).lower()}, admins: [no-such-user]}}\nsocket: {{path: {tmp_path}/s}}\n"
    )
    monkeypatch.setattr("pilotfish.daemon.service.os", SimpleNamespace(**{**vars(os), "geteuid": lambda: 0}))
    with pytest.raises(ConfigError, match="access.admins" if allowed else "access.root") as caught:
        Service(config, show=print).run()
    assert str(config) in str(caught.value)
    assert (tmp_path / "state").exists() is allowed


def test_a_uid_without_a_name_has_no_access(monkeypatch):
    access = Access(AccessConfig(admins=[EVE]), QuotaConfig(), operated="", file=Path("daemon.yaml"))
    named = next(each.pw_uid for each in pwd.getpwall() if each.pw_uid)
    assert [access.bars(Peer(uid, 1, 1)) for uid in (0, os.geteuid(), EVE, named)] == [""] * 4
    assert access.bars(Peer(231_072, 1, 1)).startswith("uid 231072 has no name in the user database")


def test_the_journal_has_a_bound_for_all_users_together(bench, kit):
    ask = kit.requests(bench, quotas=QuotaConfig(total_journal_mib=1))
    long = kit.job("a", environment=tuple((f"X{i}", "x" * 100_000) for i in range(6)))
    assert submit(ask, ADA, long)["ok"] and submit(ask, BOB, long)["ok"]
    reply = submit(ask, EVE, kit.job("a"))
    assert "of all users fill 1 MiB" in reply["error"] and "quotas.total_journal_mib" in reply["error"]


def test_lines_about_one_user_are_bounded_and_hide_no_other(bench, kit, caplog):
    caplog.set_level("INFO")
    ask = kit.requests(bench)
    workflow = submit(ask, ADA, kit.job("a", seconds=900))["id"]
    for _ in range(3 * MOST_LINES):
        ask("cancel", EVE, target=workflow)
    ask("cancel", BOB, target=workflow)
    texts = [record.message for record in caplog.records]
    assert sum(f"uid {EVE}" in text for text in texts) == MOST_LINES + 1
    assert sum("is not logged any more" in text for text in texts) == 1
    assert sum(f"uid {BOB} was refused" in text for text in texts) == 1


def test_a_cancel_of_what_is_ending_is_no_change(bench, kit, caplog):
    caplog.set_level("INFO")
    ask = kit.requests(bench)
    workflow = submit(ask, ADA, kit.job("a", seconds=900))["id"]
    bench.run(1)
    replies = [ask("cancel", ADA, target=workflow) for _ in range(50)]
    assert [reply["ending"] for reply in replies] == [1] * 50
    assert len(bench.journal._db.execute("SELECT * FROM changes WHERE kind = 'cancel'").fetchall()) == 1
    assert sum("cancels" in record.message for record in caplog.records) == 1


def test_others_see_the_first_word_of_a_command(bench, kit):
    ask, words = kit.requests(bench), ("./align", "--token", "s3cret")
    workflow = submit(ask, ADA, replace(kit.job("a"), command=words))["id"]
    bench.run(12)
    entry = Entry(workflow, replace(kit.job("a"), command=words), 0)
    bench.cycle.tracker.log.add_relearned(entry)
    bench.cycle.tracker.save()
    answers = {
        uid: [ask("status", uid), ask("explain", uid, job=f"{workflow}/a"), ask("accuracy", uid)]
        for uid in (ADA, BOB, os.geteuid())
    }
    assert all("s3cret" not in str(answer) and "cmd: align" in str(answer) for answer in answers[BOB])
    assert all("s3cret" in str(answer) for uid in (ADA, os.geteuid()) for answer in answers[uid])
    assert answers[BOB][1]["story"][-1]["text"] == "profile cmd: align, from 0 runs"
