"""Draw a sample of replies for people to read: `export` writes a spreadsheet for each reviewer.

Reviewers read blind: they do not see models and labels, rows are in random order, and some are
repeated. The key file says what was sampled and how; `review.collect` needs it to read the answers.

Sampling. The replies of the runs are divided into strata by model, language, probe (for stories:
domain) and the judges' labels. A stratum of N replies gets a share of the sample in proportion to
the square root of N, and at least one reply if the sample is large enough for that (Bankier 1988,
J. American Statistical Association 83:174). Thus rare labels are read often enough to correct a
judge's rate, and large strata often enough to estimate the whole. Within a stratum all replies are
equally likely; `weight` is one over the probability with which a reply was drawn. If the sample has
fewer replies than there are strata, strata are drawn at random (systematic sampling in their
order), with the same probabilities.

If a run has enough stories per template for a label, templates are drawn instead of replies, each
with all its stories, and strata use the label of the template: its true label depends on all of
them.
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genprobe import tasks
from genprobe._version import __version__
from genprobe.errors import InputError
from genprobe.files import sheets, workbooks
from genprobe.files.rows import paths_of
from genprobe.judges import asked, seen
from genprobe.records import Response
from genprobe.resources import guides, packs, registry
from genprobe.resources.guides import SHOWN, Guide
from genprobe.resources.registry import listed
from genprobe.review.collect import ADJUDICATOR, ONLY, Row, item_id, prints, read_table, resolve
from genprobe.runs import seal
from genprobe.runs.run import Run
from genprobe.tasks.pipeline import second


@dataclass(frozen=True)
class Exported:
    """The files that `export` wrote, and the size of the sample.

    files: one sheet per reviewer. key: the key file, which reviewers must not see. page: the
    instructions that reviewers read first; None if the sheets hold them.
    """

    files: tuple[Path, ...]
    key: Path
    page: Path | None
    items: int  # replies in the sample
    templates: int  # templates that were drawn with all their stories
    replies: int  # replies that the sample was drawn from
    strata: int  # strata that the sample contains


@dataclass
class _Reply:
    """A reply that may be sampled.

    run: index of its run. group: the probe or domain. labels: question -> the judge's label, or "".
    unit: replies with the same unit are drawn together.
    """

    run: int
    request: str
    item: str
    model: str
    lang: str
    group: str
    labels: dict[str, str]
    stratum: tuple[str, ...]
    unit: tuple[str, ...]
    weight: float = 1.0


_Unit = list[_Reply]


def export(
    sources: object,
    out: str | Path,
    *,
    size: int = 200,
    langs: str | Sequence[str] = (),
    reviewers: int = 1,
    overlap: float = 1.0,
    repeats: float = 0.1,
    seed: int = 0,
    disagreements: str | Path | None = None,
    questions: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    reader_lang: str = "",
) -> Exported:
    """Draw a sample of replies and write it as sheets for reviewers.

    Writes `OUT.csv` (`OUT-reviewer1.csv`, … for several reviewers), `OUT-key.json` and
    `OUT-instructions.txt`; workbooks, which hold the instructions, if `out` ends in .xlsx. Existing
    files are never overwritten.

    sources: run folders of one command. size: replies in the sample; if there are fewer, all are
    taken. Of stories, as many whole templates are drawn as come nearest to this size. langs: only
    replies to questions in these languages; empty for all. overlap: share of the sample that every
    reviewer reads; the rest is divided among them. repeats: share of a reviewer's rows that are
    repeated, half a file later. disagreements: a table of `collect`; only replies on which its
    reviewers disagree are written, for an adjudicator, and the options of sampling are not used.
    questions: additional questions of prompts/sheets, which no judge answers. only: only replies of
    these kinds, such as `undecided`. Such a sample says nothing about other replies, so
    `score --reviewed` refuses to correct rates by it. reader_lang: language of the reviewers; by
    default, that of the replies, if all are in one that prompts/sheets has, else English.

    Raises InputError or RunError.
    """
    only, langs = listed(only, "only"), listed(langs, "langs")
    questions = listed(questions, "questions")
    for name in questions:
        if name not in guides.questions():
            raise registry.unknown("question", name, sorted(guides.questions()))
    runs = [Run.open(source) for source in dict.fromkeys(paths_of(sources))]
    command, questions = _questions(runs, questions)
    codes = {packs.language_code(lang) for lang in langs if disagreements is None}
    replies = [r for at, run in enumerate(runs) for r in _replies(at, run, codes, only)]
    rng = random.Random(seed)
    earlier: list[Row] = []
    if disagreements is None:
        if size < 1 or reviewers < 1 or not (0 <= overlap <= 1 and 0 <= repeats <= 1):
            raise InputError(
                "size and reviewers must be at least 1, overlap and repeats from 0 to 1"
            )
        units = _sample(replies, size, rng)
        rows = _deal(units, reviewers, overlap, repeats, rng)
    else:
        if reviewers != 1:
            raise InputError(
                "--disagreements are exported for one more reviewer; leave --reviewers out"
            )
        earlier = _earlier(disagreements, runs, replies)
        units = [[reply] for reply in _disputed(replies, earlier, Path(disagreements))]
        rows = {ADJUDICATOR: rng.sample([unit[0] for unit in units], len(units))}
    if not (sample := [reply for unit in units for reply in unit]):
        raise InputError("nothing to review: no free reply in these runs and languages")
    done = _places(Path(out), list(rows), units, replies)
    guide = guides.load(guides.choose([reply.lang for reply in sample], reader_lang))
    texts = _texts(runs, sample, guide)
    heads = {n: guide.heads[n] for n in ("row", *SHOWN, *questions, "comment")}
    key: dict[str, Any] = {
        "genprobe": __version__,
        "command": command,
        "seed": seed,
        "questions": questions,
        "heads": heads,
        "runs": [
            {"folder": str(run.folder), "spec": run.spec.hash, "seal": seal.told(run.seals())}
            for run in runs
        ],
        "items": {r.item: _item(r) | {"shown": prints(texts[r.item])} for r in sample},
        "rows": {
            name: [who, r.item] for who, dealt in rows.items() for name, r in _named(who, dealt)
        },
        "earlier": earlier,
    }
    _write(done, key, rows, texts, guide)
    return done


def _earlier(table: str | Path, runs: Sequence[Run], replies: Sequence[_Reply]) -> list[Row]:
    """Read a table of answers, and replace its run folders by those where the runs are now."""
    folders = {reply.item: str(runs[reply.run].folder) for reply in replies}
    return [row | {"run": folders.get(row["item"], row["run"])} for row in read_table(table)]


def _questions(runs: Sequence[Run], more: Sequence[str]) -> tuple[str, list[str]]:
    """Return the command of the runs, and its questions to reviewers followed by `more`."""
    commands = sorted({run.spec.command for run in runs})
    if len(commands) != 1 or not (asked := tasks.find(commands[0]).questions):
        raise InputError(
            f"runs of {' and '.join(commands)}: export the runs of one command at a time"
        )
    if len({run.spec.hash for run in runs}) < len(runs):
        raise InputError("the same run is named twice; name each run once")
    return commands[0], list(dict.fromkeys([*asked, *more]))


def _write(
    done: Exported,
    key: dict[str, Any],
    rows: Mapping[str, Sequence[_Reply]],
    texts: Mapping[str, Sequence[str]],
    guide: Guide,
) -> None:
    """Write the key, the instructions and a sheet for each reviewer: all of them or none."""
    asked = key["questions"]
    empty = [""] * (len(asked) + 1)
    first = 1 + len(SHOWN)  # column of a question
    page = _page(guide, asked, key["runs"], done.files[0])
    made: list[Path] = []
    try:
        # Write the key first: without it, the answers cannot be read.
        sheets.write_new(done.key, json.dumps(key, indent=1).encode("ascii"), private=True)
        made.append(done.key)
        if done.page:
            sheets.write_new(done.page, page.encode("utf-8-sig"))
            made.append(done.page)
        for path, (reviewer, dealt) in zip(done.files, rows.items(), strict=True):
            body = [[name, *texts[r.item], *empty] for name, r in _named(reviewer, dealt)]
            form = workbooks.Form(
                lines=[[*key["heads"].values()], *body],
                open=range(first, first + len(empty)),
                choices={at: guide.offered(name) for at, name in enumerate(asked, first)},
                page=page,
                names=(guide.words["page"], guide.words["answers"]),
                refused=guide.words["choose"],
                right_to_left=guides.direction(guide.lang) == "rtl",
            )
            sheets.write(path, form)
            made.append(path)
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise


def _places(
    out: Path, reviewers: Sequence[str], units: Sequence[_Unit], replies: Sequence[_Reply]
) -> Exported:
    """Return the paths of the files. Raises InputError if one of them exists."""
    suffix = out.suffix.lower()
    if suffix in (".xls", ".ods", ".tsv", ".jsonl", ".parquet"):
        raise InputError(
            f"{out}: reviewers get workbooks or CSV files; name it {out.with_suffix('.xlsx').name} "
            f"or {out.with_suffix('.csv').name}"
        )
    base = out.with_suffix("") if suffix in (".csv", ".xlsx") else out
    kind = ".xlsx" if suffix == ".xlsx" else ".csv"
    names = [f"-{reviewer}" for reviewer in reviewers] if len(reviewers) > 1 else [""]
    done = Exported(
        files=tuple(base.with_name(f"{base.name}{name}{kind}") for name in names),
        key=base.with_name(f"{base.name}-key.json"),
        page=base.with_name(f"{base.name}-instructions.txt") if kind == ".csv" else None,
        items=sum(map(len, units)),
        templates=sum(len(unit) > 1 for unit in units),
        replies=len(replies),
        strata=len({unit[0].stratum for unit in units}),
    )
    for path in (*done.files, done.page, done.key):
        if path and path.exists():
            raise InputError(f"{path}: already exists; choose another name")
    return done


def _named(reviewer: str, dealt: Iterable[_Reply]) -> Iterator[tuple[str, _Reply]]:
    """Name the rows of a reviewer: `r2-0001` is the first of `reviewer2`."""
    short = f"{reviewer[0]}{reviewer.removeprefix('reviewer').removeprefix(ADJUDICATOR)}"
    return ((f"{short}-{number:04d}", reply) for number, reply in enumerate(dealt, 1))


def _replies(at: int, run: Run, codes: set[str], only: Sequence[str] = ()) -> Iterator[_Reply]:
    """Return the replies of a run that can be reviewed, in the order of its plan.

    These are answered requests for free text. at: index of the run. codes: only these languages;
    empty for all. only: only replies of these kinds.
    """
    task = tasks.of(run.spec)
    asked, wanted = task.questions, None
    if only and task.second:
        second.need_kind(run, task.second, only)
        wanted = second.left_open(run, task.second, only)
    judged = run.judges()
    labels: dict[str, dict[str, str]] = {}
    for question, judges in asked.items():
        judge, field = next((j for j in judges if j[0] in judged), ("", None))
        labels[question] = {
            j.request: str(j.label if field is None else j.fields.get(field, ""))
            for j in (run.judgments(judge) if judge else ())
        }
    templates = _templates(run)
    # Sample evenly over domains if whole templates are drawn, else over probes.
    domains = {
        (s.id, s.lang): str(s.extra.get("domain", ""))
        for s in (run.statements() if tasks.of(run.spec).whole else ())
    }
    answered = {response.request for response in run.responses()}
    spec = run.spec.hash
    for request in run.requests():
        if request.id not in answered or request.decode != "free":
            continue
        if codes and request.lang not in codes:
            continue
        if wanted is not None and request.id not in wanted:
            continue
        group = domains.get((request.statement, request.lang)) or request.probe
        said = {question: found.get(request.id, "") for question, found in labels.items()}
        template = (request.lang, request.probe, request.statement)
        label = templates.get(template)
        part = (ONLY + ", ".join(only),) if only else ()
        yield _Reply(
            run=at,
            request=request.id,
            item=item_id(spec, request.id),
            model=run.spec.model,
            lang=request.lang,
            group=group,
            labels=said,
            stratum=(
                *part,
                *(run.spec.model, request.lang, group),
                *([label] if label else said.values()),
            ),
            unit=(str(at), *(template if label else [request.id])),
        )


def sampler(run: Run) -> Callable[[int, int], dict[str, float]]:
    """Return a function that draws a sample of a run as `export` does, without writing it.

    Its arguments are the size and the seed; it returns request -> weight.
    """
    replies = list(_replies(0, run, set()))

    def draw(size: int, seed: int) -> dict[str, float]:
        units = _sample(replies, size, random.Random(seed))
        return {reply.request: reply.weight for unit in units for reply in unit}

    return draw


def _templates(run: Run) -> dict[tuple[str, str, str], str]:
    """Return template (language, probe, statement) -> its label as in NegRate.

    Labels are `negative`, `not negative` and `no label`. Empty for runs with too few stories per
    template, and for runs that are not of stories.
    """
    from genprobe.metrics import negrate, spoken
    from genprobe.outcomes import table

    if not tasks.of(run.spec).whole or run.spec.samples < negrate.FEWEST:
        return {}
    outcomes = spoken(table.outcomes(run))
    if "sentiment" not in outcomes:
        outcomes = outcomes.assign(sentiment=None)
    found = negrate.templates(outcomes, [])
    label = (found["__negative"] * 2 > found["__valid"]).map(
        {True: "negative", False: "not negative"}
    )
    label = label.mask(found["__valid"] < negrate.FEWEST, "no label")
    names = found[["lang", "probe", "statement"]].itertuples(index=False, name=None)
    return dict(zip(names, label, strict=True))


def _sample(replies: Iterable[_Reply], size: int, rng: random.Random) -> list[_Unit]:
    """Draw a stratified sample with its weights (see the head of this module), and shuffle it."""
    units: dict[tuple[str, ...], _Unit] = {}
    for reply in replies:
        units.setdefault(reply.unit, []).append(reply)
    strata: dict[tuple[str, ...], list[_Unit]] = {}
    for unit in units.values():
        strata.setdefault(unit[0].stratum, []).append(unit)
    names = sorted(strata)
    each = sum(map(len, units.values())) / max(len(units), 1)
    expected = _shares([len(strata[name]) for name in names], max(round(size / max(each, 1)), 1))
    sample: list[_Unit] = []
    passed = 0.0 if all(share.is_integer() for share in expected) else rng.random()
    for name, share in zip(names, expected, strict=True):
        count = min(int(passed + share) - int(passed), len(strata[name]))
        passed += share
        for unit in rng.sample(strata[name], count):
            for reply in unit:
                reply.weight = len(strata[name]) / share
            sample.append(unit)
    rng.shuffle(sample)
    return sample


def _shares(sizes: Sequence[int], total: int) -> list[float]:
    """Divide `total` units among strata in proportion to the square roots of their sizes.

    Returns whole numbers, at least 1, unless there are fewer units than strata.
    """
    if total >= sum(sizes):
        return [float(n) for n in sizes]
    least = 1.0 if total >= len(sizes) else 0.0

    def shares(scale: float) -> list[float]:
        return [min(max(scale * n**0.5, least), n) for n in sizes]

    low, high = 0.0, float(max(sizes))
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(shares(middle)) < total else (low, middle)
    found = shares(high)
    if not least:
        return found
    whole = [int(share + 1e-9) for share in found]
    by_rest = sorted(range(len(sizes)), key=lambda at: whole[at] - found[at])
    for at in by_rest[: total - sum(whole)]:
        whole[at] += 1
    return [float(share) for share in whole]


def _deal(
    units: Sequence[_Unit], reviewers: int, overlap: float, repeats: float, rng: random.Random
) -> dict[str, list[_Reply]]:
    """Assign rows to each reviewer, in a different order for each.

    A repeat comes at least half a file after the first reading.
    """
    shared = round(overlap * len(units))
    rows = {}
    for number in range(reviewers):
        dealt = [*units[:shared], *units[shared + number :: reviewers]]
        mine = [reply for unit in dealt for reply in unit]
        rng.shuffle(mine)
        half = len(mine) // 2
        again = rng.sample(range(half), min(round(repeats * len(mine)), half))
        places = [
            *enumerate(mine),
            *((rng.uniform(at + half, len(mine)), mine[at]) for at in again),
        ]
        rows[f"reviewer{number + 1}"] = [r for _, r in sorted(places, key=lambda place: place[0])]
    return rows


def _disputed(replies: Iterable[_Reply], rows: Sequence[Row], path: Path) -> list[_Reply]:
    """Return the replies about which reviewers disagree, and which no adjudicator has answered."""
    found = {r.item: r.weight for r in resolve(rows) if r.differ and r.rule != "adjudicated"}
    if not found:
        raise InputError(f"{path}: there are no disagreements to adjudicate")
    sample = [reply for reply in replies if reply.item in found]
    if len(sample) < len(found):
        raise InputError(
            f"{path}: {len(found) - len(sample)} of the {len(found)} items are not in these runs; "
            "name all runs of the first export"
        )
    for reply in sample:
        reply.weight = found[reply.item]
    return sample


def _texts(
    runs: Sequence[Run], sample: Iterable[_Reply], guide: Guide
) -> dict[str, tuple[str, ...]]:
    """Return item -> its cells in the columns `SHOWN`.

    Only the texts of the sample are kept in memory.
    """
    wanted = {(reply.run, reply.request): reply.item for reply in sample}
    texts = {}
    for at, run in enumerate(runs):
        for request, answer in run.exchanges():
            item = wanted.get((at, request.id))
            if item is not None and isinstance(answer, Response):
                name = guide.language(request.lang)
                prompt = asked(request)
                reply = seen(request.lang, request.probe, prompt, answer).reply
                shown = (f"{name} ({request.lang})", prompt, reply)
                texts[item] = (shown[0], *map(sheets.show, shown[1:]))
    return texts


def _item(reply: _Reply) -> Row:
    row = dataclasses.asdict(reply) | {"stratum": " | ".join(reply.stratum)}
    del row["item"], row["unit"]
    return row


def _page(
    guide: Guide, questions: Sequence[str], runs: Sequence[Mapping[str, str]], path: Path
) -> str:
    """Write the instructions, with the columns and questions of this export.

    runs: as in the key; their seals tell reviewers nothing about the models. path: of a sheet.
    """

    def listed(names: Iterable[str]) -> str:
        return "\n\n".join(f"[{guide.heads[name]}]\n{guide.about[name]}" for name in names)

    return guide.write(
        "page",
        path.suffix.removeprefix("."),
        columns=listed(("row", *SHOWN, "comment")),
        questions=listed(questions),
        seals=", ".join(sorted({run["seal"] for run in runs})),
    )
