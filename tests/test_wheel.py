"""The wheel installs one import name and works from outside the checkout."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = """
from a2a3sim.experiments.runner import Point, run_point
from a2a3sim import RunConfig
outcome = run_point(Point("mesh", 2, 4096, config=RunConfig(machine="ideal")))
print(outcome.result.numerics.ok, outcome.result.max_remote_bytes)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    # From a copy: setuptools leaves a build folder in the tree that it builds.
    for name in ("a2a3sim", "models", "kernels", "experiments"):
        shutil.copytree(ROOT / name, folder / "src" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder / "src" / name)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, folder / "src"],
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl"))


def test_the_only_top_level_name_is_a2a3sim(wheel):
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {t for t in tops if not t.endswith(".dist-info")} == {"a2a3sim"}


def test_every_package_and_platform_file_is_inside(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for path in ROOT.glob("a2a3sim/**/*.py"):
        assert str(path.relative_to(ROOT)) in names
    for part in ("models", "kernels", "experiments"):
        for path in [*ROOT.glob(f"{part}/**/*.py"), *ROOT.glob(f"{part}/**/*.toml")]:
            assert f"a2a3sim/{path.relative_to(ROOT)}" in names


def test_a_kernel_runs_from_the_unpacked_wheel(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n{SCRIPT}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "4096"], done.stderr
