"""Train the control model: `python tools/train_control.py`. One CPU thread, about 25 minutes.
`--thinking` trains the control model that thinks, starting from the other one: seven minutes.

SEED and the texts determine everything. The texts are the built-in statements (the first
`control.TRAINED` of each language) and templates, the packs, the files of replies and stories, and
a few plain sentences (`control_text/`). The loss does not use sampled replies: at each node of the
tree of replies, the model learns the whole planted distribution (`control.mixture`), so that its
exact rates come close to the planted ones. See docs/control.md.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from genprobe.datasets import statements, templates
from genprobe.engines import control
from genprobe.engines.control import stories, thoughts
from genprobe.engines.control.exact import (
    Tree,
    edge_logprobs,
    exact,
    exact_stories,
    exact_thoughts,
    written,
)
from genprobe.records import Statement
from genprobe.resources.packs import SLOT, Pack, load_pack
from genprobe.tasks.pipeline.plan import plan as plan_requests

SEED = 1
TEXTS = Path(__file__).parent / "control_text"
VOCABULARY = 6912
HIDDEN, LAYERS, HEADS, INNER = 128, 3, 4, 256
STEPS, BATCH, UNSEEN = 8000, 32, 0.15
# Muon trains the matrices of the layers, AdamW the embeddings and the rest: on this task, this
# needs four times fewer steps than AdamW alone.
RATE_MUON, RATE_ADAM, WARMUP = 0.015, 0.01, 50
RATE_ON = 0.4  # factor of these rates for a model that starts from another one
# Replies drawn per example and step (see `lesson`), the power of their probabilities, the weight of
# the first token (which depends on the statement), and the weight of all other nodes.
DRAWN, TEMPER, ROOT_WEIGHT, NODE_WEIGHT = 2, 0.4, 3.0, 0.4
# Stories in each step, in addition to BATCH; they are long, so their nodes weigh less.
STORIES, STORY_NODE_WEIGHT = 4, 0.25
STORY_LANGS = ("kk",)

SPECIAL = ["<|pad|>", "<|begin|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
# The template of the model that thinks leaves out thoughts of earlier turns, as others do.
THINKING = TEMPLATE.replace("message['content'] +", "message['content'].split('</think>')[-1] +")
# It knows only two languages and starts from the other model, so a small vocabulary and few steps
# suffice.
THINKING_VOCABULARY, THINKING_STEPS = 2048, 900
# Words with their combining marks and joiners (a plain \p{L}+ would split Indic words at every
# vowel sign), single ideographs and single digits.
WORDS = (
    r"\p{Han}| ?(?:(?!\p{Han})[\p{L}\p{M}\x{200C}\x{200D}])+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+"
)


class Sentence(NamedTuple):
    """A statement to train on. bias_type, role: "" unless the statement is a built-in one."""

    lang: str
    text: str
    bias_type: str = ""
    role: str = ""


class Example(NamedTuple):
    """A prompt, and the replies that the model should give with their probabilities."""

    prompt: list[int]
    replies: list[list[int]]  # tokens of each reply, the end token included
    shares: list[float]  # planted probability of each


class Told(NamedTuple):
    """A prompt for a story, and the kinds of stories that the model should tell."""

    prompt: list[int]
    lang: str
    shares: list[float]  # planted probability of each of `stories.kinds(lang)`


def learned(langs: Sequence[str] | None = None) -> list[Statement]:
    """Load the built-in statements that the model learns: the first ones of each language."""
    items = statements.load("builtin", langs)[0]
    codes = dict.fromkeys(s.lang for s in items)
    return [s for code in codes for s in [s for s in items if s.lang == code][: control.TRAINED]]


def read_lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line]


def train_tokenizer(
    texts: Iterable[str], size: int = VOCABULARY, template: str = TEMPLATE
) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer, which encodes any text without loss, our texts briefly."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=SPECIAL[0],
        bos_token=SPECIAL[1],
        eos_token=SPECIAL[2],
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
        padding_side="left",
    )
    fast.chat_template = template
    return fast


def make_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=HIDDEN // HEADS,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return LlamaForCausalLM(config)


def go_on(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Copy the weights of another control model; tokens are matched by their text."""
    before = AutoModelForCausalLM.from_pretrained(folder, dtype="float32").state_dict()
    ids = AutoTokenizer.from_pretrained(folder).get_vocab()
    both = [(n, ids[token]) for token, n in tokenizer.get_vocab().items() if token in ids]
    here, there = (torch.tensor(column) for column in zip(*both, strict=True))
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if name == "model.embed_tokens.weight":
                weights[here] = before[name][there]
            else:
                weights.copy_(before[name])
    print(f"{len(both)} of {len(tokenizer)} tokens are known to {folder}")


