"""Known bugs of distributed kernels in abstract form, each beside the version that must stay clean."""

import pytest
from hb_machine import Script
from hb_programs import barrier, peers


def errors(script, seed=0, **options):
    return [f for f in script.check(seed, **options) if f.severity == "error"]


def everywhere(script, kind, seeds=8, **options):
    """The kind is found on every schedule, also on those that hang."""
    return all(kind in {f.kind for f in script.check(seed, **options)} for seed in range(seeds))


# ---- reuse without acknowledgement ------------------------------------------------------------------


def one_shot(closing):
    s = Script()
    for rank in range(4):
        c = s.core(rank)
        for k in range(2):
            c.write("D", rank, at="stage")
            barrier(c, 4, ("entry", k))
            for p in peers(4, rank):
                c.read("D", p, at="read")
            if closing:
                barrier(c, 4, ("exit", k))
    return s


def test_next_call_overwrites_what_a_slow_peer_still_reads():
    assert one_shot(closing=True).verdicts() == set()
    script = one_shot(closing=False)
    assert script.kinds() == {"race"}
    (race,) = errors(script)
    assert race.sites == [("stage", 0), ("read", 0)]
    assert len(race.pairs) == 12
    assert race.where == {"memory": "D", "ranks": [0, 1, 2, 3], "bytes": [0, 32]}


def counts_pulled(after_barrier):
    s = Script()
    for rank in range(2):
        c = s.core(rank)
        for k in range(2):
            c.write("counts", rank, at="counts")
            barrier(c, 2, ("ready", k))
            if not after_barrier:
                c.read("counts", 1 - rank, at="pull")
            c.write("payload", 1 - rank, 32 * k, 32 * k + 32)
            barrier(c, 2, ("done", k))
            if after_barrier:
                c.read("counts", 1 - rank, at="pull")
    return s


def test_counts_pulled_after_the_barrier_that_frees_them():
    assert counts_pulled(False).verdicts() == set()
    assert counts_pulled(True).kinds() == {"race"}


def test_clear_after_the_fence_hits_what_peers_have_put():
    def script(clear_first):
        s = Script()
        for rank in range(3):
            c = s.core(rank)
            if clear_first:
                c.write("D", rank, 0, 96, at="fill")
            barrier(c, 3, "a")
            if not clear_first:
                c.write("D", rank, 0, 96, at="fill")
            for p in peers(3, rank):
                c.write("D", p, 32 * rank, 32 * rank + 32, at="put")
            barrier(c, 3, "b")
            c.read("D", rank, 0, 96)
        return s

    assert script(True).verdicts() == set()
    races = errors(script(False))
    assert [(f.kind, f.subtype, f.sites) for f in races] == [("race", "WAW", [("fill", 0), ("put", 0)])]


# ---- several cores and kernels ----------------------------------------------------------------------


def one_signals_for_all(sync=False, each=False, lanes=4):
    s = Script()
    for k in range(lanes):
        c = s.core(0, k, group=0).write("D", 1, 32 * k, 32 * k + 32, at="put")
        if sync:
            c.sync()
        if each or k == 0:
            c.notify(1, "go")
    s.core(1, 0, group=1).wait("go", lanes if each else 1).read("D", 1, 0, 32 * lanes, at="read")
    return s


def test_one_block_signals_for_its_siblings():
    assert one_signals_for_all(sync=True).verdicts() == set()
    assert one_signals_for_all(each=True).verdicts() == set()
    (race,) = errors(one_signals_for_all())
    assert (race.kind, race.where["bytes"], race.count) == ("race", [32, 128], 3)


def test_a_counter_of_chunks_tells_how_many_not_which():
    def script(cells, lanes=6):
        s = Script()
        for k in range(lanes):
            s.core(0, k, group=0).write("D", 1, 32 * k, 32 * k + 32, at="put").notify(
                1, ("c", k if cells else 0)
            )
        reader = s.core(1, group=1)
        for k in range(lanes):
            reader.wait(("c", k if cells else 0), 1 if cells else k + 1)
            reader.read("D", 1, 32 * k, 32 * k + 32, at="take")
        return s

    assert script(cells=True).verdicts() == set()
    (race,) = errors(script(cells=False))
    assert (race.kind, race.count) == ("race", 5)  # the last wait needs all


