"""The result: its fields and their order, its JSON, and what it refuses."""

import json

import pytest
from built_traces import info, mesh
from hypothesis import given
from hypothesis import strategies as st

from a2a3sim.errors import ConfigError
from a2a3sim.result import Finding, Numerics, Report, RunResult
from a2a3sim.trace.measures import measure

FIELDS = [
    "schema", "version", "program", "algorithm", "platform", "platform_hash", "overrides", "seed", "skew_ps",
    "fences", "timing_only", "ranks", "device_labels", "placement", "cores", "dtype", "bytes_per_rank",
    "kernel_ps", "sync_ps", "total_ps", "bound_ps", "per_rank", "dispatches", "pairs", "links", "phases",
    "barriers", "rounds", "critical_path", "findings", "numerics", "cost",
]  # fmt: skip


def minimal(**changes):
    fields = {"program": "p.py", "platform": "a2", "platform_hash": "00", "ranks": 2}
    return RunResult(**(fields | {"kernel_ps": 5, "sync_ps": 4, "total_ps": 6} | changes))


def test_the_schema_names_every_field_in_order():
    data = json.loads(minimal().to_json())
    assert list(data) == FIELDS
    assert data["schema"] == "a2a3sim.run/1"
    assert data["version"] not in ("", None)


def test_parts_have_the_fields_of_the_schema():
    data = json.loads(measure(mesh(2, 1024).trace(), info(2)).to_json())
    assert list(data["per_rank"][0]) == [
        "rank", "start_ps", "end_ps", "remote_read_bytes", "remote_write_bytes", "local_read_bytes",
        "local_write_bytes", "notifies", "waits", "wait_ps", "pipe_busy_ps", "ub_peak_bytes",
    ]  # fmt: skip
    assert list(data["per_rank"][0]["pipe_busy_ps"]) == ["S", "MTE2", "V", "MTE3", "SDMA"]
    assert list(data["dispatches"][0]) == ["index", "kernel", "rank", "cores", "start_ps", "end_ps"]
    assert list(data["pairs"][0]) == ["src", "dst", "bytes"]
    assert list(data["links"][0]) == ["name", "bytes", "busy_ps", "utilisation", "peak_flows"]
    assert list(data["phases"][0]) == ["name", "start_ps", "end_ps", "remote_bytes"]
    assert list(data["critical_path"][0]) == ["rank", "what", "cause", "spent_on", "start_ps", "end_ps"]
    assert list(data["cost"]) == ["wall_s", "events", "switches", "operations", "operations_per_s"]


def test_a_result_survives_json():
    result = measure(
        mesh(4, 4096, names=True).trace(),
        info(4, algorithm="mesh", overrides={"link.latency": "2us"}, device_labels=[0, 1, 2, 3],
             placement=[0, 1, 2, 3], dtype="fp32", bytes_per_rank=4096, bound_ps=123, wall_s=0.5,
             findings=[{"kind": "race", "subtype": "RAW", "severity": "error", "ranks": [0, 1], "sites": [
                 {"file": "a.py", "line": 3, "source": "x", "rank": 1, "operation": "load", "time_ps": 7}],
                 "where": {"memory": "window", "bytes": [0, 64]}, "message": "m", "fix": "f"}],
             numerics={"ok": False, "wrong": 3, "max_abs_error": 0.5, "max_rel_error": None}),
    )  # fmt: skip
    again = RunResult.from_json(result.to_json())
    assert again == result
    assert again.to_json() == result.to_json()
    assert again.findings[0].sites[0].line == 3


def test_overrides_are_sorted_so_that_equal_runs_print_equal_text():
    trace = mesh(2, 64).trace()
    one = measure(trace, info(2, overrides={"b": 1, "a": 2}))
    other = measure(trace, info(2, overrides={"a": 2, "b": 1}))
    assert one.to_json() == other.to_json()


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_no_error_is_ever_nan_or_infinite_in_json(value):
    numerics = Numerics(ok=False, max_abs_error=value, max_rel_error=value)
    text = minimal(numerics=numerics).to_json()
    assert json.loads(text, parse_constant=pytest.fail)["numerics"]["ok"] is False
    assert RunResult.from_json(text).numerics == numerics


def test_ok_wants_right_numerics_and_nothing_above_a_note():
    note, warning = (Finding(kind="k", severity=s, message="m") for s in ("note", "warning"))
    assert minimal().ok
    assert minimal(findings=[note], numerics=Numerics(ok=True)).ok
    assert not minimal(findings=[note, warning]).ok
    assert not minimal(numerics=Numerics(ok=False, wrong=1)).ok


def test_a_report_carries_runs_and_rows():
    data = json.loads(Report(command="perf", runs=[minimal()], rows=[{"size": 1024}]).to_json())
    assert list(data) == ["schema", "command", "runs", "rows"]
    assert data["schema"] == "a2a3sim.report/1"
    assert data["rows"] == [{"size": 1024}]
    assert "rows" not in json.loads(Report(command="run", runs=[minimal()]).to_json())


def test_a_report_is_read_from_its_own_text_or_from_a_single_run():
    report = Report(command="compare", runs=[minimal(), minimal(seed=1)])
    assert Report.from_json(report.to_json()) == report
    assert Report.from_json(minimal().to_json()).runs == [minimal()]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "program: Field required"),
        ("no json", "a2a3sim.run/1"),
        (minimal().to_json().replace("a2a3sim.run/1", "a2a3sim.run/2"), "schema"),
        (minimal().to_json().replace('"seed"', '"sead"'), "sead"),
    ],
)
def test_what_is_no_result_is_refused_with_the_place(text, says):
    with pytest.raises(ConfigError, match=r"a result must follow a2a3sim.run/1") as caught:
        RunResult.from_json(text)
    assert says in str(caught.value)
