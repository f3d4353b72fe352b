"""Make a report: one self-contained HTML page about one or more runs.

`build` opens the runs (sources.py), makes tables of their scores (sections.py, tables.py) and
sentences (words.py), and fills page.html. The page loads nothing from the network; its
Content-Security-Policy forbids that, and allows the inlined scripts and styles by their hashes. No
text of a model or of a file is ever used as markup, style or script.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from genprobe.errors import Caution, InputError
from genprobe.files import disk
from genprobe.tasks.pipeline import Note, quiet

if TYPE_CHECKING:
    from markupsafe import Markup

    from genprobe.records import Score
    from genprobe.report.sections import Section
    from genprobe.report.sources import Source
    from genprobe.resources.page import Words

HERE = Path(__file__).parent


def build(
    folders: Sequence[str | Path],
    out: str | Path,
    *,
    redact: bool | str = False,
    reviewed: str | Path | None = None,
    page_lang: str = "en",
    note: Note = quiet,
) -> Path:
    """Write the report of run folders to the file `out`, which is replaced as a whole.

    The other arguments, and what is raised, as in `render`. Returns `out` as a path. Raises
    InputError also if it is not the name of a page, or cannot be written.
    """
    out = Path(out)
    check(out)
    page = render(folders, redact=redact, reviewed=reviewed, page_lang=page_lang, note=note)
    disk.replace(out, [page], encoding="utf-8")
    return out


def check(out: Path) -> None:
    """Raise InputError if a page cannot be written under this name."""
    if out.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{out}: a report is a web page; give a name that ends in .html")
    if out.is_dir():
        raise InputError(f"{out}: is a folder; give the name of a file")
    if not out.parent.is_dir():
        raise InputError(f"{out}: the folder {out.parent} does not exist; make it first")


def render(
    folders: Sequence[str | Path],
    *,
    redact: bool | str = False,
    reviewed: str | Path | None = None,
    paper: str | Path | None = None,
    page_lang: str = "en",
    note: Note = quiet,
) -> str:
    """Return the page as text.

    redact: leave out statements, prompts, replies and evidence, and name items and bias types by a
    hash; a text is its salt, which is else drawn for this page (`sources.salt`). reviewed: a table
    made by `review import`; the rates that it corrects come first, both corrected and as measured.
    paper: a folder into which methods and wide tables for a paper are written (methods.py).
    page_lang: the language of the page's own words, a file of prompts/page. note: called with
    cautions about the figures, and with reviews that are not used. Raises InputError or RunError
    if a folder is not a run or cannot be read.
    """
    from genprobe._version import __version__
    from genprobe.report import first, local, methods, sources, speech, tables, words
    from genprobe.report.corrected import of_review
    from genprobe.report.sections import Sections
    from genprobe.resources import page as own
    from genprobe.resources.packs import language_name, native

    if not folders:
        raise InputError("a report needs a run folder")
    said, english = own.load(page_lang), own.load(own.ENGLISH)
    salt = sources.salt(redact)
    runs = sources.load(folders, salt)
    sections = Sections(runs, bool(redact), None if reviewed is None else Path(reviewed))
    main, behind = sections.made()
    whole: list[Score] = []
    each: list[Score] = []
    if reviewed is not None:
        each = of_review(runs, Path(reviewed))
        whole = of_review(runs, Path(reviewed), whole=True)
        main = [sections.corrected(each), *main]
    why = [line for lines in sections.why.values() for line in lines]
    finding = first.finding(runs, sections.differences, sections.splits, whole, why)
    scores = _scores([*main, *behind])
    cautions = words.cautions(runs)
    facts = [words.fact(run) for run in runs]
    told = local.finding(said, runs, sections, whole, finding) if said.translated else finding
    replies, styles, scripts = _inlined(runs, salt, said)
    if said.translated:
        styles.append(speech.style(said))
    page = (
        speech.environment(said)
        .get_template("page.html")
        .render(
            t=said,
            english=english,
            finding=told,
            native=native,
            name_of=language_name,
            direction=sources.direction,
            as_asked=words.as_asked(runs),
            shown=first.SHOWN,
            picture=first.picture(runs, finding, sections.series, [*whole, *each]),
            quotes=[] if redact else first.quotes(runs, finding),
            facts=facts,
            told=words.told(facts),
            languages=sources.languages(runs),
            questions=words.questions(runs),
            notes=words.notes(runs),
            unchecked=words.unchecked(runs, native if said.translated else language_name),
            cautions=cautions,
            main=main,
            behind=behind,
            series=sections.series,
            reasons=words.reasons_of(scores),
            losses=[(run.title, run.status, run.failures) for run in runs],
            signatures=words.signatures(scores, bool(redact)),
            paper=methods.markdown(
                methods.paragraph(runs, told.notes, said),
                methods.main_scores(runs),
                said.phrase("Signature") or "",
            ),
            figures=[tables.Figure(score) for score in scores],
            definitions=words.definitions([s.metric for s in scores if s.metric not in ("a", "b")]),
            redact=bool(redact),
            replies=replies,
            version=__version__,
            styles=styles,
            scripts=scripts,
            policy=policy(styles, scripts),
        )
    )
    _warn(runs, cautions, reviewed is not None, note)
    if paper is not None:
        for path in methods.write(Path(paper), runs, finding.notes):
            note(f"text: {path}")
    # Models sometimes produce lone surrogates, which UTF-8 cannot encode.
    return page.lstrip().encode("utf-8", "replace").decode("utf-8")


def _warn(
    runs: Sequence[Source], cautions: Mapping[str, Sequence[str]], reviewed: bool, note: Note
) -> None:
    """Call `note` with the cautions of the page, and with reviews that the page does not use."""
    for name, lines in cautions.items():
        for line in lines:
            note(Caution(f"{name}: {line}"))
    cure = "--reviewed FILE shows the corrected rates"
    for run in () if reviewed else runs:
        if any(name.startswith("reviewed-") for name in run.run.judges()):
            note(Caution(f"{run.title}: people have reviewed replies; {cure}"))


def policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return the Content-Security-Policy of a page with only these inlined styles and scripts."""
    return (
        f"default-src 'none'; style-src {_hashes(styles)}; script-src {_hashes(scripts)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hashes(texts: Sequence[str]) -> str:
    digests = (hashlib.sha256(text.encode("utf-8")).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(d).decode('ascii')}'" for d in digests)


def _scores(sections: Sequence[Section]) -> list[Score]:
    """Return all scores that the page shows, each once."""
    found: dict[tuple[object, ...], Score] = {}
    for section in sections:
        for table in section.tables:
            for score in table.scores:
                found.setdefault((score.metric, *score.by.items()), score)
    return list(found.values())


def _part(name: str) -> str:
    """Read a style or script of the page, without indentation and comments, to keep it small."""
    return re.sub(r"^ +(//.*\n)?", "", (HERE / name).read_text("utf-8"), flags=re.M)


def _inlined(runs: Sequence[Source], salt: str, said: Words) -> tuple[Markup, list[str], list[str]]:
    """Return the browser of the replies, and all styles and scripts of the page."""
    from genprobe.report import replies

    styles = [_part("style.css")]
    scripts = [_part("page.js")]
    names = [run.name for run in runs]
    asked = dict.fromkeys(run.asked for run in runs if run.kind not in ("pairs", "choices"))
    read = [run for run in runs if run.task.rows.rows is None]
    planned = sum(len(run.outcomes) for run in read)
    every = math.ceil(planned / replies.MOST)
    section = replies.section(
        {
            run.name if names.count(run.name) == 1 else run.title: run.with_texts(every=every)
            for run in read
        },
        salt or False,
        ", ".join(asked).capitalize(),
        planned,
        said,
    )
    if section:
        styles.append(_part("replies.css"))
        scripts.append(_part("replies.js"))
    return section, styles, scripts