def test_two_kernels_of_a_rank_need_a_declared_direction():
    def script(declared):
        s = Script(edges=[(0, 10)] if declared else [])
        s.core(1, group=1).write("W", 0, at="push").notify(0, "in")
        s.core(0, group=0).wait("in")
        s.core(0, group=10).read("W", 0, at="reduce")
        return s

    assert script(True).kinds() == set()
    (race,) = errors(script(False))
    assert race.sites == [("push", 0), ("reduce", 0)]


def test_two_kernels_of_a_rank_on_one_tensor():
    def script(declared):
        s = Script(edges=[(0, 10)] if declared else [])
        s.core(0, group=0).write("T", 0, at="fill")
        s.core(0, group=10).read("T", 0, at="use")
        return s

    assert script(True).verdicts() == set()
    (race,) = errors(script(False))
    assert "two kernels" in race.message
    assert "pl.Out" in race.fix


def test_a_siblings_notify_to_the_own_rank_is_a_release():
    def script(value):
        s = Script()
        s.core(0, 0, group=0).write("T", 0, 0, 32, at="a").notify(0, "c").write(
            "T", 0, 32, 64, at="b"
        ).notify(0, "c")
        s.core(0, 1, group=0).wait("c", value).read("T", 0, 0, 64, at="use")
        return s

    assert script(2).verdicts() == set()
    (race,) = errors(script(1))
    assert race.sites == [("b", 0), ("use", 0)]


def test_sync_all_orders_the_blocks_and_nothing_else():
    s = Script()
    for k in range(3):
        c = s.core(0, k, group=0).write("T", 0, 32 * k, 32 * k + 32)
        c.sync().read("T", 0, 0, 96).sync().write("T", 0, 32 * k, 32 * k + 32)
    assert s.verdicts() == set()
    s.core(0, 3, group=1).read("T", 0, 0, 32, at="outside")
    (race,) = errors(s)
    assert race.sites[1] == ("outside", 0)


# ---- signals ----------------------------------------------------------------------------------------


def test_flag_value_fixed_at_capture():
    """The same number on every replay: the wait is met by the launch before."""

    def script(values):
        s = Script(edges=[(10 * k + r, 10 * (k + 1) + r) for k in range(2) for r in range(2)])
        for k, value in enumerate(values):
            for rank in range(2):
                c = s.core(rank, group=10 * k + rank, launch=k)
                c.write("slot", 1 - rank, at="put").set(1 - rank, "f", value).wait("f", value, equal=True)
                c.read("slot", rank, at="take").notify(1 - rank, "ack").wait("ack", k + 1)
        return s

    assert script((1, 2, 3)).kinds() == set()
    assert script((1, 1, 1)).kinds() == {"early-release", "race", "residue"}


def test_packed_set_signals_share_a_line():
    def script(stride, way):
        s = Script(stride=stride)
        for rank in range(1, 4):
            c = s.core(rank)
            if way == "set":
                c.set(0, rank, 1000 + rank, at="raise")
            else:
                c.notify(0, rank, at="raise")
        c = s.core(0)
        for rank in range(1, 4):
            c.wait(rank, 1)
        return s

    assert script(64, "set").verdicts() == set()
    assert script(4, "add").verdicts() == set()
    (finding,) = script(4, "set").check()
    assert (finding.kind, finding.severity, finding.ranks) == ("line-share", "warning", [1, 2, 3])
    assert finding.where == {"memory": "signal", "ranks": [0], "bytes": [0, 64]}
    assert script(4, "set").check(set_writes_line=False) == []


def test_scalar_stores_of_neighbouring_words_share_a_line():
    def script(step):
        s = Script()
        for k in range(2):
            s.core(0, k, group=0).write("T", 0, step * k, step * k + 4, at="store", pipe="S")
        return s

    assert script(64).verdicts() == set()
    assert script(4).kinds() == {"line-share"}


