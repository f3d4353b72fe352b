"""The floors of the house: a room imports rooms below it, in functions too, and no private name.

From top to bottom; those on one line know nothing of each other. CONTRIBUTING.md draws it.
"""

import ast
from pathlib import Path

import genprobe
from genprobe.resources.registry import MODULES

FLOORS = (
    ("__main__",),
    ("commands",),
    ("selftest", "lint", "audits", "harnesses"),
    ("api",),
    ("publishing",),
    ("report",),
    ("analysis",),
    ("review", "curation"),
    ("tasks",),
    ("render",),
    ("metrics",),
    ("outcomes",),
    ("judges",),
    ("engines",),
    ("runs",),
    ("datasets",),
    ("linguistics", "logs"),
    ("resources",),
    ("files",),
    ("records", "statistics"),
    ("text", "limits"),
    ("errors", "_version"),
)
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
PACKAGE = Path(genprobe.__file__).parent


def modules():
    """Dotted name below `genprobe` -> its syntax tree."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        if name:  # the public names at the top import from everywhere
            yield name, ast.parse(path.read_text("utf-8"))


TREES = dict(modules())


def imports(name, types=False):
    """(module, name or None) of every import of our own, in functions too; `types`: those for types."""
    tree = TREES[name]
    typing_only = {
        node
        for block in ast.walk(tree)
        if not types
        and isinstance(block, ast.If)
        and getattr(block.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and node not in typing_only:
            for alias in node.names:
                if alias.name.split(".")[0] == "genprobe":
                    yield alias.name.removeprefix("genprobe").lstrip("."), None
        if isinstance(node, ast.ImportFrom) and node not in typing_only:
            module = node.module or ""
            if module.split(".")[0] != "genprobe":
                continue
            for alias in node.names:
                inner = module.removeprefix("genprobe").lstrip(".")
                full = f"{inner}.{alias.name}".lstrip(".")
                yield (full, None) if full in TREES else (inner, alias.name)


def test_every_room_has_a_floor():
    rooms = {name.partition(".")[0] for name in TREES}
    assert rooms <= FLOOR.keys(), f"say in FLOORS where {rooms - FLOOR.keys()} stands"


def test_arrows_go_down():
    up = [
        f"{name} -> {module}"
        for name in TREES
        for module, _ in imports(name)
        if (there := module.partition(".")[0]) != (here := name.partition(".")[0])
        and FLOOR[there] <= FLOOR[here]
    ]
    assert not up


def test_members_of_a_family_are_looked_up_from_above():
    """`registry.module("tasks", …)` below the tasks would be an import upwards by another name."""
    up = [
        f"{name}: {family}"
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("registry.module", "registry.names")
        and isinstance(node.args[0], ast.Constant)
        and (family := MODULES.get(node.args[0].value))
        and FLOOR[family.partition(".")[0]] < FLOOR[name.partition(".")[0]]
    ]
    assert not up


def test_nobody_imports_the_whole_package():
    assert [name for name in TREES if any(not module for module, _ in imports(name))] == []


def test_private_names_stay_at_home():
    """A name with an underscore is used in its module; a module with one in its room."""
    out = []
    for name in TREES:
        room = name.partition(".")[0]
        for module, what in imports(name):
            private = [part for part in module.split(".") if part.startswith("_")]
            if private and private != ["_version"] and module.partition(".")[0] != room:
                out.append(f"{name} imports {module}")
            if what and what.startswith("_") and what != "__version__":
                out.append(f"{name} imports {what} of {module}")
    assert not out


def test_no_circles():
    """Between modules; imports in functions and for types count."""
    graph = {name: {at for at, _ in imports(name, types=True) if at != name} for name in TREES}
    done: set[str] = set()
    circles = []

    def walk(name, path):
        if name in path:
            circles.append(" -> ".join([*path[path.index(name) :], name]))
            return
        if name in done:
            return
        for module in sorted(graph.get(name, ())):
            walk(module, [*path, name])
        done.add(name)

    for name in graph:
        walk(name, [])
    assert not circles
