"""Score texts by the log-probabilities of their tokens.

A scorer is an engine (`genprobe.engines.Engine`) for requests of decode `score`. What it computes
is the request's `probe`, its *pass*:
  causal       each token given those before it
  masked       each token given all others: it alone is masked (Salazar et al. 2020,
               https://aclanthology.org/2020.acl-main.240)
  masked-word  each token given all but itself and the later tokens of its word, which are masked
               too (Kauf and Ivanova 2023, https://aclanthology.org/2023.acl-short.80)
  seq2seq      each token given those before it and the encoder's prompt

`options` of a request holds the texts to score (answer -> [text, …]), a message of role
`context`, if there is one, what stands before each of them: in causal and masked passes in front
of the text, in seq2seq in the encoder. Context and text are joined as they are: a space between
them must be in one of the two. The joined text is tokenised as one and cut at the seam; a token
that begins with the spaces at the end of a context is the text's; where a token holds letters of
both, the two are tokenised apart.

The answer is a LogProb with one continuation for each text: `tokens`, the ids of the text without
special tokens, and `logprobs`, one for each token, the first included. Neither padding nor batch
nor order changes a value by more than rounding. Texts are taken as they are: no chat
template is applied here (`Texts.turn` writes one as a context); `identity.chat_template` says
whether there is one.
"""

from __future__ import annotations

from collections.abc import Callable

from genprobe.engines import Options, Scorer
from genprobe.errors import EngineError


def open(model: str, options: Options) -> Scorer:
    """Load a causal, masked or encoder-decoder model of transformers, and its tokenizer.

    In float32 unless `options.dtype` says else. `options.batch_tokens` bounds the memory: so many
    padded tokens are computed at a time. EngineError, in one line, for a model whose values would
    be noise: without a trained output layer, without a tokenizer, or one that sees what it should
    predict.
    """
    from genprobe.engines.scoring import _net
    from genprobe.engines.scoring.causal import CausalScorer
    from genprobe.engines.scoring.masked import MaskedScorer
    from genprobe.engines.scoring.seq2seq import Seq2SeqScorer

    kinds: dict[str, Callable[[_net.Loaded], Scorer]] = {
        "causal": CausalScorer,
        "masked": MaskedScorer,
        "seq2seq": Seq2SeqScorer,
    }
    loaded = _net.load(model, options)
    try:
        return kinds[loaded.kind](loaded)
    except EngineError:
        if not loaded.packed:
            raise
        del loaded  # some models, such as Mamba, reach for the weights of a layer by themselves
    loaded = _net.load(model, options, pack=False)
    return kinds[loaded.kind](loaded)
