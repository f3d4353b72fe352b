"""Models of the transformers library on this machine, decoder-only or encoder-decoder.

A reply depends only on its request, not on the order or the batch that it ran in, up to rounding
(no difference seen in float32; in half precision near-ties may differ). Padding is masked, and
sampling uses noise computed from the request's own seed.

Of a model's `generation_config.json` only the end tokens are used. Its penalties, temperatures and
forced tokens would make conditions differ between models.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
import transformers

from genprobe.engines import Identity, Options, Sampling, Scorer, _local
from genprobe.engines._local import (
    Local,
    Prompts,
    Row,
    Trie,
    identified,
    line,
    load,
    logprob,
    positions_of,
    quiet,
    refusing,
    reply,
    room_note,
    told,
    unusable,
    written,
)
from genprobe.engines._thinking import Told, ahead, marks
from genprobe.engines._torch import device_of, dtype_of, out_of_memory, quantised, token_budget
from genprobe.errors import EngineError
from genprobe.files import door
from genprobe.records import Failure, LogProb, Request, Response

PACKAGES = ("torch", "transformers")
WINDOW = 4096  # requests tokenised and sorted at a time, so that memory stays flat


def open(model: str, options: Options) -> TransformersEngine:
    """Load a model and its tokenizer from a folder or, by its id, from the hub or its cache.

    It runs in bfloat16 on a GPU that supports it, float16 on other GPUs, float32 on a CPU, unless
    `options` says otherwise. Raises EngineError if the model cannot be used.
    """
    for name in options.more.keys() - {"quantization"}:
        raise EngineError(
            f"the transformers engine has no argument {name!r}; it has dtype, device, revision, "
            "batch_tokens and quantization"
        )
    device = device_of(options.device)
    dtype = dtype_of(options.dtype, device)
    how_loaded, numbers = quantised(options.more, dtype, device)
    local = load(model, options.revision)
    with quiet():
        net = _load_model(model, local.folder, local.config, dtype, device, how_loaded)
    identity = Identity(
        model=local.name,
        revision=local.revision,
        engine="transformers",
        engine_version=transformers.__version__,
        dtype=numbers if how_loaded else str(net.dtype).removeprefix("torch."),
        chat_template=local.template,
        checkpoint=local.checkpoint,
    )
    budget = options.batch_tokens or token_budget(net, device)
    how = told(model, local, options)
    room_note(local.name, how, options)
    identity = identified(identity, how, options)
    return TransformersEngine(model, net, local, identity, budget, how)


# --- finding and loading --------------------------------------------------------------------


def _load_model(
    model: str,
    folder: Path,
    config: Any,
    dtype: torch.dtype,
    device: torch.device,
    how: Mapping[str, Any],
) -> Any:
    loader: Any = (
        transformers.AutoModelForSeq2SeqLM
        if config.is_encoder_decoder
        else transformers.AutoModelForCausalLM
    )
    with refusing(f"{model}: the weights cannot be loaded"):
        net, info = loader.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            output_loading_info=True,
            trust_remote_code=False,
            **how,
        )
    if info["missing_keys"]:
        raise EngineError(
            f"{model}: {len(info['missing_keys'])} weights are missing"
            f" ({min(info['missing_keys'])}, …) and would be random; get the whole model"
        )
    with refusing(f"{model}: does not fit on {device}; try a smaller dtype or another device"):
        return (net if how else net.to(device)).eval()


# --- answering ------------------------------------------------------------------------------


def batches(rows: Sequence[Row], new: int, budget: int) -> list[list[Row]]:
    """Sort rows by length, longest first, and cut them into batches of at most `budget` tokens.

    `new` tokens of reply are counted for every row. One row alone may exceed the budget.
    """
    ordered = sorted(rows, key=lambda row: -len(row.ids))  # stable
    result = []
    start = 0
    while start < len(ordered):
        end = start + max(1, budget // (len(ordered[start].ids) + new))
        result.append(ordered[start:end])
        start = end
    return result


_Run = Callable[[list[Row]], Sequence[Any]]
_ASKED = ("on", "low", "medium", "high")


def tokenizer_of(model: str, revision: str | None = None) -> Any:
    """Load the tokenizer of a folder or hub model, without the weights; None if there is none."""
    with quiet(), contextlib.suppress(Exception):
        return transformers.AutoTokenizer.from_pretrained(
            model, revision=revision, trust_remote_code=False
        )
    return None


def to_fetch(model: str, revision: str | None = None) -> tuple[int, str]:
    """Return how many bytes of a hub model are not on this machine, and its commit."""
    return _local.to_fetch(model, revision)


def revision_of(folder: str) -> str:
    """Return the revision by which runs know the model in a folder: `_local.folder_hash`."""
    return _local.folder_hash(door.expanded(folder))


def open_scorer(model: str, options: Options) -> Scorer:
    """Open a scorer of texts; see `engines.scoring`."""
    from genprobe.engines import scoring

    return scoring.open(model, options)


class _Kind(NamedTuple):
    """How requests of one decode are answered. new: tokens of a reply; 0: those of the options."""

    new: int
    run: _Run


class TransformersEngine:
    """The engine of a loaded model. `net` and `tokenizer` are the objects of transformers."""

    def __init__(
        self, name: str, net: Any, local: Local, identity: Identity, budget: int, how: Told
    ):
        self.name = name
        self.net = net
        self.tokenizer = tokenizer = local.tokenizer
        self.identity = identity
        self.budget = budget
        self.how = how
        self.marks = marks(tokenizer)
        self.prompts = Prompts(tokenizer, how.kwargs)
        self._too_big: float = float("inf")  # padded tokens of a batch that ran out of memory
        own, config = net.generation_config, net.config
        self.stop_ids = local.stop_ids
        pads = [tokenizer.pad_token_id, *self.stop_ids, tokenizer.unk_token_id, 0]
        self.pad_id: int = next(i for i in pads if i is not None)
        self.decoder_start = own.decoder_start_token_id
        if self.decoder_start is None:
            self.decoder_start = getattr(config, "decoder_start_token_id", None)
        # generate() uses the model's own settings unless ours override them.
        net.generation_config = self._settings(1)
        self.positions = positions_of(config)

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Response | LogProb | Failure]:
        """Answer every request once, batch by batch. Raises EngineError if the model fails."""
        kinds: dict[str, _Kind] = {
            "free": _Kind(
                sampling.max_tokens + self.how.room, lambda batch: self._reply(batch, sampling)
            ),
            "choice": _Kind(0, lambda batch: self._choose(batch, sampling)),
            "logprob": _Kind(0, self._read),
        }
        for start in range(0, len(requests), WINDOW):
            window = requests[start : start + WINDOW]
            for decode, kind in kinds.items():
                rows = []
                asked = [r for r in window if r.decode == decode]
                new = 0
                found = self.prompts.rows(asked)
                if decode != "free" and self.how.thinks:
                    found, lost = self._think(found, sampling)
                    yield from lost
                for row in found:
                    own = kind.new or self._longest(row)
                    if failure := self._unusable(row, own):
                        yield failure
                    else:
                        rows.append(row)
                        new = max(new, own)
                for batch in batches(rows, new, self.budget):
                    yield from self._answer(batch, new, kind.run)

    def close(self) -> None:
        """Free the model's memory."""
        self.net = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _longest(self, row: Row) -> int:
        """Count the tokens of a request's longest option; it needs no end token."""
        return max((len(f.ids) for f in self.prompts.forms(row.request.options)), default=0)

    def _unusable(self, row: Row, new: int) -> Failure | None:
        vocabulary = self.net.get_input_embeddings().weight.shape[0]
        # An encoder-decoder model has separate limits for prompt and reply.
        apart = self.net.config.is_encoder_decoder
        return unusable(row, 0 if apart else new, self.positions, vocabulary)

    def _answer(
        self, batch: list[Row], new: int, run: _Run
    ) -> Iterator[Response | LogProb | Failure]:
        """Answer a batch, in halves if it does not fit into memory. new: tokens of a reply."""
        padded = len(batch) * (len(batch[0].ids) + new)
        if len(batch) == 1 or padded < self._too_big:
            answers = self._try(batch, run)
            if answers is not None:
                yield from answers
                return
            # Outside the except clause, whose traceback would keep the tensors in memory.
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            if len(batch) == 1:
                detail = f"one request of {len(batch[0].ids)} tokens does not fit into memory"
                yield Failure(batch[0].request.id, "out-of-memory", detail, 1)
                return
            self._too_big = min(self._too_big, padded)
        half = (len(batch) + 1) // 2
        yield from self._answer(batch[:half], new, run)
        yield from self._answer(batch[half:], new, run)

    def _try(self, batch: list[Row], run: _Run) -> Sequence[Response | LogProb] | None:
        """Return the answers of a batch; None if it ran out of memory."""
        try:
            with torch.inference_mode(), quiet():
                return run(batch)
        except (RuntimeError, MemoryError) as error:
            if out_of_memory(error):
                return None
            raise EngineError(f"{self.name}: the model failed ({line(error)})") from error

    def _reply(self, batch: list[Row], sampling: Sampling) -> list[Response]:
        """Write free replies to a batch."""
        most = sampling.max_tokens + self.how.room
        new = self._generate(batch, self._draw(batch, sampling), most)
        return [
            reply(self.tokenizer, row, ids, self.stop_ids, self.marks)
            for row, ids in zip(batch, new, strict=True)
        ]

    def prepare(self, requests: Sequence[Request], sampling: Sampling) -> None:
        """Raise EngineError for choices or probabilities of a model that thinks by default.

        With `--thinking on` they are taken after the thought, which measures something else.
        """
        forced = {r.decode for r in requests} - {"free"}
        if forced and self.how.thinks and self.identity.thinking.split(" ")[0] not in _ASKED:
            raise EngineError(
                f"{self.name}: thinks before it answers, and --decode {min(forced)} would ask in "
                "the middle of a thought; give --thinking on to ask after it, or --thinking off"
            )

    def _think(self, rows: list[Row], sampling: Sampling) -> tuple[list[Row], list[Failure]]:
        """Generate a thought for each row, by its seed. Returns rows with thoughts, and failures.

        A thought that does not end within its tokens is a failure, as no answer follows it.
        """
        room = self.how.room + sampling.max_tokens
        behind: list[Row] = []
        lost: list[Failure] = []
        fit = []
        for row in rows:
            if failure := self._unusable(row, room):
                lost.append(failure)
            else:
                fit.append(row)

        def write(batch: list[Row]) -> list[Any]:
            new = self._generate(batch, self._draw(batch, sampling), room)
            return list(zip(batch, new, strict=True))

        for batch in batches(fit, room, self.budget):
            for answer in self._answer(batch, room, write):
                if isinstance(answer, Failure):
                    lost.append(answer)
                    continue
                row, ids = cast(tuple[Row, list[int]], answer)
                found = self._ahead(row, ids)
                if isinstance(found, Failure):
                    lost.append(found)
                else:
                    behind.append(found)
        return behind, lost

    def _ahead(self, row: Row, ids: list[int]) -> Row | Failure:
        """Append to a row what the model wrote before its answer."""
        ids = ids[: next((n for n, token in enumerate(ids) if token in self.stop_ids), None)]
        found = ahead(written(self.tokenizer, ids, self.marks), self.how.seen == "opens")
        if found is None:
            detail = f"the thought did not end within {self.how.room} tokens; --think-tokens"
            return Failure(row.request.id, "unfinished", detail, 1)
        before, thought = found
        low, high = 0, len(ids)  # find the fewest tokens whose text includes all of `before`
        while low < high:
            middle = (low + high) // 2
            if len(written(self.tokenizer, ids[:middle], self.marks)) >= len(before):
                high = middle
            else:
                low = middle + 1
        return Row(row.request, row.sent + before, [*row.ids, *ids[:low]], thought, low)

    def _choose(self, batch: list[Row], sampling: Sampling) -> list[Response]:
        """Generate replies restricted to the options of their request."""
        forms = [self.prompts.forms(row.request.options) for row in batch]
        longest = max(len(f.ids) for row in forms for f in row)
        ends = self.stop_ids or [self.pad_id]
        only = Only([Trie(row) for row in forms], ends)
        new = self._generate(batch, [only, *self._draw(batch, sampling)], longest)
        chosen = []
        for row, options, ids in zip(batch, forms, new, strict=True):
            kept = ids[: next((n for n, token in enumerate(ids) if token in ends), None)]
            text = next(f.text for f in options if f.ids == kept)
            thought = (row.thought, "before" if row.thought else "", row.thought_tokens)
            chosen.append(
                Response(row.request.id, text, "stop", row.sent, len(row.ids), len(kept), *thought)
            )
        return chosen

    def _read(self, batch: list[Row]) -> list[LogProb]:
        """Compute the probabilities of the answer words.

        Prompts, and beginnings that several forms share, are computed once: level by level, each
        from the cached keys and values of the level before.
        """
        forms = [self.prompts.forms(row.request.options) for row in batch]
        tries = [Trie(row) for row in forms]
        found: list[dict[tuple[int, ...], float]] = [{} for _ in batch]
        level: list[tuple[int, tuple[int, ...]]] = [
            (at, ()) for at in range(len(batch))
        ]  # (row, beginning) of each line of logits
        step = _Steps(self.net, *self._padded(batch), self.decoder_start)
        while True:
            logprobs = step.logits.float().log_softmax(-1)
            lines = [n for n, (at, node) in enumerate(level) for _ in tries[at].children[node]]
            edges = [(at, (*node, t)) for at, node in level for t in tries[at].children[node]]
            tokens = [node[-1] for _, node in edges]
            for (at, node), value in zip(edges, logprobs[lines, tokens].tolist(), strict=True):
                found[at][node] = value
            deeper = [n for n, (at, node) in enumerate(edges) if node in tries[at].children]
            if not deeper:
                break
            level = [edges[n] for n in deeper]
            step.forward([lines[n] for n in deeper], [tokens[n] for n in deeper])
        return [
            logprob(row, options, trie.values(values))
            for row, options, trie, values in zip(batch, forms, tries, found, strict=True)
        ]

    def _padded(self, batch: list[Row]) -> tuple[torch.Tensor, torch.Tensor]:
        """Pad a batch: token ids and attention mask, (rows, width), on the model's device."""
        width = max(len(row.ids) for row in batch)
        ids = torch.full((len(batch), width), self.pad_id)
        mask = torch.zeros((len(batch), width), dtype=torch.long)
        for i, row in enumerate(batch):
            # Decoders are padded on the left, as they continue on the right; encoders on the right.
            n = len(row.ids)
            span = slice(0, n) if self.net.config.is_encoder_decoder else slice(width - n, width)
            ids[i, span] = torch.tensor(row.ids)
            mask[i, span] = 1
        return ids.to(self.net.device), mask.to(self.net.device)

    def _draw(self, batch: list[Row], sampling: Sampling) -> list[transformers.LogitsProcessor]:
        """Return the logits processors that sample by each row's seed; none for greedy replies."""
        steps: list[transformers.LogitsProcessor] = []
        if sampling.temperature > 0:
            if sampling.temperature != 1:
                steps.append(transformers.TemperatureLogitsWarper(sampling.temperature))
            if sampling.top_p < 1:
                steps.append(transformers.TopPLogitsWarper(sampling.top_p))
            steps.append(Draw([row.request.seed for row in batch]))
        return steps

    def _generate(
        self, batch: list[Row], steps: Sequence[transformers.LogitsProcessor], new: int
    ) -> list[list[int]]:
        """Generate the new token ids of each row."""
        ids, mask = self._padded(batch)
        out = self.net.generate(
            input_ids=ids,
            attention_mask=mask,
            generation_config=self._settings(new),
            logits_processor=transformers.LogitsProcessorList(steps),
        )
        start = 1 if self.net.config.is_encoder_decoder else ids.shape[1]
        return out[:, start:].tolist()

    def _settings(self, new: int) -> transformers.GenerationConfig:
        return transformers.GenerationConfig(
            max_new_tokens=new,
            do_sample=False,  # Draw has added its noise; taking the highest completes it
            num_beams=1,
            eos_token_id=self.stop_ids or None,
            pad_token_id=self.pad_id,
            bos_token_id=self.tokenizer.bos_token_id,
            decoder_start_token_id=self.decoder_start,
        )


