"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from genprobe.commands._console import columns, noter
from genprobe.files import door, people

if TYPE_CHECKING:
    from genprobe.tasks import Ask

Option = Callable[[Any], Any]


def together(*options: Option) -> Option:
    """Combine several options, in this order, into one decorator."""

    def wrap(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return wrap


class Named(click.ParamType):
    """A name of `genprobe list WHAT`, which a shell completes, also behind a comma.

    It is not checked here: the command knows which names it can use.
    """

    name = "text"

    def __init__(self, what: str) -> None:
        self.what = what

    def shell_complete(
        self, context: click.Context, option: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from genprobe.api.data import list_names

        before, comma, begun = incomplete.rpartition(",")
        found = [(row["name"], row["about"]) for row in list_names(self.what)]
        return [
            CompletionItem(before + comma + name, help=about)
            for name, about in found
            if name.startswith(begun)
        ]


QUIET = click.option(
    "-q", "--quiet", is_flag=True, help="No progress bar and no notes, only cautions."
)
# `commands.main` reads it from sys.argv, so it is not passed to the commands.
VERBOSE = click.option("-v", "--verbose", is_flag=True, expose_value=False, help="Show tracebacks.")


def _keep_about(context: click.Context, option: click.Parameter, given: bool) -> None:
    people.keep_about(given)


# Set before a command reads data, so it is not passed to the commands.
KEEP_ABOUT = click.option(
    "--keep-about",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_keep_about,
    help="Keep what respondents said about themselves, and their codes, in the run.",
)


def _follow(context: click.Context, option: click.Parameter, given: bool) -> None:
    door.follow_links(given)


# Set before a command opens a folder, so it is not passed to the commands.
FOLLOW = click.option(
    "--follow-links",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_follow,
    help="Also read links in folders of runs and data, as git-annex and DVC make them.",
)


def _from(context: click.Context, option: click.Parameter, given: Path | None) -> None:
    from genprobe.datasets import fetch

    fetch.take_from(given)


# Set before a command reads data, so it is not passed to the commands.
FROM = click.option(
    "--from",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    is_eager=True,
    expose_value=False,
    callback=_from,
    help="Your copy of the data set that --data names, which is then not fetched.",
)
FORMAT = click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "markdown", "latex", "latex-marked"]),
    default="table",
    show_default=True,
    help="Format of the scores; in latex-marked the value nearest to one half is bold and the "
    "furthest underlined.",
)
BY = click.option(
    "--by",
    "by",
    type=Named("columns"),
    metavar="COL,…",
    help="Columns by which figures are grouped, such as lang,model; see `list columns`.",
)
WIDE = click.option(
    "--wide",
    is_flag=True,
    help="One table for each measure, with the values of the last column of --by side by side.",
)
DECLARED = click.option(
    "--declared",
    is_flag=True,
    help="Only originals that are declarations and marked as valid in their language.",
)


# Options about what is asked, which model is asked, and where the run is stored.
ASKED: dict[str, Option] = {
    "langs": click.option(
        "--lang",
        "langs",
        type=Named("languages"),
        multiple=True,
        metavar="CODE",
        help="Language; may be repeated.",
    ),
    "model": click.option(
        "--model",
        type=Named("models"),
        metavar="M",
        help="An alias, a hub id, a folder, or the name that a server uses. Without it, the "
        "control model runs.",
    ),
    "like": click.option(
        "--like",
        type=click.Path(path_type=Path),
        metavar="RUN",
        help="Ask the questions of this run again, as they stand in its folder; of its model, if "
        "--model names no other.",
    ),
    "limit": click.option(
        "--limit",
        type=click.IntRange(1),
        metavar="N",
        help="Only the first N items of each language.",
    ),
    "out": click.option(
        "--out", type=click.Path(path_type=Path), metavar="DIR", help="The run folder."
    ),
    "engine": click.option(
        "--engine",
        type=Named("engines"),
        default="auto",
        show_default=True,
        metavar="E",
        help="auto, transformers, vllm, openai, ray, or replay (recorded replies; --model names "
        "their file).",
    ),
    "base_url": click.option(
        "--base-url", metavar="URL", help="URL of an OpenAI-compatible server; it ends in /v1."
    ),
    "concurrency": click.option(
        "--concurrency",
        type=click.IntRange(1),
        metavar="N",
        help="Maximum number of requests to a server at a time.  [default: adapted to the server, "
        "up to 512]",
    ),
    "engine_args": click.option(
        "--engine-arg",
        "engine_args",
        multiple=True,
        metavar="KEY=VALUE",
        help="Argument of the engine, such as dtype=float32 or tensor_parallel_size=2; may be "
        "repeated.",
    ),
    "headers": click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="NAME=VALUE",
        help="Header of each request to a server; $NAME stands for a secret in the environment.",
    ),
    "key_env": click.option(
        "--api-key-env",
        "key_env",
        metavar="NAME",
        help="Environment variable that holds the server's key.  [default: GENPROBE_API_KEY, else "
        "the usual one of the host]",
    ),
    "http_key": click.option(
        "--allow-http-key",
        "http_key",
        is_flag=True,
        help="Send keys over plain http to another machine, where others may read them.",
    ),
    "seed": click.option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        help="Number from which all seeds are derived.",
    ),
}


