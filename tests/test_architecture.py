"""The house rules that a reader relies on: imports run one way, files stay small, modules say what is public."""

import ast
import importlib
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import a2a3sim

ROOT = Path(__file__).parent.parent
PACKAGES = {f"a2a3sim.{name}": ROOT / name for name in ("models", "kernels", "experiments")}
PACKAGES["a2a3sim"] = ROOT / "a2a3sim"
OUTSIDE = sorted(p for name in ("benchmarks", "examples") for p in (ROOT / name).rglob("*.py"))


def module_name(package: str, path: Path) -> str:
    """The name under which a file of a package is imported."""
    return ".".join([package, *path.relative_to(PACKAGES[package]).with_suffix("").parts]).removesuffix(
        ".__init__"
    )


MODULES = {module_name(name, p): p for name, top in PACKAGES.items() for p in sorted(top.rglob("*.py"))}


def imported(path: Path) -> set[str]:
    """Our modules that a file imports, anywhere in it, inside functions too; no import is relative."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno} imports relatively"
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in MODULES else str(node.module) for name in whole}
    return names & MODULES.keys()


IMPORTS = {name: imported(path) - {name} for name, path in MODULES.items()}


def within(name: str, *rooms: str) -> bool:
    """Whether a module is one of these or stands in one of them."""
    return any(name == room or name.startswith(room + ".") for room in rooms)


#: The public rooms and modules: all that programs, examples, experiments and benchmarks import.
FACES = {
    "a2a3sim",
    *(f"a2a3sim.{room}" for room in ("checks", "kernels", "language", "models", "reports", "run", "trace")),
    *(
        f"a2a3sim.{module}"
        for module in ("engine", "errors", "files", "ir", "pypto", "result", "setting", "units")
    ),
    "a2a3sim.language.distributed",
    "a2a3sim.language.types",
}
#: The rooms of checks, which the checks show to the others.
CHECKS = [f"a2a3sim.checks.{room}" for room in ("happens_before", "mismatch", "faults")]
LAZY = [name for name in (*sorted(FACES), *CHECKS) if "lazy(__name__)" in MODULES[name].read_text()]

ABOVE = ("a2a3sim.reports", "a2a3sim.cli", "a2a3sim.experiments")
#: What no module of a room imports.
CLOSED = {
    "a2a3sim.language.kernel": ("a2a3sim.language.host", "a2a3sim.run", "a2a3sim.trace", "a2a3sim.checks", *ABOVE),
    "a2a3sim.language.host": ("a2a3sim.run", "a2a3sim.checks", *ABOVE),
    "a2a3sim.trace": ("a2a3sim.language", "a2a3sim.run", "a2a3sim.checks", "a2a3sim.kernels", *ABOVE),
    "a2a3sim.checks.happens_before": (
        "a2a3sim.language", "a2a3sim.run", "a2a3sim.trace", "a2a3sim.result", "a2a3sim.kernels",
        "a2a3sim.checks.mismatch", "a2a3sim.checks.faults", *ABOVE,
    ),
    "a2a3sim.checks": ("a2a3sim.kernels", *ABOVE),
    "a2a3sim.run": ("a2a3sim.kernels", *ABOVE),
    "a2a3sim.reports": ("a2a3sim.language", "a2a3sim.run", "a2a3sim.kernels", "a2a3sim.cli", "a2a3sim.experiments"),
    "a2a3sim.experiments": ("a2a3sim.cli",),
}  # fmt: skip
#: All that the modules of a room import.
OPEN = {
    "a2a3sim.models": ("a2a3sim.models", "a2a3sim.errors", "a2a3sim.units", "a2a3sim.lazy"),
    "a2a3sim.kernels": (
        "a2a3sim.language",
        "a2a3sim.kernels",
        "a2a3sim.errors",
        "a2a3sim.units",
        "a2a3sim.lazy",
    ),
}


@pytest.mark.parametrize("room", CLOSED)
def test_a_room_imports_none_of_those_above_it(room):
    wrong = {
        f"{name} imports {other}"
        for name in MODULES
        if within(name, room)
        for other in IMPORTS[name]
        if within(other, *CLOSED[room])
    }
    assert not wrong


@pytest.mark.parametrize("room", [*CHECKS, "a2a3sim.checks"])
def test_nobody_reaches_past_the_face_of_the_checks(room):
    wrong = {
        f"{name} imports {other}"
        for name in MODULES
        if not within(name, room)
        for other in IMPORTS[name]
        if within(other, room) and other != room
    }
    assert not wrong


@pytest.mark.parametrize("room", OPEN)
def test_models_and_kernels_know_little(room):
    wrong = {
        f"{name} imports {other}"
        for name in MODULES
        if within(name, room)
        for other in IMPORTS[name]
        if not within(other, *OPEN[room])
    }
    assert not wrong


def test_the_language_is_data_that_knows_neither_kernels_nor_hosts():
    facades = {"a2a3sim.language", "a2a3sim.language.distributed"}
    data = [
        name
        for name, path in MODULES.items()
        if path.parent == ROOT / "a2a3sim" / "language" and name not in facades
    ]
    wrong = {
        f"{name} imports {o}" for name in data for o in IMPORTS[name] if within(o, *CLOSED) or o in facades
    }
    assert not wrong


def test_no_import_runs_in_a_circle():
    list(TopologicalSorter(IMPORTS).static_order())


def test_the_root_holds_few_modules():
    assert len(list((ROOT / "a2a3sim").glob("*.py"))) <= 14


@pytest.mark.parametrize(
    "path",
    [*OUTSIDE, *(p for name, p in MODULES.items() if within(name, "a2a3sim.experiments"))],
    ids=lambda p: f"{p.parent.name}/{p.name}",
)
def test_experiments_examples_and_benchmarks_import_the_public_api_only(path):
    assert {n for n in imported(path) if not within(n, "a2a3sim.experiments")} <= FACES


@pytest.mark.parametrize("name", LAZY)
def test_a_face_shows_what_it_says(name):
    face = importlib.import_module(name)
    own = {"kernels": {"CATALOGUE", "DEFAULTS", "find"}}.get(face.__name__.rpartition(".")[2], set())
    assert set(dir(face)) | own == set(face.__all__)
    shadowed = {n for n in face.__all__ if f"{name}.{n}" in MODULES and name != "a2a3sim"}
    assert not shadowed  # a submodule of that name would take its place
    assert all(getattr(face, n) is not None for n in face.__all__)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = face.nothing


def test_the_package_shows_few_names():
    assert len(a2a3sim.__all__) <= 15


def test_only_the_command_line_stands_above_the_experiments():
    users = {n for n in MODULES if any(within(o, "a2a3sim.experiments") for o in IMPORTS[n])}
    assert all(within(n, "a2a3sim.cli", "a2a3sim.experiments") for n in users)


def test_one_file_knows_greenlet():
    knowing = {
        f.name
        for f in MODULES.values()
        if any(line.startswith(("import greenlet", "from greenlet")) for line in f.read_text().splitlines())
    }
    assert knowing == {"engine.py"}


@pytest.mark.parametrize("path", MODULES.values(), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_file_is_too_long(path):
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", MODULES.values(), ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_has_a_docstring_and_says_what_is_public(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    defines = any(
        isinstance(n, (ast.FunctionDef, ast.ClassDef)) and not n.name.startswith("_") for n in tree.body
    )
    names = {
        t.id
        for n in tree.body
        if isinstance(n, (ast.Assign, ast.AnnAssign))
        for t in getattr(n, "targets", [getattr(n, "target", None)])
        if isinstance(t, ast.Name)
    }
    if defines and "cli" not in path.parts:
        assert "__all__" in names


def test_importing_the_package_is_light():
    code = "import sys, a2a3sim; bad = {'matplotlib', 'torch', 'pydantic', 'rich'} & set(sys.modules); sys.exit(str(bad) if bad else 0)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).returncode == 0


def test_importing_the_language_draws_nothing():
    code = "import sys, a2a3sim.language; sys.exit(1 if {'matplotlib', 'torch'} & set(sys.modules) else 0)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", ["models", "kernels", "experiments"])
def test_a_stray_import_from_the_checkout_is_refused(name):
    done = subprocess.run([sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"import a2a3sim.{name}" in done.stderr


def storey(name: str) -> int:
    """Of the language: data, what kernels do, what host bodies say; the facades on top."""
    package, _, module = name.removeprefix("a2a3sim.language").removeprefix(".").rpartition(".")
    return {"kernel": 1, "host": 2}.get(package or module, 3 if module in ("", "distributed") else 0)


def test_no_storey_of_the_language_imports_a_higher_one():
    language = {n for n in MODULES if within(n, "a2a3sim.language")}
    upwards = {(n, d) for n in language for d in IMPORTS[n] & language if storey(d) > storey(n)}
    assert not upwards
    assert {storey(n) for n in language} == {0, 1, 2, 3}
