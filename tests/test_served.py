"""Scoring by a server that answers as vLLM's does, and what goes wrong on the way."""

from __future__ import annotations

import dataclasses
import json
import threading
import zlib
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import transformers
from click.testing import CliRunner
from faulty import Faulty

from genprobe import api
from genprobe.commands import cli
from genprobe.datasets import statements
from genprobe.engines import Options, Sampling, _http, control, openai
from genprobe.engines.scoring import _texts
from genprobe.errors import EngineError, InputError
from genprobe.records import Failure, LogProb, Request
from genprobe.tasks.pipeline.open import engine_options

MOST = 300  # tokens of the served model
CONTEXTS = ("", " ", "It is said: ", "It is said:", "Say", "a  ", "你", "Дәл ")
TEXTS = [s.text for s in statements.load("builtin")[0][::70]]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(_http, "BACKOFF", 0.02)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("GENPROBE_API_KEY", raising=False)


@pytest.fixture(scope="module")
def words():
    return transformers.AutoTokenizer.from_pretrained(control.MODEL)


def value(row: list[int], n: int) -> float:
    """What the server thinks of a token: its own number for every token behind every others."""
    return -zlib.crc32(json.dumps(row[: n + 1]).encode()) / 2**28


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Vllm

    def log_message(self, *_):
        pass

    def do_GET(self):
        found = {
            "/v1/models": (200, {"data": [{"id": "served", "max_model_len": MOST}]}),
            "/version": (200, {"version": "0.32.0"}),
        }
        if self.path in ("/tokenize", "/detokenize") and self.path not in self.server.missing:
            found[self.path] = (405, {"detail": "Method Not Allowed"})
        self.reply(*found.get(self.path, (404, {"detail": "Not Found"})))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        what = {
            "/tokenize": self.server.tokenize,
            "/detokenize": self.server.detokenize,
            "/v1/completions": self.server.complete,
        }
        if self.path in what and self.path not in self.server.missing:
            self.server.log.append((self.path, body))
            return self.reply(*what[self.path](body))
        return self.reply(404, {"detail": "Not Found"})

    def reply(self, status, content):
        said = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


def error(message):
    return 400, {"error": {"message": message, "type": "BadRequestError", "code": 400}}


