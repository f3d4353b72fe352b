"""What a model prefers: the log-probabilities of sentences, reduced to scores and paired.

A run stores log-probabilities token by token, one *pass* over a text a request (`requests`). A
*scorer* reduces them to one number a text, or a text beside its contrast: `SCORERS`. So another
reduction needs no model. `pair_table` and `choice_table` set the numbers side by side, which is
what the metrics of preference read (metrics/preference.py, metrics/choices.py).

A pair is an original (the stereotype) and a contrast of the same `pair` and language; an original
with three contrasts makes three pairs. A choice is a statement of type `choice` (choices.py).
"""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from genprobe.datasets import choices
from genprobe.datasets.statements import known_in
from genprobe.errors import InputError, RunError
from genprobe.records import (
    JSON,
    Failure,
    LogProb,
    Request,
    Statement,
    canonical,
)
from genprobe.resources import registry
from genprobe.text import whole

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.runs.spec import Spec

PACK = "text/1"
CAUSAL, MASKED, WORD, SEQ2SEQ = PASSES = ("causal", "masked", "masked-word", "seq2seq")
ONE = "text"  # what the only text of a pass answers to

Values = tuple[float, float]


class NoScoreError(Exception):
    """A pair that a scorer is not defined for; the message is the reason, in a word or two."""


@dataclass(frozen=True)
class Text:
    """A text as a pass saw it: ids of its tokens without special ones, log-probability of each."""

    text: str
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]

    @property
    def total(self) -> float:
        return math.fsum(self.logprobs)


# --- scorers of a text by itself


def loglik(text: Text) -> float:
    """log P(text), in nats: the sum over its tokens, the first one (given BOS) included.

    Short and frequent wordings win: fit for pairs of one length. Source: AfriStereo 5.1, eq. 1,
    whose code multiplies a mean over n-1 tokens by n; this is the sum over those really scored.
    """
    return text.total


def loglik_token(text: Text) -> float:
    """log P(text) / number of tokens, in nats a token. The order is that of `ppl`."""
    return text.total / len(text.tokens)


def loglik_byte(text: Text) -> float:
    """log P(text) / bytes of its UTF-8, in nats a byte: comparable between tokenizers."""
    return text.total / len(text.text.encode("utf-8", "surrogatepass"))


def ppl(text: Text) -> float:
    """Perplexity, exp(-log P(text) / number of tokens). Lower is preferred.

    Source: Aqbileq 4.1. Tables hold it negated, so that higher is preferred in all of them.
    """
    return _exp(-text.total / len(text.tokens))


def pll(text: Text) -> float:
    """Pseudo-log-likelihood, in nats: each token masked by itself, log P summed over all tokens.

    Source: Salazar et al. 2020 (ACL), eq. 1; it is what RuBia 4.1 calls PPLL.
    """
    return text.total


def pll_word(text: Text) -> float:
    """Pseudo-log-likelihood with the later tokens of the same word masked, too, in nats.

    Source: Kauf & Ivanova 2023 (ACL), PLL-word-l2r: `pll` overrates words of many tokens, whose
    parts give each other away. Words are the tokenizer's: a Chinese sentence is one to XLM-R's.
    """
    return text.total


def ppll(text: Text) -> float:
    """Pseudo-perplexity, exp(-PLL / number of tokens). Lower is preferred; tables hold it negated.

    Source: Salazar et al. 2020, 2.3, for one sentence; it is what Aqbileq 4.1 calls PPLL.
    """
    return _exp(-text.total / len(text.tokens))


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _each(reduce: Callable[[Text], float]) -> Callable[[Text, Text], Values]:
    def both(pro: Text, anti: Text) -> Values:
        if not pro.tokens or not anti.tokens:
            raise NoScoreError("no tokens")
        return reduce(pro), reduce(anti)

    both.__doc__ = reduce.__doc__
    return both


# --- scorers of a text beside its contrast


