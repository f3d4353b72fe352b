"""Code shared by engines that run a model themselves: its files, its prompts, silenced libraries.

Not an engine (the name begins with an underscore). It does not depend on how the
model is run, so that a request has the same tokens in every engine.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import huggingface_hub
import transformers
from huggingface_hub import errors as hub
from transformers.models.auto import modeling_auto

from genprobe.engines import Identity, Options, _thinking
from genprobe.errors import EngineError
from genprobe.files import door
from genprobe.records import Failure, LogProb, Request, Response, digest
from genprobe.resources import models

# Llama 3 templates print today's date, so that a run resumed tomorrow would send other prompts.
# This is the date that Llama 3.1 falls back to.
TEMPLATE_DATE = "26 Jul 2024"

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "vocab.json",
    "vocab.txt",
    "tekken.json",
)
# A hub repository may hold the same weights three times; these are what transformers reads.
SMALL_FILES = ["*.json", "*.jinja", "*.txt", "*.model"]
SAFETENSORS = ["model.safetensors", "model-*-of-*.safetensors"]
PICKLES = ["pytorch_model.bin", "pytorch_model-*-of-*.bin"]


class Local(NamedTuple):
    """A model whose files are on this machine, without its weights."""

    name: str  # a hub id or a folder's name; for a checkpoint, its parent folder's name
    folder: Path
    revision: str  # hub commit, or `folder_hash`
    checkpoint: str  # name of the checkpoint or revision, else ""
    config: Any
    tokenizer: Any
    template: str  # hash of the chat template, or "none"
    stop_ids: list[int]  # tokens that end a reply


def writes(model: str, config: Any) -> None:
    """Raise EngineError unless the model is of a kind that can write a reply."""
    if config.is_encoder_decoder:
        family = modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    else:
        family = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    # The saved class decides, not the family: transformers would load a masked model such as BERT
    # as a decoder, and add random weights where an output layer is missing.
    saved = list(config.architectures or [])
    if not set(saved) & set(family.values()):
        what = ", ".join(saved) or config.model_type
        raise EngineError(
            f"{model}: {what} cannot write replies; give a causal or encoder-decoder language model"
        )


def load(model: str, revision: str | None, accept: Callable[[str, Any], object] = writes) -> Local:
    """Find a model in a folder or, by its id, on the hub or in its cache; read all but its weights.

    accept: called with the model's name and configuration; raises EngineError to refuse it. Also
    raises EngineError if the model cannot be used.
    """
    path = door.expanded(model)
    if path.is_dir():
        if revision:
            raise EngineError(f"{model}: a folder has no revisions; leave the revision out")
        folder, commit = path, None
        name, checkpoint = path.resolve().name, ""
        if models.STEP.fullmatch(name):
            name, checkpoint = path.resolve().parent.name, name
    else:
        folder = _fetch(model, revision)
        name, commit = model, folder.name  # the hub's cache: …/snapshots/<commit>
        checkpoint = revision if revision and revision != commit else ""
    _check_files(model, folder)
    with quiet():
        config = _load_config(model, folder)
        accept(model, config)
        with refusing(f"{model}: the tokenizer cannot be read"):
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        with refusing(f"{model}: the chat template cannot be used"):
            template = tokenizer.get_chat_template() if tokenizer.chat_template else None
            # A failure here comes before the run's folder is made.
            Prompts(tokenizer).text([{"role": "user", "content": "?"}])
        own = _generation_config(folder)
    ends = getattr(own, "eos_token_id", None)
    if ends is None:
        ends = getattr(config, "eos_token_id", None)
    ends = [*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id]
    return Local(
        name=name,
        folder=folder,
        revision=commit or folder_hash(folder),
        checkpoint=checkpoint,
        config=config,
        tokenizer=tokenizer,
        template=digest(template, 12) if template else "none",
        stop_ids=sorted({i for i in ends if i is not None}),
    )


def _generation_config(folder: Path) -> Any:
    """Read `generation_config.json`; None if it is missing or broken (loading refuses that)."""
    try:
        return transformers.GenerationConfig.from_pretrained(folder)
    except Exception:
        return None


def _fetch(model: str, revision: str | None) -> Path:
    """Find the folder of a hub model in the local cache; download it if need be."""

    class Bar(huggingface_hub.utils.tqdm):
        """A progress bar that is removed when the download ends."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "leave": False, "disable": None})

    with _of_hub(model, revision), quiet(bars=True):
        folder = Path(_snapshot(model, revision, SAFETENSORS, tqdm_class=Bar))
        if not any(folder.glob("*.safetensors")):
            folder = Path(_snapshot(model, revision, PICKLES, tqdm_class=Bar))
        return folder


