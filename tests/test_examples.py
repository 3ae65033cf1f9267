"""The tutorial ladder: every script, every mode, every rank count it allows; and errors made on purpose."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import running
from running import LADDER, Ended, altered

from a2a3sim import DeadlockError, KernelError
from a2a3sim.checks import check

ROOT = Path(__file__).parent.parent
TUTORIAL = ROOT / "docs" / "tutorial"
SCRIPTS = sorted(p.stem for p in LADDER.glob("[0-9]*.py"))

IN_KERNEL_OR_HOST = ("manual", "builtin", "host")
MODES = {
    "05": ("both", "load", "store"),
    "06": ("put", "get", "pipelined"),
    "07": ("jit", "class"),
    "11": ("mesh", "ring", "host", "host_ring"),
    "12": IN_KERNEL_OR_HOST,
    "13": IN_KERNEL_OR_HOST,
    "14": IN_KERNEL_OR_HOST,
    "15": IN_KERNEL_OR_HOST,
}
VARIANTS = [
    (script, flags)
    for script in SCRIPTS
    for flags in (
        [("--mode", mode) for mode in MODES.get(script[:2], ())]
        or ([(), ("--use-builtin",)] if script.startswith("04") else [()])
    )
]
# SIZE is 256 there and every rank has to own an equal chunk.
DIVIDES = [("09_allreduce_two_phase", ()), ("10_allreduce_ring", ()), ("16_putting_it_together", ())]
DIVIDES += [("11_allreduce_reveal", ("--mode", "host_ring"))]

BAD_ARGUMENTS = [
    (["-d", "0"], "at least two devices"),
    (["-d", "0,1,1,2"], "1 more than once"),
    (["-d", "0,-1"], "must not be negative"),
    (["-d", "-1,0"], "must not be negative"),
    (["-d", "0,one"], "'0,one'"),
    (["-d", ""], "''"),
    (["-d"], "expected one argument"),
    (["-p", "a2a3"], "needs NPU hardware"),
    (["-p", "a6"], "platform must be one of"),
    (["-d", ",".join(map(str, range(16)))], "at most 8 on platform a2"),
    (["--sideways"], "--sideways"),
]


def run_file(path: Path, *argv: str, forced: dict | None = None) -> Ended:
    """Run a script; its errors come out."""
    ended = running.script(path, *argv, forced=forced)
    if ended.error is not None:
        raise ended.error
    return ended


def run_script(name: str, *argv: str) -> Ended:
    return run_file(LADDER / f"{name}.py", *argv)


def devices(ranks: int) -> str:
    return ",".join(map(str, range(ranks)))


def serious(findings) -> list:
    return [f for f in findings if f.severity != "note"]


@pytest.fixture(autouse=True)
def _own_build_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    monkeypatch.delenv("A2A3SIM_PLATFORM", raising=False)


def test_ladder_is_complete():
    assert [s[:2] for s in SCRIPTS] == [f"{k:02}" for k in range(1, 17)]


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
@pytest.mark.parametrize(("script", "flags"), VARIANTS)
def test_every_variant_is_right_and_safe(script, flags, ranks):
    ended = run_script(script, "-p", "a2a3sim", "-d", devices(ranks), *flags)
    if (script, flags) in DIVIDES and 256 % ranks:
        assert ended.status == 2
        assert "multiple of the number of devices, got 3" in ended.err
        assert ended.err.count("\n") == 1
        return
    assert (ended.status, ended.out, ended.err) == (0, "OK\n", "")
    (result,) = ended.runs
    assert result.numerics.ok
    assert serious(result.findings) == []
    assert serious(check(ended.traces[0])) == []


@pytest.mark.parametrize(("script", "flags"), VARIANTS)
def test_device_ids_are_labels(script, flags):
    ended = run_script(script, "-d", "4,7,9,12", *flags)
    assert (ended.status, ended.out) == (0, "OK\n")
    assert ended.runs[0].device_labels == [4, 7, 9, 12]


@pytest.mark.parametrize(("script", "flags"), VARIANTS)
def test_compile_only_prints_the_directory_and_runs_nothing(script, flags):
    ended = run_script(script, "--compile-only", *flags)
    assert (ended.status, ended.err, ended.runs) == (0, "", [])
    assert Path(ended.out.rstrip("\n")).is_dir()


@pytest.mark.parametrize("script", SCRIPTS)
def test_bad_arguments_are_one_line_and_exit_2(script):
    for argv, says in BAD_ARGUMENTS:
        ended = run_script(script, *argv)
        assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1), argv
        assert ended.err.startswith(f"{script}.py: "), argv
        assert says in ended.err, argv


@pytest.mark.parametrize("script", [s for s in SCRIPTS if s[:2] in MODES])
def test_unknown_mode_names_the_known_ones(script):
    ended = run_script(script, "--mode", "magic")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert all(mode in ended.err for mode in MODES[script[:2]])


def test_more_ranks_on_a_machine_that_has_them(monkeypatch):
    monkeypatch.setenv("A2A3SIM_PLATFORM", "a3")
    ended = run_script("09_allreduce_two_phase", "-d", devices(16))
    assert (ended.status, ended.out, ended.runs[0].platform) == (0, "OK\n", "a3")


KIB = 1024
L = 1_000_000  # ps, one-way latency of `ideal`


def flow(nbytes: int) -> int:
    """Time of bytes on a link of `ideal`, 25 GB/s."""
    return nbytes * 40


def reads(count: int, nbytes: int) -> int:
    """Remote loads, or acknowledged puts, one after the other."""
    return count * (2 * L + flow(nbytes))


# Script, flags, remote bytes of each rank and time on `ideal`, for p ranks; as the pages' cost cards say.
CLOSED_FORMS = [
    ("04_barrier", (), lambda p: KIB, lambda p: L + reads(1, KIB)),
    ("04_barrier", ("--use-builtin",), lambda p: KIB, lambda p: L + reads(1, KIB)),
    ("05_remote_load_store", ("--mode", "load"), lambda p: KIB, lambda p: L + reads(1, KIB)),
    ("05_remote_load_store", ("--mode", "store"), lambda p: KIB, lambda p: reads(1, KIB) + L),
    ("05_remote_load_store", ("--mode", "both"), lambda p: 2 * KIB, lambda p: L + reads(1, KIB) + L),
    ("06_put_get", ("--mode", "put"), lambda p: 256 * KIB, lambda p: flow(256 * KIB) + 3 * L),
    ("06_put_get", ("--mode", "get"), lambda p: 256 * KIB, lambda p: L + reads(4, 64 * KIB)),
    ("06_put_get", ("--mode", "pipelined"), lambda p: 256 * KIB, lambda p: L + reads(4, 64 * KIB)),
    ("07_dynamic_rank_count", (), lambda p: (p - 1) * 256, lambda p: L + reads(p - 1, 256)),
    ("08_allreduce_mesh", (), lambda p: (p - 1) * KIB, lambda p: L + reads(p - 1, KIB)),
    (
        "09_allreduce_two_phase",
        (),
        lambda p: 2 * (p - 1) * KIB // p,
        lambda p: 2 * (L + reads(p - 1, KIB // p)),
    ),
    (
        "10_allreduce_ring",
        (),
        lambda p: 2 * (p - 1) * KIB // p,
        lambda p: 2 * (p - 1) * (L + reads(1, KIB // p)),
    ),
    (
        "11_allreduce_reveal",
        ("--mode", "mesh"),
        lambda p: (p - 1) * KIB,
        lambda p: 2 * L + reads(p - 1, KIB),
    ),
    (
        "11_allreduce_reveal",
        ("--mode", "ring"),
        lambda p: 2 * (p - 1) * KIB // p,
        lambda p: 2 * (p - 1) * (2 * L + reads(1, KIB // p)),
    ),
    (
        "11_allreduce_reveal",
        ("--mode", "host_ring"),
        lambda p: 2 * (p - 1) * KIB // p,
        lambda p: L + 2 * (p - 1) * (L + reads(1, KIB // p)),
    ),
    ("13_allgather", (), lambda p: (p - 1) * KIB, lambda p: reads(p - 1, KIB) + L),
    ("14_reduce_scatter", (), lambda p: (p - 1) * 256, lambda p: L + reads(p - 1, 256)),
    (
        "14_reduce_scatter",
        ("--mode", "builtin"),
        lambda p: (p - 1) * 256,
        lambda p: 2 * L + reads(p - 1, 256),
    ),
    ("15_all_to_all", (), lambda p: (p - 1) * 256, lambda p: reads(p - 1, 256) + L),
    (
        "16_putting_it_together",
        (),
        # Four steps of reduce-scatter and all-gather, then a mesh all-reduce of the errors.
        lambda p: 4 * 2 * (p - 1) * KIB // p + (p - 1) * KIB,
        lambda p: 4 * 2 * (L + reads(p - 1, KIB // p)) + 2 * L + reads(p - 1, KIB),
    ),
]


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize(("script", "flags", "nbytes", "time_ps"), CLOSED_FORMS)
def test_bytes_and_times_on_ideal_are_the_closed_forms(script, flags, nbytes, time_ps, ranks, monkeypatch):
    monkeypatch.setenv("A2A3SIM_PLATFORM", "ideal")
    (result,) = run_script(script, "-d", devices(ranks), *flags).runs
    moved = {use.remote_read_bytes + use.remote_write_bytes for use in result.per_rank}
    assert (moved, result.kernel_ps) == ({nbytes(ranks)}, time_ps(ranks))


@pytest.mark.parametrize("script", ["01_hello_rank", "02_programming_model", "03_window_buffer"])
def test_first_steps_cross_no_link(script, monkeypatch):
    monkeypatch.setenv("A2A3SIM_PLATFORM", "ideal")
    (result,) = run_script(script).runs
    assert (result.max_remote_bytes, result.kernel_ps) == (0, 0)


def test_broadcast_reads_the_root_only():
    (result,) = run_script("12_broadcast", "-d", devices(4)).runs
    assert [use.remote_read_bytes for use in result.per_rank] == [1024, 0, 1024, 1024]


@pytest.mark.parametrize(
    ("script", "rounds", "barriers"),
    [("08_allreduce_mesh", 1, 1), ("09_allreduce_two_phase", 2, 2), ("10_allreduce_ring", 6, 6)],
)
def test_rounds_and_barriers_on_four_ranks(script, rounds, barriers):
    (result,) = run_script(script, "-d", devices(4)).runs
    assert (result.rounds, result.barriers) == (rounds, barriers)


def test_ring_moves_one_chunk_between_neighbours_only():
    (result,) = run_script("10_allreduce_ring", "-d", devices(4)).runs
    moved = {(pair.src, pair.dst): pair.bytes for pair in result.pairs if pair.src != pair.dst}
    assert moved == {(left, (left + 1) % 4): 6 * 256 for left in range(4)}


# ---- step 09 as its page describes it


def start(script: Path, *argv: str, cwd: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, str(script), *argv]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("ids", ["0,1,2,3", "0,1"])
def test_two_phase_with_plain_python(tmp_path, ids):
    ended = start(LADDER / "09_allreduce_two_phase.py", "-p", "a2a3sim", "-d", ids, cwd=tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "OK\n", "")


def test_two_phase_refuses_three_ranks_with_plain_python(tmp_path):
    ended = start(LADDER / "09_allreduce_two_phase.py", "-p", "a2a3sim", "-d", "0,1,2", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


GATHER = "recv = pld.tile.remote_load(result, peer=c, offsets=[0, c * chunk], shape=[1, chunk])"


@pytest.mark.parametrize(
    "change",
    [
        # Chunk c is put where its neighbour belongs.
        ("y = pl.store(recv, [0, c * chunk], y)", "y = pl.store(recv, [0, (c + 1) % nranks * chunk], y)"),
        # No all-gather: only the own chunk reaches the output.
        ("for c in pl.range(nranks):", "for c in pl.range(my_rank, my_rank + 1):"),
    ],
)
def test_two_phase_with_a_wrong_gather_is_a_mismatch(tmp_path, change):
    ended = run_file(altered(tmp_path, "09_allreduce_two_phase", change))
    assert (ended.status, ended.out) == (1, "MISMATCH\n")
    assert ended.err.count("\n") == 1
    assert not ended.runs[0].numerics.ok


def test_two_phase_results_agree_between_ranks_but_not_with_another_order(tmp_path):
    """Owner r adds its own part first; numpy adds rank by rank. Both are right within rounding."""
    sums = tmp_path / "sums.npy"
    save = f"np.save({str(sums)!r}, [y, expected])"
    run_file(altered(tmp_path, "09_allreduce_two_phase", ("return verdict(y, expected)", save)))
    got, expected = np.load(sums)
    assert all((got[0] == got[rank]).all() for rank in range(4))
    assert (got != expected).any()
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


# ---- faults that the pages warn of: found on the first run, whether or not its numbers are right

ONE_ROW_FOR_BOTH_BARRIERS = (
    ("offsets=[1, my_rank]", "offsets=[0, my_rank]"),
    ("offsets=[1, src]", "offsets=[0, src]"),
)
FAULTS = {
    "09: one row for both barriers": (
        ("09_allreduce_two_phase", *ONE_ROW_FOR_BOTH_BARRIERS),
        {("early-release", None), ("race", "RAW")},
    ),
    "08: read without waiting": (
        ("08_allreduce_mesh", ("expected=1, cmp", "expected=0, cmp")),
        {("race", "RAW")},
    ),
    "08: sum stored into the window": (
        (
            "08_allreduce_mesh",
            ("y = pl.store(acc, [0, 0], y)", "y = pl.store(acc, [0, 0], pl.store(acc, [0, 0], data) and y)"),
        ),
        {("race", "WAR")},
    ),
    "08: one cell for all peers": (
        (
            "08_allreduce_mesh",
            ("offsets=[0, my_rank]", "offsets=[0, 0]"),
            ("offsets=[0, src]", "offsets=[0, 0]"),
        ),
        {("early-release", None), ("race", "RAW")},
    ),
    "10: one row for all rounds": (
        (
            "10_allreduce_ring",
            ("offsets=[k + 1, 0]", "offsets=[0, 0]"),
            ("offsets=[k, 0]", "offsets=[0, 0]"),
            ("offsets=[half + k, 0]", "offsets=[0, 0]"),
            ("offsets=[half + k + 1, 0]", "offsets=[0, 0]"),
        ),
        {("early-release", None), ("race", "RAW"), ("race", "WAR")},
    ),
    "13: all rows in one place": (
        ("13_allgather", ("dst_offsets=[my_rank, 0]", "dst_offsets=[0, 0]")),
        {("race", "WAW")},
    ),
    "16: a barrier that does not count": (
        (
            "16_putting_it_together",
            ("offsets=[SUMMED, src], expected=step + 1", "offsets=[SUMMED, src], expected=1"),
        ),
        {("early-release", None), ("race", "RAW")},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found_on_every_schedule(tmp_path, fault):
    change, expected = FAULTS[fault]
    verdicts = []
    for forced in ({}, {"seed": 5}, {"skew": "none"}):
        path = altered(tmp_path, *change)
        found = [f for trace in run_file(path, forced=forced).traces for f in check(trace)]
        kinds = {(f.kind, f.subtype if f.kind == "race" else None) for f in found if f.severity == "error"}
        assert kinds >= expected
        verdicts.append(kinds)
    assert verdicts[0] == verdicts[1] == verdicts[2]


def test_one_row_for_both_barriers_works_until_a_rank_is_slow(tmp_path):
    path = altered(tmp_path, "09_allreduce_two_phase", *ONE_ROW_FOR_BOTH_BARRIERS)
    assert [run_file(path, forced={"seed": seed}).out for seed in range(3)] == ["OK\n"] * 3
    assert run_file(path, forced={"slow": {2: "20x"}}).out == "MISMATCH\n"


def test_a_barrier_that_waits_at_its_own_cell_is_a_deadlock(tmp_path):
    path = altered(tmp_path, "04_barrier", ("offsets=[src, 0]", "offsets=[my_rank, 0]"))
    with pytest.raises(DeadlockError) as caught:
        run_file(path)
    assert "raised signal_buf[3, 0] of rank 0, which nobody waits for" in caught.value.report


def test_a_put_without_chunks_does_not_fit(tmp_path):
    path = altered(tmp_path, "06_put_get", ("peer=right, src=x, chunk_rows=CHUNK", "peer=right, src=x"))
    with pytest.raises(
        KernelError, match=r"put makes a tile \[64, 1024\] FP32 of 262144 B, but UB holds 188416 B"
    ):
        run_file(path)


# ---- the pages


def test_every_script_has_a_page_and_the_index_lists_them_in_order():
    pages = sorted(p.stem for p in TUTORIAL.glob("[0-9]*.md"))
    assert pages == SCRIPTS
    index = (TUTORIAL / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((\d\d_\w+)\.md\)", index) == SCRIPTS


@pytest.mark.parametrize("script", SCRIPTS)
def test_pages_show_lines_and_files_that_exist(script):
    """Python in a page is quoted from its script, but for white space; links and paths lead somewhere."""
    page = (TUTORIAL / f"{script}.md").read_text(encoding="utf-8")
    source = "".join((LADDER / f"{script}.py").read_text(encoding="utf-8").split())
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        for passage in re.split(r"^ *\.\.\.$", block, flags=re.M):
            assert "".join(passage.split()) in source, passage
    for target in re.findall(r"\]\(([^)#]+)\)", page):
        assert (TUTORIAL / target).exists(), target
    for path in re.findall(r"examples/distributed/\w+\.py", page):
        assert (ROOT / path).exists(), path
    assert f"examples/distributed/{script}.py" in page


NUMBER = re.compile(r"\d[\d.]* ?(?:(?:ps|ns|us|ms|s)\b|%|×)|\(\w+\)|\([^()]* %[^()]*\)")


def fixed(text: str) -> list[str]:
    """A page without what follows from a platform's parameters: times, shares, bars, the hash."""
    lines = [line for line in text.splitlines() if "█" not in line and "latency" not in line]
    return [re.sub(r"\s+", " ", NUMBER.sub("…", line)) for line in lines]


@pytest.mark.parametrize("script", SCRIPTS)
def test_pages_show_what_the_commands_print(script):
    page = (TUTORIAL / f"{script}.md").read_text(encoding="utf-8")
    refresh = runpy.run_path(str(TUTORIAL / "refresh.py"))
    assert "```console\n$ a2a3sim run examples" in page
    assert fixed(refresh["refreshed"](page)) == fixed(page), (
        "python docs/tutorial/refresh.py updates the pages"
    )