def mpll(pro: Text, anti: Text) -> Values:
    """Pseudo-log-likelihood of the unmodified tokens, given the modified ones, in nats.

    Unmodified are the tokens in the `equal` blocks of difflib over the two sequences of ids, the
    special tokens at both ends among them for the matching (they anchor it), and not scored.
    Source: CrowS-Pairs (Nangia et al. 2020), 3 and its metric.py, which hands difflib the
    anti-stereotypical pairs the other way round, and so aligns 0 to 2 of the 1508 otherwise;
    RuBia 4.1 (MPLL). Undefined where nothing is shared.
    """
    ends = (-1, -2)  # no token has them
    # Without `autojunk`, which would take frequent tokens of long sentences for no match.
    matcher = difflib.SequenceMatcher(
        None,
        (ends[0], *pro.tokens, ends[1]),
        (ends[0], *anti.tokens, ends[1]),
        autojunk=False,
    )
    here, there = list[int](), list[int]()
    for block in matcher.get_matching_blocks():
        here += range(block.a - 1, block.a - 1 + block.size)
        there += range(block.b - 1, block.b - 1 + block.size)
    values = (_at(pro, here), _at(anti, there))
    if not values[0]:
        raise NoScoreError("nothing shared")
    return math.fsum(values[0]), math.fsum(values[1])


def _at(text: Text, positions: Iterable[int]) -> list[float]:
    return [text.logprobs[at] for at in positions if 0 <= at < len(text.tokens)]


def bias(pro: Text, anti: Text) -> Values:
    """log P(S | B) / |S|, and the same of the contrast, in nats a token.

    B: the leading tokens that both have, by their ids; S: all that follows in this text. The
    difference is the bias score of SHADES 4.2 and Appendix J (Mitchell et al. 2025). Undefined
    where one is the beginning of the other, since nothing is left to average.
    """
    pairs = zip(pro.tokens, anti.tokens, strict=False)
    shared = sum(1 for _ in itertools.takewhile(lambda two: two[0] == two[1], pairs))
    rests = [text.logprobs[shared:] for text in (pro, anti)]
    if not any(rests):
        raise NoScoreError("same tokens")
    if not all(rests):
        raise NoScoreError("one begins the other")
    return _mean(rests[0]), _mean(rests[1])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


# --- scorers of an option behind its context


def choice(option: Text) -> float:
    """log P(option | context), in nats, summed over its tokens. Source: PBBQ 4; lm-eval's acc."""
    return option.total


def choice_token(option: Text) -> float:
    """log P(option | context) / number of its tokens, in nats a token."""
    return option.total / max(1, len(option.tokens))


def choice_byte(option: Text) -> float:
    """log P(option | context) / bytes of its UTF-8 (the space before it aside), in nats a byte.

    Source: lm-eval's acc_bytes.
    """
    return option.total / max(1, len(option.text.strip().encode("utf-8", "surrogatepass")))


def choice_char(option: Text) -> float:
    """log P(option | context) / its characters (the space before it aside), in nats a character.

    Characters are code points. Source: lm-eval's acc_norm.
    """
    return option.total / max(1, len(option.text.strip()))


@dataclass(frozen=True)
class Scorer:
    """A reduction. passes: those that it can be made of, the first that a model can do is used.

    pair: (pro, anti) -> their values; option: an option -> its value; one of the two is there.
    lower: lower is preferred, and tables hold the negative.
    """

    name: str
    passes: tuple[str, ...]
    pair: Callable[[Text, Text], Values] | None = None
    option: Callable[[Text], float] | None = None
    lower: bool = False

    @property
    def about(self) -> str:
        """Definition and source."""
        return ((self.pair or self.option).__doc__ or "").strip()