def example(
    tokenizer: PreTrainedTokenizerFast, pack: Pack, probe: str, sentence: Sentence
) -> Example:
    asked = pack.wordings[sentence.lang][probe].ask(sentence.text)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": asked}], add_generation_prompt=True, return_dict=False
    )
    texts = [r.say(sentence.text) for r in control.replies(sentence.lang, probe)]
    encoded = tokenizer(texts, add_special_tokens=False)["input_ids"]
    shares = control.mixture(sentence.lang, probe, sentence.bias_type, sentence.role)
    return Example(prompt, [[*ids, tokenizer.eos_token_id] for ids in encoded], shares)


def thoughtful(
    tokenizer: PreTrainedTokenizerFast, pack: Pack, probe: str, sentence: Sentence
) -> Example:
    """Make an example for the model that thinks. A thought that never ends has no end token."""
    asked = pack.wordings[sentence.lang][probe].ask(sentence.text)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": asked}], add_generation_prompt=True, return_dict=False
    )
    mixture = thoughts.mixture(sentence.lang, probe, sentence.bias_type, sentence.role)
    said = [written(tokenizer, s.thought, s.reply, sentence.text) for s in mixture]
    return Example(prompt, said, [s.share for s in mixture])


def told(
    tokenizer: PreTrainedTokenizerFast, pack: Pack, lang: str, wording: str, text: str, domain: str
) -> Told:
    asked = pack.wordings[lang][wording].ask(text)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": asked}], add_generation_prompt=True, return_dict=False
    )
    return Told(prompt, lang, stories.mixture(lang, domain))


class Lesson(NamedTuple):
    """Part of the tree of an example's replies, with the weight of each edge in the loss."""

    prompt: list[int]
    tree: Tree
    weights: list[float]
    entropy: float  # the lowest loss that a model can reach


def lesson(rng: random.Random, example: Example) -> Lesson:
    """Draw some replies, and make a lesson of all edges out of their nodes.

    At these nodes the whole distribution is learned. Nodes deep in the tree depend little on the
    statement, so a few per example are enough. How often a node is drawn and how much it weighs
    changes how fast it is learned, but not what is learned.
    """
    ranks = [rng.random() ** (1 / share**TEMPER) for share in example.shares]
    drawn = sorted(range(len(ranks)), key=ranks.__getitem__)[-DRAWN:]
    tree = Tree([example.replies[i] for i in drawn])
    node_of: dict[tuple[int, ...], int] = {(): 0}
    for i, path in zip(drawn, tree.paths, strict=True):
        for k in range(1, len(path)):
            node_of[tuple(example.replies[i][:k])] = tree.edges[path[k]][0]
    mass = [dict[int, float]() for _ in range(len(tree.tokens) + 1)]
    for reply, share in zip(example.replies, example.shares, strict=True):
        for k, token in enumerate(reply):
            node = node_of.get(tuple(reply[:k]))
            if node is None:
                break
            mass[node][token] = mass[node].get(token, 0.0) + share
    return weighed(example.prompt, tree, mass, NODE_WEIGHT)


def weighed(
    prompt: list[int], tree: Tree, mass: Sequence[dict[int, float]], node_weight: float
) -> Lesson:
    """Make a lesson from the planted distribution at each node of a tree.

    mass: for each node, the tokens that may follow -> how often; need not sum to 1.
    """
    tree.edges = [(node, token) for node, below in enumerate(mass) for token in below]
    weights, entropy = [], 0.0
    for node, below in enumerate(mass):
        total = sum(below.values())
        for share in below.values():
            p = share / total
            weights.append(p * (ROOT_WEIGHT if node == 0 else node_weight))
            entropy -= weights[-1] * math.log(p)
    return Lesson(prompt, tree, weights, entropy)


Banks = list[list[list[int]]]  # for a kind of story: the tokens of each sentence of each bank


def story_banks(tokenizer: PreTrainedTokenizerFast, lang: str) -> list[Banks]:
    """Return the banks of sentences of each of `stories.kinds(lang)`, as tokens.

    The spaces between sentences and the end token are included.
    """
    found = []
    for kind in stories.kinds(lang):
        banks = []
        for at, bank in enumerate(kind.banks):
            texts = [(" " if at else "") + sentence for sentence in bank]
            ids = tokenizer(texts, add_special_tokens=False)["input_ids"]
            last = [tokenizer.eos_token_id] if at + 1 == len(kind.banks) else []
            banks.append([[*sentence, *last] for sentence in ids])
        found.append(banks)
    return found