class Vllm(ThreadingHTTPServer):
    """Answers as vLLM 0.32 does; its tokens are `words`, its values are `value`.

    bos: its tokenizer puts BOS before a text. chat: it has a chat template. tells: it knows
    structured outputs. spoil: changes the answers to completions. missing: paths it has not.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        words,
        *,
        bos=True,
        chat=False,
        tells=True,
        missing=(),
        spoil=lambda body, found: None,
        echoes=False,
    ):
        super().__init__(("127.0.0.1", 0), Handler)
        self.words, self.bos, self.chat, self.tells = words, bos, chat, tells
        self.missing, self.spoil, self.log = missing, spoil, []
        self.echoes = echoes
        self.lock = threading.Lock()
        self.root = f"http://127.0.0.1:{self.server_port}"
        self.url = f"{self.root}/v1"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def tokenize(self, body):
        if "messages" in body and not self.chat:
            return error("As of transformers v4.44, default chat template is no longer allowed")
        with self.lock:
            ids = self.words(body.get("prompt", "?"), add_special_tokens=False)["input_ids"]
        if self.bos and body.get("add_special_tokens", True):
            ids = [self.words.bos_token_id, *ids]
        return 200, {"count": len(ids), "max_model_len": MOST, "tokens": ids, "token_strs": None}

    def detokenize(self, body):
        return 200, {"prompt": self.words.decode(body["tokens"])}

    def complete(self, body):
        if any(len(row) + body["max_tokens"] > MOST for row in body["prompt"]):
            return error(f"This model's maximum context length is {MOST} tokens.")
        found = {"choices": [self.choice(n, row, body) for n, row in enumerate(body["prompt"])]}
        return self.spoil(body, found) or (200, found)

    def choice(self, index, row, body):
        said = {"index": index, "text": " x", "finish_reason": "length", "stop_reason": None}
        said |= {"prompt_logprobs": None, "token_ids": None, "logprobs": None}
        if body.get("return_token_ids"):
            said["token_ids"] = [row[-1]]
        if "structured_outputs" in body and self.tells:
            said |= {"text": "a", "finish_reason": "stop"}
            said["token_ids"] = [row[-1], self.words.eos_token_id]
        if body.get("echo") and self.echoes:
            values = [None, *(value(row, n) for n in range(1, len(row))), -0.5]
            tokens = [self.words.decode([token]) for token in row]
            said["logprobs"] = {"token_logprobs": values, "tokens": [*tokens, " x"]}
        if body.get("prompt_logprobs") is not None:
            told = [{str(row[n]): self.told(row, n)} for n in range(1, len(row))]
            said["prompt_logprobs"] = [None, *told]
        return said

    def told(self, row, n):
        word = self.words.decode([row[n]])
        return {"logprob": value(row, n), "rank": 1, "decoded_token": word}


def request(text: str | list[str], context: str = "") -> Request:
    texts = [text] if isinstance(text, str) else text
    messages = [{"role": "context", "content": context}] if context else []
    options = {str(n): [t] for n, t in enumerate(texts)}
    name = f"{context}|{text}"
    return Request(name, "s", "en", "text/1", "causal", messages, 0, 0, "score", options)


def connect(url: str, **more):
    return openai.open_scorer("", Options(base_url=url, more=more))


def ask(scorer, requests) -> dict:
    records = list(scorer.generate(requests, Sampling()))
    assert Counter(r.request for r in records) == Counter(r.id for r in requests)
    return {r.request: r for r in records}


def plan() -> list[Request]:
    return [request(text, context) for text in TEXTS for context in CONTEXTS]


def check(words, requests, found, before):
    """Tokens are those of `Texts`, which cuts by offsets; values those of the server's rows."""
    for asked in _texts.Texts("words", words).asked(requests, ("causal",)):
        record = found[asked.request.id]
        assert isinstance(record, LogProb), record
        assert record.sent == words.decode(before) + asked.context
        assert record.tokens_in == len(before) + max(len(i.before) for i in asked.items)
        for item, told in zip(asked.items, record.continuations, strict=True):
            assert (told["answer"], told["text"]) == (item.answer, item.text)
            assert told["tokens"] == item.ids, (asked.context, item.text)
            row = [*before, *item.before, *item.ids]
            places = range(len(row) - len(item.ids), len(row))
            assert told["logprobs"] == [value(row, n) for n in places]


def test_tokens_and_values_are_the_servers(words):
    requests = plan()
    with Vllm(words) as server:
        scorer = connect(server.url)
        found = ask(scorer, requests)
    check(words, requests, found, [words.bos_token_id])
    assert scorer.first == f"bos {words.bos_token}" and scorer.passes == ("causal",)
    who = scorer.identity
    assert (who.model, who.engine, who.engine_version) == ("served", "openai", "vllm 0.32.0")
    assert who.chat_template == "none"
    bodies = [body for path, body in server.log if path == "/v1/completions"]
    assert len(bodies) == len(requests) + 1  # and the one that shows that it can
    assert all((b["max_tokens"], b["prompt_logprobs"]) == (1, 0) for b in bodies)


def test_options_are_one_question(words):
    requests = [request(["Grandma", "Grandpa is", "of"], "Who knew it? ")]
    with Vllm(words) as server:
        scorer = connect(server.url)
        server.log.clear()
        check(words, requests, ask(scorer, requests), [words.bos_token_id])
    assert Counter(path for path, _ in server.log)["/v1/completions"] == 1


def test_without_bos_the_end_of_a_text_stands_before_it(words):
    requests = plan()[:20]
    notes: list[str] = []
    with Vllm(words, bos=False, chat=True) as server:
        scorer = openai.open_scorer("", Options(base_url=server.url, note=notes.append))
        check(words, requests, ask(scorer, requests), [words.eos_token_id])
        assert scorer.first == f"eos {words.eos_token}"
        assert scorer.identity.chat_template == "server"
    assert len(notes) == 1 and f"end-of-text token {words.eos_token} is used there" in notes[0]