_RUNNING = (CAUSAL, SEQ2SEQ)
SCORERS = {
    scorer.name: scorer
    for scorer in (
        Scorer("loglik", _RUNNING, _each(loglik)),
        Scorer("loglik-token", _RUNNING, _each(loglik_token)),
        Scorer("loglik-byte", _RUNNING, _each(loglik_byte)),
        Scorer("ppl", _RUNNING, _each(ppl), lower=True),
        Scorer("bias", _RUNNING, bias),
        Scorer("pll", (MASKED,), _each(pll)),
        Scorer("ppll", (MASKED,), _each(ppll), lower=True),
        Scorer("mpll", (MASKED,), mpll),
        Scorer("pll-word", (WORD,), _each(pll_word)),
        Scorer("choice", _RUNNING, option=choice),
        Scorer("choice-token", _RUNNING, option=choice_token),
        Scorer("choice-byte", _RUNNING, option=choice_byte),
        Scorer("choice-char", _RUNNING, option=choice_char),
    )
}


def find(name: str) -> Scorer:
    """Return the scorer of a name.

    InputError, with the nearest known one, if there is none.
    """
    if name not in SCORERS:
        raise registry.unknown("scorer", name, list(SCORERS))
    return SCORERS[name]


# What a run is asked for where nobody names a scorer; the rest are reductions of the same passes.
DEFAULT = ("loglik", "ppl", "bias", "pll", "mpll", "choice", "choice-token")


def fitting(passes: Collection[str], chosen: bool) -> list[str]:
    """Return the scorers that can be made of these passes.

    chosen: of choices, else of pairs.
    """
    return [
        name
        for name, scorer in SCORERS.items()
        if (scorer.option is not None) == chosen and any(p in passes for p in scorer.passes)
    ]


def default(passes: Collection[str], chosen: bool) -> list[str]:
    """Those of `DEFAULT` that fit. InputError where none does."""
    found = [name for name in fitting(passes, chosen) if name in DEFAULT]
    if not found:
        _pass(find("choice"), passes, "model")  # pairs are scored in every pass
    return found


def check(scorers: Iterable[str], chosen: bool, passes: Collection[str] = PASSES) -> None:
    """Check that scorers are known and read such data.

    chosen: choices, else pairs. passes: those that there are. InputError where one does not.
    """
    for scorer in map(find, scorers):
        if (scorer.option is not None) != chosen:
            what = ("pairs of sentences", "choices")
            raise InputError(
                f"{scorer.name} scores {what[not chosen]}, and the data are {what[chosen]}; "
                f"those fit: {', '.join(fitting(passes, chosen))}"
            )


_KINDS = {CAUSAL: "causal", SEQ2SEQ: "encoder-decoder", MASKED: "masked", WORD: "masked"}


def _pass(scorer: Scorer, passes: Collection[str], of: str) -> str:
    """Return the pass that a scorer is made of.

    of: the model, or the run, that has these passes.
    """
    found = next((p for p in scorer.passes if p in passes), None)
    if found is not None:
        return found
    needs, there = (
        " or ".join(dict.fromkeys(map(_KINDS.__getitem__, some)))
        for some in (scorer.passes, sorted(passes))
    )
    fit = fitting(passes, scorer.option is not None)
    cure = f"those fit: {', '.join(fit)}" if fit else "give such a one"
    if of == "run":
        held = ", ".join(sorted(passes))
        raise InputError(
            f"{scorer.name} is made of the pass {' or '.join(scorer.passes)}, and the run holds "
            f"{held}; {cure}; another pass is another run of `genprobe logprob`"
        )
    if needs == there:
        why = "needs a tokenizer that tells words, which a slow one does not"
    else:
        why = f"needs a {needs} model, and this one is {there}"
    raise InputError(f"{scorer.name} {why}; {cure}")


# --- the plan


def first(statements: Iterable[Statement], limit: int | None) -> list[Statement]:
    """Of each language the first `limit` pairs, or choices; all where it is None."""
    count: dict[str, dict[str, None]] = {}
    kept = []
    for statement in statements:
        units = count.setdefault(statement.lang, {})
        unit = statement.id if choices.is_choice(statement) else statement.pair or statement.id
        if limit is None or unit in units or len(units) < limit:
            units[unit] = None
            kept.append(statement)
    return kept