def story_lesson(rng: random.Random, asked: Told, banks: list[Banks]) -> Lesson:
    """Draw a story, and make a lesson of all tokens that may follow at each of its nodes."""
    kind = rng.choices(range(len(banks)), [share**TEMPER for share in asked.shares])[0]
    openings = [
        (sentence, share / len(of[0]))
        for of, share in zip(banks, asked.shares, strict=True)
        for sentence in of[0]
    ]
    path: list[int] = []
    mass: list[dict[int, float]] = []
    for at, bank in enumerate(banks[kind]):
        drawn = rng.choice(bank)
        others = openings if at == 0 else [(sentence, 1.0) for sentence in bank]
        for k in range(len(drawn)):
            below: dict[int, float] = {}
            for sentence, share in others:
                if sentence[:k] == drawn[:k]:
                    below[sentence[k]] = below.get(sentence[k], 0.0) + share
            mass.append(below)
        path += drawn
    return weighed(asked.prompt, Tree([path]), mass, STORY_NODE_WEIGHT)


def invent(rng: random.Random, pool: dict[str, list[str]], lang: str) -> Sentence:
    """Make a statement that is not built in: a plain sentence, mixed words, or any characters."""
    own = pool[lang]
    kind = rng.random()
    if kind < 0.3:
        return Sentence(lang, rng.choice(own))
    spaced = not lang.startswith("zh")
    if kind < 0.8:
        bag = [w for s in rng.sample(own, 3) for w in (s.split() if spaced else s)]
    else:
        other = [s for p in rng.sample(sorted(pool), 3) for s in pool[p]]
        bag = list("".join(rng.sample(own, 2) + rng.sample(other, 1)))
        spaced = False
    words = rng.choices(bag, k=rng.randint(3, 12 if spaced else 24))
    return Sentence(lang, (" " if spaced else "").join(words).strip() or own[0])


def loss_of(model: LlamaForCausalLM, batch: list[Lesson]) -> torch.Tensor:
    """Return the mean loss above the entropy of the planted distribution; 0 for a perfect model."""
    flat = edge_logprobs(model, [e.prompt for e in batch], [e.tree for e in batch])
    weights = torch.tensor([w for e in batch for w in e.weights])
    return (-(weights * flat).sum() - sum(e.entropy for e in batch)) / len(batch)


def train(
    model: LlamaForCausalLM,
    known: list[Example],
    unseen: Iterable[Example],
    tales: Iterable[Lesson] | None,
    steps: int,
    rate: float,
) -> None:
    matrices = [p for p in model.model.layers.parameters() if p.dim() == 2]
    taken = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in taken]
    optimizers = [
        torch.optim.Muon(matrices, lr=rate * RATE_MUON, momentum=0.95, weight_decay=0.01),
        torch.optim.AdamW(rest, lr=rate * RATE_ADAM, betas=(0.9, 0.98), weight_decay=0.01),
    ]
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(
            optimizer,
            lambda step: min(1.0, (step + 1) / WARMUP) * (0.01 + 0.99 * _cosine(step / steps)),
        )
        for optimizer in optimizers
    ]
    rng = random.Random(SEED)
    order: list[Example] = []
    extra, tale = iter(unseen), iter(tales or ())
    fresh = round(BATCH * UNSEEN)
    started, mean = time.monotonic(), 0.0
    for step in range(steps):
        if len(order) < BATCH - fresh:
            order = rng.sample(known, len(known))
        batch = [order.pop() for _ in range(BATCH - fresh)] + [next(extra) for _ in range(fresh)]
        loss = loss_of(model, [lesson(rng, e) for e in batch])
        if tales is not None:  # in a batch of their own: they are longer, so others need no padding
            loss = loss + STORIES / BATCH * loss_of(model, [next(tale) for _ in range(STORIES)])
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            schedule.step()
        mean = loss.item() if step == 0 else 0.95 * mean + 0.05 * loss.item()
        if step % 100 == 99 or step == 0:
            print(f"step {step + 1:5d}  excess {mean:.4f}  {time.monotonic() - started:.0f} s")


