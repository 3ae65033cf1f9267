"""``a2a3sim compare`` as a user runs it."""

import json

import pytest

from a2a3sim.cli import main

IDEAL = ["compare", "--platform", "ideal", "-d", "0,1,2,3", "--size", "1MiB"]


def run(capsys, tmp_path, *args):
    status = main([*args, "--out", str(tmp_path)])
    out, err = capsys.readouterr()
    return status, out, err


def runs_of(capsys, tmp_path, *args):
    status, out, _ = run(capsys, tmp_path, *args, "--json", "-")
    assert status == 0
    return json.loads(out)["runs"]


def test_the_closed_forms_hold_to_the_picosecond(capsys, tmp_path):
    # mesh: L + (P-1)(2L + N/B) = 1 us + 3 (2 us + 41.94304 us); two-phase: 2(L + (P-1)(2L + N/(P·B))).
    mesh, two_phase = runs_of(capsys, tmp_path, *IDEAL)
    assert (mesh["kernel_ps"], two_phase["kernel_ps"]) == (132_829_120, 76_914_560)
    assert {r["remote_read_bytes"] for r in mesh["per_rank"]} == {3 << 20}
    assert {r["remote_read_bytes"] for r in two_phase["per_rank"]} == {2 * 3 * (1 << 18)}
    assert all(r["numerics"]["ok"] for r in (mesh, two_phase))


def test_it_prints_the_cost_card_and_draws_two_pictures(capsys, tmp_path):
    status, out, err = run(capsys, tmp_path, *IDEAL)
    assert status == 0
    for words in ("(P-1)·N", "2(P-1)/P·N", "exact", "rounds", "barriers", "speed-up", "bytes saved", "50 %"):
        assert words in out
    for name in ("compare_timeline.png", "compare_traffic.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
        assert name in err


def test_the_convoy_and_its_cure(capsys, tmp_path):
    # 16 ranks on one crossbar: everybody starts with rank 0, or with its right neighbour.
    convoy, rotated = runs_of(
        capsys, tmp_path, "compare", "--platform", "ideal-switch", "-d", "0-15", "--size", "1MiB",
        "--algorithms", "mesh,mesh_rotated", "--timing-only", "--no-check",
    )  # fmt: skip
    assert abs(convoy["kernel_ps"] - 5_064_164_800) <= 10
    assert abs(rotated["kernel_ps"] - 660_145_600) <= 10


def test_more_cores_help_until_the_links_bind(capsys, tmp_path):
    times = []
    for cores in ("1", "8", "24"):
        runs = runs_of(
            capsys,
            tmp_path,
            "compare",
            "-d",
            "0-7",
            "--algorithms",
            "two_phase",
            "--cores",
            cores,
            "--timing-only",
        )
        times.append(runs[0])
    first, second, third = (r["kernel_ps"] for r in times)
    assert first > 1.5 * second > 1.5 * third * 0.95
    spent = {s["spent_on"].partition(":")[0] for s in times[-1]["critical_path"]}
    assert "bandwidth" in spent


def test_seeds_show_the_spread(capsys, tmp_path):
    status, out, _ = run(capsys, tmp_path, "compare", "--seeds", "3", "--size", "64KiB")
    assert status == 0
    assert "3 seeds" in out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--size", "1024"], "1024"),
        (["--size", "6B"], "multiple of 4 B"),
        (["--algorithms", "two_fase"], "did you mean 'two_phase'"),
        (["--algorithms", "mesh,mesh"], "named twice"),
        (["-d", "0"], "at least 2"),
        (["-d", "0,0"], "named twice"),
        (["-d", "3-1"], "range"),
        (["-d", "0-15"], "at most 8"),
        (["--platform", "a22"], "a22"),
        (["--set", "link.bandwith=10GB/s"], "link.bandwidth"),
        (["--set", "link.bandwidth=10"], "unit"),
        (["--set", "link.bandwidth"], "key=value"),
        (["--dtype", "fp33"], "fp32"),
        (["--fences", "some"], "statement"),
        (["--skew", "3"], "unit"),
        (["--slow", "2"], "key=value"),
        (["--slow", "9=2x"], "rank 9"),
        (["--place", "0,1"], "4 ranks"),
        (["--cores", "0"], "at least 1"),
        (["--cores", "100"], "48"),
        (["--seeds", "0"], "at least 1"),
        (["--fail-on", "note"], "error or warning"),
        (["--json", "/nowhere/x.json"], "/nowhere"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_2(capsys, tmp_path, args, words):
    status, out, err = run(capsys, tmp_path, "compare", "--size", "64KiB", *args)
    assert status == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert words in err
    assert list(tmp_path.iterdir()) == []
