"""Does the whole instrument measure right? A model whose true rates are known is measured.

The control model is asked everything that is built in, through the engine, the store, the judges
and the metrics that any model goes through. Then its true rates are computed from its logits
(`control.exact`), and four things must hold:

- intervals: the 95 % intervals cover the true share in as many cells (language, probe and bias
  type; yes, no and ambiguous) as they should, some 99 %: they allow for originals and contrasts
  that are answered alike, and the control model answers each for itself;
- rates: for no language and probe the number of replies with an answer is further from the
  true one than chance allows, which is where a misreading shows;
- sharpness: likely answers come as often as they should, which a wrong temperature changes;
- labels: every reply that was planted is read as what it means.

Of a panel of wordings whose effects are planted (`control.worded`): the share of every wording is
what chance allows, and so is the variance component of the wording (`Panel`).

All figures are computed a second time from the records, by a slow and obvious way
(`analysis.recompute`), and must be the same; those of stories also with a
planted review.

The control model that thinks (`control.thoughts`) is asked with `--thinking on`: how often it
thinks, is cut off in the thought, thinks in another language than the question's, and denies what
it thought must be what chance allows (`Thinking`).

And of the stories that it tells in Kazakh: the intervals of NegRate by domain cover the true one,
the number of negative templates is what chance allows, and every planted story is read as what it
is (`Told`).

The rest of the chain (forced choice, probabilities, log-probabilities, choices, essays, the LLM
judge) is held against known answers in `chain`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

from genprobe import api, metrics, tasks
from genprobe.engines import Options, Sampling, control
from genprobe.engines import Thinking as Asked
from genprobe.engines.control import stories as tales
from genprobe.engines.control import thoughts
from genprobe.outcomes import table
from genprobe.resources import packs
from genprobe.selftest import chain
from genprobe.tasks.pipeline import Progress

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from genprobe.runs.run import Run
    from genprobe.statistics import Array, Interval

CELL = ["lang", "probe", "bias_type"]
KEY = ["statement", "lang", "probe"]
ROUNDS = 2  # samples of every question; each is a table of its own, with its own intervals
MAX_TOKENS = 128  # no planted reply is cut off
LEAST_COVERAGE = 0.90
MOST_Z_COVERAGE = 4.0
MOST_Z_RATE = 4.5  # one in 1,000 sound runs goes over it by chance, with 162 rates
MOST_Z_SHARPNESS = 4.5
STORY_LANG = "kk"
PANEL_LANG = "en"
PANEL_SAMPLES = 2
PANEL_DRAWS = 60
STORIES = 5  # a template, of each wording
STORY_TOKENS = 512
THOUGHT_ITEMS, THOUGHT_SAMPLES = 24, 4  # statements a language, and replies to each question
Drawn = tuple[tuple[int, int, int], ...]  # of every cluster: yes, no, ambiguous
# Kind of story -> why the story judge leaves it out; the others are read by their sentiment.
READ = {"russian": "language", "refusal": "refusal"}
SENSITIVE, SPECIFIC = 0.8, 0.7  # of the errors that NegRate is corrected for
LABELLED = 1000.0  # stories of each kind that the errors are known from
MOST_MISREAD = 0.01  # of a domain's stories by their sentiment: a classifier is no rule


@dataclass(frozen=True)
class Line:
    """One language. rate_z: the signed z of its worst rate, and which that is."""

    lang: str
    intervals: int
    covered: int
    expected: float
    rate_z: float
    rate: str
    misread: int


@dataclass(frozen=True)
class Told:
    """The stories of one domain.

    n: templates with a label, of how many; true: the NegRate that it should be; low, high: the
    interval that was measured; z: of the number of negative templates.
    """

    domain: str
    n: int
    templates: int
    true: float
    value: float
    low: float
    high: float
    z: float
    misread: int

    @property
    def covered(self) -> bool:
        return self.low <= self.true <= self.high

    def cells(self) -> tuple[str, ...]:
        return (
            self.domain,
            f"{self.n} of {self.templates}",
            f"{self.value:.3f}",
            f"{self.low:.3f}-{self.high:.3f}",
            f"{self.true:.3f}" + ("" if self.covered else " outside"),
            f"{self.z:+.1f}",
            str(self.misread),
        )


@dataclass(frozen=True)
class Panel:
    """A panel of wordings with planted effects.

    shares: wording -> measured, true, z. component: the variance component of the wording,
    measured and true, with the z of their difference. interval: of the rate over wordings.
    """

    lang: str
    replies: int
    shares: dict[str, tuple[float, float, float]]
    component: tuple[float, float, float]
    interval: tuple[float, float]

    def text(self) -> list[str]:
        rows = [("wording", "endorsed", "true", "z")]
        rows += [
            (name, f"{got:.3f}", f"{true:.3f}", f"{z:+.1f}")
            for name, (got, true, z) in self.shares.items()
        ]
        got, true, z = self.component
        return [
            *_aligned(rows),
            f"component of the wording {got:.4f}, planted {true:.4f} (z {z:+.1f}); over wordings "
            f"{self.interval[0]:.3f}-{self.interval[1]:.3f}, {self.replies} replies in {self.lang}",
        ]

    @property
    def faults(self) -> list[str]:
        found = [
            f"{name}: endorsed is off the planted share (z {z:+.1f})"
            for name, (_, _, z) in self.shares.items()
            if abs(z) > MOST_Z_RATE
        ]
        if abs(self.component[2]) > MOST_Z_RATE:
            found.append(f"the component of the wording is off (z {self.component[2]:+.1f})")
        return [f"wordings, {self.lang}: {fault}" for fault in found]


@dataclass(frozen=True)
class Thinking:
    """The control model that thinks, as it was measured.

    rows: language, what was counted, of how many, the share that was measured, the true one, z of
    the count. misread: texts of thoughts that were read as coming to another answer.
    """

    replies: int
    rows: tuple[tuple[str, str, int, float, float, float], ...]
    misread: tuple[str, ...]

    def text(self) -> list[str]:
        rows = [("thoughts", "share", "of", "measured", "true", "z")]
        rows += [
            (lang, what, str(n), f"{got:.3f}", f"{true:.3f}", f"{z:+.1f}")
            for lang, what, n, got, true, z in self.rows
        ]
        return [*_aligned(rows), f"{self.replies} replies of a model that thinks"]

    @property
    def faults(self) -> list[str]:
        found = [
            f"thoughts, {lang}: {what} is off the true share (z {z:+.1f})"
            for lang, what, _, _, _, z in self.rows
            if abs(z) > MOST_Z_RATE
        ]
        return found + [f"thoughts: misread {text!r}" for text in self.misread]


@dataclass(frozen=True)
class Report:
    """What `run` found; `faults` is empty where all is well."""

    lines: tuple[Line, ...]
    replies: int
    intervals: int
    covered: int
    expected: float
    coverage_z: float
    sharpness_z: float
    faults: tuple[str, ...]
    seconds: float
    stories: int = 0
    told: tuple[Told, ...] = ()
    panel: Panel | None = None
    thinking: Thinking | None = None
    chain: tuple[chain.Check, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.faults

    def text(self) -> str:
        """Write the report: a table by language, the totals, and what is wrong."""
        rows = [("lang", "intervals", "cover", "expected", "largest z of a rate", "misread")]
        for line in self.lines:
            rows.append(
                (
                    line.lang,
                    str(line.intervals),
                    f"{100 * line.covered / line.intervals:.1f} %",
                    f"{100 * line.expected / line.intervals:.1f} %",
                    f"{line.rate_z:+.1f} {line.rate}",
                    str(line.misread),
                )
            )
        out = _aligned(rows)
        out.append(
            f"{self.covered} of {self.intervals} intervals cover the true share "
            f"({100 * self.covered / self.intervals:.1f} %; expected "
            f"{100 * self.expected / self.intervals:.1f} %, z {self.coverage_z:+.1f}), "
            f"sharpness z {self.sharpness_z:+.1f}, {self.replies} replies"
        )
        if self.told:
            head = ("stories", "templates", "NegRate", "95 % interval", "true", "z", "misread")
            out += ["", *_aligned([head, *(t.cells() for t in self.told)])]
            covered = sum(t.covered for t in self.told)
            out.append(
                f"{covered} of {len(self.told)} intervals of NegRate cover the true one, "
                f"{self.stories} stories"
            )
        if self.panel:
            out += ["", *self.panel.text()]
        if self.thinking:
            out += ["", *self.thinking.text()]
        if self.chain:
            out += ["", *_aligned(chain.text(self.chain))]
        out.append(f"{self.seconds:.0f} s")
        return "\n".join([*out, *(f"FAULT: {fault}" for fault in self.faults)])


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]


def run(
    progress: Progress = lambda what, done, total: None,
    seed: int = 0,
    langs: Iterable[str] = (),
    rounds: int = ROUNDS,
) -> Report:
    """Measure the control model and compare. The same seed gives the same report, seconds aside.

    langs: all built-in ones where empty; stories where Kazakh is among them. `progress` is called
    with (what, done, of how many).
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="genprobe-selftest-") as folder, _one_thread():
        measured = api.yesno(
            langs=sorted(langs),
            engine="transformers",
            sampling=Sampling(temperature=1.0, top_p=1.0, max_tokens=MAX_TOKENS),
            seed=seed,
            samples=rounds,
            out=Path(folder) / "run",
            progress=progress,
        )
        again = chain.again("yes/no", measured)
        outcomes = table.outcomes(measured)
        truth = _exact("exact", measured, progress)
        outcomes = outcomes.join(truth, on=KEY, validate="many_to_one")
        stories = None
        if not langs or STORY_LANG in langs:
            measured = api.stories(
                probes=["published", "native"],
                engine="transformers",
                sampling=Sampling(temperature=1.0, top_p=1.0, max_tokens=STORY_TOKENS),
                seed=seed,
                samples=STORIES,
                out=Path(folder) / "stories",
                progress=progress,
            )
            again += chain.again("stories", measured, reviewed=True)
            truth = _exact("exact_stories", measured, progress)
            stories = table.outcomes(measured).join(truth, on=KEY, validate="many_to_one")
        panel = None
        if not langs or PANEL_LANG in langs:
            panel = worded(seed, progress)
        thinking = None
        if codes := [c for c in thoughts.languages() if not langs or c in langs]:
            found = thoughtful(codes, seed, Path(folder) / "thoughts", progress)
            thinking = compare_thoughts(found)
        links = chain.run(
            Path(folder), sorted(langs) or list(packs.load_pack("yesno").reviews), seed, progress
        )
    report = compare(outcomes, stories, lambda: time.monotonic() - started)
    wrong = [fault for part in (panel, thinking) if part for fault in part.faults]
    wrong += [f"{link.link}: {link.fault}" for link in links if link.fault]
    faults = (*report.faults, *wrong, *again)
    return dataclasses.replace(
        report, panel=panel, thinking=thinking, chain=tuple(links), faults=faults
    )


