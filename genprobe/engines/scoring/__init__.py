"""Score texts by the log-probabilities of their tokens.

A scorer is an engine (`genprobe.engines.Engine`) for requests of decode `score`. What it computes
is the request's `probe`, its *pass*:
  causal       each token given the tokens before it
  masked       each token given all others; only this token is masked (Salazar et al. 2020,
               https://aclanthology.org/2020.acl-main.240)
  masked-word  as masked, but the later tokens of the same word are masked too (Kauf and
               Ivanova 2023, https://aclanthology.org/2023.acl-short.80)
  seq2seq      each token given the tokens before it and the encoder's input

`options` of a request holds the texts to score (answer -> [text, …]). A message of role
`context` is optional and comes before each text: in front of it in the causal and masked passes,
in the encoder in seq2seq. Context and text are joined without a space; if one is needed, put it
in either of them. The joined text is tokenised as a whole and cut where the text begins. A token
that begins with the spaces at the end of the context counts as part of the text. If a token holds
letters of both, context and text are tokenised separately.

The answer is a LogProb with one continuation for each text: `tokens`, the ids of the text without
special tokens, and `logprobs` (natural logarithms), one for each token, including the first.
Padding, batch and order change a value only by rounding. No chat template is applied here (but
`Texts.turn` writes a context with it); `identity.chat_template` says whether there is one.
"""

from __future__ import annotations

from collections.abc import Callable

from genprobe.engines import Options, Scorer
from genprobe.errors import EngineError


def open(model: str, options: Options) -> Scorer:
    """Load a causal, masked or encoder-decoder model of transformers, and its tokenizer.

    It runs in float32 unless `options.dtype` says otherwise. `options.batch_tokens` is the number
    of padded tokens computed at a time, which limits the memory. Raises EngineError for a model
    that would give meaningless values: without a trained output layer, without a tokenizer, or
    able to see the tokens that it should predict.
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
        del loaded  # some models, such as Mamba, access the weights of a layer directly
    loaded = _net.load(model, options, pack=False)
    return kinds[loaded.kind](loaded)