def to_fetch(model: str, revision: str | None) -> tuple[int, str]:
    """Return how many bytes of a hub model are still to be fetched, and its commit; fetches none.

    Raises EngineError if the hub does not give it, as if its terms were not accepted.
    """
    with _of_hub(model, revision), quiet():
        try:
            files = _snapshot(model, revision, SAFETENSORS, dry_run=True)
            if not any(file.filename.endswith(".safetensors") for file in files):
                files = _snapshot(model, revision, PICKLES, dry_run=True)
        except hub.HfHubHTTPError:
            raise
        except Exception:  # the hub cannot be reached; what is in the cache will do
            if there := _snapshot(model, revision, SAFETENSORS + PICKLES, local_files_only=True):
                return 0, Path(there).name
            raise
        size = sum(file.file_size or 0 for file in files if file.will_download)
        return size, str(files[0].commit_hash) if files else ""


def _snapshot(model: str, revision: str | None, weights: list[str], **how: Any) -> Any:
    # The only global setting: send the hub nothing but the name of the model.
    huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY = True
    return huggingface_hub.snapshot_download(
        model,
        revision=revision,
        allow_patterns=SMALL_FILES + weights,
        ignore_patterns=["*/*"],
        **how,
    )


@contextlib.contextmanager
def _of_hub(model: str, revision: str | None) -> Iterator[None]:
    """Raise EngineError, with the cure, for what goes wrong with the hub."""
    try:
        yield
        return
    except hub.GatedRepoError:
        reason = (
            f"its authors require consent; accept the terms at https://huggingface.co/{model}"
            " and log in with `hf auth login`"
        )
    except hub.RevisionNotFoundError:
        reason = f"no revision {revision!r} on the hub{_others(model, str(revision))}"
    except hub.RepositoryNotFoundError:
        reason = (
            "neither a folder here nor a model of the hub; check the name"
            " (a private model needs `hf auth login`)"
        )
    except hub.HFValidationError:
        reason = "no such folder, and not a hub id, which reads owner/name"
    except (hub.LocalEntryNotFoundError, hub.OfflineModeIsEnabled):
        what = f"revision {revision!r} is not" if revision else "neither a folder here nor"
        reason = (
            f"{what} in the local hub cache, and the hub cannot be reached;"
            " go online (unset HF_HUB_OFFLINE) or give a folder"
        )
    except Exception as error:  # each HTTP client raises its own kinds
        reason = f"cannot be fetched from the hub ({line(error)})"
        if getattr(getattr(error, "response", None), "status_code", None) == 401:
            reason = "the hub refuses the token; renew it with `hf auth login`, or unset HF_TOKEN"
    raise EngineError(f"{model}: {reason}")


def _others(model: str, revision: str) -> str:
    """List the branches and tags of a hub model whose names are most like `revision`."""
    with contextlib.suppress(Exception):  # only adds help to an error message
        refs = huggingface_hub.HfApi().list_repo_refs(model)
        there = [ref.name for ref in (*refs.branches, *refs.tags)]
        near = difflib.get_close_matches(revision, there, 6, 0.0)
        return f"; it has {', '.join([*near, *(['…'] if len(near) < len(there) else [])])}"
    return "; its page there names its branches and tags"


