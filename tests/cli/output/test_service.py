"""Output of `status` and `explain`."""

from __future__ import annotations

import pytest

from pilotfish.cli.output.status import failure_lines, show_job_log, show_nodes, show_status
from pilotfish.formats.text import width


def job(id: str, /, state: str = "pending", **changes) -> dict:
    base = {"id": id, "key": f"w.1/{id}", "state": state, "nodes": [], "start_time": None, "finish_time": None}
    base |= {"exit_code": None, "signal": None, "reason": "", "forecast_run_time": None, "forecast_finish_time": None}
    return base | {"contention_slowdown": None, "stdout": None, "stderr": None} | changes


def flow(number: int, *jobs: dict, state: str = "running", finish_time: float | None = None) -> dict:
    return {"id": f"w.{number}", "state": state, "finish_time": finish_time, "jobs": list(jobs)}


def status(*workflows: dict) -> dict:
    about = {"cluster": "lab", "mode": "live", "policy": "mom", "blocked": "", "time": 100.0}
    return about | {"workflows": list(workflows)}


@pytest.fixture
def shown(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")

    def show(reply: dict, everything: bool = False) -> list[str]:
        show_status(reply, everything=everything)
        lines = capsys.readouterr().out.splitlines()
        assert all(width(line) <= 80 and line == line.rstrip() for line in lines)
        return lines

    return show


RUNS = {"nodes": ["a"], "start_time": 40.0, "forecast_run_time": 20.0}


def test_only_a_job_that_completed_has_an_error(shown):
    ended = RUNS | {"finish_time": 80.0}
    jobs = [job("good", "completed", exit_code=0, **ended), job("bad", "failed", exit_code=3, **ended)]
    jobs += [job("late", "timeout", exit_code=143, signal=15, reason="reached its walltime", **ended)]
    jobs += [job("gone", "cancelled", exit_code=143, signal=15, **ended), job("now", "running", **RUNS)]
    *_, good, bad, late, cancelled, now = shown(status(flow(1, *jobs)), everything=True)
    assert good.split() == ["good", "completed", "a", "20.00", "s", "40.00", "s", "2.0x", "longer"]
    assert bad.split() == ["bad", "failed", "(exit", "3)", "a", "20.00", "s", "40.00", "s"]
    assert late.split() == ["late", "timeout", "a", "20.00", "s", "40.00", "s"]
    assert cancelled.split() == ["gone", "cancelled", "a", "20.00", "s", "40.00", "s"]
    assert now.split()[-2:] == ["60.00", "s"]


def test_in_shadow_a_narrow_terminal_keeps_what_the_resource_manager_says(shown):
    plan = {"nodes": ["node-17"], "start_time": 100.0, "finish_time": 160.0, "finish_within": [150.0, 190.0]}
    facts = {"owner": "ada (uid 1000)", "partition": "batch", "priority": 4294901.0, "manager_start_time": 160.0}
    queue = flow(1, job("4711", plan=plan | {"run_time": 30.0}, **facts)) | {"handed_over": True}
    live = shown(status(queue) | {"mode": "live"})
    shadow = shown(status(queue) | {"mode": "shadow"})
    heads = [next(line for line in lines if "STARTS IN" in line and "JOB" in line) for lines in (live, shadow)]
    assert "RJMS SAYS" not in heads[0] and "RJMS SAYS" in heads[1]
    assert "only the resource manager" in " ".join(shadow) and "only the" not in " ".join(live)


PLAN = {"nodes": ["b"], "start_time": 130.0, "finish_time": 160.0, "finish_within": [150.0, 190.0], "run_time": 30.0}


def test_a_waiting_job_shows_where_and_when_it_is_planned(shown):
    jobs = [job("now", "running", **RUNS, forecast_finish_time=110.0), job("next", plan=PLAN | {"next_best": None})]
    head, now, later = shown(status(flow(1, *jobs)))[-3:]
    assert "STARTS IN  ENDS IN  FORECAST" in head
    assert now.split()[:5] == ["now", "running", "a", "10.00", "s"]
    assert later.split() == [
        "next", "pending", "b", "30.00", "s", "60.00", "s", "30.00", "s", "-17", "+50", "%",
    ]  # fmt: skip


@pytest.mark.parametrize("source", ["default", "predicted", "measured", "given"])
def test_a_forecast_of_a_job_of_which_nothing_is_known_is_marked_as_a_guess(shown, capsys, source):
    plan, guess = PLAN | {"finish_within": None, "next_best": None}, "?" * (source == "default")
    jobs = [job("now", "running", **RUNS, forecast_finish_time=110.0, profile_source=source)]
    jobs += [job("next", plan=plan, profile_source=source), job("known", plan=plan, profile_source="measured")]
    jobs += [job("bad", "failed", **RUNS, finish_time=80.0, profile_source=source)]
    lines = shown(status(flow(1, *jobs)))
    rows = {line.split()[0]: " ".join(line.split()) for line in lines if line.split()}
    assert f"now running a 10.00 s{guess} 20.00 s{guess} 60.00 s" == rows["now"]
    assert rows["next"].endswith(f"30.00 s 60.00 s{guess} 30.00 s{guess}")
    assert "?" not in rows["known"] + rows["bad"] and bool(rows.get("?")) is bool(guess)
    show_job_log({"job": jobs[1], "submit_time": 90.0, "time": 100.0, "after": [], "waits": "", "story": []})
    assert ("the end is a guess" in " ".join(capsys.readouterr().out.split())) is bool(guess)


@pytest.mark.parametrize("cells", [80, 100, 120])
@pytest.mark.parametrize("far", [30.0, 7000.0, 200_000.0])
def test_no_heading_and_no_number_is_cut_in_a_narrow_terminal(monkeypatch, capsys, cells, far):
    monkeypatch.setenv("COLUMNS", str(cells))
    times = {name: PLAN[name] + far for name in ("start_time", "finish_time")}
    plan = PLAN | times | {"finish_within": [150.0 + far, 190.0 + 2 * far], "run_time": far, "next_best": None}
    waiting = [job(f"train-{i:03}.sh", plan=plan, manager_start_time=145.0 + far) for i in range(3)]
    running = job("align.sh", "running", **RUNS | {"start_time": 100.0 - far}, forecast_finish_time=110.0 + far)
    show_status(status(flow(1, running, *waiting)), everything=False)
    lines = capsys.readouterr().out.splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("JOB"))
    table, notes = lines[head : head + 5], [line for line in lines if "in a wider terminal" in line]
    assert max(map(width, lines)) <= cells and not any("\N{HORIZONTAL ELLIPSIS}" in line[30:] for line in table)
    shown = table[0].split("  ")
    for heading in ("STARTS IN", "RJMS SAYS", "ENDS IN", "FORECAST", "KNOWN TO", "ACTUAL"):
        assert (heading in [cell.strip() for cell in shown]) is not any(heading in line for line in notes)
    assert not notes or cells < 120