def test_a_tokenizer_of_ones_own(words):
    requests = plan()
    with Vllm(words, missing=("/tokenize", "/detokenize")) as server:
        with pytest.raises(
            EngineError, match=r"/tokenize\); name its tokenizer: --engine-arg"
        ) as e:
            connect(server.url)
        scorer = connect(server.url, tokenizer=str(control.MODEL))
        check(words, requests, ask(scorer, requests), [words.bos_token_id])
    assert "\n" not in str(e.value)
    assert scorer.first == f"bos {words.bos_token}"
    assert len(scorer.identity.chat_template) == 12


def test_a_tokenizer_of_another_model_is_refused(words):
    with Vllm(words) as server:
        right = server.told
        server.told = lambda row, n: {**right(row, n), "decoded_token": f"{row[n]}"}
        with pytest.raises(EngineError, match="is not the tokenizer of served, to which token"):
            connect(server.url, tokenizer=str(control.MODEL))


def test_faults_on_the_way_change_nothing(words):
    requests = plan()[::3]  # every context, and more than there are faults
    faults = [None, "500", "429", "drop", "cut", "no-json", "html", "no-choices", "503"]
    often = ["500", "drop", *faults * 2, "429-wait", *faults]
    with Vllm(words) as server, Faulty(often, server.root) as proxy:
        found = ask(connect(proxy.url), requests)
    check(words, requests, found, [words.bos_token_id])
    happened = Counter(what for _, what in proxy.log)
    assert all(happened[fault] >= 3 for fault in faults if fault), happened
    # Nothing that had been answered was asked again.
    answered = Counter(body for body, what in proxy.log if what == "answered")
    assert set(answered.values()) == {1}


def no_logprobs(body, found):
    for choice in found["choices"]:
        choice["prompt_logprobs"] = None


def too_few(body, found):
    found["choices"][0]["prompt_logprobs"].pop()


def another(body, found):
    found["choices"][0]["prompt_logprobs"][-1] = {"1": {"logprob": -1.0}}


def fewer_texts(body, found):
    found["choices"].pop()


def never(body, found):
    found["choices"][0]["prompt_logprobs"][-1][str(body["prompt"][0][-1])]["logprob"] = -9999.0


def down(body, found):
    return 500, {"error": {"message": "engine core died"}}


@pytest.mark.parametrize(
    ("spoil", "kind", "attempts"),
    [(no_logprobs, "broken-reply", 3), (too_few, "broken-reply", 3), (another, "broken-reply", 3),
     (fewer_texts, "broken-reply", 3), (down, "http-500", 3), (never, "unscorable", 1)],
)  # fmt: skip
def test_what_is_no_good_answer_is_a_failure(words, spoil, kind, attempts, monkeypatch):
    monkeypatch.setattr(_http, "ATTEMPTS", 3)
    (bad,) = words(" quokka", add_special_tokens=False)["input_ids"][-1:]
    requests = [request("They saw a quokka"), request("They saw it")]

    def some(body, found):
        return spoil(body, found) if body["prompt"][0][-1] == bad else None

    with Vllm(words, spoil=some) as server:
        found = ask(connect(server.url), requests)
    failure = found[requests[0].id]
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.attempts) == (kind, attempts) and failure.detail
    check(words, requests[1:], found, [words.bos_token_id])


def test_what_cannot_be_scored_fails_alone(words):
    requests = [request("viel " * MOST), request(""), request([]), request("It is so.")]
    with Vllm(words) as server:
        found = ask(connect(server.url), requests)
    kinds = [getattr(found[r.id], "kind", "scored") for r in requests]
    assert kinds == ["too-long", "unscorable", "unscorable", "scored"]


def refuses(body, found):
    return error("Unrecognized request argument supplied: prompt_logprobs")