def _listed(context: click.Context, option: click.Parameter, given: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in given.split(",")))


def varied(instruct: bool = True) -> Option:
    """Make the options that vary how a question is asked (`resources.panel.Vary`).

    instruct: whether the language of the question can be chosen.
    """
    options = [
        click.option(
            "--wordings",
            default="published",
            show_default=True,
            metavar="published|all|N",
            help="Wordings of each question: the published one, all of the panel "
            "(docs/wordings.md), or N for each statement, drawn at random.",
        ),
        click.option(
            "--personas",
            default="none",
            show_default=True,
            metavar="none|all|N",
            help="System prompts that say who the model is (prompts/personas): none, all (and "
            "also none), or N of these for each statement, drawn at random.",
        ),
    ]
    if instruct:
        options.append(
            click.option(
                "--instruct",
                default="own",
                show_default=True,
                callback=_listed,
                metavar="own|en|own,en",
                help="Language of the question: the statement's own, English, or both.",
            )
        )
    return together(*options)


# Options that say which program or server runs the model.
_SERVER = ("engine", "base_url", "concurrency", "engine_args", "headers", "key_env", "http_key")
SERVER = tuple(ASKED[name] for name in _SERVER)
# Options of commands that have a model write texts for people to check.
WRITER = together(ASKED["model"], *SERVER)


def drawn(samples: int, temperature: str, top_p: float, max_tokens: int) -> Option:
    """Make the options of sampling, with a command's defaults.

    temperature: the default in words, as the help shows it.
    """
    return together(
        click.option(
            "--samples",
            type=click.IntRange(1),
            default=samples,
            show_default=True,
            metavar="N",
            help="Replies to each question, each with its own seed.",
        ),
        click.option(
            "--temperature",
            type=click.FloatRange(0),
            metavar="T",
            help=f"0 is greedy.  [default: {temperature}]",
        ),
        click.option(
            "--top-p",
            type=click.FloatRange(0, 1, min_open=True),
            default=top_p,
            show_default=True,
            metavar="P",
            help="Sample from the likeliest tokens that together have probability P.",
        ),
        click.option(
            "--max-tokens",
            type=click.IntRange(1),
            default=max_tokens,
            show_default=True,
            metavar="N",
            help="Maximum number of tokens of a reply.",
        ),
    )


def asked(task: str, given: dict[str, Any], by: str | None, quiet: bool) -> Ask:
    """Turn the options of a command into an `Ask`."""
    from genprobe import api

    model = given.pop("model")
    if given["like"] is not None:  # the run says the rest
        source = click.get_current_context().get_parameter_source
        given = {n: v for n, v in given.items() if source(n) is not ParameterSource.DEFAULT}
    elif model is None and given.get("base_url") is None and "max_tokens" in given:
        # The known rates of the control model hold at temperature 1.
        given["temperature"] = 1.0 if given["temperature"] is None else given["temperature"]
    return api.ask_of(task, model, {**given, "by": columns(by), "note": noter(quiet)})
