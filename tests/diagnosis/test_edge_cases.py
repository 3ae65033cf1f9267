"""The edge-case tables of the tutorial: each row as a program, and the cause named as the row names it."""

import pytest
from running import altered
from running import script as run

from .programs import LEFT_OUT, ONE_ROW, TWO_PHASE

ALL = "0,1,2,3"


def mismatch(ended):
    """The finding of a run whose result is wrong without a race."""
    (result,) = ended.runs
    assert "race" not in {f.kind for f in result.findings}
    (finding,) = [f for f in result.findings if f.kind == "mismatch"]
    assert (ended.status, finding.severity) == (1, "error")
    assert not result.numerics.ok
    return finding


# ---- 09: two-phase


def test_one_signal_row_for_both_barriers(tmp_path):
    """The all-gather delivers chunks from before the reduction: found although this run is right."""
    path = altered(tmp_path, TWO_PHASE, *ONE_ROW)
    ended = run(path, "-d", ALL)
    assert ended.runs[0].numerics.ok
    assert {f.kind for f in ended.runs[0].findings if f.severity == "error"} == {"early-release", "race"}
    slow = run(path, "-d", ALL, forced={"slow": {2: "20x"}})
    assert "race" in {f.kind for f in slow.runs[0].findings}
    assert "mismatch" not in {f.kind for f in slow.runs[0].findings}  # the race explains it
    assert "memory that nobody had written (0) stands there" in slow.runs[0].numerics.explanation


def test_size_is_no_multiple_of_the_ranks(tmp_path):
    path = altered(
        tmp_path, TWO_PHASE, ("SIZE = 256", "SIZE = 250"), ("    require_multiple(SIZE, nr)\n", "")
    )
    ended = run(path, "-d", ALL, forced={"machine": "ideal"})
    finding = mismatch(ended)
    assert "the tail, elements 248..249: never written" in finding.message
    assert "250 elements are no multiple of 4 ranks, 4 blocks of 62 leave 2 over" in finding.message
    assert finding.ranks == [0, 1, 2, 3]
    assert finding.where["elements"] == [248, 250]
    assert "a number of ranks that divides the size" in finding.fix
    assert run(path, "-d", "0,1", forced={"machine": "ideal"}).status == 0


def test_blocks_sit_in_the_wrong_places(tmp_path):
    change = ("y = pl.store(recv, [0, c * chunk], y)", "y = pl.store(recv, [0, (c + 1) % nranks * chunk], y)")
    finding = mismatch(run(altered(tmp_path, TWO_PHASE, change), "-d", ALL))
    assert "block 3 stands where block 0 belongs" in finding.message
    assert "blocks 0..2 stand where blocks 1..3 belong" in finding.message
    assert finding.sites[0].source.startswith("y = pl.store(recv, [0, (c + 1)")
    assert "store it to block c" in finding.fix


def test_one_block_in_the_place_of_another(tmp_path):
    change = (
        "peer=c, offsets=[0, c * chunk]",
        "peer=1 if c == 3 else c, offsets=[0, (1 if c == 3 else c) * chunk]",
    )
    finding = mismatch(run(altered(tmp_path, TWO_PHASE, change), "-d", ALL))
    assert "ranks 0..3, elements 192..255 (block 3): block 1 stands where block 3 belongs" in finding.message


def test_only_the_reduce_scatter_was_done(tmp_path):
    change = ("for c in pl.range(nranks):", "for c in pl.range(my_rank, my_rank + 1):")
    finding = mismatch(run(altered(tmp_path, TWO_PHASE, change), "-d", ALL))
    assert "only the reduce-scatter was done: each rank holds its own block's sum" in finding.message
    assert "the rest was never written" in finding.message
    assert finding.fix.startswith("add the all-gather")


def test_only_rounding_differs(tmp_path):
    """Each owner adds its own part first; numpy goes rank by rank. Not a mistake."""
    strict = (
        "config=RunConfig(platform=args.platform)",
        "config=RunConfig(platform=args.platform, rtol=0, atol=0)",
    )
    ended = run(altered(tmp_path, TWO_PHASE, strict), "-d", ALL)
    (result,) = ended.runs
    assert ended.status == 0
    assert result.numerics.ok and result.numerics.wrong > 0
    assert "only rounding differs" in result.numerics.explanation
    (finding,) = result.findings
    assert (finding.kind, finding.subtype, finding.severity) == ("mismatch", "rounding", "note")
    assert "tolerance" in finding.fix


