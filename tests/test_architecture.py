"""The house rules that a reader relies on: imports run one way, files stay small, modules say what is public."""

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("a2a3sim", "models", "kernels", "experiments")
FILES = sorted(p for name in PACKAGES for p in (ROOT / name).rglob("*.py"))

# What each part may import of the others. The two leaf modules are for everybody.
LEAVES = {"a2a3sim.units", "a2a3sim.errors"}
FORBIDDEN = {
    "models": ("a2a3sim",),
    "kernels": ("a2a3sim", "a2a3sim.models", "a2a3sim.experiments"),
    "a2a3sim": ("a2a3sim.experiments",),
}
ALLOWED = {
    "models": ("a2a3sim.models",),
    "kernels": ("a2a3sim.language", "a2a3sim.kernels"),
}


def imported(path: Path) -> set[str]:
    """Names of the modules that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names if node.module == "a2a3sim"}
    return {n for n in names if n == "a2a3sim" or n.startswith("a2a3sim.")}


def within(name: str, packages) -> bool:
    return any(name == p or name.startswith(p + ".") for p in packages)


@pytest.mark.parametrize(
    "path", [f for f in FILES if f.parts[len(ROOT.parts)] == "models"], ids=lambda p: p.name
)
def test_the_models_know_no_kernel_and_no_language(path):
    strangers = {
        n for n in imported(path) if not within(n, ALLOWED["models"]) and n not in LEAVES and n != "a2a3sim"
    }
    assert not strangers


@pytest.mark.parametrize(
    "path", [f for f in FILES if f.parts[len(ROOT.parts)] == "kernels"], ids=lambda p: p.name
)
def test_kernels_import_only_the_language(path):
    strangers = {
        n for n in imported(path) if not within(n, ALLOWED["kernels"]) and n not in LEAVES and n != "a2a3sim"
    }
    assert not strangers


def test_only_the_command_line_stands_above_the_experiments():
    users = {
        f
        for f in FILES
        if f.parts[len(ROOT.parts)] == "a2a3sim"
        and any(within(n, ("a2a3sim.experiments",)) for n in imported(f))
    }
    assert all("cli" in f.parts for f in users)


def test_one_file_knows_greenlet():
    knowing = {
        f.name
        for f in FILES
        if any(line.startswith(("import greenlet", "from greenlet")) for line in f.read_text().splitlines())
    }
    assert knowing == {"engine.py"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_file_is_too_long(path):
    assert len(path.read_text().splitlines()) <= 500


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
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


def module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(parts if parts[0] == "a2a3sim" else ("a2a3sim", *parts))


MODULES = {module(f): f for f in FILES}


def dependencies(name: str) -> set[str]:
    """The modules that one imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {n if n in MODULES else node.module for n in names}
    return found & MODULES.keys() - {name}


def test_no_modules_import_each_other_in_a_circle():
    graphlib.TopologicalSorter({name: dependencies(name) for name in MODULES}).prepare()


def storey(name: str) -> int:
    """Of the language: data, what kernels do, what host bodies say; the facades on top."""
    package, _, module = name.removeprefix("a2a3sim.language").removeprefix(".").rpartition(".")
    return {"kernel": 1, "host": 2}.get(package or module, 3 if module in ("", "distributed") else 0)


def test_no_storey_of_the_language_imports_a_higher_one():
    language = {n for n in MODULES if within(n, ("a2a3sim.language",))}
    upwards = {(n, d) for n in language for d in dependencies(n) & language if storey(d) > storey(n)}
    assert not upwards
    assert {storey(n) for n in language} == {0, 1, 2, 3}
