"""A result beside its golden: how many elements are wrong, and by how much."""

from __future__ import annotations

import numpy as np

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.host.arguments import as_array
from a2a3sim.language.types import as_dtype

__all__ = ["TOLERANCES", "compare"]

TOLERANCES = {"fp32": 1e-5, "fp16": 1e-3, "bf16": 1e-2}  # relative and absolute; integers must be equal


def compare(golden, written: dict[str, np.ndarray], rtol: float | None, atol: float | None):
    """Compare the tensors that a program wrote with what they should be.

    Args:
        golden: an array, or a tuple in the order of ``written``.

    Returns:
        `a2a3sim.result.Numerics`. NaN never passes.

    Raises:
        InvalidOperationError: number or shape differs.
    """
    from a2a3sim.result import Numerics

    wanted = list(golden) if isinstance(golden, (tuple, list)) else [golden]
    if len(wanted) != len(written):
        raise InvalidOperationError(
            f"golden must have one array for each of {', '.join(written)}, got {len(wanted)}"
        )
    wrong, absolute, relative, notes = 0, 0.0, 0.0, []
    for (name, got), want in zip(written.items(), wanted, strict=True):
        want = as_array(want, f"golden of {name}")
        if want.shape != got.shape:
            raise InvalidOperationError(
                f"golden of {name} must have shape {list(got.shape)}, got {list(want.shape)}"
            )
        tolerance = TOLERANCES.get(as_dtype(got.dtype).name, 0.0)
        with np.errstate(all="ignore"):
            a, b = got.astype(np.float64), want.astype(np.float64)
            error = np.abs(a - b)
            limit = (tolerance if atol is None else atol) + (tolerance if rtol is None else rtol) * np.abs(b)
            bad = ~(error <= limit) & ~(a == b)
            with_reference = np.where(b == 0, 0, error / np.abs(b))
        finite = error[np.isfinite(error)]
        absolute = max(absolute, float(finite.max(initial=0.0)))
        relative = max(relative, float(with_reference[np.isfinite(with_reference)].max(initial=0.0)))
        count = int(bad.sum())
        if count:
            first = tuple(int(i) for i in np.argwhere(bad)[0])
            notes.append(
                f"{name}: {count} of {bad.size} elements, first at {list(first)}: {got[first]} != {want[first]}"
            )
        wrong += count
    return Numerics(
        ok=wrong == 0,
        wrong=wrong,
        max_abs_error=absolute,
        max_rel_error=relative,
        explanation="; ".join(notes),
    )
