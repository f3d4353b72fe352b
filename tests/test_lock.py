"""The locks name every package that is needed, each with hashes, and no machine's own index."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCKS = sorted(p.name for p in ROOT.glob("requirements*.txt"))
PIN = re.compile(r"[a-z0-9][a-z0-9.-]*==\S+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+")


def pins(name: str) -> list[Requirement]:
    lines = re.findall(r"^(\w[^\\\n]*?) *\\?$", (ROOT / name).read_text("utf-8"), re.M)
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_is_comments_and_packages_with_hashes(name):
    text = (ROOT / name).read_text("utf-8")
    body = re.sub(r"\A(#.*\n)+", "", text)
    assert body != text, "says what it is for"
    for block in re.split(r"\n(?=\S)", body.rstrip()):
        assert PIN.fullmatch(block), block[:200]
    assert not any(p.name == "torch" or p.name.startswith("nvidia") for p in pins(name))


def test_the_locks_name_what_the_package_asks_for_at_allowed_versions():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    base, extras = project["dependencies"], project["optional-dependencies"]
    models = base + extras["models"]
    dev = [one for one in extras["dev"] if one != "genprobe[models]"]
    assert len(dev) < len(extras["dev"])
    hand = (ROOT / "constraints.txt").read_text("utf-8")
    torch = [Requirement(line) for line in hand.splitlines() if not line.startswith("#")]
    for name, asked in (
        ("requirements.txt", base),
        ("requirements-models.txt", models),
        ("requirements-dev.txt", models + dev),
    ):
        locked: dict[str, list[Requirement]] = {}
        for pin in pins(name) + torch:
            locked.setdefault(canonicalize_name(pin.name), []).append(pin)
        for want in map(Requirement, asked):
            found = locked[canonicalize_name(want.name)]
            for pin in found:
                (version,) = (s.version for s in pin.specifier)
                assert version in want.specifier, f"{name}: {pin}: make lock"


def test_the_wheels_lock_has_the_versions_that_are_tested():
    tested = {(p.name, str(p.specifier)) for p in pins("requirements-dev.txt")}
    for name in ("requirements.txt", "requirements-models.txt", "requirements-build.txt"):
        only_arm = {"cmake", "nanobind", "ninja", "scikit-build-core", "editables"}
        assert {(p.name, str(p.specifier)) for p in pins(name) if p.name not in only_arm} <= tested
