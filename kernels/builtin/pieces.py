"""Moving a slice in pieces: no staging tile holds more than 16 KiB, and its row is a multiple of 32 bytes."""

from typing import NamedTuple

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

__all__ = ["COMBINE", "STAGING", "Piece", "cut", "load", "pieces", "remote_load", "staging"]

_ROW = 32  # bytes: the granule of rows in UB
STAGING = 16 * 1024  # bytes: the cap that upstream puts on the tiles of its composite collectives

#: The vector instruction of each reduction.
COMBINE = {
    pld.ReduceOp.Sum: pl.add,
    pld.ReduceOp.Max: pl.tile.maximum,
    pld.ReduceOp.Min: pl.tile.minimum,
    pld.ReduceOp.Prod: pl.mul,
}


class Piece(NamedTuple):
    """Elements ``start`` .. ``start + size - 1``."""

    start: int
    size: int


def cut(count: int, largest: int, start: int = 0) -> list[Piece]:
    """``count`` elements from ``start`` on in pieces of at most ``largest``; none if ``count`` is 0."""
    return [Piece(start + at, min(largest, count - at)) for at in range(0, count, largest)]


def pieces(count: int, dtype: pl.DataType, start: int = 0) -> list[Piece]:
    """The same in pieces of at most `STAGING` bytes."""
    return cut(count, STAGING // dtype.itemsize, start)


def staging(rows: int, columns: int, dtype: pl.DataType) -> dict[str, int]:
    """Extents of the staging tile of a put or get of ``rows`` x ``columns`` elements."""
    largest = STAGING // dtype.itemsize
    columns = min(columns, largest)
    return {"chunk_rows": min(rows, max(1, largest // columns)), "chunk_cols": columns}


def _padded(size: int, dtype: pl.DataType) -> int:
    granule = _ROW // dtype.itemsize
    return -(-size // granule) * granule


def load(source: pl.Tensor, row: int, at: int, size: int) -> pl.Tile:
    """``size`` elements of a row of the own slice as a tile whose row is padded to 32 bytes."""
    return pl.load(source, [row, at], [1, _padded(size, source.dtype)], valid_shape=[1, size])


def remote_load(source: pld.DistributedTensor, peer: int, row: int, at: int, size: int) -> pl.Tile:
    """The same of a peer's slice."""
    return pld.remote_load(source, peer, [row, at], [1, _padded(size, source.dtype)], valid_shape=[1, size])