@pytest.mark.parametrize(
    ("script", "ranks"), [(TWO_PHASE, ALL), ("08_allreduce_mesh", ALL), ("10_allreduce_ring", ALL)]
)
def test_right_programs_have_no_finding(tmp_path, script, ranks):
    (result,) = run(altered(tmp_path, script), "-d", ranks).runs
    assert result.numerics.ok
    assert [f for f in result.findings if f.severity != "note"] == []


# ---- contributions


def test_a_rank_is_left_out(tmp_path):
    path = altered(tmp_path, TWO_PHASE, LEFT_OUT)
    finding = mismatch(run(path, "-d", ALL))
    assert "ranks 0..3, elements 0..191 (blocks 0..2): contribution of rank 3 missing" in finding.message


def test_a_rank_counts_twice(tmp_path):
    old = "acc = pl.load(data, [0, my_rank * chunk], [1, chunk])\n"
    path = altered(tmp_path, TWO_PHASE, (old, old + " " * 12 + "acc = pl.add(acc, acc)\n"))
    finding = mismatch(run(path, "-d", ALL))
    assert "elements 64..127 (block 1): contribution of rank 1 doubled" in finding.message


# ---- other pages


def test_01_slice_and_number_belong_to_different_ranks(tmp_path):
    change = ("self.per_rank(x[r], y[r], r, device=r)", "self.per_rank(x[r], y[r], (r + 1) % 4, device=r)")
    finding = mismatch(run(altered(tmp_path, "01_hello_rank", change), "-d", ALL))
    assert "rank 1, all elements: 2000 is added where 1000 should be" in finding.message


def test_01_a_rank_is_handed_another_ranks_slice(tmp_path):
    change = ("self.per_rank(x[r], y[r], r, device=r)", "self.per_rank(x[(r + 1) % 4], y[r], r, device=r)")
    finding = mismatch(run(altered(tmp_path, "01_hello_rank", change), "-d", ALL))
    assert "rank 0 was handed x[1]" in finding.message


def test_12_right_with_root_0_only(tmp_path):
    change = ("recv = pld.tile.remote_load(data, peer=ROOT", "recv = pld.tile.remote_load(data, peer=0")
    finding = mismatch(run(altered(tmp_path, "12_broadcast", change), "-d", ALL))
    assert "broadcast of rank 1" in finding.message
    assert "no rank contributes, memory that nobody had written" in finding.message


def test_13_the_own_row_is_missing(tmp_path):
    old = "for k in pl.range(nranks):\n                    peer"
    finding = mismatch(
        run(altered(tmp_path, "13_allgather", (old, old.replace("nranks", "1, nranks"))), "-d", ALL)
    )
    assert "all-gather" in finding.message
    assert "each rank, its own block: no rank contributes" in finding.message


def test_14_every_rank_has_the_sum_of_its_own_rows(tmp_path):
    old = "pld.tile.remote_load(data, peer=peer, offsets=[my_rank, 0]"
    new = "pld.tile.remote_load(data, peer=my_rank, offsets=[peer, 0]"
    finding = mismatch(run(altered(tmp_path, "14_reduce_scatter", (old, new)), "-d", ALL))
    assert "4 of the rank's own elements are added up instead of one of each rank" in finding.message


def test_15_only_the_own_row_is_filled(tmp_path):
    old = "                        inbox,\n                        peer=peer,"
    finding = mismatch(
        run(altered(tmp_path, "15_all_to_all", (old, old.replace("=peer", "=my_rank"))), "-d", ALL)
    )
    assert "all-to-all" in finding.message
    assert "each rank, every block but its own: no rank contributes" in finding.message


def test_10_an_index_off_by_one_is_a_race_that_explains_the_wrong_sums(tmp_path):
    old = "at = ((left + nranks - k) % nranks) * chunk"
    (result,) = run(
        altered(tmp_path, "10_allreduce_ring", (old, old.replace("left", "my_rank"))), "-d", ALL
    ).runs
    assert "race" in {f.kind for f in result.findings}
    assert "contributions of ranks" in result.numerics.explanation
