"""Decoder-only models through vLLM: each token of a text given those before it.

Texts are tokenised here, and their values are the `prompt_logprobs` of vLLM: the same tokens and,
in float32, the same values as those of transformers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from genprobe.engines import Options, Sampling, _vllm
from genprobe.engines import vllm as engine
from genprobe.engines.scoring import _texts
from genprobe.records import Failure, LogProb, Request


def open(model: str, options: Options) -> VllmScorer:
    """As `genprobe.engines.vllm.open`."""
    return VllmScorer(engine.open(model, options))


class VllmScorer:
    """See `genprobe.engines.scoring.Scorer`."""

    passes: tuple[str, ...] = ("causal",)

    def __init__(self, running: engine.VllmEngine) -> None:
        self.engine = running
        self.identity = running.identity
        self.texts = _texts.Texts(running.name, running.tokenizer)
        self.unknown = self.texts.unknown
        self.first, self.before = self.texts.first()

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[LogProb | Failure]:
        # vLLM itself says a token after each text, which nobody reads.
        around = len(self.before) + 1
        for start in range(0, len(requests), self.engine.ahead):
            usable = []
            window = requests[start : start + self.engine.ahead]
            for asked in self.texts.asked(window, self.passes):
                most, words = self.engine.positions, self.engine.vocabulary
                if failure := _texts.unusable(asked, around, most, words):
                    yield failure
                else:
                    usable.append(asked)
            values = iter(self._values([item for asked in usable for item in asked.items]))
            for asked in usable:
                sent = self.texts.words(self.before) + asked.context
                found = [next(values) for _ in asked.items]
                yield _texts.record(asked, sent, len(self.before), found)

    def close(self) -> None:
        self.engine.close()

    def _values(self, items: Sequence[_texts.Item]) -> list[list[float]]:
        """For each item, log P of each token of its text."""
        if not items:
            return []
        rows = [[*self.before, *item.before, *item.ids] for item in items]
        with self.engine._breaking():
            from vllm import SamplingParams

            settings = {**_vllm.NEUTRAL, "temperature": 0.0, "max_tokens": 1}
            outputs = self.engine.llm.generate(
                [{"prompt_token_ids": row} for row in rows],
                SamplingParams(**settings, prompt_logprobs=0),
                use_tqdm=False,
            )
        return [
            [
                float(output.prompt_logprobs[n][row[n]].logprob)
                for n in range(len(row) - len(item.ids), len(row))
            ]
            for item, row, output in zip(items, rows, outputs, strict=True)
        ]
