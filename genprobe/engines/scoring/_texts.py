"""Turn texts into tokens and their values into records; shared by all scorers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from genprobe.errors import EngineError
from genprobe.linguistics import thoughts
from genprobe.records import Failure, LogProb, Request


class Seam(NamedTuple):
    """The tokens of a context and of the text after it."""

    before: list[int]  # tokens of the context
    ids: list[int]  # tokens of the text
    words: list[int | None]  # for each, the number of its word, as the tokenizer counts them


class Item(NamedTuple):
    """A text to be scored."""

    answer: str
    text: str
    before: list[int]  # as in Seam
    ids: list[int]
    words: list[int | None]


class Asked(NamedTuple):
    """A request with its texts as tokens."""

    request: Request
    context: str
    items: list[Item]


def wanted(name: str, request: Request, passes: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
    """Return the context of a request, and its (answer, text) pairs.

    Raises EngineError unless the request is for one of `passes`, which the model `name` can do.
    """
    if request.decode != "score" or request.probe not in passes:
        raise EngineError(
            f"{name}: cannot do {request.decode!r} {request.probe!r}; it scores {', '.join(passes)}"
        )
    context = "".join(m["content"] for m in request.messages if m["role"] == "context")
    return context, [(a, text) for a, texts in request.options.items() for text in texts]


def around(name: str, bare: list[int], full: list[int]) -> tuple[list[int], list[int]]:
    """Return the special tokens before and after a text. full: ids with them; bare: without."""
    cuts = [n for n in range(len(full)) if full[n : n + len(bare)] == bare]
    if not bare or len(cuts) != 1:
        raise EngineError(
            f"{name}: the tokenizer changes a text where it adds special tokens; save another"
        )
    return full[: cuts[0]], full[cuts[0] + len(bare) :]


class Texts:
    """Turns requests into token ids.

    prefix, suffix: the special tokens that the tokenizer puts around a text. unknown: the id of
    its unknown token; None if it has none.
    """

    def __init__(self, name: str, tokenizer: Any) -> None:
        self.name, self.tokenizer = name, tokenizer
        self.unknown: int | None = getattr(tokenizer, "unk_token_id", None)
        bare, full = (tokenizer("a", add_special_tokens=add)["input_ids"] for add in (False, True))
        self.prefix, self.suffix = around(name, bare, full)

    def first(self) -> tuple[str, list[int]]:
        """Return the special tokens before a text's first token, as a description and as ids.

        These are the tokenizer's own, else BOS, else EOS, else CLS. Raises EngineError if there
        is none, as the first token would have no probability.
        """
        named = {
            kind: getattr(self.tokenizer, f"{kind}_token_id", None)
            for kind in ("bos", "eos", "cls")
        }
        ids = self.prefix or [i for i in named.values() if i is not None][:1]
        if not ids:
            raise EngineError(
                f"{self.name}: the tokenizer has no token to put before the first one; "
                "give it a bos_token"
            )
        kind = next((kind for kind, i in named.items() if i == ids[-1]), "own")
        return f"{kind} {self.words(ids)}", ids

    def turn(self, said: str) -> str:
        """Write a user's turn in the chat template, up to where the model's own turn begins.

        The tokens of `first` are left out, as scorers add them themselves. Raises EngineError if
        there is no template, or if it refuses the turn.
        """
        from genprobe.engines._local import Prompts

        if not self.tokenizer.chat_template:
            raise EngineError(f"{self.name}: has no chat template; leave --chat out")
        text = Prompts(self.tokenizer).text([{"role": "user", "content": said}])
        if thoughts.opens(text):
            raise EngineError(
                f"{self.name}: its turn begins with a thought, so no sentence can be scored "
                "there; use --plain"
            )
        return text.removeprefix(self.words(self.first()[1]))

    def words(self, ids: Sequence[int]) -> str:
        return "".join(self.tokenizer.convert_ids_to_tokens(list(ids)))

    def asked(
        self, requests: Sequence[Request], passes: Sequence[str], apart: bool = False
    ) -> list[Asked]:
        """Tokenise requests. apart: always tokenise context and text separately."""
        todo = []
        for request in requests:
            context, texts = wanted(self.name, request, passes)
            todo += [(request, context, answer, text) for answer, text in texts]
        seams = self.seams([(context, text) for _, context, _, text in todo], apart)
        found = {request.id: Asked(request, "", []) for request in requests}
        for (request, context, answer, text), seam in zip(todo, seams, strict=True):
            found[request.id].items.append(Item(answer, text, *seam))
            found[request.id] = found[request.id]._replace(context=context)
        return list(found.values())

    def seams(self, pairs: list[tuple[str, str]], apart: bool) -> list[Seam]:
        """Tokenise each context and the text after it.

        The joined text is tokenised and cut where the text begins. If a token lies across this
        cut, spaces at the end of the context are counted to the text; if one still does, context
        and text are tokenised separately.
        """
        if apart or not self.tokenizer.is_fast:
            return [self._apart(context, text) for context, text in pairs]
        if not pairs:
            return []
        joined = self.tokenizer(
            [context + text for context, text in pairs],
            add_special_tokens=False,
            return_offsets_mapping=True,
        )
        found = []
        for n, (context, text) in enumerate(pairs):
            ids, spans = joined["input_ids"][n], joined["offset_mapping"][n]
            for seam in (len(context), len(context.rstrip())):
                at = next((i for i, (_, end) in enumerate(spans) if end > seam), len(ids))
                if not seam or (at < len(ids) and spans[at][0] >= seam):
                    at = at if seam else 0
                    found.append(Seam(ids[:at], ids[at:], joined.word_ids(n)[at:]))
                    break
            else:
                found.append(self._apart(context, text))
        return found

    def _apart(self, context: str, text: str) -> Seam:
        before, after = (self.tokenizer(t, add_special_tokens=False) for t in (context, text))
        ids = after["input_ids"]
        words = after.word_ids() if self.tokenizer.is_fast else [None] * len(ids)
        return Seam(before["input_ids"], ids, words)


def unusable(asked: Asked, around: int, most: int | None, vocabulary: int | None) -> Failure | None:
    """Return the failure of a request that cannot be scored; None if it can be.

    around: number of special tokens around a text. most: tokens that the model takes. vocabulary:
    its size. None for either means that it is checked elsewhere.
    """
    name = asked.request.id
    if not asked.items:
        return Failure(name, "unscorable", "there is no text to score", 1)
    for item in asked.items:
        n = around + len(item.before) + len(item.ids)
        if not item.ids:
            return Failure(name, "unscorable", f"the text {item.text[:80]!r} has no tokens", 1)
        if most is not None and n > most:
            return Failure(name, "too-long", f"{n} tokens; the model has {most}", 1)
        if vocabulary is not None and (top := max(item.before + item.ids)) >= vocabulary:
            return Failure(
                name, "unscorable", f"token {top} is not among the model's {vocabulary}", 1
            )
    return None


def record(
    asked: Asked, sent: str, around: int, values: Sequence[Sequence[float]]
) -> LogProb | Failure:
    """Make the record of a scored request. values: per item, natural log P of each token."""
    continuations = [
        {"answer": item.answer, "text": item.text, "tokens": item.ids, "logprobs": list(found)}
        for item, found in zip(asked.items, values, strict=True)
    ]
    if not all(math.isfinite(v) for found in values for v in found):
        return Failure(asked.request.id, "unscorable", "values that are no numbers; try float32", 1)
    return LogProb(
        request=asked.request.id,
        continuations=continuations,
        sent=sent,
        tokens_in=around + max(len(item.before) for item in asked.items),
    )
