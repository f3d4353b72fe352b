"""Kill a run at random moments, again and again, and test whether anything is lost or doubled.

    python benchmarks/kills.py                    `genprobe yesno --lang mr` with the control model
    python benchmarks/kills.py --driver light     the same code for folders, with a fast engine
    python benchmarks/kills.py --command "genprobe yesno --engine vllm --out {} -q"
    python benchmarks/kills.py --command "genprobe yesno --base-url URL --out {} -q"
    python benchmarks/kills.py --command "genprobe yesno --engine ray --lang mr --out {} -q"

The light driver starts in a fraction of a second. It also notes which bytes the folder has
acknowledged as stored (`Run.flush` returned). After each kill, a random part of the bytes that were
not acknowledged is cut off too, as if the machine had lost power. Prints a table; exit code 1 if
anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from genprobe import __version__
from genprobe.engines import Identity, Sampling
from genprobe.errors import GenprobeError
from genprobe.judges import Item, Verdict
from genprobe.records import Failure, Request, Response, Statement
from genprobe.resources.packs import load_pack
from genprobe.runs.run import Run
from genprobe.runs.spec import Spec, statements_hash, versions
from genprobe.tasks.pipeline.generate import generate
from genprobe.tasks.pipeline.judge import judge
from genprobe.tasks.pipeline.plan import plan

COMMAND = f"{Path(sys.executable).with_name('genprobe')} yesno --lang mr --out {{}} -q"


@dataclass
class Driver:
    """How a run is started. notes: whether it notes how many bytes were acknowledged."""

    command: list[str]
    notes: bool

    def start(self, folder: Path) -> subprocess.Popen[bytes]:
        command = [part.replace("{}", str(folder)) for part in self.command]
        with folder.with_suffix(".log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def acknowledged(self, folder: Path) -> int:
        """Return how many bytes of responses.jsonl must be on disk."""
        path = folder.with_suffix(".acks")
        return int(path.read_text().split()[-1]) if self.notes and path.exists() else 0


@dataclass
class Tally:
    kills: int = 0
    runs: int = 0
    expected: int = 0
    lost: int = 0
    doubled: int = 0
    torn: int = 0
    headless: int = 0
    rewritten: int = 0
    replies: int = 0
    different: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        bad = self.lost or self.doubled or self.rewritten or self.different or self.problems
        return not bad

    def __str__(self) -> str:
        rows = {
            "kills": self.kills,
            "runs finished": self.runs,
            "killed before run.json": self.headless,
            "torn lines found": self.torn,
            "responses expected": self.expected,
            "lost": self.lost,
            "doubled": self.doubled,
            "rewritten": self.rewritten,
            "replies that differ": self.replies,
            "judgments identical": "no" if self.different else "yes",
            "problems": len(self.problems),
        }
        table = "\n".join(f"{name:<24}{value:>8}" for name, value in rows.items())
        return "\n".join([table, *self.problems[:20]])


def after_kill(folder: Path, driver: Driver, before: bytes, tally: Tally) -> bytes:
    """Check what a kill left, and cut off some of what was not acknowledged.

    before: the lines that were there when the killed process started. Returns the complete lines.
    """
    tally.headless += not (folder / "run.json").exists()
    path = folder / "responses.jsonl"
    data = path.read_bytes() if path.exists() else b""
    promised = max(driver.acknowledged(folder), len(before))
    tally.rewritten += not data.startswith(before)
    if driver.notes and promised < len(data):
        data = data[: random.randint(promised, len(data))]
        os.truncate(path, len(data))
    whole = data[: data.rfind(b"\n") + 1]
    tally.torn += len(whole) < len(data)
    # Acknowledged bytes end with a complete line, so any missing byte means a lost response.
    tally.lost += len(whole) < promised
    count(whole, tally)
    return whole


def count(data: bytes, tally: Tally) -> set[str]:
    """Return the ids of requests with a response; count repeated ones, and note broken lines."""
    ids: Counter[str] = Counter()
    for number, line in enumerate(data.splitlines(), 1):
        try:
            ids[json.loads(line)["request"]] += 1
        except (ValueError, KeyError):
            tally.problems.append(f"responses.jsonl:{number}: broken")
    tally.doubled += sum(n - 1 for n in ids.values())
    return set(ids)


def after_end(folder: Path, before: bytes, reference: Path, tally: Tally) -> None:
    """Compare a finished run with its plan and with a run that was never killed (reference)."""
    run = Run.open(folder)
    planned = {request.id for request in run.requests()}
    data = (folder / "responses.jsonl").read_bytes()
    tally.rewritten += not data.startswith(before)
    tally.expected += len(planned)
    tally.lost += len(planned - count(data, tally))
    replies, others = texts(run), texts(Run.open(reference))
    tally.replies += sum(replies[name] != others.get(name) for name in replies)
    judgments, theirs = derived(folder), derived(reference)
    for name in judgments.keys() | theirs.keys():
        if judgments.get(name) != theirs.get(name):
            tally.different += 1
            tally.problems.append(f"{folder.name}/judgments/{name}: not as without kills")
    tally.problems += [f"{folder.name}/{problem}" for problem in run.verify()]
    tally.runs += 1


def texts(run: Run) -> dict[str, str]:
    return {response.request: response.text for response in run.responses()}


def derived(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "judgments").iterdir())}


def torment(driver: Driver, kills: int, room: Path) -> Tally:
    """Start runs and kill them until there were `kills` kills; every run is finished in the end."""
    tally = Tally()
    reference = room / "reference"
    begun = time.monotonic()
    if driver.start(reference).wait():
        raise SystemExit(reference.with_suffix(".log").read_text())
    life = time.monotonic() - begun
    if not (reference / "judgments").exists():
        raise SystemExit("the command judged nothing: there is nothing to compare")
    bar = sys.stderr.isatty()
    while tally.kills < kills:
        folder, before = room / f"run{tally.runs}", b""
        while True:
            process = driver.start(folder)
            try:
                moment = random.uniform(0, life) if tally.kills < kills else None
                code = process.wait(moment)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            if code == 0:
                break
            if code != -signal.SIGKILL:
                raise SystemExit(folder.with_suffix(".log").read_text())
            tally.kills += 1
            before = after_kill(folder, driver, before, tally)
            if bar:
                print(f"\r{tally.kills} kills", end="", file=sys.stderr)
        after_end(folder, before, reference, tally)
        if tally.good:
            shutil.rmtree(folder)
    return tally


# -- the light driver: a run in a process of its own -------------------------------------------


class Slow:
    """An engine that answers out of order, sometimes fails, and sometimes gives long replies."""

    identity = Identity("none", "0", "slow", "0", "none", "none")

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Response | Failure]:
        for request in random.sample(requests, len(requests)):
            time.sleep(0.001)
            if random.random() < 0.05:
                yield Failure(request.id, "engine", "injected", 1)
                continue
            draw = random.Random(request.seed)
            text = f"{draw.random()} " * (20_000 if draw.random() < 0.02 else draw.randint(1, 40))
            yield Response(request.id, text, "stop", "", None, None)

    def close(self) -> None: ...


class Length:
    """A judge that is quick to start."""

    name, column, signature = "length", "length", "1"
    reads = frozenset(("free",))
    needs: tuple[str, ...] = ("response",)

    def __call__(self, item: Item) -> Verdict:
        time.sleep(0.0002)
        return Verdict(str(len(item.response)), "length", evidence=item.response[:20])


class Noting(Run):
    """A run that notes beside its folder how much of responses.jsonl it has acknowledged."""

    def flush(self) -> None:
        before = (self.folder / "responses.jsonl").stat().st_size if self._files else 0
        super().flush()
        if before:
            with self.folder.with_suffix(".acks").open("ab", buffering=0) as notes:
                notes.write(b"%20d\n" % before)


def drive(folder: Path) -> None:
    pack, probes = load_pack(), ("recognition", "agreement", "disagreement")
    statements = [
        Statement(f"s{n}", "mr", f"{n}", "original", "", "", "", "", (), "kills", {})
        for n in range(40)
    ]
    who, sampling = Slow.identity, Sampling()
    spec = Spec(
        command="kills",
        **vars(who),
        pack=pack.id,
        pack_hashes={"mr": pack.hashes["mr"]},
        data="kills",
        statements=statements_hash(statements),
        languages=("mr",),
        probes=probes,
        decode=("free",),
        **vars(sampling),
        seed=0,
        samples=1,
        limit=None,
        packages=versions(),
        version=__version__,
    )
    with Noting.start(folder, spec, statements, plan(statements, pack, probes, 0)) as run:
        while generate(run, Slow(), sampling).failed:
            pass
        judge(run, [Length()])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--driver", choices=("real", "light"), default="real")
    parser.add_argument("--command", default=COMMAND, help="of the real driver; {} is the folder")
    parser.add_argument("--seed", type=int, default=None, help="of the moments of the kills")
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        drive(options.drive)
        return 0
    random.seed(options.seed)
    if options.driver == "light":
        driver = Driver([sys.executable, __file__, "--drive", "{}"], notes=True)
    else:
        driver = Driver(shlex.split(options.command), notes=False)
    with tempfile.TemporaryDirectory() as room:
        try:
            tally = torment(driver, options.kills, Path(room))
        except GenprobeError as error:
            raise SystemExit(str(error)) from None
    print(tally)
    return 0 if tally.good else 1


if __name__ == "__main__":
    sys.exit(main())