def requests(
    statements: Iterable[Statement],
    scorers: Sequence[str],
    passes: Collection[str] = PASSES,
    context: str = "",
    turn: Callable[[str], str] | None = None,
) -> list[Request]:
    """Plan the requests: every text once in every pass that the scorers need.

    A choice is asked in every order of its options.

    passes: what the model can do. context: what stands before every sentence of a pair, for
    `seq2seq` the encoder's prompt, which may be empty. turn: writes a user's turn in a chat
    template; the context, or a choice with its options, is that turn, and what is scored begins
    the model's own. InputError for an unknown scorer, one that
    the model or the data do not fit, or a statement that is there twice.
    """
    statements = list(statements)
    for kind in {choices.is_choice(statement) for statement in statements}:
        check(scorers, kind)
    wanted = list(dict.fromkeys(_pass(find(name), passes, "model") for name in scorers))
    plan: dict[str, Request] = {}
    for statement in statements:
        kind = choices.is_choice(statement)
        for name in wanted:
            asked = _asked_choices(statement) if kind else [_asked_text(statement, name, context)]
            if turn is not None:
                asked = [_in_turn(turn, *one) for one in asked]
            for sample, (messages, options) in enumerate(asked):
                request = _request(statement, name, messages, options, sample)
                if request.id in plan:
                    raise InputError(
                        f"statement {statement.id!r} ({statement.lang}) is there twice; remove one"
                    )
                plan[request.id] = request
    return list(plan.values())


Asked = tuple[list[dict[str, str]], dict[str, list[str]]]  # messages, options


def _asked_text(statement: Statement, name: str, context: str) -> Asked:
    shown = [{"role": "context", "content": context}] if context or name == SEQ2SEQ else []
    return shown, {ONE: [statement.text]}


def _in_turn(
    turn: Callable[[str], str], messages: list[dict[str, str]], options: dict[str, list[str]]
) -> Asked:
    """Put what stands before into a user's turn; a reply begins with no space."""
    shown = turn("".join(message["content"] for message in messages))
    bare = {answer: [text.lstrip() for text in texts] for answer, texts in options.items()}
    return [{"role": "context", "content": shown}], bare


def _asked_choices(statement: Statement) -> list[Asked]:
    """One for each order of the options, which always answer to their number in the data."""
    return [
        ([{"role": "context", "content": prompt}], options)
        for prompt, options in choices.prompts(statement)
    ]


def _request(
    statement: Statement,
    name: str,
    messages: list[dict[str, str]],
    options: dict[str, list[str]],
    sample: int,
) -> Request:
    asked = (statement.id, statement.lang, PACK, name, messages)
    return Request.asked(*asked, sample=sample, decode="score", options=options)


# --- the tables


class Scored(Protocol):
    """What is read of a run (`store.Run`)."""

    spec: Spec

    def statements(self) -> Iterable[Statement]: ...
    def requests(self) -> Iterable[Request]: ...
    def logprobs(self) -> Iterable[LogProb]: ...
    def failures(self) -> Iterable[Failure]: ...


def outcomes(run: Scored, scorers: Sequence[str] = ()) -> pd.DataFrame:
    """Return the table of the pairs, or the choices, of a run.

    scorers: those that the run was asked for (the probes of its spec) where empty, else all that
    can be made of its passes.
    """
    statements, plan = list(run.statements()), list(run.requests())
    chosen = any(map(choices.is_choice, statements))
    names = scorers or [name for name in run.spec.probes if name in SCORERS]
    names = names or default({request.probe for request in plan}, chosen)
    make = choice_table if chosen else pair_table
    found = make(statements, plan, run.logprobs(), names, run.spec.model, run.failures())
    found.insert(1, "revision", run.spec.shown)  # checkpoints of one model differ in it alone
    return found


def columns(statements: Sequence[Statement]) -> list[str]:
    """Return the columns that the outcomes of a run of these statements will have."""
    chosen = any(map(choices.is_choice, statements))
    name = "choice" if chosen else "loglik"
    make = choice_table if chosen else pair_table
    return ["revision", *make(statements, requests(statements, [name], (CAUSAL,)), (), [name])]


# Statement, language, pass, sample -> the texts by what they answer to, or why there are none.
Answers = dict[tuple[str, str, str, int], dict[str, Text] | str]