@pytest.mark.parametrize(
    ("best", "says"),
    [
        ({"nodes": ["a"], "cost_s": 2.5}, "a, +2.5 s"),
        ({"nodes": ["a"], "cost_s": None}, "a"),
        (None, None),
    ],
)
def test_explain_says_where_a_waiting_job_would_go_and_what_is_next_best(capsys, best, says):
    promised = {"nodes": ["b", "c"], "start_time": 160.0} if best else None
    waiting = job(
        "next", plan=PLAN | {"next_best": best, "forecast_by": "easy" if best else None, "reserved": promised}
    )
    show_job_log({"job": waiting, "submit_time": 90.0, "time": 100.0, "after": ["now"], "waits": "", "story": []})
    out = " ".join(capsys.readouterr().out.split())
    assert "planned starts in 30.00 s on b, ends in 60.00 s (80 % between 50.00 s and 90.00 s)" in out
    assert ("forecast by easy" in out) is ("; reserved in 60.00 s on b,c" in out) is (best is not None)
    assert f"next best {says}" in out if says else "next best" not in out


def test_what_the_resource_manager_says_of_a_start_is_shown(shown, capsys):
    head, row = shown(status(flow(1, job("next", manager_start_time=130.0))))[-2:]
    assert "RJMS SAYS" in head and "STARTS IN" not in head and row.split()[-2:] == ["30.00", "s"]
    both = shown(status(flow(1, job("next", manager_start_time=145.0, plan=PLAN | {"next_best": None}))))
    assert "STARTS IN  RJMS SAYS  ENDS IN" in both[-2] and both[-1].split()[3:7] == ["30.00", "s", "45.00", "s"]
    waiting = job("next", manager_start_time=130.0)
    show_job_log({"job": waiting, "submit_time": 90.0, "time": 100.0, "after": [], "waits": "", "story": []})
    assert "starts in 30.00 s, says the resource manager" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("walltime", "says"), [(60.0, True), (61.0, False), (None, False)])