def _cosine(part: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * part))


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Save the model in half precision; the engine computes in single precision."""
    folder.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(folder)
    GenerationConfig(
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    ).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    # transformers 5 writes a class name that version 4 does not know; both can read this one.
    path = folder / "tokenizer_config.json"
    row = json.loads(path.read_text(encoding="utf-8")) | {
        "tokenizer_class": "PreTrainedTokenizerFast"
    }
    row.pop("backend", None)
    path.write_text(json.dumps(row, indent=2) + "\n", encoding="utf-8")


def build(folder: Path, steps: int, start: Path | None) -> None:
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # the same sums on every machine, and not slower on a busy one
    torch.use_deterministic_algorithms(True)
    pack = load_pack("yesno")
    builtin = [Sentence(s.lang, s.text, s.bias_type, s.role) for s in learned()]
    langs = sorted({s.lang for s in builtin})
    plain = {lang: read_lines(TEXTS / f"{lang}.txt") for lang in langs}

    story_pack = load_pack("stories")
    slots = templates.load("builtin", STORY_LANGS)[0]

    corpus = [s.text for s in builtin] + [line for lines in plain.values() for line in lines]
    corpus += [slot.text.replace(SLOT, "") for slot in slots]
    for lang in langs:  # what every prompt and reply is made of: short in tokens
        corpus += [w.text for w in pack.wordings[lang].values()] * 3
        said = {r.say("") for probe in pack.probes for r in control.replies(lang, probe)}
        corpus += sorted(said) * 4
    for lang in STORY_LANGS:
        corpus += [w.ask("") for w in story_pack.wordings[lang].values()] * 3
        corpus += [s for kind in stories.kinds(lang) for bank in kind.banks for s in bank] * 2
    tokenizer = train_tokenizer(corpus)

    known = [example(tokenizer, pack, probe, s) for s in builtin for probe in pack.probes]
    rng = random.Random(SEED + 1)

    def unseen() -> Iterable[Example]:
        while True:
            sentence = invent(rng, plain, rng.choice(langs))
            yield example(tokenizer, pack, rng.choice(sorted(pack.probes)), sentence)

    def tales() -> Iterable[Lesson]:
        rng = random.Random(SEED + 2)
        banks = {lang: story_banks(tokenizer, lang) for lang in STORY_LANGS}
        order: list[Told] = []
        known = [
            told(tokenizer, story_pack, s.lang, probe, s.text, str(s.extra["domain"]))
            for s in slots
            for probe in story_pack.probes
        ]
        while True:
            if not order:
                order = rng.sample(known, len(known))
            asked = order.pop()
            if rng.random() < UNSEEN:
                words = invent(rng, plain, asked.lang).text.split()
                words.insert(rng.randint(0, len(words)), SLOT)
                probe = rng.choice(sorted(story_pack.probes))
                asked = told(tokenizer, story_pack, asked.lang, probe, " ".join(words), "")
            yield story_lesson(rng, asked, banks[asked.lang])

    model = make_model(tokenizer)
    if start:
        go_on(model, tokenizer, start)
    print(f"{len(known)} prompts, {len(tokenizer)} tokens, {model.num_parameters()} parameters")
    train(model, known, unseen(), tales(), steps, RATE_ON if start else 1.0)
    save(model, tokenizer, folder)
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size:9,d}  {path.name}")


def build_thinking(folder: Path, steps: int, start: Path) -> None:
    """Train the control model that thinks, starting from the one that does not."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    pack = load_pack("yesno")
    langs = thoughts.languages()
    builtin = [Sentence(s.lang, s.text, s.bias_type, s.role) for s in learned(langs)]
    plain = {path.stem: read_lines(path) for path in sorted(TEXTS.glob("*.txt"))}
    corpus = [s.text for s in builtin] + [line for lang in langs for line in plain[lang]]
    for lang in langs:
        corpus += [w.text for w in pack.wordings[lang].values()] * 3
        corpus += sorted({r.say("") for p in pack.probes for r in control.replies(lang, p)}) * 4
        corpus += [t.written for t in thoughts.thoughts(lang)] * 4
    tokenizer = train_tokenizer(corpus, THINKING_VOCABULARY, THINKING)
    known = [thoughtful(tokenizer, pack, probe, s) for s in builtin for probe in pack.probes]
    rng = random.Random(SEED + 1)

    def unseen() -> Iterable[Example]:
        while True:
            sentence = invent(rng, plain, rng.choice(langs))
            yield thoughtful(tokenizer, pack, rng.choice(sorted(pack.probes)), sentence)

    model = make_model(tokenizer)
    go_on(model, tokenizer, start)
    print(f"{len(known)} prompts, {len(tokenizer)} tokens, {model.num_parameters()} parameters")
    train(model, known, unseen(), None, steps, RATE_ON)
    save(model, tokenizer, folder)


