"""The command line. Each command is a file of this folder, found by its name.

Results go to stdout, everything else to stderr. A GenprobeError is printed as one line, with exit
code 2. A command's file is imported only when it is run or its help is shown, and imports heavy
packages only when it runs.
"""

from __future__ import annotations

import contextlib
import difflib
import gc
import os
import re
import signal
import sys
import traceback
from collections import Counter

import click

from genprobe._version import __version__
from genprobe.commands._console import say
from genprobe.errors import GenprobeError, InputError, RowErrors
from genprobe.resources import registry

# The order in the help; commands that are not named here follow in alphabetical order.
_ORDER = (
    *("yesno", "stories", "essays", "logprob", "choices", "judge", "rejudge", "score"),
    *("compare", "gate", "audit", "report", "publish", "review", "dataset", "describe", "augment"),
    *("reproduce", "verify", "merge", "peers", "lint", "list", "classifiers", "selftest"),
)


class _Files(click.Group):
    """A group of commands: each file of this folder defines one, called `command`."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(registry.names("commands"), key=lambda name: (_place(name), name))

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(context):
            return None
        command: click.Command = registry.module("commands", name).command
        return command

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Add the folders of --with, wherever it stands, before anything looks for a member."""
        end = args.index("--") if "--" in args else len(args)
        given, rest = [], args[end:]
        words = iter(args[:end])
        before = []
        for word in words:
            option, equals, folder = word.partition("=")
            if option != "--with":
                before.append(word)
            elif folder := folder if equals else next(words, ""):
                given.append(folder)
            else:
                raise click.UsageError("--with needs a folder")
        if given:
            listed = [os.environ.get(registry.WITH, ""), *given]
            os.environ[registry.WITH] = os.pathsep.join(filter(None, listed))
            registry.added()
        return super().parse_args(context, [*before, *rest])

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command as click does; for an unknown name, suggest one that may be meant."""
        name = args[0]
        near = difflib.get_close_matches(name, self.list_commands(context), 1)
        if near and name != near[0] and self.get_command(context, name) is None:
            context.fail(f"No such command {name!r}. Did you mean {near[0]!r}?")
        found = super().resolve_command(context, args)
        if found[1] is not None:
            _need_once(found[1], context, found[2])
        return found


def _need_once(command: click.Command, context: click.Context, args: list[str]) -> None:
    """Raise UsageError if an option that takes one value is given twice; click keeps the last."""
    while isinstance(command, click.Group) and args:
        name = args[0] if args[0] in command.commands else getattr(command, "default", "")
        if name not in command.commands:
            break
        command, args = command.commands[name], args[name == args[0] :]
    own = click.Context(command, context)
    try:
        order = command.make_parser(own).parse_args([*args])[2]
    except click.UsageError:
        return  # click says what is wrong
    for option, times in Counter(order).items():
        if times < 2 or not isinstance(option, click.Option):
            continue
        if not (option.multiple or option.count or option.is_flag):
            several = " with commas between the values" if option.name == "by" else ""
            raise click.UsageError(f"{option.opts[0]} is given twice; give it once{several}.")


def _place(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


@click.group(
    cls=_Files, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="genprobe")
@click.option(
    "--with",
    metavar="FOLDER",
    multiple=True,
    expose_value=False,
    help="Add judges, measures, languages, … of your own, anywhere in the line; docs/extending.md.",
)
def cli() -> None:
    """Measure how far language models carry stereotypes, by what they say when asked.

    \b
    genprobe yesno --lang mr                    ask the control model in Marathi
    genprobe yesno --lang kk --model FOLDER     ask your own model in Kazakh
    genprobe judge replies.jsonl -o read.jsonl  read replies that you already have
    genprobe score read.jsonl --by model,lang   count them

    The statements are stereotypes. They are offensive by nature, and are here to measure and
    reduce harm.
    """


def main() -> None:
    """Run the command line; print every error that a user can correct as one line."""
    # Records and rows have no reference cycles. By default Python searches for cycles after every
    # 700 new objects, which takes a seventh of a run's time.
    gc.set_threshold(50_000)
    # A scheduler that ends a job lets the run be sealed, as Ctrl-C does.
    with contextlib.suppress(ValueError):  # not in the main thread
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
    # `-v` can be combined with other letters, as in `-qv`.
    shown = any(re.fullmatch(r"--verbose|-[qv]*v[qv]*", word) for word in sys.argv[1:])
    try:
        if sys.stdout is None:
            raise InputError("standard output is closed; send it to a file or to /dev/null")
        code = cli.main(prog_name="genprobe", standalone_mode=False)
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        code = say("stopped; run the same command again to resume", 130)
    except BrokenPipeError:
        sys.stderr.close()  # the program that reads our output has ended; that is no error
        code = 0
    except OSError as error:
        # Without a name, this is standard output, as on a full disk.
        if shown:
            raise
        if error.filename is not None:  # such as a name that is too long, or in no folder
            code = say(f"{error.filename}: cannot be used ({error.strerror})", 2)
        else:
            with contextlib.suppress(OSError):
                sys.stdout.close()  # otherwise Python tries again to write the rest when it exits
            code = say(f"standard output: cannot be written ({error.strerror})", 2)
    except click.exceptions.NoArgsIsHelpError as error:  # `genprobe`, `genprobe review`
        error.show()
        code = error.exit_code
    except (click.ClickException, GenprobeError) as error:
        if shown:
            traceback.print_exc()
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        message = re.sub(r"a valid float( range)?\.$", "a number.", message)
        message = re.sub(r"a valid integer( range)?\.$", "a whole number.", message)
        if isinstance(error, click.MissingParameter) and error.ctx and "Choose" not in message:
            message = f"{message} Example: {_least(error.ctx)}"
        lines = message.splitlines() if isinstance(error, RowErrors) else [message]
        for line in lines:
            code = say(" ".join(line.split()), 2)
    sys.exit(code if isinstance(code, int) else 0)


def _least(context: click.Context) -> str:
    """Return an example of the command line with all required arguments."""
    words = [context.command_path]
    for parameter in context.command.params:
        if parameter.required:
            option = parameter.opts[:1] if isinstance(parameter, click.Option) else []
            words += [*option, parameter.make_metavar(context)]
    return " ".join(words)