def worded(seed: int = 0, progress: Progress = lambda what, done, total: None) -> Panel:
    """Ask the speaker with planted wording effects in all wordings, and take its answers apart."""
    import numpy as np

    from genprobe.analysis.components import components
    from genprobe.datasets import statements
    from genprobe.engines.control.worded import replies
    from genprobe.judges import Item
    from genprobe.resources import panel, registry
    from genprobe.tasks.pipeline.plan import plan

    pack, (items, _) = packs.load_pack("yesno"), statements.load("builtin", [PANEL_LANG])
    probes = ["agreement", "disagreement"]
    requests = plan(items, pack, probes, seed, PANEL_SAMPLES, vary=panel.Vary("all"))
    judge = registry.module("judges", "yesno").make()
    rows = []
    for row in replies(requests, items):
        item = Item(row["lang"], row["probe"], row["prompt"], row["response"])
        read = judge(item)
        rows.append({**row, "answer": read.label, **read.fields})
        if len(rows) % 500 == 0:
            progress("wordings", len(rows), len(requests))
    found = table.from_rows(rows)
    clear = found[found["says"].notna()]
    true, says = clear["true"].to_numpy(float), clear["says"].to_numpy(float)
    facets = {name: clear[name].to_numpy() for name in ("statement", "wording", "probe")}
    shares = {}
    for name in dict.fromkeys(facets["wording"]):
        at = facets["wording"] == name
        z = _z(int(says[at].sum()), true[at], true[at])
        shares[str(name)] = float(says[at].mean()), float(true[at].mean()), z
    rng = np.random.default_rng(seed)
    drawn = [
        components((rng.random(len(true)) < true).astype(float), facets)["wording",].value
        for _ in range(PANEL_DRAWS)
    ]
    got = components(says, facets)["wording",].value
    (score,) = metrics.score(found, ["endorsed-over-wordings"], [], str)
    return Panel(
        lang=PANEL_LANG,
        replies=len(rows),
        shares=shares,
        component=(got, float(np.mean(drawn)), float((got - np.mean(drawn)) / np.std(drawn))),
        interval=(score.low or 0.0, score.high or 1.0),
    )


