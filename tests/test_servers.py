"""Servers as they are: how they name things, what they leave out, how they think and filter.

Each is a real HTTP server with the manners of one; nothing is patched inside the engine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import subprocess
import sys
from collections import Counter
from unittest import mock

import pytest
from faulty import MANNERS, Faulty
from test_openai import ask, engine, requests

from genprobe import api
from genprobe.analysis import gate, score
from genprobe.commands import main
from genprobe.engines import Options, Sampling, Thinking, _http, openai
from genprobe.engines._server import identity_of, key_for, ways
from genprobe.errors import Caution, EngineError, InputError
from genprobe.files import bodies
from genprobe.records import Failure, Response
from genprobe.report import sources, words
from genprobe.runs.run import Run

KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(_http, "BACKOFF", 0.02)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GENPROBE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def message(content, finish="stop", usage=None, **more):
    """An answer with this message."""
    return {
        "model": "m-2026-11-22",
        "system_fingerprint": "fp_1",
        "choices": [
            {"message": {"role": "assistant", "content": content, **more}, "finish_reason": finish}
        ],
        "usage": usage or {"prompt_tokens": 7, "completion_tokens": 3},
    }


def counts(**details):
    return {"prompt_tokens": 7, "completion_tokens": 90, "completion_tokens_details": details}


# --- what servers deliver


@pytest.mark.parametrize(
    ("answer", "text", "thought", "where", "tokens"),
    [
        (message("No."), "No.", None, "", None),
        (message("No.", reasoning="Hm, yes?"), "No.", "Hm, yes?", "reasoning", None),
        (message("No.", reasoning_content="Hm."), "No.", "Hm.", "reasoning_content", None),
        (message("No.", reasoning_content="", reasoning=None), "No.", None, "", None),
        (message("No.", thinking="Hm."), "No.", "Hm.", "thinking", None),
        (
            message("No.", reasoning_details=[{"type": "reasoning.text", "text": "Hm."}, {"type": "reasoning.summary", "summary": " So."}]),
            "No.", "Hm. So.", "reasoning_details", None,
        ),
        (message("No.", reasoning_details=[{"type": "reasoning.encrypted", "data": "x"}]), "No.", None, "hidden", None),
        (message("No.", usage=counts(reasoning_tokens=64)), "No.", None, "hidden", 64),
        (message("No.", usage=counts(reasoning_tokens=0)), "No.", None, "", 0),
        (message("No.", reasoning="Hm.", usage=counts(reasoning_tokens=9)), "No.", "Hm.", "reasoning", 9),
        (message([{"type": "text", "text": "N"}, {"type": "text", "text": "o."}]), "No.", None, "", None),
        (
            message([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "No."}]),
            "No.", "Hm.", "content.thinking", None,
        ),
        (message([{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "No."}]), "No.", "Hm.", "content.thinking", None),
        (message([{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "No."}]), "No.", None, "hidden", None),
        (message([{"text": "Hm.", "thought": True}, {"text": "No."}]), "No.", "Hm.", "content.thought", None),
        (message(None, "length", reasoning="Hm"), None, "Hm", "reasoning", None),
        (message(None, refusal="I cannot."), "I cannot.", None, "", None),
        (message(None, "tool_calls", tool_calls=[{"function": {"name": "answer", "arguments": '{"answer": "no"}'}}]), '{"answer": "no"}', None, "", None),
        ({"choices": [{"text": " No."}]}, " No.", None, "", None),
    ],
)  # fmt: skip
def test_the_reply_and_the_thought_beside_it(answer, text, thought, where, tokens):
    found = bodies.said(answer)
    assert (found.text, found.reasoning, found.reasoning_from) == (text, thought, where)
    assert found.reasoning_tokens == tokens
    if "model" in answer:
        assert (found.model, found.fingerprint) == ("m-2026-11-22", "fp_1")


@pytest.mark.parametrize(
    "broken",
    [{}, {"choices": []}, {"choices": [{}]}, {"choices": [{"message": {"content": 7}}]},
     {"choices": [{"message": {"content": [7]}}]}, {"choices": [{"text": 7}]}, {"choices": "x"}],
)  # fmt: skip
def test_what_is_no_reply_is_told(broken):
    with pytest.raises((LookupError, TypeError, AttributeError)):
        bodies.said(broken)


def test_what_a_reply_says_of_itself_is_kept_and_a_change_is_told():
    numbers = iter(range(1000))

    def answer(body):
        found = message("Yes.")
        if next(numbers) > 20:
            found["system_fingerprint"] = "fp_2"
        return found

    notes: list[str] = []
    with Faulty(answer=answer) as server:
        found = ask(server, requests(40), note=notes.append)
    assert {r.model for r in found.values()} == {"m-2026-11-22"}
    assert Counter(r.fingerprint for r in found.values()) == {"fp_1": 20, "fp_2": 20}
    assert any("more than one model or fingerprint" in note and "fp_2" in note for note in notes)


@pytest.mark.parametrize("manner", MANNERS)
def test_manners_are_borne(manner):
    with Faulty([None, manner, None, manner]) as server:
        found = ask(server, requests(5))
    assert all(isinstance(r, Response) and r.text for r in found.values())


def test_a_server_that_is_loading_is_waited_for_and_it_is_said():
    notes: list[str] = []
    with Faulty() as server:
        server.loading = 3
        assert engine(server, note=notes.append).identity.model == "echo"
    assert notes == ["waiting: the server is loading the model (Loading model)"]
    with Faulty() as server, pytest.raises(EngineError, match=r"503 \(Loading model\)"):
        server.loading = 1000
        engine(server, total_timeout=0.2)


def test_an_empty_reply_is_one_whether_null_or_not():
    with Faulty(answer=lambda body: message(None if body["seed"] % 2 else "")) as server:
        found = ask(server, requests(4))
    assert {(type(r), r.text, r.finish) for r in found.values()} == {(Response, "", "stop")}


# --- filters, refusals, quotas

AZURE = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content "
        "management policy.",
        "code": "content_filter",
        "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation"},
    }
}


@pytest.mark.parametrize(
    "blocked",
    [
        (400, AZURE),
        (400, {"error": {"message": "Invalid prompt: your prompt was flagged as potentially violating our usage policy.", "code": "invalid_prompt"}}),
        (403, {"error": {"message": "Your chosen model requires moderation and your input was flagged", "code": 403}}),
        message("", "content_filter"),
        message(None, "content_filter"),
        message(None, "SAFETY"),
        {"error": AZURE["error"]},
    ],
)  # fmt: skip
def test_what_a_filter_keeps_back_is_an_outcome_also_of_the_first_request(blocked):
    def answer(body):
        return blocked if body["messages"][0]["content"] != "Question 3?" else message("No.")

    def harmless(body):
        return message("No.") if "Question" not in body["messages"][0]["content"] else answer(body)

    with Faulty(answer=harmless) as server:
        found = ask(server, requests(5))
    assert all(isinstance(r, Response) for r in found.values())
    assert Counter(r.finish for r in found.values()) == {"content_filter": 4, "stop": 1}
    assert {r.text for r in found.values() if r.finish != "stop"} == {""}


@pytest.mark.parametrize("finish", ["error", "abort", "ERROR"])
def test_a_reply_that_broke_off_is_asked_again(finish):
    numbers = iter(range(1000))

    def answer(body):
        return message("Yes", finish) if next(numbers) == 1 else message("No.")

    with Faulty(answer=answer) as server:
        found = ask(server, requests(4))
    assert {r.text for r in found.values()} == {"No."}
    with Faulty(answer=lambda body: message("Yes", finish)) as server:
        found = ask(server, requests(1))
    assert {type(r) for r in found.values()} == {Failure}


@pytest.mark.parametrize("finish", ["MAX_TOKENS", "max_tokens", "model_length", "length"])
def test_a_cut_reply_is_one_by_any_name(finish):
    said = bodies.said(message("", finish))
    assert (said.finish, said.reasoning_from) == ("length", "hidden")
    assert bodies.said(message("No.", "STOP")).finish == "stop"


def test_the_first_choice_is_that_with_the_index_0():
    body = message("Yes.")
    body["choices"] = [
        {"index": 1, "message": {"content": "No."}},
        {**body["choices"][0], "index": 0},
    ]
    assert bodies.said(body).text == "Yes."


def test_a_server_that_filters_everything_ends_nothing():
    with Faulty(answer=lambda body: (400, AZURE)) as server:
        found = ask(server, requests(3))
    assert {r.finish for r in found.values()} == {"content_filter"}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, {"message": "You exceeded your current quota, please check your plan.", "code": "insufficient_quota"}),
        (402, {"message": "This request requires more credits"}),
        (429, {"message": "Rate limit reached for requests per day (RPD): Limit 200"}),
        (429, {"message": "Insufficient balance"}),
    ],
)  # fmt: skip
def test_a_quota_that_is_used_up_ends_the_run_at_once(status, error):
    numbers = iter(range(1000))

    def answer(body):
        return (status, {"error": error}) if next(numbers) > 30 else message("No.")

    with Faulty(answer=answer) as server:
        answers = engine(server).generate(requests(90), Sampling())
        kept = []
        with pytest.raises(EngineError, match=r"quota is used up .*run the same command") as told:
            for record in answers:
                kept.append(record)
    assert "\n" not in str(told.value) and len(server.log) < 90


def test_a_limit_of_a_minute_is_waited_for():
    numbers = iter(range(1000))
    error = {"error": {"message": "You exceeded your current quota. Please retry in 0.1s."}}

    def answer(body):
        return (429, error) if next(numbers) == 3 else message("No.")

    with Faulty(answer=answer) as server:
        assert all(isinstance(r, Response) for r in ask(server, requests(9)).values())


# --- dialects


def test_a_temperature_that_is_refused_is_left_out_and_told():
    def answer(body):
        if "temperature" in body:
            said = "Unsupported value: 'temperature' does not support 0 with this model."
            return 400, {"error": {"message": said}}
        return message("No.")

    notes: list[str] = []
    with Faulty(answer=answer) as server:
        one = engine(server, note=notes.append)
        found = list(one.generate(requests(3), Sampling()))
    assert all("temperature" not in json.loads(r.sent) for r in found)
    assert any("temperature" in note and "as it likes" in note for note in notes)
    assert one.identity.engine_args["left_out"] == ["temperature"]


def test_a_temperature_that_is_not_taken_is_never_called_greedy(tmp_path):
    def answer(body):
        refused = 400, {"error": {"message": "Unsupported value: 'temperature'"}}
        return refused if "temperature" in body else message("No.")

    with Faulty(answer=answer, models=("m",)) as server:
        run = api.yesno(
            langs=["en"], probes=["agreement"], limit=48, out=tmp_path / "run",
            options=Options(base_url=server.url),
        )  # fmt: skip
    notes: list[str] = []
    score.score(run.folder, note=notes.append)
    line = "the server does not take temperature 0: it drew the replies in its own way"
    assert f"{run.folder}: {line}" in notes and isinstance(notes[0], Caution)
    [source] = sources.load([run.folder])
    sentence = words.fact(source).sentence
    assert "takes no temperature" in sentence and "likeliest" not in sentence
    assert "Temperature" not in dict(words.fact(source).settings)
    assert any(line[1:] in said for said in words.cautions([source])["m"])
    # Replies that are drawn change by themselves: no flip between them is the new version's.
    found = gate.gate(run.folder, run.folder, {"endorsed": 0.9})
    assert found.flips["endorsed"].by_itself is None


def test_what_is_no_server_of_models_is_called_that(monkeypatch):
    monkeypatch.setattr(_http, "ATTEMPTS", 1)
    with Faulty(faults=["html"] * 3) as server, pytest.raises(EngineError) as told:
        ask(server, requests(1))
    assert "no OpenAI-compatible server" in str(told.value) and "/v1?" in str(told.value)


def constrained(field: str):
    """A server that takes a choice by one name and ignores all else with status 200."""

    def answer(body):
        said = "Certainly, let me explain"
        if field == "json_schema" and "response_format" in body:
            schema = body["response_format"]["json_schema"]["schema"]
            said = json.dumps({"answer": schema["properties"]["answer"]["enum"][-1]})
        elif field == "format" and "format" in body:
            said = json.dumps({"answer": body["format"]["properties"]["answer"]["enum"][-1]})
        elif field == "grammar" and "grammar" in body:
            said = body["grammar"].rsplit('"', 2)[1]
        elif field == "regex" and "regex" in body:
            said = body["regex"].split("|")[-1].replace("\\ ", " ")
        return message(said)

    return answer


OPTIONS = {"yes": ["yes", "Yes"], "no": ["no"]}


@pytest.mark.parametrize("field", ["regex", "grammar", "json_schema", "format"])
def test_a_choice_by_any_of_its_names(field):
    with Faulty(answer=constrained(field)) as server:
        found = ask(server, requests(5, "choice", OPTIONS))
    assert {r.text for r in found.values()} == {"no"}


def test_a_choice_of_a_model_whose_thought_is_hidden_has_room_for_it():
    forced = constrained("json_schema")

    def answer(body):
        if body.get("max_tokens", 0) < 100:
            return message("", "length", counts(reasoning_tokens=30))
        return {**forced(body), "usage": counts(reasoning_tokens=60)}

    with Faulty(answer=answer) as server:
        found = ask(server, requests(3, "choice", OPTIONS))
        assert {r.text for r in found.values()} == {"no"}
    with Faulty(answer=answer) as server:  # none that is too little
        one = engine(server)
        one.prepare(requests(3, "choice", OPTIONS), Sampling())
        one.server.room = 0
        cut = list(one.generate(requests(3, "choice", OPTIONS), Sampling()))
    assert {r.kind for r in cut} == {"unfinished"}


def test_what_was_tried_for_a_choice_is_named():
    with (
        Faulty(answer=lambda body: message("Sure!")) as server,
        pytest.raises(
            EngineError, match=r"structured_outputs.*grammar, json_schema, format"
        ) as told,
    ):
        ask(server, requests(1, "choice", OPTIONS))
    assert "--decode" not in str(told.value)  # the judge llm gives no such option


# --- thinking


def thinking(switch=None, default=True, where="reasoning_content", length=600):
    """A server whose model thinks, so many tokens long, unless a switch of the request says no."""

    def answer(body):
        on = default
        if switch:
            name, values = switch
            at = body
            for part in name.split("."):
                at = at.get(part, {}) if isinstance(at, dict) else {}
            on = values.get(str(at).lower(), default)
        room = body["max_tokens"]
        if not on:
            return message("No.")
        usage = counts(reasoning_tokens=min(room, length))
        if where == "hidden":
            return (
                message("No.", usage=usage) if room > length else message("", "length", usage=usage)
            )
        if where == "text":
            whole = "<think>" + "so " * min(room, length)
            return message(whole + "</think>\n\nNo.") if room > length else message(whole, "length")
        if where == "opened":
            whole = "so " * min(room, length)
            return message(whole + "</think>\n\nNo.") if room > length else message(whole, "length")
        thought = {where: "so " * min(room, length)}
        if room > length:
            return message("No.", usage=usage, **thought)
        return message(None if where == "reasoning" else "", "length", usage=usage, **thought)

    return answer


SWITCH = ("chat_template_kwargs.enable_thinking", {"true": True, "false": False})


@pytest.mark.parametrize("where", ["reasoning", "reasoning_content", "hidden", "text", "opened"])
def test_a_model_that_thinks_gets_room_for_it_and_it_is_said(where):
    notes: list[str] = []
    with Faulty(answer=thinking(where=where)) as server:
        one = engine(server, note=notes.append)
        one.prepare(requests(4), Sampling())
        found = list(one.generate(requests(4), Sampling()))
    assert all(r.finish == "stop" and r.text.endswith("No.") for r in found)
    assert json.loads(found[0].sent)["max_tokens"] == 64 + 4096
    assert one.identity.thinking_seen in ("thinks", "hidden")
    assert sum("thinks before it answers" in note for note in notes) == 1


def test_more_room_once_for_what_was_cut_in_its_thought():
    def answer(body):
        return thinking(length=2000)(body)

    notes: list[str] = []
    with Faulty(answer=answer) as server:
        found = ask(server, requests(3), note=notes.append, thinking=Thinking(tokens=500))
    assert {r.text for r in found.values()} == {"No."}
    assert any("asked again with more tokens" in note for note in notes)
    # Cut even so: an outcome, with its thought, and no failure.
    with Faulty(answer=thinking(length=10**6)) as server:
        found = ask(server, requests(2))
    for record in found.values():
        assert isinstance(record, Response)
        assert (record.text, record.finish, record.reasoning[:2]) == ("", "length", "so")


@pytest.mark.parametrize(
    ("mode", "switch", "put"),
    [
        ("off", SWITCH, "chat_template_kwargs.enable_thinking=off"),
        ("off", ("reasoning_effort", {"none": False}), "reasoning_effort=off"),
        ("off", ("thinking.type", {"disabled": False}), "thinking.type=off"),
        ("on", SWITCH, "chat_template_kwargs.enable_thinking=on"),
        ("low", ("reasoning_effort", {"low": True}), "reasoning_effort=low"),
        ("high", ("reasoning.effort", {"high": True}), "reasoning.effort=high"),
    ],
)
def test_how_a_server_is_told_to_think_is_found(mode, switch, put):
    with Faulty(answer=thinking(switch, default=mode == "off")) as server:
        one = engine(server, thinking=Thinking(mode))
        one.prepare(requests(2), Sampling())
        found = list(one.generate(requests(2), Sampling()))
    assert one.identity.thinking_put == put
    assert one.identity.thinking.startswith(mode)
    assert one.identity.thinking_seen == ("none" if mode == "off" else "thinks")
    assert all(bool(r.reasoning) == (mode != "off") for r in found)


def test_a_server_that_does_not_listen_is_told_on():
    with (
        Faulty(answer=thinking()) as server,
        pytest.raises(EngineError, match="still thinks although"),
    ):
        ask(server, requests(1), thinking=Thinking("off"))
    with (
        Faulty(answer=lambda body: message("No.")) as server,
        pytest.raises(EngineError, match="shows no thought although --thinking high"),
    ):
        ask(server, requests(1), thinking=Thinking("high"))


def test_no_choice_inside_a_thought():
    with (
        Faulty(answer=thinking()) as server,
        pytest.raises(EngineError, match="thinks before it answers, and --decode choice"),
    ):
        ask(server, requests(1, "choice", OPTIONS))


def test_ways_are_data():
    assert all(
        way.modes and set(way.modes) <= {"on", "off", "low", "medium", "high"}
        for way in ways("server")
    )
    (budget,) = (way for way in ways("server") if way.name == "thinking.budget_tokens")
    assert budget.put("on", 77) == {"thinking": {"type": "enabled", "budget_tokens": 77}}


# --- addresses, names, keys


def test_a_server_is_known_by_its_whole_address():
    assert identity_of("http://localhost:8000/v1/") == "http://127.0.0.1:8000/v1"
    assert identity_of("HTTP://[::1]:8000/v1") == "http://127.0.0.1:8000/v1"
    assert identity_of("https://Host.example:443/a/v1") == "https://host.example/a/v1"
    one, *others = map(
        identity_of, ("http://h:1/v1", "http://h:2/v1", "http://h:1/x/v1", "https://h:1/v1")
    )
    assert one not in others and len(set(others)) == 3


@pytest.mark.parametrize(
    ("asked", "found"),
    [("llama3.1:8b", "llama3.1:8b"), ("gpt-4o-mini", "gpt-4o-mini"), ("qwen3", "qwen3:latest"),
     ("GPT-4O-mini", "gpt-4o-mini")],
)  # fmt: skip
def test_any_name_that_a_server_knows(asked, found):
    with Faulty(models=("llama3.1:8b", "gpt-4o-mini", "qwen3:latest")) as server:
        assert engine(server, asked).identity.model == found
        with pytest.raises(EngineError, match=r"has: llama3.1:8b, gpt-4o-mini, qwen3:latest"):
            engine(server, "nobody")


@pytest.mark.parametrize(
    ("host", "name", "taken"),
    [
        ("https://n.openai.azure.com/openai/v1", "my-deployment", True),
        ("https://openrouter.ai/api/v1", "org/m:free", True),
        ("https://openrouter.ai/api/v1", "org/other:free", False),
        ("https://router.huggingface.co/v1", "org/m:fastest", True),
        ("http://localhost:11434/v1", "org/m:free", False),
        ("https://api.openai.com/v1", "gpt-4o-mini", False),
    ],
)
def test_hosts_that_answer_to_names_which_they_do_not_list(host, name, taken):
    if taken:
        assert openai._served(host, name, ["org/m", "other"]) == name
    else:
        with pytest.raises(EngineError, match=r"does not serve .* it has: org/m, other"):
            openai._served(host, name, ["org/m", "other"])


def test_whose_key_is_sent(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "o")
    for host in ("api.openai.com", "eu.api.openai.com", "mine.openai.azure.com"):
        assert key_for(f"https://{host}/v1", "") == ("o", "OPENAI_API_KEY")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "a")
    assert key_for("https://mine.openai.azure.com/v1", "") == ("a", "AZURE_OPENAI_API_KEY")
    monkeypatch.setenv("OPENROUTER_API_KEY", "r")
    assert key_for("https://openrouter.ai/api/v1", "") == ("r", "OPENROUTER_API_KEY")
    # A provider's key goes to no stranger, however alike its name.
    for host in (
        *("some-stranger.example", "api.groq.com", "notopenai.com", "openai.com.evil.example"),
        *("notopenrouter.ai", "localhost"),
    ):
        assert key_for(f"https://{host}/v1", "") == ("", "")
    monkeypatch.setenv("GENPROBE_API_KEY", "g")
    assert key_for("https://openrouter.ai/api/v1", "")[0] == "g"
    monkeypatch.setenv("MINE", "m")
    assert key_for("https://openrouter.ai/api/v1", "MINE") == ("m", "MINE")
    with pytest.raises(InputError, match="NONE: there is no such variable"):
        key_for("https://openrouter.ai/api/v1", "NONE")


def test_headers_and_parameters_and_no_secret_anywhere(monkeypatch):
    monkeypatch.setenv("TITLE_KEY", KEY)

    def answer(body):
        return message(f"No. {body['service_tier']}")

    with Faulty(answer=answer) as server:
        options = Options(
            base_url=server.url,
            headers={"X-Title": "$TITLE_KEY", "X-Plain": "mine"},
            request_args={"service_tier": "flex"},
        )
        one = openai.open("", options)
        found = list(one.generate(requests(2), Sampling()))
    assert {r.text for r in found} == {"No. flex"}
    assert server.seen[-1]["x-title"] == KEY and server.seen[-1]["x-plain"] == "mine"
    assert one.identity.engine_args["headers"] == ["X-Plain", "X-Title"]
    assert one.identity.engine_args["request"] == {"service_tier": "flex"}
    assert KEY not in repr(one.identity) + repr(vars(one.server)) + repr(found)
    assert one.server.scrub(f"bad {KEY}!") == "bad <key>!"
    for wrong, says in (
        ({"headers": {"Authorization": "Bearer abc"}}, "can be read by others"),
        ({"headers": {"X-A": "$NOT_THERE"}}, "no variable NOT_THERE"),
        ({"request_args": {"temperature": 1}}, "set by --temperature"),
        ({"request_args": {"api_key": "x"}}, "keys are not given here"),
    ):
        with pytest.raises(InputError, match=says) as told:
            openai.open("", dataclasses.replace(Options(base_url=server.url), **wrong))
        assert "abc" not in str(told.value)


# --- whole commands


def command(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process: a new one would import for a second and more."""
    bare = {k: v for k, v in os.environ.items() if not k.endswith(("_API_KEY", "_BASE_URL"))}
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, bare | environment, clear=True),
        mock.patch.object(sys, "argv", ["genprobe", *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as end,
    ):
        main()
    code = int(end.value.code or 0)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


@pytest.mark.slow
def test_another_port_or_path_is_another_run(tmp_path):
    words = ("yesno", "--lang", "mr", "--limit", "2", "--out", str(tmp_path / "run"))
    with Faulty() as one, Faulty() as other:
        assert command(*words, "--base-url", one.url).returncode == 0
        again = command(*words, "--base-url", one.url.replace("127.0.0.1", "localhost"))
        assert again.returncode == 0 and "6 of 6 replies were there already" in again.stderr
        asked = len(other.log)
        wrong = command(*words, "--base-url", other.url)
        assert wrong.returncode == 2 and "(server: " in wrong.stderr
        assert not any("sent" in body for body, _ in other.log[asked:])
    spec = Run.open(tmp_path / "run").spec
    assert spec.server == one.url and spec.thinking_seen == "none"
    assert all(r.at.endswith("Z") for r in Run.open(tmp_path / "run").responses())


@pytest.mark.slow
def test_a_folder_of_before_goes_on(tmp_path):
    """Made when the spec held a host alone, and replies no time."""
    folder = tmp_path / "run"
    words = ("yesno", "--lang", "mr", "--limit", "2", "--out", str(folder))
    with Faulty() as server:
        assert command(*words, "--base-url", server.url).returncode == 0
        spec = json.loads((folder / "run.json").read_text())
        for name in ("server", "thinking", "thinking_put", "thinking_seen", "system"):
            del spec[name]
        spec["packages"]["httpx"] = "0.28.1"
        spec["engine_version"] = "localhost"
        (folder / "run.json").write_text(json.dumps(spec))
        rows = [json.loads(line) for line in (folder / "responses.jsonl").read_text().splitlines()]
        for row in rows:
            for name in (
                "at",
                "model",
                "fingerprint",
                "reasoning",
                "reasoning_from",
                "reasoning_tokens",
            ):
                del row[name]
        (folder / "responses.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:4]))
        again = command(*words, "--base-url", server.url)
    assert again.returncode == 0 and "4 of 6 replies were there already" in again.stderr
    with Run.open(folder) as run:
        assert [bool(r.at) for r in run.responses()] == [False] * 4 + [True] * 2


def test_the_server_of_the_environment_is_asked_and_named_also_quietly(tmp_path):
    words = ("yesno", "-q", "--lang", "mr", "--limit", "1", "--out", str(tmp_path / "run"))
    with Faulty() as server:
        done = command(*words, OPENAI_BASE_URL=server.url)
    assert done.returncode == 0, done.stderr
    assert Run.open(tmp_path / "run").spec.engine == "openai"
    assert done.stderr.splitlines() == [
        "genprobe: asking the server of OPENAI_BASE_URL; unset it to ask another"
    ]


def test_filtered_prompts_are_inside_the_bounds(tmp_path):
    """The two most offensive of three statements vanish: that must not read 100 %."""
    numbers = iter(range(1000))

    def answer(body):
        if "water" in body["messages"][-1]["content"]:
            return message("Yes.")
        return (400, AZURE) if next(numbers) % 3 else message("Yes.")

    words = ("yesno", "--lang", "en", "--limit", "3", "--probe", "agreement", "-f", "json")
    with Faulty(answer=answer) as server:
        done = command(*words, "--base-url", server.url, "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    (score,) = (row for row in json.loads(done.stdout) if row["metric"] == "endorsed")
    assert score["n"] == 1 and score["excluded"] == {"filter": 2}
    assert score["bounds"] == pytest.approx([1 / 3, 1.0])
    (refused,) = (row for row in json.loads(done.stdout) if row["metric"] == "refusal")
    assert refused["value"] == pytest.approx(2 / 3)


def test_a_run_with_failures_says_so_last_and_in_its_exit_code(tmp_path):
    numbers = iter(range(1000))

    def answer(body):
        if "water" in body["messages"][-1]["content"]:
            return message("Yes.")
        return (422, {"error": {"message": "cannot"}}) if next(numbers) % 3 else message("Yes.")

    words = ("yesno", "-q", "--lang", "en", "--limit", "3", "--probe", "agreement", "-f", "json")
    with Faulty(answer=answer) as server:
        done = command(*words, "--base-url", server.url, "--out", str(tmp_path / "run"))
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("genprobe: 2 requests have no reply")
    (score,) = (row for row in json.loads(done.stdout) if row["metric"] == "endorsed")
    assert score["excluded"] == {"failed": 2} and score["bounds"] == pytest.approx([1 / 3, 1.0])


def test_several_models_are_a_run_each(tmp_path):
    words = ("yesno", "--lang", "mr", "--limit", "1", "--out", str(tmp_path / "runs"), "-f", "json")
    with Faulty(models=("a:1", "b")) as server:
        done = command(*words, "--base-url", server.url, "--model", "a:1", "--model", "b")
        assert done.returncode == 0, done.stderr
        rows = json.loads(done.stdout)
        assert {row["by"]["model"] for row in rows} == {"a:1", "b"}
        assert {p.name for p in (tmp_path / "runs").iterdir()} == {"a-1", "b"}
        (tmp_path / "models.toml").write_text(
            f'[one]\nid = "a:1"\nbase_url = "{server.url}"\n'
            f'[two]\nid = "b"\nbase_url = "{server.url}"\napi_key_env = "MINE"\n'
        )
        asked = len(server.log)
        words = (*words[:5], "--out", str(tmp_path / "more"), "-f", "json")
        done = command(*words, "--models", str(tmp_path / "models.toml"), MINE=KEY)
        assert done.returncode == 0, done.stderr
        assert len(server.log) > asked and server.seen[-1]["authorization"] == f"bearer {KEY}"
        assert KEY not in done.stderr + done.stdout
        done = command(*words, "--base-url", server.url, "--models", "b,nobody")
        assert done.returncode == 2 and "nobody: " in done.stderr
    twice = command("logprob", "--model", "a", "--model", "b")
    assert twice.returncode == 2 and "--model is given twice; give it once" in twice.stderr


@pytest.mark.slow
def test_before_anything_is_asked(tmp_path):
    words = ("yesno", "--lang", "kk", "--limit", "2", "--dry-run", "--price", "1000000,2000000")
    done = command(*words, "--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    assert done.returncode == 0, done.stderr
    assert "m: 6 requests about 2 items" in done.stdout and done.stdout.count("[user]") == 3
    row = next(line for line in done.stdout.splitlines() if line.startswith("all"))
    _, n, into, out = row.split()
    assert (n, out) == ("6", str(6 * 64))
    most = int(into) + 2 * int(out)
    assert (
        f"cost: {int(into):.4f} for the prompts, at most {most:.4f} in all, "
        f"{most + 2 * 6 * 4096:.4f} if the model thinks by itself (4096 tokens each)"
    ) in done.stdout
    unnamed = command(*words, "--base-url", "http://127.0.0.1:9/v1", "--thinking", "off")
    assert "the model of http://127.0.0.1:9/v1: 6 requests" in unnamed.stdout
    assert "thinks by itself (" not in unnamed.stdout
    assert not (tmp_path / "runs").exists()
    wrong = command(*words[:-1], "1")
    assert wrong.returncode == 2 and "two amounts" in wrong.stderr


def test_tokens_and_what_they_cost(tmp_path):
    words = ("yesno", "--lang", "mr", "--limit", "2", "--price", "1000000,2000000")
    with Faulty(answer=thinking(length=50)) as server:
        done = command(*words, "--base-url", server.url, "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    said = "tokens: 42 of prompts, 540 of replies, 300 of these of thoughts; cost 1122.0000"
    assert said in done.stderr


@pytest.mark.slow
def test_a_system_prompt_is_said_and_recorded(tmp_path):
    (tmp_path / "system.txt").write_text("Be brief.\n")
    words = ("yesno", "--lang", "mr", "--limit", "1", "--out", str(tmp_path / "run"))
    with Faulty() as server:
        done = command(*words, "--base-url", server.url, "--system", f"@{tmp_path / 'system.txt'}")
    assert done.returncode == 0, done.stderr
    run = Run.open(tmp_path / "run")
    assert run.spec.system and run.verify() == []
    assert all(r.messages[0] == {"role": "system", "content": "Be brief."} for r in run.requests())
    wrong = command(*words, "--system", "@nowhere.txt")
    assert wrong.returncode == 2 and "cannot be read" in wrong.stderr
    assert not any(isinstance(r, Failure) for r in run.failures())


def test_replies_cut_off_in_their_thought_are_a_caution_also_quietly(tmp_path):
    words = ("yesno", "--lang", "en", "--limit", "2", "-q", "--out", str(tmp_path / "run"))
    with Faulty(answer=lambda body: message("", "length", reasoning="Hm")) as server:
        done = command(*words, "--base-url", server.url)
    assert done.returncode == 0
    assert "6 of 6 replies were cut off inside the thought" in done.stderr
    assert "ask again with more --think-tokens" in done.stderr


def test_every_form_of_a_servers_answer_in_a_file_is_read_as_when_it_is_asked(tmp_path):
    forms = [
        (message([{"type": "text", "text": "No."}]), ("no", "answer", "none")),
        (message([{"type": "thinking", "thinking": "Yes?"}, {"type": "text", "text": "No."}]),
         ("no", "answer", "closed")),
        (message("No.", reasoning_details=[{"type": "reasoning.text", "text": "Yes?"}]),
         ("no", "answer", "closed")),
        (message(None, "tool_calls", tool_calls=[{"function": {"arguments": '{"answer": "no"}'}}]),
         ("no", "answer", "none")),
        (message(None, refusal="I cannot help with that."), ("ambiguous", "refusal", "none")),
        (message("", "content_filter"), ("ambiguous", "filter", "none")),
        (message("", "length", counts(reasoning_tokens=90)), ("ambiguous", "unfinished", "open")),
        (message(None, "length"), ("ambiguous", "unfinished", "open")),
        (message(None, "length", reasoning_content="Yes"), ("ambiguous", "unfinished", "open")),
    ]  # fmt: skip
    rows = [{"lang": "en", "probe": "agreement", "response": body} for body, _ in forms]
    rows[0]["response"] = {"status_code": 200, "body": rows[0]["response"]}
    file, out = tmp_path / "bodies.jsonl", tmp_path / "out.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = command("judge", str(file), "-o", str(out))
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in out.open(encoding="utf-8")]
    read = [(row["answer"], row["kind"], row["thought_state"]) for row in found]
    assert read == [expected for _, expected in forms]
