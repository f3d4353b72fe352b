"""Read the body of an OpenAI-compatible server's answer: reply, thought and finish reason.

Servers agree only on the outermost structure. These functions are pure; unexpected content counts
as absent, and never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from genprobe.records import canonical

FILTERED = "content_filter"
REFUSED = "refusal"
# Finish reasons by which servers say that a content filter withheld the reply.
_FILTERS = ("content_filter", "safety", "prohibited_content", "blocklist", "sensitive", "spii")
# What other servers than OpenAI's say when a reply is at its end, or was cut off.
_ENDS = {"end_turn": "stop", "stop_sequence": "stop", "eos_token": "stop", "stop": "stop"}
_ENDS |= dict.fromkeys(("length", "max_tokens", "model_length", "max_output_tokens"), "length")
BROKEN = ("error", "abort")  # the reply broke off: OpenRouter after a failure upstream, vLLM
# Words in the error message when a content filter rejected the prompt: Azure, OpenAI, OpenRouter,
# Gemini, Bedrock, Alibaba, in this order.
_BLOCKED = re.compile(
    r"(?i)content[ _-]?(filter|management policy|policy[ _]violation)|responsible ?ai"
    r"|flagged|usage polic|safety (system|polic)|prohibited[ _]content"
    r"|blocked by (the )?(guardrail|safety|content)|data[ _]?inspection[ _]?failed"
)
# Fields of a message that may hold a thought, in order of preference.
_FIELDS = ("reasoning_content", "reasoning", "thinking", "thinking_blocks", "reasoning_details")
_THOUGHTS = ("thinking", "reasoning", "reasoning.text", "reasoning.summary", "summary_text")
_HIDDEN = ("redacted_thinking", "reasoning.encrypted")


class Said(NamedTuple):
    """The content of a server's answer.

    text: the reply, or None if there is none. reasoning_from: the field or block that holds the
    thought; `hidden` if there was a thought that is not shown; "" if there is no separate thought.
    """

    text: str | None
    finish: str
    reasoning: str | None
    reasoning_from: str
    reasoning_tokens: int | None
    tokens_in: int | None
    tokens_out: int | None
    model: str
    fingerprint: str


def said(body: Mapping[str, Any]) -> Said:
    """Read the first choice of a body. Raises LookupError or TypeError if there is none.

    The first is that with the index 0; a body may have them in any order.
    """
    choices = body["choices"]
    first = (one for one in choices if isinstance(one, dict) and one.get("index") == 0)
    choice = next(first, choices[0])
    finish = str(choice.get("finish_reason") or "unknown")[:200]
    finish = _ENDS.get(finish.lower(), finish)
    if finish.lower() in _FILTERS:
        finish = FILTERED
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    thought, where, hidden = None, "", False
    if "message" not in choice:
        text = choice["text"]
        if not isinstance(text, str | None):
            raise TypeError("a part of the message is not text")
    else:
        message = choice["message"]
        text, inner, block, hidden = _content(message.get("content"))
        for name in _FIELDS:
            value = message.get(name)
            found, _, _, secret = (
                (value, "", "", False) if isinstance(value, str) else _thought(value)
            )
            hidden |= secret
            if found and found.strip() and thought is None:
                thought, where = found, name
        if thought is None and inner:
            thought, where = inner, block
        if not text and isinstance(message.get("refusal"), str) and message["refusal"]:
            text, finish = message["refusal"], FILTERED if finish == FILTERED else REFUSED
        if not text and (calls := message.get("tool_calls") or message.get("function_call")):
            # The model answered with a tool call instead of text: its arguments are the reply.
            text, finish = _call(calls), "tool_calls"
    tokens = _tokens(usage)
    if thought is None and (hidden or tokens):
        where = "hidden"
    if not (text or "").strip() and finish == "length":
        where = where or "hidden"  # the body does not say what the tokens were spent on
    if text is None and finish == FILTERED:
        text = ""
    return Said(
        text,
        finish,
        thought,
        where,
        tokens,
        _whole(usage.get("prompt_tokens")),
        _whole(usage.get("completion_tokens")),
        _name(body.get("model")),
        _name(body.get("system_fingerprint")),
    )


def blocked(status: int, words: str, code: str) -> bool:
    """Tell whether an error says that a content filter rejected the prompt."""
    return status in (400, 403, 422, 451, 500) and bool(_BLOCKED.search(f"{code} {words}"))


def _content(content: Any) -> tuple[str | None, str, str, bool]:
    """Read a message's content: (text, thought, its block, whether a thought is hidden)."""
    if content is None or isinstance(content, str):
        return content, "", "", False
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        raise TypeError("the content of a message is neither text nor parts")
    texts: list[str] = []
    thoughts: list[str] = []
    block, hidden = "", False
    for part in content:
        if isinstance(part, str):
            texts.append(part)
            continue
        if not isinstance(part, dict):
            raise TypeError("the content of a message is neither text nor parts")
        kind = str(part.get("type", ""))
        if kind in _HIDDEN:
            hidden = True
        elif kind in _THOUGHTS or part.get("thought") is True:
            thoughts += _strings(part)
            block = f"content.{kind or 'thought'}"
        elif isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif isinstance(part.get("refusal"), str):
            texts.append(part["refusal"])
    text = "".join(texts) if texts or content == [] else None
    return text, "".join(thoughts), block, hidden


def _thought(value: Any) -> tuple[str, str, str, bool]:
    """Read a field that holds only a thought (objects, or a list of them), as `_content` does."""
    parts = value if isinstance(value, list) else [value]
    objects = [part for part in parts if isinstance(part, dict)]
    hidden = any(part.get("type") in _HIDDEN for part in objects)
    shown = [part for part in objects if part.get("type") not in _HIDDEN]
    return "".join(text for part in shown for text in _strings(part)), "", "", hidden


def _strings(part: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts in a block of thought, whichever key holds them."""
    for name in ("thinking", "text", "reasoning", "summary", "content"):
        value = part.get(name)
        if isinstance(value, str):
            yield value
            return
        if isinstance(value, list):
            for one in value:
                if isinstance(one, str):
                    yield one
                elif isinstance(one, dict):
                    yield from _strings(one)
            return


def _call(calls: Any) -> str:
    """Return the arguments of a tool call as JSON."""
    one = calls[0] if isinstance(calls, list) and calls else calls
    one = one.get("function", one) if isinstance(one, dict) else {}
    given = one.get("arguments") if isinstance(one, dict) else None
    return given if isinstance(given, str) else canonical(given)


def _tokens(usage: Mapping[str, Any]) -> int | None:
    """Find the number of tokens of the thought, whichever key holds it."""
    for name in ("completion_tokens_details", "output_tokens_details"):
        details = usage.get(name)
        if isinstance(details, dict) and (n := _whole(details.get("reasoning_tokens"))) is not None:
            return n
    for name in ("reasoning_tokens", "thoughts_token_count", "thoughtsTokenCount"):
        if (n := _whole(usage.get(name))) is not None:
            return n
    return None


def _whole(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 53 else None


def _name(value: Any) -> str:
    return value[:200] if isinstance(value, str) else ""
