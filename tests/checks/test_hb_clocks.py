"""What the clocks cost: segments, passes; and the bounds that keep a check near-linear."""

from hb_machine import Script
from hb_programs import central_counter, credit_barrier, mesh, ring_pull

from a2a3sim.checks.happens_before.checker import check_execution
from a2a3sim.checks.happens_before.clocks import Clocks


def clocks_of(script):
    script.run(0)
    return Clocks(script.program())


def test_a_barrier_costs_one_segment_per_rank_however_many_peers():
    rows = {ranks: len(clocks_of(mesh(ranks)).matrix) / ranks for ranks in (4, 8, 16)}
    assert rows == {4: 4, 8: 4, 16: 4}  # stage, read, result, end


def test_clearing_the_own_cells_starts_no_segment_of_its_own():
    clocks = clocks_of(credit_barrier(ranks=5, calls=1))
    assert len(clocks.matrix) == 5 * 4  # stage; read, arrive; clear; end


def test_single_writers_need_one_pass_and_counters_a_few():
    assert clocks_of(ring_pull(5)).passes == 1
    assert clocks_of(central_counter(5, 6)).passes <= 3


def test_kernels_in_a_chain_share_a_component_and_unordered_ones_do_not():
    def columns(edges):
        s = Script(edges=edges)
        for group in range(3):
            for core in range(2):
                s.core(0, core, group=group).write("T", 0)
        return [t.column for t in s.program().threads]

    assert columns([(0, 1), (1, 2)]) == [0, 1, 0, 1, 0, 1]
    assert columns([(0, 2)]) == [0, 1, 2, 3, 0, 1]
    assert columns([]) == [0, 1, 2, 3, 4, 5]


def test_a_narrower_kernel_in_between_keeps_the_others_components_apart():
    s = Script(edges=[(0, 1), (1, 2)])
    for group, cores in enumerate((2, 1, 2)):
        for core in range(cores):
            s.core(0, core, group=group).write("T", 0)
    assert [t.column for t in s.program().threads] == [0, 1, 0, 0, 1]
    assert s.verdicts() == {v for v in s.verdicts() if v[0] == "race"}


def test_ties_in_the_observed_times_do_not_hold_the_walk_up():
    """Everything at one instant: the walk finds an order, the verdict is that of any other schedule."""
    s = Script()
    a, b = s.core(0), s.core(1)
    for k in range(1, 4):
        a.write("job", 1, at="put").set(1, "go", k).wait("done", k)
        b.wait("go", k, equal=True).read("job", 1, at="take").set(0, "done", k)
    assert s.verdicts() == set()
    for core in s.cores:
        for op in core.ops:
            op.when = 7
    assert check_execution(s.program()) == []