def thoughtful(
    langs: Sequence[str],
    seed: int,
    folder: Path,
    progress: Progress = lambda what, done, total: None,
) -> pd.DataFrame:
    """Ask the control model that thinks, with `--thinking on`, and have its thoughts read.

    Returns the outcomes, with the columns of `exact.ExactThought` as `_exact` has them.
    """
    measured = api.yesno(
        langs=langs,
        limit=THOUGHT_ITEMS,
        engine="transformers",
        sampling=Sampling(temperature=1.0, top_p=1.0, max_tokens=thoughts.MAX_TOKENS),
        options=Options(thinking=Asked("on", thoughts.THINK_TOKENS)),
        seed=seed,
        samples=THOUGHT_SAMPLES,
        out=folder,
        progress=progress,
    )
    tasks.judge_run(measured, ["thought"])
    truth = _exact("exact_thoughts", measured, progress, thoughts.MODEL)
    return table.outcomes(measured).join(truth, on=KEY, validate="many_to_one")


def compare_thoughts(outcomes: pd.DataFrame) -> Thinking:
    """Compare what `thoughtful` found with the exact rates beside it."""
    groups = outcomes.groupby("lang", sort=True)
    rows = [(str(lang), *found) for lang, part in groups for found in _shares(part)]
    known = [t for lang in groups.groups for t in thoughts.thoughts(str(lang)) if t.answer]
    answers = {t.text: t.answer for t in known}
    closed = outcomes[outcomes["thought_state"] == "closed"]
    pairs = zip(closed["thought"].str.strip(), closed["thought_answer"], strict=True)
    misread = {text for text, answer in pairs if answers.get(text, answer) != answer}
    misread |= set(outcomes["response"][_misread(outcomes)])
    return Thinking(len(outcomes), tuple(rows), tuple(sorted(misread)))


