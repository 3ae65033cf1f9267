"""What the scripts of the ladder share: their command line, the comparison at the end, the exit codes.

Exit codes: 0 fine, 1 wrong numbers, 2 something on the command line (one line on stderr).
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from a2a3sim import ConfigError, DistributedConfig, RunConfig, ir

__all__ = ["arguments", "compiled_for", "require_multiple", "run", "verdict"]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str):
        """One line instead of argparse's usage text."""
        raise ConfigError(message)


def arguments(lesson: str, *, modes=(), use_builtin=False) -> argparse.Namespace:
    """Parse the command line of a script.

    Args:
        lesson: the script's docstring; its first line describes the command.
        modes: choices of ``--mode``, the default first.
        use_builtin: whether ``--use-builtin`` exists.

    Returns:
        platform, device_ids, compile_only and, where they exist, mode and use_builtin.

    Raises:
        ConfigError: what is wrong, in one line.
    """
    parser = _Parser(prog=_script(), description=lesson.strip().splitlines()[0], allow_abbrev=False)
    parser.add_argument("-p", "--platform", default="a2a3sim", help="PyPTO platform (default: %(default)s)")
    parser.add_argument("-d", "--device", default="0,1,2,3", help="device labels, one a rank")
    if modes:
        parser.add_argument("--mode", choices=modes, default=modes[0], help="variant (default: %(default)s)")
    if use_builtin:
        parser.add_argument("--use-builtin", action="store_true", help="call the built-in instead")
    parser.add_argument("--compile-only", action="store_true", help="print the output directory and stop")
    args = parser.parse_args(_joined(sys.argv[1:]))
    args.device_ids = _device_ids(args.device)
    return args


def _script() -> str:
    return Path(sys.argv[0]).name


def _joined(argv: list[str]) -> list[str]:
    """``-d -1,2`` as ``-d=-1,2``, so that a negative label is reported as one and not as an unknown flag."""
    out: list[str] = []
    for word in argv:
        if out and out[-1] in ("-d", "--device") and word[:1] == "-" and word[1:2].isdigit():
            out[-1] += "=" + word
        else:
            out.append(word)
    return out


def _device_ids(text: str) -> list[int]:
    try:
        ids = [int(word) for word in text.split(",")]
    except ValueError:
        raise ConfigError(f"-d must be a list of device labels such as 0,1,2,3, got {text!r}") from None
    if len(ids) < 2:
        raise ConfigError(f"-d must name at least two devices, got {text!r}")
    DistributedConfig(device_ids=ids)  # complains about negative and repeated labels
    return ids


def require_multiple(size: int, nr: int) -> None:
    """Stop unless a slice of ``size`` elements can be cut into one equal chunk for each of ``nr`` ranks.

    Raises:
        ConfigError: it cannot.
    """
    if size % nr:
        fits = ", ".join(str(p) for p in range(2, 17) if size % p == 0)
        raise ConfigError(f"SIZE = {size} must be a multiple of the number of devices, got {nr} (try {fits})")


def compiled_for(args: argparse.Namespace, program, *tensors):
    """A program compiled for the devices of the command line; with ``--compile-only`` the script ends here.

    Args:
        tensors: of a function that is compiled for their shapes.
    """
    devices = DistributedConfig(device_ids=args.device_ids)
    if tensors:
        config = RunConfig(platform=args.platform, distributed_config=devices)
        compiled = program.compile(*tensors, config=config)
    else:
        compiled = ir.compile(program, platform=args.platform, distributed_config=devices)
    if args.compile_only:
        print(compiled.output_dir)
        raise SystemExit(0)
    return compiled


def verdict(got: np.ndarray, expected: np.ndarray, tolerance: float = 1e-5) -> int:
    """Print ``OK``, or ``MISMATCH`` with the first wrong element on stderr; returns the exit code."""
    wrong = ~np.isclose(got, expected, rtol=tolerance, atol=tolerance)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        count = f"{int(wrong.sum())} of {wrong.size} elements differ"
        print(f"{count}, the first at {list(at)}: {got[at]} != {expected[at]}", file=sys.stderr)
        print("MISMATCH")
        return 1
    print("OK")
    return 0


def run(main) -> None:
    """Run a script's ``main`` and leave with its exit code."""
    try:
        status = main()
    except ConfigError as error:
        print(f"{_script()}: {' '.join(str(error).split())}", file=sys.stderr)
        status = 2
    raise SystemExit(status)
