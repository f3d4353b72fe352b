"""A small run for tests: three statements, an engine that does what it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from genprobe.engines import Identity, Sampling
from genprobe.judges import Item, Verdict
from genprobe.records import Failure, LogProb, Request, Response, Statement
from genprobe.render.notebook import Run
from genprobe.resources.packs import load_pack
from genprobe.runs.spec import Spec, statements_hash
from genprobe.tasks.pipeline.plan import plan

STATEMENTS = [
    Statement(f"s{n}", "en", text, "original", f"p{n}", "age", "", "people", ("en",), "test", {})
    for n, text in enumerate(["Old people are slow.", "Boys \u202eplay.", "Twins\u2028agree."])
]
REQUESTS = list(plan(STATEMENTS, load_pack(), ["agreement", "disagreement"], seed=7))
SPEC = Spec(
    command="yesno",
    model="org/model-1",
    revision="0123456789abcdef0123456789abcdef01234567",
    engine="scripted",
    engine_version="1.0",
    dtype="float32",
    chat_template="none",
    engine_args={},
    pack=REQUESTS[0].pack,
    pack_hashes={"en": "abcabcabcabc"},
    data="builtin",
    statements=statements_hash(STATEMENTS),
    languages=("en",),
    probes=("agreement", "disagreement"),
    decode=("free",),
    temperature=0.0,
    top_p=1.0,
    max_tokens=64,
    seed=7,
    samples=1,
    limit=None,
    packages={"python": "3.11.0", "torch": "2.9.0"},
    version="0.1.0",
)


def start(folder: Path, spec: Spec = SPEC) -> Run:
    return Run.start(folder, spec, STATEMENTS, REQUESTS)


def reply(request: Request) -> Response:
    return Response(request.id, f"Yes, \ud800 {request.seed}", "stop", "sent", 3, None)


class Scripted:
    """Answers with what `script` makes of each request, in the order given by `order`."""

    identity = Identity("org/model-1", "0", "scripted", "1.0", "float32", "none")

    def __init__(
        self,
        script: Callable[[Request], Response | LogProb | Failure] = reply,
        order: Callable[[Sequence[Request]], Sequence[Request]] = lambda requests: requests,
    ) -> None:
        self.script, self.order = script, order
        self.asked: list[str] = []

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Response | LogProb | Failure]:
        for request in self.order(requests):
            self.asked.append(request.id)
            yield self.script(request)

    def close(self) -> None: ...


class Echo:
    """A judge that shows what it saw."""

    name, column, signature = "echo", "echo", "1"
    reads = frozenset(("free",))
    needs: tuple[str, ...] = ("response",)

    def __call__(self, item: Item) -> Verdict:
        return Verdict(item.lang, "echo", item.response, 0.5, {"prompt": item.prompt})