def _shares(part: pd.DataFrame) -> Iterator[tuple[str, int, float, float, float]]:
    """Return for a language what was counted, of how many, the measured and true share, and z."""
    thinks = (part["thought_state"] != "none").sum()
    counts = {"thinks": (len(part), int(thinks))}
    names = {
        "thought-cut": ("cut", "thinks"),
        "thought-language": ("other", "thinks"),
        "thought-against-answer": ("against", "clear"),
    }
    for score in metrics.score(part, list(names), [], str):
        counts[score.metric] = score.n, round((score.value or 0.0) * score.n)
    for answer in ("yes", "no"):
        counts[answer] = len(part), int((part["answer"] == answer).sum())
    for what, (n, hits) in counts.items():
        name, of = names.get(what, (what, ""))
        true = part[f"true_{name}"].to_numpy(float)
        whole = part[f"true_{of}"].sum() if of else len(part)
        z = _z(hits, true, (true + part["true_rest"].to_numpy(float)).clip(max=1.0))
        yield what, n, hits / max(1, n), float(true.sum() / whole), z


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """For so small a model more threads only wait for each other, on a busy machine for minutes."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _exact(name: str, run: Run, progress: Progress, model: Path = control.MODEL) -> pd.DataFrame:
    """Columns `true_yes`, … `true_other`, by `KEY`. name: of the function of `control.exact`."""
    import pandas as pd

    from genprobe.engines import transformers
    from genprobe.engines.control import exact

    requests = [r for r in run.requests() if r.sample == 0]
    engine = transformers.open(str(model), Options(dtype="float32", device="cpu"))
    done = 0

    def step(more: int) -> None:
        nonlocal done
        done += more
        progress("computing", done, len(requests))

    found = getattr(exact, name)(engine.net, engine.tokenizer, requests, step)
    engine.close()
    names = [f"true_{field}" for field in found[0]._fields]
    index = pd.MultiIndex.from_tuples([(r.statement, r.lang, r.probe) for r in requests])
    return pd.DataFrame(found, columns=names, index=index)


def compare(
    outcomes: pd.DataFrame,
    stories: pd.DataFrame | None = None,
    seconds: Callable[[], float] = lambda: 0.0,
) -> Report:
    """Compare outcomes that carry the columns `true_yes`, … `true_other` of `_exact` with these."""
    outcomes = outcomes.assign(misread=_misread(outcomes))
    lines, faults, squares = [], [], 0.0
    for lang, part in outcomes.groupby("lang", sort=True):
        covered, expected, variance, intervals = _coverage(part)
        squares += variance
        rate_z, rate = max(_rates(part), key=lambda found: abs(found[0]))
        misread = part[part["misread"]]
        lines.append(Line(str(lang), intervals, covered, expected, rate_z, rate, len(misread)))
        if abs(rate_z) > MOST_Z_RATE:
            faults.append(f"{lang}: replies {rate} are off the true rate (z {rate_z:+.1f})")
        if len(misread):
            row = misread.iloc[0]
            faults.append(
                f"{lang}: {len(misread)} replies are misread, such as {row['response']!r} to "
                f"{row['probe']} as {row['answer']}"
            )
    intervals, covered = sum(x.intervals for x in lines), sum(x.covered for x in lines)
    expected = sum(line.expected for line in lines)
    z = (covered - expected) / squares**0.5 if squares else 0.0
    if abs(z) > MOST_Z_COVERAGE or covered < LEAST_COVERAGE * intervals:
        got, due = (f"{100 * count / intervals:.1f} %" for count in (covered, expected))
        faults.insert(0, f"{got} of the 95 % intervals cover the truth, not {due} (z {z:+.1f})")
    sharpness = _sharpness(outcomes)
    if abs(sharpness) > MOST_Z_SHARPNESS:
        more = "more" if sharpness > 0 else "less"
        faults.append(f"likely answers come {more} often than they should (z {sharpness:+.1f})")
    told, wrong = _stories(stories) if stories is not None else ((), [])
    return Report(
        lines=tuple(lines),
        replies=len(outcomes),
        intervals=intervals,
        covered=covered,
        expected=expected,
        coverage_z=z,
        sharpness_z=sharpness,
        faults=(*faults, *wrong),
        seconds=seconds(),
        stories=0 if stories is None else len(stories),
        told=told,
    )


def _stories(outcomes: pd.DataFrame) -> tuple[tuple[Told, ...], list[str]]:
    """Return a line for each domain, and what is wrong with them."""
    import numpy as np

    from genprobe.metrics import negrate

    read = outcomes["unusable_why"].fillna("").mask(lambda why: why == "", outcomes["sentiment"])
    outcomes = outcomes.assign(read=read)
    outcomes = outcomes.assign(misread=_misread_stories(outcomes))
    scores = {s.by["domain"]: s for s in metrics.score(outcomes, ["negrate"], ["domain"], str)}
    told, faults = [], []
    for domain, rows in outcomes.groupby("domain", sort=True):
        score, misread = scores[domain], rows[rows["misread"] != ""]
        truth = rows.drop_duplicates(KEY).set_index(KEY)
        negative = (truth["true_negative"] + truth["true_short_negative"]).to_numpy(float)
        positive = (truth["true_positive"] + truth["true_short_positive"]).to_numpy(float)
        # A template's luck with stories that do not count is no fault: given that it has a label.
        label, least = _votes(negative, positive, negrate.FEWEST)
        chance = least / label
        found = negrate.templates(rows, ["domain"])
        labelled = (found["__valid"] >= negrate.FEWEST).to_numpy()
        votes = (found["__negative"] * 2 > found["__valid"]).to_numpy() & labelled
        order = truth.index.get_indexer(list(found[KEY].itertuples(index=False, name=None)))
        chance = chance[order][labelled]
        if score.value is None or score.low is None or score.high is None:
            faults.append(f"stories, {domain}: no template has a label")
            continue
        z = _z(int(votes.sum()), chance, chance)
        told.append(
            Told(
                domain=str(domain),
                n=score.n,
                templates=len(truth),
                true=float(np.mean(chance)),
                value=score.value,
                low=score.low,
                high=score.high,
                z=z,
                misread=len(misread),
            )
        )
        if abs(z) > MOST_Z_RATE:
            faults.append(f"stories, {domain}: NegRate is off the true one (z {z:+.1f})")
        if (misread["misread"] == "rule").any() or len(misread) > MOST_MISREAD * len(rows):
            row = misread.sort_values("misread", kind="stable").iloc[0]
            faults.append(
                f"stories, {domain}: {len(misread)} are misread, such as {row['response']!r} as "
                f"{row['read']}"
            )
    faults += _correction(outcomes)
    if sum(t.covered for t in told) < len(told) - 2:  # by chance one in 300 sound runs
        faults.append("the 95 % intervals of NegRate do not cover the true ones")
    return tuple(told), faults


def _correction(outcomes: pd.DataFrame) -> list[str]:
    """Return a fault where corrected NegRate misses the truth behind errors that are known.

    The stories' labels are true (they are read as planted, which is checked above); a part of them
    is turned at random, as by a classifier that is right in `SENSITIVE` and `SPECIFIC`.
    """
    import numpy as np

    from genprobe.metrics import corrected, negrate

    known = outcomes[outcomes["read"].isin(["negative", "positive"])]
    truth = (known["read"] == "negative").to_numpy()
    draw = np.random.default_rng(0).random(len(known))
    called = np.where(truth, draw < SENSITIVE, draw >= SPECIFIC)
    told = known[KEY].assign(truth=truth, called=called, n=1).groupby(KEY, sort=True).sum()
    told = told[told["n"] >= negrate.FEWEST]
    share = float((told["truth"] * 2 > told["n"]).mean())
    measured = float((told["called"] * 2 > told["n"]).mean())
    errors = np.array([SENSITIVE * LABELLED, LABELLED, (1 - SPECIFIC) * LABELLED, LABELLED])
    units = corrected.statistics(told["called"].to_numpy(), told["n"].to_numpy(), errors)
    ends = corrected.interval(units, level=0.999)
    if ends is None or not ends[0] <= share <= ends[1]:
        return [
            f"stories: NegRate is {100 * share:.1f} %; from labels with known errors, measured as "
            f"{100 * measured:.1f} %, it is corrected to another one"
        ]
    return []


def _misread_stories(outcomes: pd.DataFrame) -> list[str]:
    """Return for each story what misread a planted one, `rule` or `sentiment`, else ""."""
    out = []
    for row in outcomes[["lang", "response", "read"]].itertuples():
        kind = tales.kind_of(row.response, row.lang)
        want = "" if kind is None else READ.get(kind.label, kind.sentiment)
        # Two seeds may tell nearly the same story; then one of them is left out.
        wrong = kind is not None and row.read not in (want, "duplicate")
        felt = {want, row.read} <= {"negative", "neutral", "positive"}
        out.append(("sentiment" if felt else "rule") if wrong else "")
    return out


def _votes(negative: Array, positive: Array, fewest: int) -> tuple[Array, Array]:
    """Chance that a template has a label, and that it has the label negative; (templates,) each.

    negative, positive: the chance of each of its `STORIES` stories to be that and to count.
    """
    import numpy as np

    label, most = np.zeros(len(negative)), np.zeros(len(negative))
    for k in range(STORIES + 1):
        for m in range(max(0, fewest - k), STORIES + 1 - k):
            rest = STORIES - k - m
            ways = math.comb(STORIES, k) * math.comb(STORIES - k, m)
            chance = ways * negative**k * positive**m * (1 - negative - positive) ** rest
            label += chance
            most += chance * (k > m)
    return label, most


def _misread(outcomes: pd.DataFrame) -> list[bool]:
    """Whether a reply is a planted one and the reader found another answer than its label."""
    columns = ["lang", "probe", "text", "response", "answer"]
    labels: dict[tuple[str, str, str], dict[str, str]] = {}
    out = []
    for lang, probe, text, response, answer in outcomes[columns].itertuples(index=False):
        key = (lang, probe, text)
        if key not in labels:
            labels[key] = {r.say(text): r.answer for r in control.replies(lang, probe)}
        out.append(labels[key].get(response, answer) != answer)
    return out


def _coverage(outcomes: pd.DataFrame) -> tuple[int, float, float, int]:
    """Intervals that cover the true share, how many should, the variance of that, and how many."""
    import numpy as np

    cells = {
        key: rows[rows["sample"] == 0]
        for key, rows in outcomes.groupby(CELL, sort=True, observed=True)
    }
    rounds = outcomes["sample"].nunique()

    @functools.cache  # cells have few tables, and the same ones
    def interval(answer: str, *hits: tuple[int, int]) -> Interval:
        return metrics.find(answer).interval(np.array(hits, float)) or (math.inf, -math.inf)

    covered = 0
    for score in metrics.score(outcomes, control.ANSWERS, [*CELL, "sample"], lambda name: ""):
        least, most = _true(cells[tuple(score.by[column] for column in CELL)], score.metric)
        if score.low is not None and score.high is not None:
            covered += int(score.low <= most.mean() and least.mean() <= score.high)
    expected = variance = 0.0
    for rows in cells.values():
        true = [_true(rows, answer) for answer in control.ANSWERS]
        mean = square = 0.0
        for drawn, chance in _drawn(rows).items():
            count = 0
            for at, (least, most) in enumerate(true):
                hits = sorted((said[at], sum(said)) for said in drawn)
                low, high = interval(control.ANSWERS[at], *hits)
                count += low <= most.mean() and least.mean() <= high
            mean += chance * count
            square += chance * count**2
        expected += rounds * mean
        variance += rounds * (square - mean**2)
    return covered, expected, variance, 3 * rounds * len(cells)


def _true(rows: pd.DataFrame, answer: str) -> tuple[Array, Array]:
    """Least and most chance of an answer, (replies,) each: what was not planted may be any."""
    least = rows[f"true_{answer}"].to_numpy()
    return least, least + rows["true_other"].to_numpy()


def _drawn(rows: pd.DataFrame) -> dict[Drawn, float]:
    """Return everything that may be drawn of a cell, with its chance.

    Clusters are sorted: to an interval those with equal values are alike.
    """
    found: dict[Drawn, float] = {(): 1.0}
    for _, part in rows.groupby(metrics.cluster(rows)):
        n, joint = len(part), _joint(part["true_yes"].to_numpy(), part["true_no"].to_numpy())
        said = [(k, m, n - k - m) for k in range(n + 1) for m in range(n + 1 - k)]
        after: dict[Drawn, float] = {}
        for drawn, chance in found.items():
            for one in said:
                more = tuple(sorted((*drawn, one)))
                after[more] = after.get(more, 0.0) + chance * float(joint[one[:2]])
        found = after
    return found


def _joint(yes: Array, no: Array) -> Array:
    """(n + 1, n + 1) chance of k times yes and m times no, each reply with its own chances."""
    import numpy as np

    chance = np.zeros((len(yes) + 1, len(yes) + 1))
    chance[0, 0] = 1.0
    for p, q in zip(yes, no, strict=True):
        after = (1 - p - q) * chance
        after[1:] += p * chance[:-1]
        after[:, 1:] += q * chance[:, :-1]
        chance = after
    return chance


def _rates(outcomes: pd.DataFrame) -> Iterable[tuple[float, str]]:
    """For each probe and answer: how far the number of such replies is from the true one.

    A z (`_z`), from the exact tail of the Poisson-binomial distribution: the normal's is too thin
    where an answer is rare.
    """
    for probe, rows in outcomes.groupby("probe", sort=True):
        for answer in control.ANSWERS:
            least, most = _true(rows, answer)
            k = int((rows["answer"] == answer).sum())
            yield _z(k, least, most), f"{answer} to {probe}"


def _z(k: int, least: Array, most: Array) -> float:
    """How far k hits are from what chances between `least` and `most` give."""
    above = min(1.0, float(_count(most)[k:].sum()))
    below = min(1.0, float(_count(least)[: k + 1].sum()))
    z = -NormalDist().inv_cdf(min(max(min(above, below), 1e-300), 0.5))
    return z if above < below else -z


def _sharpness(outcomes: pd.DataFrame) -> float:
    """z of the summed log-probability of the answers, against what draws from the truth have."""
    import numpy as np

    chance = outcomes[[f"true_{answer}" for answer in control.ANSWERS]].to_numpy()
    chance = chance / chance.sum(1, keepdims=True)
    logs = np.log(np.maximum(chance, 1e-12))
    mean = (chance * logs).sum(1)
    variance = (chance * logs**2).sum(1) - mean**2
    at = [control.ANSWERS.index(answer) for answer in outcomes["answer"]]
    excess = logs[np.arange(len(logs)), at] - mean
    return float(excess.sum() / variance.sum() ** 0.5)


def _count(chances: Array) -> np.ndarray:
    """(n + 1,) chance of 0, 1, … n hits of independent trials with these chances."""
    import numpy as np

    total = np.ones(1)
    for p in chances:
        total = np.convolve(total, [1 - p, p])
    return total