def test_explain_says_that_a_job_may_run_for_all_of_its_walltime(capsys, walltime, says):
    waiting = job("next", plan=PLAN | {"next_best": None}, walltime=walltime)
    show_job_log({"job": waiting, "submit_time": 90.0, "time": 100.0, "after": [], "waits": "", "story": []})
    out = " ".join(capsys.readouterr().out.split())
    assert ("it may run for all of its walltime, 60.00 s" in out) == says


def test_a_long_list_is_cut_and_says_so(shown):
    large_flow = flow(1, *(job(f"j{i}") for i in range(500)), job("fails", "failed"), job("runs", "running", **RUNS))
    ended = [flow(i, job("x", "completed"), state="completed", finish_time=9.0) for i in range(2, 7)]
    waiting = [flow(i, job("x"), state="pending") for i in range(7, 300)]
    reply = status(*ended, *waiting, large_flow)
    lines = shown(reply)
    assert lines[0] == "lab: live, policy mom, 299 workflows" and len(lines) < 65
    assert lines[2:7] == [f"w.{i}: completed, 1 of 1 job completed" for i in range(2, 7)]
    assert lines[8] == "w.1: running, 0 of 502 jobs completed"
    assert [line.split()[0] for line in lines[10:12]] == ["fails", "runs"] and lines[40] == "472 more: --all"
    assert lines[-1] == "274 more workflows: --all"
    everything = shown(reply, everything=True)
    assert len(everything) > 800 and "--all" not in "\n".join(everything)


WHOSE = {"model": "max-min", "source": "measured"}


@pytest.mark.parametrize(("error", "missed"), [(1.6, "1.60x"), (98.0, "98x")])
def test_a_fallback_says_why(shown, error, missed):
    lines = shown(status() | {"mode": "fallback", "guard": {"median_factor": error, "bound": 1.5, **WHOSE}})
    assert lines[1] == f"fallback: max-min on measured profiles is off by {missed}; the bound is 1.50x"


NO_ERRORS = {"median_factor": None, "bound": 1.5, "model": "", "source": ""}


def test_a_model_that_does_not_decide_says_why(shown):
    why = "a waiting job has a limit of 900 s, in training 1 to 60 s"
    lines = shown(status() | {"model": {"doubt": why, "overruled": ""}})
    assert " ".join(lines[1:3]) == f"the baseline of the model made the last plan: {why}"
    overruled = {"doubt": "", "overruled": "jobs wait longer under its order"}
    lines = shown(status() | {"mode": "fallback", "guard": NO_ERRORS, "model": overruled})
    assert lines[1] == "fallback: jobs wait longer under its order"


def test_jobs_that_are_handed_over_are_no_workflow(shown):
    lines = shown(status(flow(1, job("7", "running", **RUNS)) | {"handed_over": True}, flow(2, job("x"))))
    assert lines[0] == "lab: live, policy mom, 1 workflow" and "w.1: 1 job handed over" in lines