@pytest.mark.parametrize("way", [no_logprobs, refuses])
def test_a_server_that_echoes_is_as_good(words, way):
    """One that has no prompt_logprobs, or refuses the word, and returns the text with its values."""

    def spoil(body, found):
        return way(body, found) if "prompt_logprobs" in body else None

    requests = [request("It is so."), request("Es ist so.", "Ja. ")]
    with Vllm(words, spoil=spoil, echoes=True) as server:
        found = ask(connect(server.url), requests)
        asked = [body for _, body in server.log if "echo" in body]
    assert asked and all(body["logprobs"] == 1 for body in asked)
    check(words, requests, found, [words.bos_token_id])


def other_end(body, found):
    """As where `generation_config.json` names more tokens that end a reply."""
    if "structured_outputs" in body:
        found["choices"][0]["stop_reason"] = 5


@pytest.mark.parametrize(
    ("server", "more", "says"),
    [
        ({"spoil": no_logprobs}, {}, "returns no log-probabilities of a given text, neither by"),
        ({"spoil": refuses}, {}, "does not score texts .*prompt_logprobs"),
        ({"bos": False, "tells": False}, {}, "does not name its end-of-text token; name the tok"),
        ({"bos": False, "spoil": other_end}, {}, "does not name its end-of-text token"),
        ({"missing": ("/v1/completions",)}, {}, "not found"),
        ({}, {"tokenizer": "/nowhere/at all"}, "the tokenizer cannot be read"),
        ({}, {"api": "chat"}, "has no argument 'api'; it has tokenizer, connect_timeout"),
    ],
)
def test_servers_and_arguments_that_do_not_do_are_one_line(words, server, more, says):
    with Vllm(words, **server) as one, pytest.raises(EngineError, match=says) as caught:
        connect(one.url, **more)
    assert "\n" not in str(caught.value)


def test_what_is_the_servers_own_is_not_ours_to_say(words):
    with pytest.raises(EngineError, match="revision: the server sets this"):
        openai.open_scorer("", Options(base_url="http://127.0.0.1:9/v1", revision="main"))


@pytest.mark.parametrize("other", [{"probe": "masked"}, {"decode": "free"}])
def test_another_pass_or_decode_is_an_error_before_anything_is_asked(words, other):
    wrong = dataclasses.replace(request("It is so."), **other)
    with Vllm(words) as server:
        scorer = connect(server.url)
        server.log.clear()
        with pytest.raises(EngineError, match=r"cannot do .*; it scores causal"):
            ask(scorer, [request("Good."), wrong])
    assert server.log == []


# --- the whole command


def invoke(*arguments):
    return CliRunner().invoke(cli, ["logprob", *map(str, arguments), "--scorer", "loglik"])


def test_a_run_of_a_server(words, tmp_path):
    few = ("--lang", "kk", "--limit", "3", "-q")
    with Vllm(words, chat=True) as server:
        refused = invoke("--base-url", server.url, *few)
        assert isinstance(refused.exception, InputError) and "--plain" in str(refused.exception)
        options = engine_options((), server.url, 3)
        run = api.logprob(
            langs=["kk"],
            limit=3,
            scorers=["loglik"],
            plain=True,
            options=options,
            out=tmp_path / "r",
        )
        server.log.clear()
        arguments = ("--model", "served", "--base-url", server.url, "--engine", "openai", "--plain")
        done = invoke(*arguments, "--concurrency", "3", *few, "--out", tmp_path / "r")
        assert done.exit_code == 0, done.output
        # The one that shows that it can: all others were there already.
        assert Counter(path for path, _ in server.log)["/v1/completions"] == 1
    assert run.verify() == [] and (run.spec.model, run.spec.engine) == ("served", "openai")
    assert run.spec.engine_args == {"first": f"bos {words.bos_token}"}
    assert sum(1 for _ in run.logprobs()) == sum(1 for _ in run.requests()) > 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--engine", "openai"), "--engine openai needs --base-url"),
        (("--engine", "vllm", "--base-url", "http://h/v1"), "--engine vllm cannot ask"),
    ],
)
def test_what_the_command_refuses(arguments, says):
    done = invoke(*arguments)
    assert done.exit_code != 0 and says in str(done.exception)