class _Steps:
    """A model run token by token with a cache of keys and values.

    logits: (lines, vocabulary), for the token after each line; at first, the batch's rows.
    """

    def __init__(
        self, net: Any, ids: torch.Tensor, mask: torch.Tensor, decoder_start: int | None
    ) -> None:
        self.net = net
        self.encoded: Any = None
        if net.config.is_encoder_decoder:
            self.encoded = net.get_encoder()(input_ids=ids, attention_mask=mask)
            self.encoder_mask = mask
            ids = torch.full((len(ids), 1), decoder_start or 0, device=ids.device)
            mask = torch.ones_like(ids)
        self.mask = mask
        self.cache: Any = None
        self.logits = self._run(ids)

    def forward(self, lines: Sequence[int], tokens: Sequence[int]) -> None:
        """Make new lines: line n is the old line `lines[n]` with `tokens[n]` appended."""
        which = torch.tensor(lines, device=self.mask.device)
        self.cache.batch_select_indices(which)
        if self.encoded is not None:
            state = self.encoded.last_hidden_state[which]
            self.encoded = type(self.encoded)(last_hidden_state=state)
            self.encoder_mask = self.encoder_mask[which]
        self.mask = torch.cat([self.mask[which], self.mask.new_ones(len(lines), 1)], 1)
        self.logits = self._run(torch.tensor(tokens, device=self.mask.device)[:, None])

    def _run(self, ids: torch.Tensor) -> torch.Tensor:
        inputs: dict[str, Any] = {"past_key_values": self.cache, "use_cache": True}
        if self.encoded is not None:
            inputs |= {"decoder_input_ids": ids, "decoder_attention_mask": self.mask}
            inputs |= {"encoder_outputs": self.encoded, "attention_mask": self.encoder_mask}
        else:
            # Padding is on the left: positions count only the tokens that are not padding.
            positions = (self.mask.cumsum(-1) - 1).clamp_(min=0)[:, -ids.shape[1] :]
            inputs |= {"input_ids": ids, "attention_mask": self.mask, "position_ids": positions}
            inputs["logits_to_keep"] = 1
        accepted = inspect.signature(self.net.forward).parameters
        out = self.net(**{name: value for name, value in inputs.items() if name in accepted})
        self.cache = getattr(out, "past_key_values", None)
        if not hasattr(self.cache, "batch_select_indices"):
            raise EngineError(
                "this model has no cache of keys and values to go on from; "
                "--decode logprob does not work with it"
            )
        return out.logits[:, -1]


