"""`genprobe peers`: write what another harness runs to ask genprobe's questions."""

from __future__ import annotations

from pathlib import Path

import click

from genprobe.commands._options import ASKED


@click.command("peers", short_help="Write the tasks that lm-eval or promptfoo run.")
@click.argument("harness", metavar="HARNESS", type=click.Choice(["lm-eval", "promptfoo"]))
@ASKED["langs"]
@click.option(
    "--data",
    default="builtin",
    show_default=True,
    metavar="D",
    help="builtin, or a file of statements.",
)
@click.option(
    "-o",
    "out",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="The folder to write to.  [default: peers/HARNESS]",
)
def command(harness: str, langs: tuple[str, ...], data: str, out: Path | None) -> None:
    """Write the yes/no questions as tasks of another harness, and print the folder.

    \b
    lm_eval --include_path "$(genprobe peers lm-eval)" --tasks genprobe_yesno_kk …
    promptfoo eval -c "$(genprobe peers promptfoo --lang kk)/promptfooconfig.json" -r PROVIDER …
    inspect eval genprobe/yesno -T lang=kk …

    Inspect needs no files: it finds the task where genprobe is installed. Install genprobe in the
    environment of the harness; it brings no torch.
    """
    from genprobe.harnesses.questions import write

    click.echo(write(harness, langs=langs, data=data, out=out))