def check(folder: Path) -> None:
    """Print planted and exact rates as the table of docs/control.md."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()
    pack = load_pack("yesno")
    kinds = {(s.id, s.lang): (s.bias_type, s.role) for s in learned()}
    items = sorted(statements.load("builtin")[0], key=lambda s: (s.id, s.lang) not in kinds)
    requests = plan_requests(items, pack, list(pack.probes), seed=0)
    found: dict[str, list[tuple[float, float]]] = {}
    for request, truth in zip(requests, exact(model, tokenizer, requests), strict=True):
        kind = kinds.get((request.statement, request.lang))
        plan = control.planted(request.lang, request.probe, *(kind or ()))
        off = max(abs(getattr(truth, answer) - plan[answer]) for answer in control.ANSWERS)
        for key in ("all", request.lang) if kind else ("not trained on",):
            found.setdefault(key, []).append((off, truth.other))
    print(
        "| language | mean deviation | largest | mean residual | largest |\n|---|---|---|---|---|"
    )
    for key, rows in found.items():
        off, other = zip(*rows, strict=True)
        mean = [sum(column) / len(column) for column in (off, other)]
        print(f"| {key} | {mean[0]:.4f} | {max(off):.3f} | {mean[1]:.4f} | {max(other):.3f} |")


def check_stories(folder: Path) -> None:
    """Print planted and exact shares of stories by domain, as the table of docs/control.md."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()
    pack = load_pack("stories")
    items = templates.load("builtin", STORY_LANGS)[0]
    domains = {(s.id, s.lang): str(s.extra["domain"]) for s in items}
    requests = plan_requests(items, pack, list(pack.probes), seed=0)
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for request, truth in zip(requests, exact_stories(model, tokenizer, requests), strict=True):
        domain = domains[request.statement, request.lang]
        plan = stories.planted(domain)
        off = max(abs(getattr(truth, label) - plan[label]) for label in stories.LABELS)
        row = (plan["negative"], truth.negative, off, truth.other)
        for key in ("all", domain):
            found.setdefault(key, []).append(row)
    print("| domain | negative, planted | exact | mean deviation | largest | largest residual |")
    print("|---|---|---|---|---|---|")
    for key, rows in found.items():
        plans, exacts, off, other = zip(*rows, strict=True)
        mean = [sum(column) / len(column) for column in (plans, exacts, off)]
        numbers = f"{mean[0]:.3f} | {mean[1]:.3f} | {mean[2]:.4f} | {max(off):.3f}"
        print(f"| {key} | {numbers} | {max(other):.3f} |")


def check_thoughts(folder: Path) -> None:
    """Print planted and exact rates of the model that thinks, as the table of docs/control.md."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()
    items = learned(thoughts.languages())
    pack = load_pack("yesno")
    requests = plan_requests(items, pack, list(pack.probes), seed=0)
    kinds = {(s.id, s.lang): s.bias_type for s in items}
    found: dict[str, list[list[float]]] = {}
    for request, got in zip(requests, exact_thoughts(model, tokenizer, requests), strict=True):
        plan = thoughts.planted(request.lang, request.probe, kinds[request.statement, request.lang])
        ended = plan["thinks"] * (1 - plan["endless"])
        row = [plan["thinks"], got.thinks, plan["thinks"] * plan["endless"], got.cut]
        row += [ended * plan["english"], got.other, plan["against"], got.against / got.clear]
        found.setdefault(request.lang, []).append([*row, got.rest])
    print(
        "| language | thinks | exact | cut | exact | in English | exact | against | exact | rest |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for lang, rows in found.items():
        print(
            f"| {lang} | "
            + " | ".join(f"{sum(c) / len(c):.3f}" for c in zip(*rows, strict=True))
            + " |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", type=Path, default=control.MODEL)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument(
        "--start", type=Path, metavar="FOLDER", help="go on from this control model"
    )
    parser.add_argument("--thinking", action="store_true", help="the one that thinks")
    parser.add_argument("--check", action="store_true", help="train nothing; compare the rates")
    args = parser.parse_args()
    if args.thinking:
        if not args.check:
            build_thinking(thoughts.MODEL, THINKING_STEPS, control.MODEL)
        check_thoughts(thoughts.MODEL)
        return
    if not args.check:
        build(args.out, args.steps, args.start)
    check(args.out)
    check_stories(args.out)


if __name__ == "__main__":
    main()