class Only(transformers.LogitsProcessor):
    """Restrict each row to tokens that continue one of its options, or end after one."""

    def __init__(self, tries: Sequence[Trie], ends: Sequence[int]) -> None:
        self.tries = tries
        self.ends = ends  # all end tokens: the end of a turn and the end of a text may differ
        self.width: int | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Mask all other tokens. scores: logits (rows, vocabulary)."""
        if self.width is None:
            self.width = input_ids.shape[1]
        kept = torch.full_like(scores, float("-inf"))
        for row, (trie, ids) in enumerate(
            zip(self.tries, input_ids[:, self.width :].tolist(), strict=True)
        ):
            node = tuple(ids)
            allowed = list(trie.children.get(node, []))
            if not allowed or any(list(node) == form.ids for form in trie.forms):
                allowed += self.ends
            kept[row, allowed] = scores[row, allowed]
        return kept


class Draw(transformers.LogitsProcessor):
    """Draw each row's next token by that row's seed: add Gumbel noise to logits, take the highest.

    argmax(logits + Gumbel noise) is a draw from softmax(logits) (Gumbel 1954; Maddison et al.
    2014, https://arxiv.org/abs/1411.0030). The noise is a function of (seed, step, token id), so
    that neither the batch nor the device changes it, and rounding of the logits almost never
    changes the token drawn. transformers' own sampling shares one generator among all rows.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        self.seeds = seeds  # one 31-bit number for each row
        self.step = 0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Add noise. scores: logits (rows, vocabulary), -inf for tokens that are excluded."""
        states = torch.tensor(self.seeds, device=scores.device) * 2**32 + self.step
        self.step += 1
        left = scores > float("-inf")
        if 4 * int(left.sum()) > left.numel():
            tokens = torch.arange(scores.shape[-1], device=scores.device)
            return scores + gumbel(states[:, None], tokens)
        # After top-p or for choices few tokens are left; noise for all takes most of a step's time.
        rows, tokens = left.nonzero(as_tuple=True)
        return scores.index_put((rows, tokens), gumbel(states[rows], tokens), accumulate=True)


def gumbel(states: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Compute standard Gumbel noise, float32, for states and token ids that broadcast, both int64.

    SplitMix64 (Steele, Lea, Flood 2014), counter-based: the same numbers on every device.
    """
    tokens = tokens * _signed(0x9E3779B97F4A7C15)
    bits = _shift(_mix(_mix(states) + tokens), 11)  # 53 random bits
    # Tiny values keep their precision here: they decide how often rare tokens win.
    uniform = ((bits.to(torch.float32) + 0.5) * 2.0**-53).clamp_(max=1 - 2.0**-24)
    return uniform.neg_().log1p_().neg_().log_().neg_()


def _mix(z: torch.Tensor) -> torch.Tensor:
    z = (z ^ _shift(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shift(z, 27)) * _signed(0x94D049BB133111EB)
    return z ^ _shift(z, 31)


def _shift(z: torch.Tensor, by: int) -> torch.Tensor:
    """Shift right logically; torch's own shift copies the sign."""
    return (z >> by) & ((1 << (64 - by)) - 1)


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word