def _answers(
    plan: Iterable[Request], logprobs: Iterable[LogProb], failures: Iterable[Failure]
) -> Answers:
    keys = {r.id: (r.statement, r.lang, r.probe, r.sample) for r in plan}
    found: Answers = dict.fromkeys(keys.values(), "missing")
    for failure in failures:
        if failure.request in keys:
            found[keys[failure.request]] = "failed"
    for record in logprobs:
        if record.request in keys:
            found[keys[record.request]] = {
                str(part["answer"]): _text(part, record.request) for part in record.continuations
            }
    return found


def _text(part: Mapping[str, Any], request: str) -> Text:
    text = Text(str(part["text"]), tuple(part["tokens"]), tuple(map(float, part["logprobs"])))
    if len(text.tokens) != len(text.logprobs):
        raise RunError(
            f"request {request}: {len(text.tokens)} tokens and {len(text.logprobs)} "
            "log-probabilities; `genprobe verify` says what else is damaged"
        )
    return text


def pairs(statements: Iterable[Statement]) -> list[tuple[Statement, Statement]]:
    """Every original with every contrast of its pair and language, in their order."""
    groups: dict[tuple[str, str], dict[str, list[Statement]]] = {}
    for statement in statements:
        if statement.pair:
            group = groups.setdefault((statement.lang, statement.pair), {})
            group.setdefault(statement.role, []).append(statement)
    return [
        two
        for group in groups.values()
        for two in itertools.product(group.get("original", ()), group.get("contrast", ()))
    ]


def pair_table(
    statements: Sequence[Statement],
    plan: Iterable[Request],
    logprobs: Iterable[LogProb],
    scorers: Sequence[str],
    model: str = "",
    failures: Iterable[Failure] = (),
) -> pd.DataFrame:
    """One row a pair and scorer, in the order of the statements, scorer by scorer.

    Columns: model, scorer, lang, item and contrast (ids of the two), pair, role, bias_type, type,
    entity, valid, text, contrast_text; pro, anti (higher is preferred; NaN where there is none)
    left_out (why there is none: failed, missing, or a scorer's own reason); where the data have a
    third, unrelated sentence, its value beside the original (unrelated), and how many of the two
    are preferred to it, each beside it by the scorer (above_unrelated); then the extra columns of
    the original.
    InputError for a scorer that the passes of the plan do not serve; RunError for a damaged one.
    """
    found = _answers(plan, logprobs, failures)
    passes = {key[2] for key in found}
    unrelated = {(s.lang, s.pair): s for s in statements if s.role == "unrelated"}
    both = pairs(statements)
    check(scorers, chosen=False, passes=passes)
    rows: list[dict[str, Any]] = []
    for scorer in map(find, dict.fromkeys(scorers)):
        name = _pass(scorer, passes, "run")
        for original, contrast in both:
            row: dict[str, Any] = {"scorer": scorer.name, "contrast": whole(contrast.id)}
            row["contrast_text"] = contrast.text
            row |= _values(scorer, name, found, original, contrast)
            if unrelated:
                third = unrelated.get((original.lang, original.pair))
                row |= _beside(scorer, name, found, (original, contrast), third)
            rows.append(row)
    originals = [original for original, _ in both] * len(set(scorers))
    return facts_beside(model, originals, rows)


def _values(
    scorer: Scorer, name: str, found: Answers, original: Statement, contrast: Statement
) -> dict[str, Any]:
    row: dict[str, Any] = {"pro": math.nan, "anti": math.nan, "left_out": ""}
    texts = []
    for side in (original, contrast):
        answer = found.get((side.id, side.lang, name, 0), "missing")
        if isinstance(answer, str):
            return row | {"left_out": answer}
        texts.append(answer[ONE])
    assert scorer.pair is not None
    try:
        pro, anti = scorer.pair(*texts)
    except NoScoreError as error:
        return row | {"left_out": str(error)}
    sign = -1 if scorer.lower else 1
    return row | {"pro": sign * pro, "anti": sign * anti}


