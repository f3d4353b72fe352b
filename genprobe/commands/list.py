"""`genprobe list`: list models, packs, languages and so on."""

from __future__ import annotations

import click

from genprobe.commands._options import VERBOSE

_LISTS = (
    *("models", "packs", "languages", "classifiers", "engines", "judges", "scorers", "metrics"),
    *("columns", "data", "reproductions", "tasks"),
)


@click.command(
    name="list",
    short_help="List languages, packs, engines, judges, metrics, …",
    help="List what is available, one per line: its name and what it is.\n\n"
    f"WHAT: {', '.join(_LISTS)}.",
)
@click.argument("what", type=click.Choice(_LISTS), metavar="WHAT")
@VERBOSE
def command(what: str) -> None:
    rows = _listed(what)
    width = max(len(name) for name, _ in rows)
    for name, about in rows:
        click.echo(f"{name:<{width}}  {about}".rstrip())


def _listed(what: str) -> list[tuple[str, str]]:
    from genprobe.datasets import statements
    from genprobe.resources import measured, models, registry
    from genprobe.resources import packs as inputs

    if what == "models":
        return [
            ("(none)", "the control model, which tests genprobe; it runs without --model"),
            ("FOLDER", "a model on disk, as transformers saves it"),
            ("ORG/NAME", "a model of the Hugging Face hub"),
            *models.listed(),
        ]
    if what == "packs":
        packs = [inputs.load_pack(name) for name in registry.names("packs")]
        return [(p.name, f"{p.title} ({', '.join(p.probes)}); {p.citation}") for p in packs]
    if what == "languages":
        pack = inputs.load_pack("yesno")
        languages = [inputs.load_language(code) for code in registry.names("languages")]
        read: dict[str, str] = {}
        for (code, kind), figures in measured.real().items():
            before = f"{read[code]}, " if code in read else ""
            read[code] = f"{before}{kind} {figures.brief()}"
        return [
            (
                one.code,
                f"{one.name}, {one.native}; words: {one.review}; "
                f"questions: {pack.reviews.get(one.code, 'none')}; "
                f"real replies: {read.get(one.code, 'not measured')}",
            )
            for one in languages
        ]
    if what == "classifiers":
        from genprobe.judges.classifiers import cards

        known = [cards.load(name) for name in cards.names()]
        return [(c.name, f"{c.title}; {', '.join(c.languages)}; {c.figures()}") for c in known]
    if what == "scorers":
        from genprobe.outcomes import scorers

        return [
            (s.name, f"{' or '.join(s.passes)}: {s.about.partition(chr(10))[0]}")
            for s in scorers.SCORERS.values()
        ]
    if what == "metrics":
        from genprobe import metrics

        return [(m.name, m.title) for m in metrics.catalogue().values()]
    if what == "columns":
        from genprobe.outcomes import columns, facts

        found = {column.name: column.about for column in columns.known().values()}
        return [*found.items(), *facts.COLUMNS.items()]
    if what == "data":
        from genprobe.datasets import pairs

        return [*statements.DATA.items(), *pairs.NAMED.items()]
    what = "reproduce" if what == "reproductions" else what
    names = registry.names(what)
    return [(n, (registry.module(what, n).__doc__ or "").strip().split("\n")[0]) for n in names]
