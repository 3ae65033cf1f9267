"""The timeline: what its lanes hold, that labels do not collide, and that equal data give equal files."""

import subprocess
import sys
from hashlib import sha256

import pytest
from built_traces import NS, US, Builder, info, mesh, ring, two_phase

from a2a3sim.errors import ConfigError
from a2a3sim.reports.style import ACTIVITY_COLOURS, algorithm_colour, short_size, time_unit
from a2a3sim.reports.timeline import TimelineRun, draw_timeline
from a2a3sim.trace.lanes import Arrow, Bar, rank_lanes, rank_strips
from a2a3sim.trace.measures import measure, run_span


def lanes_of(builder):
    trace = builder.trace()
    return rank_lanes(trace.lanes, builder.ranks, *run_span(trace.lanes))


def run_of(builder, name="mesh", **changes):
    trace = builder.trace()
    return TimelineRun(trace, measure(trace, info(builder.ranks, algorithm=name, **changes)))


def test_lanes_show_issue_waits_and_moves_with_their_latency():
    # Rank 1: notify issued [0, 10], arrives at 1010, applied 1110, which rank 0 waits for.
    b = Builder(2)
    b.notify(b.lane(1), 0)
    b.wait(b.lane(0), 1)
    b.vector(b.lane(0), "add", 800, b.load(b.lane(0), 2000, peer=1))
    zero, one = lanes_of(b)
    n = lambda *times: tuple(t * NS for t in times)  # noqa: E731
    assert zero.bars["S"] == [
        Bar("issue", *n(0, 10), n(0, 10)),
        Bar("wait", *n(10, 1110), n(10, 1110)),
        Bar("issue", *n(1110, 1130), n(1110, 1130)),
    ]
    assert zero.bars["MTE2"] == [Bar("remote read", *n(1120, 5120), n(2120, 4120))]
    assert zero.bars["V"] == [Bar("vector", *n(5120, 5220), n(5120, 5220))]
    assert one.bars["S"] == [Bar("notify", *n(0, 10), n(0, 10))]
    assert zero.arrows == [Arrow(1, 10 * NS, 0, 1110 * NS, 1)]


def test_a_held_scalar_pipe_is_shown_between_what_it_issued():
    b = Builder(2)
    b.store(b.lane(0), 1000, peer=1)  # acknowledged at 3010
    b.vector(b.lane(0), "add", 8)
    bars = [(bar.what, bar.start, bar.end) for bar in lanes_of(b)[0].bars["S"]]
    assert bars == [("issue", 0, 10 * NS), ("held", 10 * NS, 3010 * NS), ("issue", 3010 * NS, 3020 * NS)]


def test_moves_in_flight_at_once_lie_beside_each_other():
    b = Builder(2)
    for start, end in ((0, 10), (4, 12), (11, 20), (12, 22)):
        op = b.load(b.lane(0), 8)
        op.start, op.end = start, end
        op.flow.start, op.flow.finish = start, end
    view = lanes_of(b)[0]
    assert [bar.slot for bar in view.bars["MTE2"]] == [0, 1, 0, 1]
    assert view.slots["MTE2"] == 2


def test_a_wait_that_never_ended_lasts_to_the_end_of_the_run():
    b = Builder(2)
    wait = b._new(b.lane(0), "wait", "S")
    wait.start, wait.cell, wait.cause = wait.issued, (b.memories[0], 0), ("issue", None)
    b.load(b.lane(1), 1000)
    trace = b.trace()
    b.lane(0).end = -1
    first, last = run_span(trace.lanes)
    assert rank_lanes(trace.lanes, 2, first, last)[0].bars["S"][-1][:3] == ("wait", 10 * NS, 1010 * NS)
    strips, names = rank_strips(trace.lanes, 2, (first, last), last, 10)
    assert names[strips[0, 5]] == ("wait", True)


def test_strips_show_the_most_telling_thing():
    # Local load [10, 1010] ns, remote load [1010, 4010] of which bytes flow in [2010, 3010].
    b = Builder(2)
    b.load(b.lane(0), 1000)
    b.load(b.lane(0), 1000, peer=1)
    trace = b.trace()
    strips, names = rank_strips(trace.lanes, 2, (0, 4010 * NS), 4000 * NS, 8)
    assert [names[k] for k in strips[0]] == [
        ("local read", True), ("local read", True), ("remote read", False), ("remote read", False),
        ("remote read", True), ("remote read", True), ("remote read", False), ("remote read", False),
    ]  # fmt: skip
    assert set(strips[1].tolist()) == {-1}


@pytest.mark.parametrize("ranks", [2, 16, 20])
def test_pictures_of_few_and_many_ranks(tmp_path, ranks):
    runs = [
        run_of(mesh(ranks, 320 * ranks, cores=2, names=True), "mesh", cores=2, bound_ps=US),
        run_of(two_phase(ranks, 320 * ranks, cores=2, names=True), "two_phase", cores=2),
    ]
    path = draw_timeline(runs, tmp_path / "t.png", "all-reduce")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_equal_runs_give_equal_bytes_in_any_process(tmp_path, suffix):
    code = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from built_traces import info, ring\n"
        "from a2a3sim.trace.measures import measure\n"
        "from a2a3sim.reports.timeline import TimelineRun, draw_timeline\n"
        "trace = ring(3, 300).trace()\n"
        "draw_timeline([TimelineRun(trace, measure(trace, info(3, algorithm='ring')))], sys.argv[1])\n"
    )
    other = tmp_path / f"other.{suffix}"
    subprocess.run([sys.executable, "-c", code, str(other), *sys.path], check=True)
    mine = draw_timeline([run_of(ring(3, 300), "ring")], tmp_path / f"mine.{suffix}")
    assert sha256(mine.read_bytes()).hexdigest() == sha256(other.read_bytes()).hexdigest()
    assert b"<dc:date>" not in mine.read_bytes()


def test_a_partial_run_without_any_operation_can_be_drawn(tmp_path):
    assert draw_timeline([run_of(Builder(2))], tmp_path / "t.png").exists()


@pytest.mark.parametrize("name", ["t.pdf", "no/such/directory/t.png"])
def test_a_path_that_is_no_picture_is_refused(tmp_path, name):
    with pytest.raises(ConfigError, match=r"picture"):
        draw_timeline([run_of(mesh(2, 64))], tmp_path / name)


def test_no_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one run"):
        draw_timeline([], tmp_path / "t.png")


def test_reports_import_no_matplotlib_until_they_draw():
    code = (
        "import sys, a2a3sim.reports.timeline, a2a3sim.reports.traffic, a2a3sim.reports.card\n"
        "sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_colours_are_distinct_and_stable():
    assert len(set(ACTIVITY_COLOURS.values())) == len(ACTIVITY_COLOURS)
    shipped = [
        "mesh", "mesh_rotated", "two_phase", "two_phase_rotated", "two_phase_push", "ring",
        "ring_bidirectional", "halving_doubling", "recursive_doubling", "hierarchical", "flat", "binomial",
    ]  # fmt: skip
    assert len({algorithm_colour(name) for name in shipped}) == len(shipped)
    assert algorithm_colour("my_own") == algorithm_colour("my_own")


def test_units_for_axes():
    assert time_unit(1_500_000) == (1_000, "ns")
    assert time_unit(3_000_000) == (1_000_000, "µs")
    assert [short_size(n) for n in (0, 512, 1536, 2**20, 200 * 2**20)] == [
        "0",
        "512",
        "1.5Ki",
        "1Mi",
        "200Mi",
    ]