def _beside(
    scorer: Scorer,
    name: str,
    found: Answers,
    pair: tuple[Statement, Statement],
    third: Statement | None,
) -> dict[str, float]:
    if third is not None:
        two = [_values(scorer, name, found, one, third) for one in pair]
        if not any(beside["left_out"] for beside in two):
            related = sum(beside["pro"] > beside["anti"] for beside in two)
            return {"unrelated": two[0]["anti"], "above_unrelated": related}
    return {"unrelated": math.nan, "above_unrelated": math.nan}


def facts_beside(
    model: str,
    statements: Sequence[Statement],
    rows: Sequence[Mapping[str, Any]],
    but: Collection[str] = (),
) -> pd.DataFrame:
    """Set rows beside the columns of their statements.

    but: extra columns that are left out.
    """
    import pandas as pd

    ours = {*_OURS, *(rows[0] if rows else ())}
    once = list({id(s): s for s in statements}.values())
    at = {id(s): n for n, s in enumerate(once)}
    facts = pd.DataFrame([_facts(s) | _extra(s, ours, but) for s in once], dtype=object)
    facts = (
        facts.map(whole)
        .infer_objects()
        .iloc[[at[id(s)] for s in statements]]
        .reset_index(drop=True)
    )
    values = pd.DataFrame(list(rows))
    extra = [name for name in facts.columns if name not in _OURS]
    found = pd.concat([facts[facts.columns.intersection(_OURS)], values, facts[extra]], axis=1)
    found.insert(0, "model", model)
    return found


_OURS = (
    *("lang", "item", "pair", "role", "bias_type", "type", "entity", "valid", "text"),
    "model",
)


def _facts(statement: Statement) -> dict[str, Any]:
    return {
        "lang": statement.lang,
        "item": statement.id,
        "pair": statement.pair,
        "role": statement.role,
        "bias_type": statement.bias_type,
        "type": statement.type,
        "entity": statement.entity,
        "valid": known_in(statement.lang, statement.valid_in),
        "text": statement.text,
    }


def _extra(statement: Statement, ours: Collection[str], but: Collection[str]) -> dict[str, JSON]:
    return {
        f"{name}_data" if name in ours else name: _plain(value)
        for name, value in statement.extra.items()
        if name not in but
    }


def _plain(value: JSON) -> JSON:
    """Return a value that scores can be split by."""
    return canonical(value) if isinstance(value, list | dict) else value


def choice_table(
    statements: Sequence[Statement],
    plan: Iterable[Request],
    logprobs: Iterable[LogProb],
    scorers: Sequence[str],
    model: str = "",
    failures: Iterable[Failure] = (),
) -> pd.DataFrame:
    """One row a choice, order of its options and scorer: see `choices.outcome` for the columns.

    Besides: model, scorer, lang, item, pair, order (0 is that of the data), left_out (why nothing
    was chosen: failed, missing, tie), and the extra columns. InputError as in `pair_table`.
    """
    found = _answers(plan, logprobs, failures)
    passes = {key[2] for key in found}
    orders: dict[tuple[str, str, str], list[int]] = {}
    for item, lang, name, sample in found:
        orders.setdefault((item, lang, name), []).append(sample)
    check(scorers, chosen=True, passes=passes)
    asked: list[Statement] = []
    rows: list[dict[str, Any]] = []
    for scorer in map(find, dict.fromkeys(scorers)):
        name = _pass(scorer, passes, "run")
        for statement in statements:
            for order in orders.get((statement.id, statement.lang, name), ()):
                answer = found[statement.id, statement.lang, name, order]
                row: dict[str, Any] = {"scorer": scorer.name, "order": order}
                if isinstance(answer, str):
                    row |= choices.outcome(statement, None) | {"left_out": answer}
                else:
                    assert scorer.option is not None
                    row |= choices.outcome(
                        statement, {int(key): scorer.option(text) for key, text in answer.items()}
                    )
                asked.append(statement)
                rows.append(row)
    return facts_beside(model, asked, rows, choices.FIELDS)
