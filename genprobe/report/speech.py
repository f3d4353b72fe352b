"""Fill the page's templates in a language: its phrases, and words explained where they stand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from genprobe import metrics
from genprobe.resources.packs import native
from genprobe.resources.page import ENGLISH, Words, load

if TYPE_CHECKING:
    import jinja2

    from genprobe.report.tables import Label


def environment(words: Words) -> jinja2.Environment:
    """Return what fills the templates of the page in a language.

    Filters: `named` says a label of a table, `about` what a measure is. `said` puts an English
    phrase into the language; one without a translation is marked as English, and given a place, its
    terms are explained there. `plain` is the same for attributes, without marks. `name` says names
    that are joined by commas, and `as_is` one that is no phrase: what has no translation is marked
    as a name. `marked` does so with the names in a translated sentence, `bare` leaves them without.
    `range` puts an interval without words. `explained` is that of `explainer`.
    """
    import jinja2

    explained = explainer(words, load(ENGLISH))

    def plain(text: str) -> str:
        found = words.phrase(text)
        return text if found is None else _bare(words, found)

    def as_is(name: str) -> str:
        marked = words.translated and re.search("[A-Za-z]", name)
        return Markup('<bdi translate="no">{}</bdi>').format(name) if marked else name

    def name(text: str) -> Markup:
        every = ((one, words.phrase(one)) for one in text.split(", "))
        return Markup(", ").join(_marked(told) if told else as_is(one) for one, told in every)

    def said(text: str, place: str = "") -> str:
        if words.translated and (found := words.phrase(text)) is not None:
            return _marked(found)
        shown = explained(text, place) if place else text
        if not words.translated or not re.search("[a-z]", text):
            return shown
        return Markup("<span{}>{}</span>").format(Markup(words.mark), shown)

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    between = "…" if words.translated else " to "

    def named(label: Label) -> str:
        if words.translated and label.code:
            return native(label.code)
        return ", ".join(map(plain, label.text.split(", ")))

    def about(name: str, marked: bool = False) -> str:
        if told := words.measure(name):
            return told
        title = metrics.shown(name).title
        title = "" if title == name else title
        return Markup("<span{}>{}</span>").format(Markup(words.mark), title) if marked else title

    filters: dict[str, Any] = {
        "explained": explained,
        "said": said,
        "plain": plain,
        "range": lambda text: text.replace(" to ", between),
        "bare": lambda text: _bare(words, text),
        "marked": _marked,
        "as_is": as_is,
        "name": name,
        "named": named,
        "about": about,
    }
    made.filters |= filters
    return made


_SHORT = 20  # letters of a name that fits in a line of a title on a phone
_BUTTON = re.compile(  # with a sign before it, or after it
    r"[^\w\s<>&;]+<button [^>]*>[^<]*</button>[^\w\s<&]*|<button [^>]*>[^<]*</button>[^\w\s<&]+"
)


def _marked(text: str) -> Markup:
    """Write a text with the names in it, which `Words` isolates, marked as names."""

    def name(found: re.Match[str]) -> str:
        if not re.search("[A-Za-z]", found[1]):
            return found[0]
        # A line that runs from the right would break a name in halves that change places.
        short = ' class="kept"' if len(found[1]) <= _SHORT else ""
        return f'<bdi translate="no"{short}>{found[1]}</bdi>'

    return Markup(re.sub("\u2068([^\u2068\u2069]*)\u2069", name, str(escape(text))))


def _bare(words: Words, text: str) -> str:
    """Leave out the signs that isolate names, where all runs from left to right."""
    return text if words.direction == "rtl" else re.sub("[\u2068\u2069]", "", text)


def style(words: Words) -> str:
    """Return the style of a language: the heads of the cards of all figures, on a phone.

    What is drawn on an axis runs from left to right in every language.
    """
    heads = {3: "Value", 4: "95 % interval", 6: "Left out", 7: "Bounds"}
    rules = (
        f'.all td:nth-child({at})::before {{ content: "{told} "; }}'
        for at, head in heads.items()
        if (told := words.phrase(head))
    )
    cards = f"@media (max-width: 40rem) {{ {' '.join(rules)} }}"
    return f".figures :is(td, .measure) {{ direction: ltr; }} {cards}"


def explainer(glossary: Words, forms: Words) -> Callable[..., Markup]:
    """Return a filter that makes the terms of a text into buttons that explain them.

    glossary: in the reader's language. forms: English, with the forms of the terms. The filter
    takes a text and the name of a place, and explains a term once in each place.
    """
    known = {term.key for term in glossary.terms}
    pattern = re.compile(
        "|".join(
            rf"(?P<{term.key}>\b(?:{'|'.join(term.forms)})(?!\w))"
            for term in forms.terms
            if term.forms and term.key in known
        )
    )
    seen: set[tuple[str, str]] = set()

    def explained(text: str, place: str) -> Markup:
        def button(found: re.Match[str]) -> str:
            key = str(found.lastgroup)
            if (place, key) in seen:
                return found[0]
            seen.add((place, key))
            return f'<button type="button" class="term" popovertarget="w-{key}">{found[0]}</button>'

        made = pattern.sub(button, str(_marked(text)))
        # A line may be broken at a button, also where a comma or bracket is next to it.
        return Markup(_BUTTON.sub(r'<span class="kept">\g<0></span>', made))

    return explained
