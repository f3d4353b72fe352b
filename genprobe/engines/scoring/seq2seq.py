"""Encoder-decoder models: the encoder reads the context, and the decoder's text is scored.

Without a context the encoder reads only the special tokens of its tokenizer (T5: `</s>`). The
decoder begins as in training: with its start token, then the special tokens that the tokenizer
puts before a text. A context is encoded once for all texts after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import torch

from genprobe.engines.scoring import _net, _texts
from genprobe.errors import EngineError
from genprobe.records import Failure, LogProb

Text = tuple[tuple[int, ...], tuple[int, ...]]  # tokens of the encoder, tokens of the decoder


class Seq2SeqScorer(_net.Scorer):
    """The scorer of encoder-decoder models: see `genprobe.engines.scoring.Scorer`."""

    passes: tuple[str, ...] = ("seq2seq",)
    apart = True

    def __init__(self, loaded: _net.Loaded) -> None:
        super().__init__(loaded)
        start = loaded.net.generation_config.decoder_start_token_id
        if start is None:
            start = getattr(loaded.local.config, "decoder_start_token_id", None)
        if start is None:
            raise EngineError(f"{loaded.name}: its configuration has no decoder_start_token_id")
        self.before = [start, *self.texts.prefix]
        self.around = len(self.before) + len(self.texts.prefix) + len(self.texts.suffix)
        self.first = f"start {self.texts.words(self.before)}"
        self.encoder = loaded.net.get_encoder()
        empty = loaded.net.get_input_embeddings().weight.new_zeros(1, 1, 1)
        zero = torch.zeros(1, 1, dtype=torch.long, device=loaded.net.device)
        self.net = _net.Net(
            loaded, loaded.net.get_decoder(), encoder_outputs=(empty,), decoder_input_ids=zero
        )
        with _net.working(loaded.name):
            ids = torch.tensor([self.before], device=self.net.device)
            whole = loaded.net(input_ids=ids, decoder_input_ids=ids, use_cache=False).logits
            states, mask = self._encode([tuple(self.before)])
            self.net.check(whole, self._decode(ids, states, mask))

    def close(self) -> None:
        del self.encoder
        super().close()

    def unusable(self, asked: _texts.Asked) -> Failure | None:
        # Encoder and decoder have separate position limits.
        halves = [i._replace(before=[]) for i in asked.items]
        halves += [i._replace(ids=i.before, before=[]) for i in asked.items if i.before]
        around = max(len(self.before), self.around - len(self.before))
        most, words = self.positions, self.net.vocabulary
        return _texts.unusable(asked._replace(items=halves), around, most, words)

    def score(self, window: Sequence[_texts.Asked]) -> Iterator[LogProb | Failure]:
        texts: dict[tuple[int, ...], dict[tuple[int, ...], None]] = {}
        for asked in window:
            for item in asked.items:
                prompt, ids = self._placed(item)
                texts.setdefault(prompt, {})[ids] = None
        found: dict[Text, list[float]] = {}
        prompts = list(texts)

        def batches() -> Iterator[Collection[Text]]:
            for batch in _net.batches([len(prompt) for prompt in prompts], self.budget):
                chosen = [prompts[n] for n in batch]
                with _net.working(self.net.name):
                    states, mask = self._encode(chosen)
                rows = [(n, ids) for n, prompt in enumerate(chosen) for ids in texts[prompt]]
                # Each row has its own copy of the encoder's states, which takes memory.
                lengths = [len(ids) + len(chosen[n]) for n, ids in rows]
                for part in _net.batches(lengths, self.budget):
                    some = [rows[n] for n in part]
                    which = torch.tensor([n for n, _ in some], device=self.net.device)
                    values = self._values([ids for _, ids in some], states[which], mask[which])
                    keys = [(chosen[n], ids) for n, ids in some]
                    found.update(zip(keys, values, strict=True))
                    yield keys

        needs = [[self._placed(item) for item in asked.items] for asked in window]
        for at in _net.as_found(needs, batches()):
            sent = " → ".join(
                [
                    f"{self.texts.words(self.texts.prefix)}{window[at].context}"
                    f"{self.texts.words(self.texts.suffix)}",
                    self.texts.words(self.before),
                ]
            )
            yield _texts.record(window[at], sent, self.around, [found[key] for key in needs[at]])

    def _placed(self, item: _texts.Item) -> Text:
        prompt = (*self.texts.prefix, *item.before, *self.texts.suffix)
        return prompt or tuple(self.before[:1]), tuple(item.ids)

    def _encode(self, prompts: Sequence[tuple[int, ...]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Encode prompts. Returns states (prompts, width, states) and mask (prompts, width)."""
        ids, mask = _net.padded(prompts, 0, self.net.device)
        return self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state, mask

    def _decode(self, ids: torch.Tensor, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        # No token sees the padding, which is on its right.
        return self.net.hidden(
            input_ids=ids,
            encoder_hidden_states=states,
            encoder_attention_mask=mask,
            use_cache=False,
        )

    def _values(
        self, texts: Sequence[tuple[int, ...]], states: torch.Tensor, mask: torch.Tensor
    ) -> list[list[float]]:
        """Compute natural log P of each token of each text."""
        behind = len(self.before) - 1
        with _net.working(self.net.name):
            ids, _ = _net.padded([[*self.before, *text[:-1]] for text in texts], 0, self.net.device)
            hidden = self._decode(ids, states, mask)
            rows = [n for n, text in enumerate(texts) for _ in text]
            places = [behind + at for text in texts for at in range(len(text))]
            wanted = [[token] for text in texts for token in text]
            values = iter(self.net.logprobs(hidden[rows, places], wanted))
            return [[next(values)[0] for _ in text] for text in texts]