def test_a_set_beside_payload_in_one_line():
    def script(low):
        s = Script()
        s.core(1).set(0, 0, 1, at="raise")
        s.core(2).write("signal", 0, low, low + 32, at="put")
        s.core(0).wait(0)
        return s

    assert script(64).verdicts() == set()
    (finding,) = script(32).check()
    assert (finding.kind, finding.subtype, finding.ranks) == ("line-share", "set", [1, 2])


def test_a_flag_that_is_raised_and_lowered_hand_in_hand():
    s = Script()
    a, b = s.core(0), s.core(1)
    for k in range(3):
        a.write("slot", 1, at="put").set(1, "f", 1).wait("seen", 2 * k + 1).set(1, "f", 0).wait(
            "seen", 2 * k + 2
        )
        b.wait("f", 1, equal=True).read("slot", 1, at="take").notify(0, "seen")
        b.wait("f", 0, equal=True).notify(0, "seen")
    assert s.verdicts() == set()


def test_a_cell_cleared_by_a_scalar_store_hand_in_hand():
    def script(told):
        s = Script()
        a, b = s.core(0), s.core(1)
        for k in range(3):
            a.write("slot", 1, at="put").notify(1, 0)
            b.wait(0, 1).read("slot", 1, at="take").write("signal", 1, 0, 4, pipe="S", value=0, at="clear")
            if told:
                b.notify(0, 1)
                a.wait(1, k + 1)
        return s

    assert script(True).verdicts() == set()
    assert everywhere(script(False), "lost-credit")


def test_epoch_counter_wraps():
    def script(start):
        s = Script(start={(0, "e"): start})
        a, b = s.core(0), s.core(1)
        for k in range(1, 4):
            b.notify(0, "e", at="bump")
            a.wait("e", min(start + k, 2**31 - 1))
        return s

    assert "overflow" not in script(0).kinds()
    (finding,) = [f for f in script(2**31 - 2).check() if f.kind == "overflow"]
    assert finding.sites == [("bump", 0)]


def test_remote_clear_that_may_come_before_the_wait_has_looked():
    def script(acknowledged):
        s = Script()
        a, b = s.core(0), s.core(1)
        b.notify(0, "c", at="raise")
        if acknowledged:
            b.wait("seen")
        b.notify(0, "c", -1, at="lower")
        a.wait("c", at="wait")
        if acknowledged:
            a.notify(1, "seen")
        return s

    assert script(True).verdicts() == set()
    assert everywhere(script(False), "lost-credit")


def test_a_wait_met_by_its_start_value_is_no_early_release():
    s = Script()
    a, b = s.core(0), s.core(1)
    for k in range(4):
        a.wait("free", k - 1).write("slot", 1, 32 * (k % 2), 32 * (k % 2) + 32).notify(1, "full")
        b.wait("full", k + 1).read("slot", 1, 32 * (k % 2), 32 * (k % 2) + 32).notify(0, "free")
    assert s.kinds() == set()


def test_two_groups_share_a_row():
    s = Script()
    for rank in range(2):
        c = (
            s.core(rank)
            .write("A", rank, at="stage A")
            .notify(1 - rank, "row")
            .wait("row")
            .read("A", 1 - rank)
        )
        c.write("B", rank, at="stage B").notify(1 - rank, "row").wait("row", at="second").read(
            "B", 1 - rank, at="read B"
        )
    assert s.kinds() == {"early-release", "race"}
    early, race = errors(s)
    assert (early.sites[0], race.sites) == (("second", 0), [("stage B", 0), ("read B", 0)])
    assert "stage B" in early.message


def test_an_unneeded_wait_is_only_a_warning():
    s = Script()
    a, b = s.core(0), s.core(1)
    a.wait("c", at="first").wait("c", at="again")
    b.notify(0, "c").notify(0, "c")
    assert [(f.kind, f.severity, f.sites[0]) for f in s.check()] == [
        ("early-release", "warning", ("again", 0))
    ]


# ---- plain accesses to cells ------------------------------------------------------------------------