def test_explain_says_why_a_job_was_cancelled_unless_its_log_does(capsys):
    cancelled = job("7", "cancelled", reason="it was taken back")
    for story in ([], [{"time": 91.0, "kind": "cancelled", "text": "cancelled: it was taken back"}]):
        show_job_log({"job": cancelled, "submit_time": 90.0, "time": 100.0, "after": [], "waits": "", "story": story})
        assert capsys.readouterr().out.count("it was taken back") == 1


def test_nothing_to_show_is_one_line(shown):
    assert shown(status()) == ["lab: live, policy mom, 0 workflows"]


def test_a_job_log_fits_80_cells_and_ends_with_the_output_files(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    chosen = "lookahead chose " + ", ".join(f"n{i}" for i in range(40)) + ": forecast 2.0 s, no slowdown"
    events = [("chosen", chosen), ("cancelled", "cancelled by a user"), ("ended", "completed")]
    story = [{"time": 10.0 + i, "cycle": i, "kind": kind, "text": text} for i, (kind, text) in enumerate(events)]
    files = {"stdout": "/s/" + "x" * 100, "stderr": "/s/err"}
    ended = job("align", "completed", start_time=10.0, finish_time=12.0, forecast_run_time=1.9, exit_code=0, **files)
    show_job_log({"job": ended, "submit_time": 10.0, "after": ["a", "b"], "waits": "", "story": story})
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines[:-2])
    assert lines[0].startswith("w.1/align: completed; submitted ")
    assert [line.split() for line in lines[-5:-2]] == [
        ["+1.0", "s", "cancelled", "by", "a", "user"],
        ["+2.0", "s", "ended", "completed"],
        ["forecast", "1.900", "s,", "took", "2.000", "s", "(1.05x", "longer)"],
    ]
    assert [line.split() for line in lines[-2:]] == [["stdout", files["stdout"]], ["stderr", "/s/err"]]


