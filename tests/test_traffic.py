"""The traffic picture: its points and matrices, and equal bytes for equal data."""

import numpy as np
import pytest
from built_traces import info, mesh, two_phase

from a2a3sim.errors import ConfigError
from a2a3sim.reports.traffic import ALL_REDUCE_FORMS, Matrix, TrafficPoint, draw_traffic, matrix_of
from a2a3sim.trace.measures import measure

N = 1024


def points_of(runs):
    return [TrafficPoint(run.algorithm, run.ranks, run.max_remote_bytes) for run in runs]


def results():
    return [
        measure(make(ranks, N).trace(), info(ranks, algorithm=make.__name__, bytes_per_rank=N))
        for make in (mesh, two_phase)
        for ranks in (2, 4)
    ]


def test_points_are_what_was_measured_and_lie_on_the_closed_forms():
    points = points_of(results())
    assert points == [
        TrafficPoint("mesh", 2, 1024),
        TrafficPoint("mesh", 4, 3072),
        TrafficPoint("two_phase", 2, 1024),
        TrafficPoint("two_phase", 4, 1536),
    ]
    forms = {form.algorithm: form for form in ALL_REDUCE_FORMS}
    assert all(forms[p.algorithm].nbytes(p.ranks, N) == p.nbytes for p in points)
    assert np.array_equal(forms["mesh"].nbytes(np.array([2, 8]), N), [N, 7 * N])


def test_a_matrix_holds_the_ordered_pairs():
    assert matrix_of(results()[0]) == Matrix("mesh", 2, {(0, 1): 1024, (1, 0): 1024})


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_equal_data_give_equal_bytes(tmp_path, suffix):
    runs = results()
    files = [
        draw_traffic(points_of(runs), [matrix_of(runs[1]), matrix_of(runs[3])], N, tmp_path / f"{k}.{suffix}")
        for k in range(2)
    ]
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("ranks", [2, 16, 64])
def test_matrices_of_any_size(tmp_path, ranks):
    ring = {(r, (r + 1) % ranks): 1000 * (r + 1) for r in range(ranks)}
    points = [TrafficPoint("my_ring", ranks, 1000 * ranks), TrafficPoint("silent", ranks, 0)]
    path = draw_traffic(
        points, [Matrix("my_ring", ranks, ring), Matrix("silent", ranks, {})], N, tmp_path / "t.png"
    )
    assert path.stat().st_size > 10_000


def test_lines_or_matrices_may_be_missing(tmp_path):
    assert draw_traffic([], [], N, tmp_path / "t.png", forms=()).exists()


def test_a_path_that_is_no_picture_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"must be a .png or .svg file, got '.*t.jpg'"):
        draw_traffic([], [], N, tmp_path / "t.jpg")