def test_cells_cleared_by_a_store_after_peers_may_notify():
    def script(barrier_between):
        s = Script()
        a, b = s.core(0), s.core(1)
        a.write("signal", 0, 0, 4, at="clear")
        if barrier_between:
            a.notify(1, "open")
            b.wait("open")
        b.notify(0, 0, at="notify")
        a.wait(0, 1)
        return s

    assert everywhere(script(False), "race")
    assert everywhere(script(False), "lost-credit")
    assert script(True).verdicts() == set()


def test_plain_read_of_a_cell():
    def script(value):
        s = Script()
        a, b, c = s.core(0), s.core(1), s.core(2)
        b.notify(0, 0)
        c.notify(0, 0)
        a.wait(0, value).read("signal", 0, 0, 4, at="read")
        return s

    assert script(2).verdicts() == set()
    (race,) = errors(script(1))
    assert race.sites == [("notify", 0), ("read", 0)]
    assert len(race.pairs) == 2


def test_payload_over_signal_cells():
    s = Script()
    a, b = s.core(0), s.core(1)
    a.notify(1, 0).notify(1, 1, at="flag")
    b.wait(0).wait(1)
    c = s.core(2)
    c.write("signal", 1, 32, 96, at="payload")
    assert {f.kind for f in errors(s)} >= {"race", "lost-credit"}


# ---- atomic adds ------------------------------------------------------------------------------------


def test_atomic_adds_do_not_race_among_themselves():
    s = Script()
    for rank in range(1, 4):
        s.core(rank).add("sum", 0, at="add").notify(0, "c")
    s.core(0).wait("c", 3).read("sum", 0)
    assert s.verdicts() == set()
    s.core(4, group=9).read("sum", 0, at="look")
    (race,) = errors(s)
    assert race.sites == [("add", 0), ("look", 0)]


# ---- explicit fences --------------------------------------------------------------------------------


def published(order, reader_rank=1, owner=0):
    """A store, what stands between it and the notify, and a reader."""
    s = Script(explicit=True)
    a = s.core(0, 0).write("D", owner, at="store")
    if order:
        getattr(a, order)()
    a.notify(reader_rank, "go", at="notify")
    s.core(reader_rank, 1, group=9).wait("go").read("D", owner, at="read")
    return s


@pytest.mark.parametrize("order, subtype", [(None, "in flight"), ("drain", "not visible")])
def test_signal_overtakes_a_store(order, subtype):
    found = errors(published(order))
    assert [(f.kind, f.sites) for f in found] == [
        ("race", [("store", 0), ("read", 0)]),
        ("unfenced", [("notify", 0), ("store", 0), ("read", 0)]),
    ]
    assert found[1].subtype == subtype


def test_a_fence_publishes_everywhere_a_drain_on_the_own_device():
    assert published("fence").verdicts() == set()
    assert published("drain", reader_rank=0).verdicts() == set()
    assert published(None, reader_rank=0).kinds() == {"race", "unfenced"}
    assert published("drain", owner=1).kinds() == {"race", "unfenced"}  # left the core, not yet arrived


def test_announcing_too_early_that_an_input_is_free():
    def script(fence):
        s = Script(explicit=True)
        a = s.core(0).read("D", 1, at="get")
        if fence:
            a.drain()
        a.notify(1, "free")
        s.core(1).wait("free").write("D", 1, at="refill")
        return s

    assert script(True).verdicts() == set()
    assert script(False).kinds() == {"race", "unfenced"}


def test_a_barrier_after_the_notify_adds_no_fence():
    def script(fence):
        s = Script(explicit=True)
        for rank in range(2):
            c = s.core(rank).write("D", rank, at="stage")
            if fence:
                c.fence()
            barrier(c, 2, "a")
            barrier(c, 2, "b")
            c.read("D", 1 - rank, at="read")
        return s

    assert script(True).verdicts() == set()
    assert script(False).kinds() == {"race", "unfenced"}


def test_a_core_keeps_the_order_of_its_own_accesses_to_the_same_bytes():
    s = Script(explicit=True)
    s.core(0).write("D", 0).read("D", 0).write("D", 0)
    assert s.verdicts() == set()
