"""Set thinking in a chat template, and detect whether the template opens a thought itself.

The switch of a template is the first argument in `servers.toml` that changes the prompt when it is
rendered with both values. How the rendered prompt ends shows whether the template opens a thought.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from genprobe.engines import THINK_TOKENS, Thinking
from genprobe.engines._server import Way, ways
from genprobe.errors import EngineError
from genprobe.linguistics import thoughts


class Told(NamedTuple):
    """How thinking was set.

    kwargs: arguments for the template. put: the setting, as text. seen: what the prompt shows:
    `opens`, `thinks`, `closed`, or "" if nothing. room: tokens for a thought.
    """

    kwargs: Mapping[str, Any]
    put: str
    seen: str
    room: int

    @property
    def thinks(self) -> bool:
        return self.seen in ("opens", "thinks")


def tell(
    model: str,
    render: Callable[[Mapping[str, Any]], str],
    template: str,
    thinking: Thinking,
    given: Mapping[str, Any],
    positions: int | None,
) -> Told:
    """Find the arguments that set thinking in a chat template as requested.

    render: function that renders a short prompt with arguments. template: its source, "" for none.
    given: arguments that the user names, which override others. positions: most tokens that the
    model takes, None if unknown.
    Raises EngineError if the template has no switch for it.
    """
    mode = thinking.mode
    if not template:
        if mode not in ("default", "off"):
            raise EngineError(
                f"{model}: has no chat template, so --thinking {mode} has no effect; leave it out"
            )
        return Told(dict(given), "", "", thinking.tokens or 0)
    usual = THINK_TOKENS if positions is None else min(THINK_TOKENS, positions // 2)
    room = thinking.tokens or usual
    plain = render(given)
    kwargs, put = dict(given), ""
    switch = _switch(render, given, "on", "off")
    if mode in ("on", "off"):
        if switch:
            kwargs, put = {**switch.put(mode, room), **given}, f"{switch.name}={mode}"
    elif mode != "default":
        level = _switch(render, given, "low", "high")
        if not level:
            raise EngineError(
                f"{model}: its chat template has no levels of thinking; give --thinking on or "
                "off, or --template-arg"
            )
        kwargs, put = {**level.put(mode, room), **given}, f"{level.name}={mode}"
    prompt = render(kwargs)
    if thoughts.opens(prompt):
        seen = "opens"
    elif thoughts.closes(prompt):
        seen = "closed"
    elif put.endswith("=off"):
        seen = ""
    elif switch:
        seen = "thinks" if put or plain == render({**switch.put("on", room), **given}) else ""
    else:
        seen = "thinks" if thoughts.named(template) else ""
    told = Told(kwargs, put, seen, room)
    if mode == "on" and not told.thinks:
        raise EngineError(
            f"{model}: nothing in its chat template makes it think (tried: {_tried()}); leave "
            "--thinking out, or give --template-arg"
        )
    if mode == "off" and told.thinks:
        raise EngineError(
            f"{model}: thinks, and its chat template has no known switch to turn that off "
            f"(tried: {_tried()}); leave --thinking out, or give --template-arg"
        )
    return told if told.thinks else told._replace(room=thinking.tokens or 0)


def _switch(
    render: Callable[[Mapping[str, Any]], str], given: Mapping[str, Any], one: str, other: str
) -> Way | None:
    """Find the first switch whose two values give different prompts."""
    for way in ways("template"):
        if way.put(one, 1) and way.put(other, 1):
            prompts = [render({**way.put(word, 1), **given}) for word in (one, other)]
            if prompts[0] != prompts[1]:
                return way
    return None


def _tried() -> str:
    return ", ".join(way.name for way in ways("template"))


def marks(tokenizer: Any) -> frozenset[int]:
    """Find the special tokens that mark a thought.

    They are kept in replies, because they separate the thought from the answer. Empty if the chat
    template does not mention thoughts.
    """
    if not tokenizer.chat_template or not thoughts.named(str(tokenizer.chat_template)):
        return frozenset()
    channels = ("<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|constrain|>")
    return frozenset(
        number
        for token, number in zip(
            tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True
        )
        if token in channels or thoughts.named(token)
    )


def ahead(text: str, opened: bool) -> tuple[str, str] | None:
    """Split a generated text into (everything before the answer, the thought).

    Returns ("", "") if there is no thought, None if the thought has no end. text: with special
    tokens. opened: whether the prompt ended inside a thought.
    """
    parted = thoughts.part(text, opened)
    if parted.state == "open":
        return None
    answer = parted.reply.lstrip()
    if parted.state == "none" or not text.endswith(parted.reply):
        return "", ""
    return text[: len(text) - len(answer)] if answer else text, parted.thought