def _check_files(model: str, folder: Path) -> None:
    """Raise EngineError unless config, weights and tokenizer are in the folder.

    Without tokenizer files transformers would silently make an empty tokenizer.
    """
    if not (folder / "config.json").is_file():
        raise EngineError(f"{model}: no config.json; this is not the folder of a saved model")
    if not any(any(folder.glob(p)) for p in SAFETENSORS + PICKLES):
        raise EngineError(
            f"{model}: no weights (model.safetensors); save the model into the folder"
        )
    if not any((folder / f).is_file() for f in TOKENIZER_FILES):
        raise EngineError(
            f"{model}: no tokenizer files (tokenizer.json, …); save the tokenizer into the folder"
        )


def _load_config(model: str, folder: Path) -> Any:
    with refusing(f"{model}: config.json cannot be used"):
        return transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)


def folder_hash(folder: Path) -> str:
    """Hash the names, sizes and contents of a model folder's files: 16 hex digits of a SHA-256.

    The files are the top-level configuration, tokenizer, template and weight files. A file of up
    to 200 MB is read whole; of a larger one, 64 evenly spread blocks of 1 MiB are read. This is
    fast for any model, and two fine-tunings of one model still differ.
    """
    block, blocks = 1 << 20, 64
    state = hashlib.sha256()
    patterns = [*SMALL_FILES, *SAFETENSORS, *PICKLES]
    for path in sorted({p for pattern in patterns for p in folder.glob(pattern)}):
        size = path.stat().st_size
        state.update(f"{path.name}\0{size}\0".encode())
        with door.reading(path) as file:
            if size <= 200_000_000:
                while part := file.read(block):
                    state.update(part)
            else:
                for i in range(blocks):
                    file.seek((size - block) * i // (blocks - 1))
                    state.update(file.read(block))
    return state.hexdigest()[:16]


# --- prompts ---------------------------------------------------------------------------------


def told(model: str, local: Local, options: Options) -> _thinking.Told:
    """Find how to tell the chat template to think, as the options ask. Raises what `tell` does."""

    def render(arguments: Mapping[str, Any]) -> str:
        return Prompts(local.tokenizer, arguments).text([{"role": "user", "content": "?"}])

    template = str(local.tokenizer.get_chat_template()) if local.tokenizer.chat_template else ""
    positions = positions_of(local.config)
    return _thinking.tell(
        model, render, template, options.thinking, options.template_args, positions
    )


def positions_of(config: Any) -> int | None:
    """Return the largest number of tokens a model takes; None if its configuration does not say."""
    limit = getattr(config.get_text_config(), "max_position_embeddings", None)
    return limit if isinstance(limit, int) and limit > 0 else None


def identified(identity: Identity, told: _thinking.Told, options: Options) -> Identity:
    """Add to an identity the thinking asked for, how it was requested, and what was observed."""
    room = told.room if told.thinks or options.thinking.tokens else 0
    asked = [options.thinking.mode] if options.thinking.mode != "default" else []
    asked += [f"{room} tokens"] if room else []
    given = {"template": dict(options.template_args)} if options.template_args else {}
    return replace(
        identity,
        engine_args={**identity.engine_args, **given},
        thinking=" ".join(asked),
        thinking_put=told.put,
        thinking_seen=told.seen,
    )


def refuse_inside(model: str, requests: Sequence[Request], told: _thinking.Told) -> None:
    """Raise EngineError if choices or probabilities are asked of a model that thinks.

    An engine that cannot wait for the end of the thought would ask in the middle of it.
    """
    forced = {r.decode for r in requests} - {"free"}
    if forced and told.thinks:
        raise EngineError(
            f"{model}: thinks before it answers, and --decode {min(forced)} would ask in the "
            "middle of a thought; give --thinking off, or --engine transformers --thinking on"
        )


def room_note(model: str, told: _thinking.Told, options: Options) -> None:
    """Note that a model thinks and how many tokens it gets, if the user named no number."""
    if told.thinks and options.thinking.tokens is None:
        options.note(
            f"{model} thinks before it answers: {told.room} tokens are added for it "
            "(--think-tokens)"
        )


class Row(NamedTuple):
    """A request made ready: the text that is sent and its token ids."""

    request: Request
    sent: str
    ids: list[int]
    # A thought that the model wrote before its answer; both `sent` and `ids` end with it.
    thought: str | None = None
    thought_tokens: int | None = None


class Form(NamedTuple):
    """An answer word as tokens."""

    answer: str  # "yes" or "no"
    text: str
    ids: list[int]


def logprob(row: Row, forms: Sequence[Form], values: Sequence[Sequence[float]]) -> LogProb:
    """Make the record of a request for probabilities.

    values: for each form, the natural log-probability of each of its tokens.
    """
    return LogProb(
        request=row.request.id,
        continuations=[
            {"answer": f.answer, "text": f.text, "tokens": f.ids, "logprobs": list(v)}
            for f, v in zip(forms, values, strict=True)
        ],
        sent=row.sent,
        tokens_in=len(row.ids),
        reasoning=row.thought,
        reasoning_tokens=row.thought_tokens,
    )


class Trie:
    """A tree of the tokens of forms, so that common beginnings are computed once.

    children: each beginning of a form (a tuple of tokens, () first) -> the tokens that follow it.
    """

    def __init__(self, forms: Sequence[Form]) -> None:
        self.forms = forms
        self.children: dict[tuple[int, ...], list[int]] = {}
        for depth in range(max((len(f.ids) for f in forms), default=0)):
            for form in forms:
                if len(form.ids) > depth:
                    follow = self.children.setdefault(tuple(form.ids[:depth]), [])
                    if form.ids[depth] not in follow:
                        follow.append(form.ids[depth])

    def values(self, logprobs: Mapping[tuple[int, ...], float]) -> list[list[float]]:
        """List the log-probability of each token of each form.

        logprobs: beginning of a form -> log-probability of its last token.
        """
        return [[logprobs[tuple(f.ids[: n + 1])] for n in range(len(f.ids))] for f in self.forms]


def unusable(row: Row, new: int, positions: int | None, vocabulary: int) -> Failure | None:
    """Return the failure of a request that the model cannot take; None if it can.

    new: the most tokens of its reply; positions: the most tokens that the model takes, None if
    unknown; vocabulary: its number of tokens.
    """
    n = len(row.ids)
    if not n:
        return Failure(row.request.id, "engine", "the prompt has no tokens", 1)
    if max(row.ids) >= vocabulary:
        detail = f"token {max(row.ids)} is not among the model's {vocabulary}"
        return Failure(row.request.id, "engine", detail, 1)
    if positions is not None and n + new > positions:
        detail = f"{n} tokens of prompt and {new} of reply; the model has {positions}"
        return Failure(row.request.id, "too-long", detail, 1)
    return None


def written(tokenizer: Any, ids: Sequence[int], marks: frozenset[int] = frozenset()) -> str:
    """Decode tokens, without special tokens other than those that mark a thought."""
    if marks and not marks.isdisjoint(ids):
        special = set(tokenizer.all_special_ids).difference(marks)
        return str(
            tokenizer.decode(
                [i for i in ids if i not in special], clean_up_tokenization_spaces=False
            )
        )
    return str(tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def reply(
    tokenizer: Any,
    row: Row,
    ids: list[int],
    stop_ids: Sequence[int],
    marks: frozenset[int] = frozenset(),
) -> Response:
    """Make a response from new token ids, cut off at the first end token.

    marks: special tokens to keep, as they mark a thought.
    """
    end = next((i for i, token in enumerate(ids) if token in stop_ids), None)
    kept = ids[:end]
    return Response(
        request=row.request.id,
        text=written(tokenizer, kept, marks),
        finish="length" if end is None else "stop",
        sent=row.sent,
        tokens_in=len(row.ids),
        tokens_out=len(kept),
    )


class Prompts:
    """Turns messages into the text and tokens that a model expects."""

    def __init__(self, tokenizer: Any, arguments: Mapping[str, Any] | None = None) -> None:
        """Prepare a tokenizer. arguments: extra arguments of its chat template."""
        self.tokenizer = tokenizer
        self.arguments = dict(arguments or {})
        self.chat = bool(tokenizer.chat_template)
        self._forms: dict[tuple[tuple[str, ...], ...], list[Form]] = {}

    def rows(self, requests: Sequence[Request]) -> list[Row]:
        """Make one row per request. Raises EngineError if the template refuses one."""
        if not requests:
            return []
        sent = [self.text(r.messages) for r in requests]
        # A chat template writes the special tokens itself; a second BOS would change the prompt.
        ids = self.tokenizer(sent, add_special_tokens=not self.chat, padding=False)["input_ids"]
        return [Row(r, text, own) for r, text, own in zip(requests, sent, ids, strict=True)]

    def forms(self, options: Mapping[str, Sequence[str]]) -> list[Form]:
        """Tokenise the options of a request as continuations of its prompt, each sequence once.

        Each option is tokenised on its own, as the beginning of a reply. Raises EngineError if an
        option has no tokens, or the same tokens as an option of another answer.
        """
        key = tuple((answer, *texts) for answer, texts in options.items())
        if key in self._forms:
            return self._forms[key]
        found: dict[tuple[int, ...], Form] = {}
        for answer, texts in options.items():
            for text in texts:
                ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
                other = found.setdefault(tuple(ids), Form(answer, text, list(ids)))
                if not ids or other.answer != answer:
                    raise EngineError(f"the tokenizer cannot tell {text!r} from another answer")
        return self._forms.setdefault(key, list(found.values()))

    def text(self, messages: list[dict[str, str]]) -> str:
        if not self.chat:
            return "\n".join(m["content"] for m in messages)
        try:
            return self._render(messages)
        except Exception as error:  # a template is code and may raise anything
            if len(messages) > 1 and messages[0]["role"] == "system":
                # Gemma and early Mistral models have no system role: put it into the user's turn.
                first, second, *rest = messages
                joined = f"{first['content']}\n\n{second['content']}"
                return self.text([{**second, "content": joined}, *rest])
            raise EngineError(f"the chat template refuses the messages ({line(error)})") from error

    def _render(self, messages: list[dict[str, str]]) -> str:
        return self.tokenizer.apply_chat_template(
            messages,
            add_generation_prompt=True,
            tokenize=False,
            **{"date_string": TEMPLATE_DATE, **self.arguments},
        )


# --- output and errors of libraries ---------------------------------------------------------


@contextlib.contextmanager
def quiet(bars: bool = False) -> Iterator[None]:
    """Silence the libraries' advice, warnings and (unless `bars`) progress bars in a block."""
    loggers = [logging.getLogger(name) for name in ("transformers", "huggingface_hub")]
    levels = [logger.level for logger in loggers]
    hide = not bars and transformers.utils.logging.is_progress_bar_enabled()
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        if hide:
            transformers.utils.logging.disable_progress_bar()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if hide:
            transformers.utils.logging.enable_progress_bar()


@contextlib.contextmanager
def refusing(what: str) -> Iterator[None]:
    """Turn whatever a library raises in a block into an EngineError of one line.

    Broken model folders raise nearly every kind of exception, so all of them are caught.
    """
    try:
        yield
    except Exception as error:
        raise EngineError(f"{what} ({line(error)})") from error


def line(error: BaseException) -> str:
    """Return the first line of an exception's message, cut to 200 characters."""
    lines = str(error).strip().splitlines() or [""]
    text = lines[0].strip() or type(error).__name__
    return text if len(text) <= 200 else text[:199] + "…"
