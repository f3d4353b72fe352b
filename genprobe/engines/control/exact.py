"""Compute the control model's exact answer probabilities from its logits, without sampling.

The replies to one question form a tree of tokens. Prompt and tree go through the model as one
sequence in which a token sees only the prompt and its own ancestors. One pass thus gives the
probability of every edge; the probability of a reply is the product of its edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from genprobe.engines import control
from genprobe.engines.control import stories, thoughts
from genprobe.errors import InputError
from genprobe.records import Request
from genprobe.resources.packs import Pack, load_pack

if TYPE_CHECKING:
    from torch import Tensor

# Positions in one pass: more are no faster on a CPU and need more memory.
BATCH_POSITIONS = 6000


class Exact(NamedTuple):
    """P(answer) of one request at temperature 1 and top_p 1.

    `other` is the probability of all texts that were not planted (and of other tokenisations of
    the planted ones). They have no label, so each of the three may be larger by up to `other`.
    """

    yes: float
    no: float
    ambiguous: float
    other: float


class ExactStory(NamedTuple):
    """P(kind of story) of one request at temperature 1 and top_p 1, by `stories.LABELS`.

    The opening of a story decides its kind. `other` is the probability of openings that were not
    planted; each of the rest may be larger by up to `other`.
    """

    negative: float
    positive: float
    short_negative: float
    short_positive: float
    russian: float
    refusal: float
    other: float

    @property
    def short(self) -> float:
        return self.short_negative + self.short_positive


class ExactThought(NamedTuple):
    """Probabilities of one request to the control model that thinks, at temperature 1 and top_p 1.

    thinks: there is a thought. cut: the thought has no end and uses up all tokens. other: the
    thought has an end and is not in the question's language. clear: thought and answer are both
    yes or no. against: one of them is yes, the other no. yes, no: that answer, with or without a
    thought. rest: all texts that were not planted; each of the others may be larger by up to it.
    """

    thinks: float
    cut: float
    other: float
    clear: float
    against: float
    yes: float
    no: float
    rest: float


class Tree:
    """A tree of the tokens of replies; `sequences` are non-empty and end with the same end token.

    Node 0 is the last token of the prompt. Node k > 0 is token `tokens[k - 1]`; its parent is node
    `above[k - 1]`, which has a smaller number. The last token of a sequence has an edge, no node.
    """

    def __init__(self, sequences: Sequence[Sequence[int]]):
        self.tokens: list[int] = []
        self.above: list[int] = []
        self.depth: list[int] = [0]
        self.edges: list[tuple[int, int]] = []  # (node, token that follows)
        self.paths: list[list[int]] = []  # edges of each sequence
        known: dict[tuple[int, int], tuple[int, int]] = {}  # edge -> (its number, node below)
        for sequence in sequences:
            node, path = 0, []
            for i, token in enumerate(sequence):
                edge = (node, token)
                if edge not in known:
                    known[edge] = (len(self.edges), len(self.tokens) + 1)
                    self.edges.append(edge)
                    if i + 1 < len(sequence):
                        self.tokens.append(token)
                        self.above.append(node)
                        self.depth.append(self.depth[node] + 1)
                number, node = known[edge]
                path.append(number)
            self.paths.append(path)


def edge_logprobs(model: Any, prompts: Sequence[Sequence[int]], trees: Sequence[Tree]) -> Tensor:
    """Compute natural log P(token | prompt, ancestors) of every edge, tree after tree: (edges,).

    `model` is a causal language model of transformers that takes 4-D masks (Llama does).
    """
    width = max(len(p) + len(t.tokens) for p, t in zip(prompts, trees, strict=True))
    shape = (len(prompts), width)
    ids = torch.zeros(shape, dtype=torch.long)
    positions = torch.zeros(shape, dtype=torch.long)
    # Padding sees itself: the softmax of a row that sees nothing is undefined.
    seen = torch.eye(width, dtype=torch.bool).repeat(len(prompts), 1, 1)
    rows, columns, targets = [], [], []
    for b, (prompt, tree) in enumerate(zip(prompts, trees, strict=True)):
        n, end = len(prompt), len(prompt) + len(tree.tokens)
        ids[b, :end] = torch.tensor([*prompt, *tree.tokens])
        positions[b, :end] = torch.tensor([*range(n), *(n - 1 + d for d in tree.depth[1:])])
        seen[b, :n, :n] = torch.ones(n, n, dtype=torch.bool).tril()
        seen[b, n:end, :n] = True
        for k, above in enumerate(tree.above):
            if above:
                seen[b, n + k] |= seen[b, n - 1 + above]
        rows += [b] * len(tree.edges)
        columns += [n - 1 + node for node, _ in tree.edges]
        targets += [token for _, token in tree.edges]
    mask = torch.zeros(seen.shape).masked_fill_(~seen, torch.finfo(torch.float32).min)
    hidden = model.model(
        input_ids=ids, attention_mask=mask[:, None], position_ids=positions, use_cache=False
    ).last_hidden_state
    # Many edges leave one node: its logits are computed once.
    places = torch.tensor(rows) * width + torch.tensor(columns)
    nodes, which = places.unique(return_inverse=True)
    states = hidden.flatten(0, 1)[nodes]
    norm = model.lm_head(states).logsumexp(-1)
    # Computing the edges' logits again is faster than indexing all logits.
    logits = (states[which] * model.lm_head.weight[targets]).sum(-1)
    return logits - norm[which]


def statement_of(request: Request, pack: Pack) -> str:
    """Extract the statement from a question of the pack; InputError if it is no such question."""
    if request.lang in pack.wordings and request.probe in pack.probes:
        before, after = pack.wordings[request.lang][request.probe].text.split("{input}")
        asked = request.messages[-1]["content"]
        if asked.startswith(before) and asked.endswith(after):
            return asked[len(before) : len(asked) - len(after)]
    raise InputError(f"request {request.id} is not a question of the pack {pack.name!r}")


def encode(
    tokenizer: Any, request: Request, pack: Pack
) -> tuple[list[int], list[list[int]], tuple[control.Reply, ...]]:
    """Tokenise a request. Returns ids of the prompt, ids of each planted reply, and the replies."""
    prompt = tokenizer.apply_chat_template(
        request.messages, add_generation_prompt=True, tokenize=True, return_dict=False
    )
    said = control.replies(request.lang, request.probe)
    statement = statement_of(request, pack)
    texts = [reply.say(statement) for reply in said]
    encoded = tokenizer(texts, add_special_tokens=False)["input_ids"]
    return prompt, [[*ids, tokenizer.eos_token_id] for ids in encoded], said


def written(
    tokenizer: Any, thought: thoughts.Thought | None, reply: control.Reply | None, statement: str
) -> list[int]:
    """Tokenise a thought and the reply after it, with the end token if there is a reply."""
    texts = [thought.written] if thought else []
    texts += [reply.say(statement)] if reply else []
    ids = [i for text in texts for i in tokenizer(text, add_special_tokens=False)["input_ids"]]
    return [*ids, tokenizer.eos_token_id] if reply else ids


def exact(
    model: Any,
    tokenizer: Any,
    requests: Sequence[Request],
    progress: Callable[[int], None] = lambda done: None,
) -> list[Exact]:
    """Compute the exact answer probabilities of requests, in the same order.

    `progress` is called after each pass with the number of requests it finished. Raises InputError
    unless every request is from the pack `yesno`, in a language that the model was trained on.
    """
    pack = load_pack("yesno")
    jobs, labels = [], []
    for request in requests:
        prompt, sequences, said = encode(tokenizer, request, pack)
        jobs.append((prompt, Tree(sequences)))
        labels.append([reply.answer for reply in said])
    masses = _masses(model, jobs, labels, control.ANSWERS, progress)
    return [Exact(**mass, other=max(0.0, 1.0 - sum(mass.values()))) for mass in masses]


def exact_stories(
    model: Any,
    tokenizer: Any,
    requests: Sequence[Request],
    progress: Callable[[int], None] = lambda done: None,
) -> list[ExactStory]:
    """Compute the exact probability of each kind of story for requests, in the same order.

    requests: ask for stories, in any wording. progress: as in `exact`. Raises InputError for a
    language in which the model tells no stories.
    """
    trees: dict[str, tuple[list[str], Tree]] = {}
    jobs, labels = [], []
    for request in requests:
        if request.lang not in trees:
            pairs = [(_name(k), text) for k in stories.kinds(request.lang) for text in k.banks[0]]
            ids = tokenizer([text for _, text in pairs], add_special_tokens=False)["input_ids"]
            trees[request.lang] = [label for label, _ in pairs], Tree(ids)
        prompt = tokenizer.apply_chat_template(
            request.messages, add_generation_prompt=True, tokenize=True, return_dict=False
        )
        jobs.append((prompt, trees[request.lang][1]))
        labels.append(trees[request.lang][0])
    masses = _masses(model, jobs, labels, ExactStory._fields[:-1], progress)
    return [ExactStory(**mass, other=max(0.0, 1.0 - sum(mass.values()))) for mass in masses]


def exact_thoughts(
    model: Any,
    tokenizer: Any,
    requests: Sequence[Request],
    progress: Callable[[int], None] = lambda done: None,
) -> list[ExactThought]:
    """Compute the exact rates of requests to the model that thinks, in the same order.

    They hold for the token limits `thoughts.THINK_TOKENS` and `thoughts.MAX_TOKENS`. `progress`
    and errors are as in `exact`.
    """
    pack = load_pack("yesno")
    most = thoughts.THINK_TOKENS + thoughts.MAX_TOKENS
    jobs, labels = [], []
    for request in requests:
        prompt = tokenizer.apply_chat_template(
            request.messages, add_generation_prompt=True, tokenize=True, return_dict=False
        )
        said = thoughts.mixture(request.lang, request.probe)
        statement = statement_of(request, pack)
        texts = [written(tokenizer, s.thought, s.reply, statement)[:most] for s in said]
        jobs.append((prompt, Tree(texts)))
        labels.append([_labels(s, request.lang) for s in said])
    names = sorted({label for row in labels for label in row})
    found = []
    for mass in _masses(model, jobs, labels, names, progress):
        at = {
            name: sum(share for label, share in mass.items() if name in label.split())
            for name in ExactThought._fields
        }
        found.append(ExactThought(**{**at, "rest": max(0.0, 1.0 - sum(mass.values()))}))
    return found


def _labels(said: thoughts.Said, lang: str) -> str:
    """Join the names of the `ExactThought` fields that a text counts towards, with spaces."""
    thought, reply = said.thought, said.reply
    found = ["thinks"] if thought else []
    if reply is None:
        return " ".join([*found, "cut"])
    if thought and thought.lang != lang:
        found.append("other")
    if thought and reply.answer != "ambiguous":
        found += ["clear", *(["against"] if reply.answer != thought.answer else [])]
    return " ".join([*found, *([reply.answer] if reply.answer != "ambiguous" else [])])


def _name(kind: stories.Kind) -> str:
    """Name the field of `ExactStory` for a kind."""
    return f"{kind.label}_{kind.sentiment}" if kind.label == "short" else kind.label


def _masses(
    model: Any,
    jobs: Sequence[tuple[list[int], Tree]],
    labels: Sequence[Sequence[str]],
    names: Sequence[str],
    progress: Callable[[int], None],
) -> list[dict[str, float]]:
    """Compute, for each prompt and its tree, the probability of each label.

    labels: for each job, the label of each sequence of its tree.
    """
    order = sorted(range(len(jobs)), key=lambda i: len(jobs[i][0]) + len(jobs[i][1].tokens))
    out: list[dict[str, float]] = [{} for _ in jobs]
    start = 0
    while start < len(order):
        # The batch size is that of its first job; the others are not much longer.
        first_prompt, first_tree = jobs[order[start]]
        longest = len(first_prompt) + len(first_tree.tokens)
        batch = order[start : start + max(1, BATCH_POSITIONS // longest)]
        start += len(batch)
        with torch.inference_mode():
            flat = edge_logprobs(model, [jobs[i][0] for i in batch], [jobs[i][1] for i in batch])
        at = 0
        for i in batch:
            tree = jobs[i][1]
            edges = flat[at : at + len(tree.edges)].double()
            at += len(tree.edges)
            mass = dict.fromkeys(names, 0.0)
            for label, path in zip(labels[i], tree.paths, strict=True):
                mass[label] += float(edges[path].sum().exp())
            out[i] = mass
        progress(len(batch))
    return out