def test_the_times_of_a_job_log_are_right_aligned(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    story = [{"time": at, "cycle": 1, "kind": kind, "text": kind} for at, kind in ((15.5, "chosen"), (124.6, "ended"))]
    ended = job("align", "completed", start_time=10.0, finish_time=12.0, exit_code=0)
    show_job_log({"job": ended, "submit_time": 10.0, "after": [], "waits": "", "story": story})
    chosen, end = capsys.readouterr().out.splitlines()[1:3]
    assert chosen.startswith("    +5.5 s  chosen") and end.startswith("  +114.6 s  ended")
    assert chosen.rindex("chosen") == end.rindex("ended")


def test_a_job_log_begins_with_the_class_of_the_job(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    about = {"profile": "align", "class": "sleeping", "class_why": "it wants a core for 20 % of its time"}
    for changes, line in ((about, "align; sleeping: it"), (about | {"class": None}, "align; class unknown: it")):
        show_job_log({"job": job("a", "pending") | changes, "submit_time": 1.0, "after": [], "waits": "", "story": []})
        shown = capsys.readouterr().out.splitlines()[1]
        assert shown.split(maxsplit=1) == ["profile", f"{line} wants a core for 20 % of its time"]


def test_failure_lines_name_failed_jobs_and_not_cancelled_ones():
    jobs = [job("good", "completed"), job("bad", "failed", exit_code=3, stderr="/s/err"), job("next", "cancelled")]
    jobs.append(job("late", "timeout", signal=15, exit_code=143, reason="reached its walltime of 2 s"))
    assert failure_lines(flow(1, *jobs)) == [
        "job 'bad' failed: exit code 3; stderr: /s/err",
        "job 'late' timeout: reached its walltime of 2 s",
    ]


def test_what_is_not_known_of_a_node_is_a_dash(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    up_node = {"name": "n1", "type": "t", "state": "up", "cores": 4, "threads": 6, "load": 1.5, "bandwidth": 12e9}
    up_node |= {"memory_bandwidth": 80e9, "power_watts": 190.0, "jobs": 2, "job_names": ["dag-1.k3x9a2/align", "b"]}
    down_node = up_node | {"name": "n2", "state": "down", "bandwidth": None, "power_watts": None, "job_names": []}
    show_nodes({"cluster": "lab", "nodes": [up_node | {"speed": 0.93}, down_node | {"speed": 1.0}]})
    head, names, first, second, speed = capsys.readouterr().out.splitlines()
    assert speed == "n1: plans assume 0.93x the speed of its type"
    assert head == "lab: 2 nodes" and max(map(len, (names, first, second))) <= 80
    assert first.split()[:10] == ["n1", "up", "6", "4", "1.50", "12GB/s", "80GB/s", "190", "W", "2"]
    assert second.split() == ["n2", "down", "6", "4", "1.50", "-", "80GB/s", "-", "2"]


@pytest.mark.parametrize("cells", [80, 100, 120])
@pytest.mark.parametrize("far", [30.0, 7000.0, 200_000.0])
def test_jobs_that_were_handed_over_show_name_user_and_partition_at_80_columns(monkeypatch, capsys, cells, far):
    monkeypatch.setenv("COLUMNS", str(cells))
    times = {name: PLAN[name] + far for name in ("start_time", "finish_time")}
    plan = PLAN | times | {"finish_within": [150.0 + far, 190.0 + 2 * far], "run_time": far, "next_best": None}
    about = {"name": "a-long-name-of-a-script.sh", "owner": "marie-antoinette (uid 4242)", "partition": "interactive"}
    waiting = [job("4711", plan=plan, priority=4_294_901_234.0, manager_start_time=145.0 + far, **about)]
    running = job("4710", "running", **about | RUNS | {"nodes": ["node0001", "node0002", "node0007"]})
    handed_over = flow(1, running, *waiting) | {"id": "slurm", "handed_over": True}
    show_status(status(handed_over), everything=False)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(width, lines)) <= cells
    head = next(line for line in lines if line.startswith("JOB"))
    for heading in ("NAME", "USER", "PARTITION", "STATE", "NODES", "STARTS IN"):
        assert heading in head
    hidden = next((line for line in lines if "in a wider terminal" in line), "")
    for heading in ("PRIORITY", "ENDS IN", "FORECAST", "KNOWN TO", "RJMS SAYS"):
        assert (heading in head) is not (heading in hidden)


@pytest.mark.parametrize("cells", [80, 160])
def test_a_mark_is_explained_only_where_it_is_shown(monkeypatch, capsys, cells):
    monkeypatch.setenv("COLUMNS", str(cells))
    about = {"name": "a-long-name-of-a-script.sh", "owner": "marie-antoinette", "partition": "interactive"}
    plan = PLAN | {"next_best": None}
    waiting = job("4711", plan=plan, priority=4e9, manager_start_time=1e5, profile_source="default", **about)
    show_status(status(flow(1, waiting) | {"handed_over": True}), everything=False)
    lines = capsys.readouterr().out.splitlines()
    row, last = next(line for line in lines if line.startswith("4711")), " ".join(lines[-4:])
    assert ("?" in row) is ("?         a guess" in last) is (cells == 160)
    assert ("Nothing is known of some jobs" in last) is (cells == 80) and max(map(width, lines)) <= cells


def test_a_usual_job_that_was_handed_over_has_its_priority_at_80_columns(shown):
    plan = PLAN | {"next_best": None}
    about = {"name": "align.sh", "owner": "ada (uid 4242)", "partition": "short", "priority": 1234.0}
    lines = shown(status(flow(1, job("4711", plan=plan, manager_start_time=145.0, **about)) | {"handed_over": True}))
    row = next(line for line in lines if line.startswith("4711")).split()
    assert row[:7] == ["4711", "align.sh", "ada", "short", "pending", "b", "1234"]
