"""Group near-duplicates and paraphrases of the same polarity (AfriStereo, section 3.3.2).

The similarity of two texts is the cosine of their vectors: character n-grams weighted by TF-IDF, or
the embeddings of a model that the user names. Pairs at or above the threshold are the edges of a
graph, and the texts of each connected component are clustered with the linkage that the user names
(SciPy). The result is the same as of clustering all texts at once, since no two components can
merge at that threshold, but it works for 100,000 texts. A component of more than 6,000 texts is
first divided by raising the threshold, in steps of 0.05, until its components are small enough; a
note says so. AfriStereo names the model and the threshold (0.55), not the linkage.

Two texts of which only one negates never share a group, whatever their similarity or polarity (the
study keeps opposites apart, and writes antistereotypes with "not"): see `prompts/negation`. A word
of one text that is a word of the other with a negating affix (reliable, unreliable) counts as a
negation of it, and a second negation undoes the first.

Every row is returned with `group` (the id of its medoid), `group_size`, `medoid`, `similarity` (to
the medoid), `polarity`, `negated` (`yes`, `no`, or empty if the language has no list of negations)
and `contradicts`: groups about the same thing, of the opposite polarity or negated where this one
is not, that have a text at or above the threshold.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genprobe.curation import alike, tables
from genprobe.errors import InputError
from genprobe.files import Row, door
from genprobe.files.cells import cell_text
from genprobe.files.rows import Table
from genprobe.limits import parsed
from genprobe.linguistics import identify, negated
from genprobe.records import digest
from genprobe.resources import registry
from genprobe.resources.packs import language_code
from genprobe.text import HAN, many, nfc

if TYPE_CHECKING:
    import numpy as np

VERSION = "3"
LINKAGES = ("average", "complete", "single")
COLUMNS = ("group", "group_size", "medoid", "similarity", "polarity", "negated", "contradicts")
TEXT = ("attribute", "text", "sentence", "statement")
_MOST = 6_000  # most texts of a component; the cosines of all its pairs take 0.3 GB of memory
_STEP = 0.05  # by which the threshold is raised if a component is larger
_SHOWN = 3_000  # most texts, in whole groups, from which a silhouette is computed
_OPPOSITE = {"positive": "negative", "negative": "positive"}
_HAN = re.compile(f"[{HAN}]+")
_APART = 1e9  # distance of two opposed texts: no mean over a component falls below the threshold


@dataclass(frozen=True)
class Grouping:
    """The settings of a grouping.

    threshold: the least cosine, 0 to 1. linkage: the similarity of two groups is the mean
    (`average`), least (`complete`) or greatest (`single`) cosine of their texts. column: the column
    of texts. within: a column, such as `identity`; only rows with the same value in it can share a
    group. polarity: a column of polarities, or the name of a sentiment classifier. model: the
    folder or hub id of an encoder (transformers, sentence-transformers, model2vec); without one,
    character n-grams are used. lang: the language of all texts, for negations and for a classifier,
    if no column has it.
    """

    threshold: float = 0.55
    linkage: str = "average"
    column: str = ""
    within: str = ""
    polarity: str = ""
    model: str = ""
    lang: str = ""

    def step(self) -> str:
        """Return the step and its settings, for the history of a row."""
        parts = [f"{self.linkage}-{self.threshold:g}", self.vectors()]
        parts += [f"polarity:{self.polarity}"] if self.polarity else []
        parts += [f"within:{self.within}"] if self.within else []
        return f"group/{VERSION}|{'|'.join(parts)}"

    def vectors(self) -> str:
        """Return the name of the vectors by which texts are compared."""
        return f"model:{named(self.model)}" if self.model else "char-3-4-han-1-2-tfidf"


@dataclass(frozen=True)
class _Texts:
    """The different texts to be grouped; `of` is the index of the text of each of `rows`.

    signs: a sparse matrix, texts × words with a negating affix: -1 for a text that has the word, 1
    for one that has the word without the affix. lists: the lists of negations, with their hashes.
    """

    texts: list[str]
    cells: list[tuple[str, str, str]]  # (polarity, within, negated) of each text
    rows: list[int]  # indexes in the table of the rows with a text
    of: list[int]
    vectors: Any
    signs: Any
    lists: str


def run(
    source: str | Table, how: Grouping, note: Callable[[str], None] = lambda line: None
) -> tuple[list[Row], list[str]]:
    """Group the rows of a table.

    source: a table with a column of texts (`attribute`, `text`, `sentence`, or `how.column`).
    note: called with a message about each component that was divided, and about rows without a
    text, which are in no group. Returns the rows, in order, and their columns. Raises InputError
    for a table that cannot be grouped.
    """
    rows = tables.read(source)
    names, found = _prepare(source, rows, how, note)
    graph = alike.graph(found.vectors, how.threshold)
    _tell_parted(found, graph, note)
    groups = _cluster(found, graph, how, note)
    medoid, similarity = _medoids(found, groups)
    place = dict(zip(found.rows, found.of, strict=True))
    first = {text: at for at, text in reversed(place.items())}
    size: dict[int, int] = defaultdict(int)
    for text in found.of:
        size[groups[text]] += 1
    name = {
        group: _group_name(rows[first[text]][1], names[first[text]], found.texts[text])
        for group, text in medoid.items()
    }
    against = _contradictions(found, graph, groups)
    step = how.step() + found.lists
    if len(place) < len(rows):
        note(f"without a text, and in no group: {many(len(rows) - len(place), 'row')}")
    made = []
    for at, ((_, row), own) in enumerate(zip(rows, names, strict=True)):
        values: Row = dict.fromkeys(COLUMNS, "") | {"group_size": 0, "medoid": False}
        if at in place:
            text = place[at]
            group = groups[text]
            values = {
                "group": name[group],
                "group_size": size[group],
                "medoid": at == first[medoid[group]],
                "similarity": round(similarity[text], 4),
                "polarity": found.cells[text][0],
                "negated": found.cells[text][2],
                "contradicts": " ".join(sorted(name[other] for other in against.get(group, ()))),
            }
        if not how.polarity and "polarity" in row:
            values["polarity"] = row["polarity"]  # keep the table's own column
        made.append({"id": own} | row | values | {tables.HISTORY: tables.history([row], step)})
    return made, tables.columns(made, COLUMNS)


def _group_name(row: Row, name: str, text: str) -> str:
    """Name a group after its medoid: its id or, if a respondent wrote it, a hash of its text.

    The id of an answer holds the respondent's code, which must not stay in rows of others.
    """
    return f"group-{digest([text], 8)}" if cell_text(row.get("respondent")) else name


def sweep(
    source: str | Table,
    how: Grouping,
    thresholds: Sequence[float],
    truth: str = "",
    note: Callable[[str], None] = lambda line: None,
) -> list[Row]:
    """Describe the groups at each threshold.

    truth: a column with a known grouping, against which purity is measured. note: called with a
    message about the language of the texts, if no column gives it.
    Returns one row per threshold: the number of rows with a text, of groups, and of singletons
    (rows alone in their group); the size of the largest group; `silhouette` (Rousseeuw 1987, cosine
    distance, over at most 3,000 texts in whole groups; None if there are fewer than two groups, or
    each text is alone); `purity` (the share of rows whose truth is the most frequent one of their
    group; Manning et al. 2008, 16.3); and `purity_alone`, its value if every text is a group of its
    own, which is its upper bound.
    """
    rows = tables.read(source)
    _, found = _prepare(source, rows, how, note)
    labels = None
    if truth:
        tables.need(source, rows[0][1], (truth,), "the known grouping")
        labels = [cell_text(rows[at][1].get(truth)) for at in found.rows]
    widest = alike.graph(found.vectors, min(thresholds))
    made = []
    for threshold in thresholds:
        one = Grouping(**(how.__dict__ | {"threshold": threshold}))
        graph = widest.multiply(widest >= threshold).tocsr()
        groups = _cluster(found, graph, one)
        sizes: dict[int, int] = defaultdict(int)
        for text in found.of:
            sizes[groups[text]] += 1
        row: Row = {
            "threshold": threshold,
            "linkage": how.linkage,
            "vectors": how.vectors(),
            "rows": len(found.rows),
            "texts": len(found.texts),
            "groups": len(sizes),
            "singletons": sum(n == 1 for n in sizes.values()),
            "largest": max(sizes.values()),
            "silhouette": _silhouette(found, groups),
        }
        if labels is not None:
            row["purity"] = _purity([groups[text] for text in found.of], labels)
            row["purity_alone"] = _purity(found.of, labels)
        made.append(row)
    return made


def _prepare(
    source: str | Table,
    rows: Sequence[tuple[int, Row]],
    how: Grouping,
    note: Callable[[str], None],
) -> tuple[list[str], _Texts]:
    if not 0 < how.threshold <= 1:
        raise InputError(f"the threshold must be above 0 and at most 1, not {how.threshold:g}")
    if how.linkage not in LINKAGES:
        raise InputError(f"unknown linkage {how.linkage!r}; known: {', '.join(LINKAGES)}")
    there = list(dict.fromkeys(name for _, row in rows for name in row))
    wanted = (how.column,) if how.column else TEXT
    column = tables.need(source, there, wanted, "the texts to group; name another with --column")
    names = tables.name_rows(rows, [column], source)
    texts = [_plain(row.get(column)) for _, row in rows]
    if how.within:
        tables.need(source, there, (how.within,), "the groups to stay within")
    polarity = _polarities(source, rows, texts, there, how)
    within = [_plain(row.get(how.within)) for _, row in rows] if how.within else [""] * len(rows)
    langs = _languages(rows, texts, there, how, note)
    lists = _lists(langs, note)
    negation = [_negation(text, lists[lang]) for text, lang in zip(texts, langs, strict=True)]
    keys = [key for key in zip(texts, polarity, within, negation, langs, strict=True) if key[0]]
    if not keys:
        raise InputError(f"{source}: no row has a text in the column {column!r}")
    unique = {key: at for at, key in enumerate(dict.fromkeys(keys))}
    distinct = list(unique)
    plain = [key[0] for key in distinct]
    vectors = _embedded(how.model, plain) if how.model else _ngrams(plain)
    used = [f"{lang}@{words.hash}" for lang, words in sorted(lists.items()) if words]
    return names, _Texts(
        texts=plain,
        cells=[key[1:4] for key in distinct],
        rows=[at for at, text in enumerate(texts) if text],
        of=[unique[key] for key in keys],
        vectors=vectors,
        signs=_signs(plain, [lists[key[4]] for key in distinct]),
        lists=f"|negation:{'+'.join(used)}" if used else "",
    )


def _plain(value: object) -> str:
    return " ".join(nfc(cell_text(value)).casefold().split())


def _polarities(
    source: str | Table,
    rows: Sequence[tuple[int, Row]],
    texts: Sequence[str],
    there: Sequence[str],
    how: Grouping,
) -> list[str]:
    """Find the polarity of each row: from a column, by a classifier, or none."""
    if not how.polarity:
        return [""] * len(rows)
    if how.polarity in there:
        return [_plain(row.get(how.polarity)) for _, row in rows]
    from genprobe.judges.classifiers import models

    judge = models.open(how.polarity)
    column = tables.column(there, ("lang", "language"))
    langs = [cell_text(row.get(column)) if column else how.lang for _, row in rows]
    if not all(langs):
        raise InputError(f"{source}: no column 'lang'; name the language of the texts with --lang")
    found = [""] * len(rows)
    for lang in dict.fromkeys(langs):
        at = [n for n, one in enumerate(langs) if one == lang]
        labels = judge.predict([texts[n] for n in at], language_code(lang))
        for n, prediction in zip(at, labels, strict=True):
            found[n] = prediction.label
    return found


def _languages(
    rows: Sequence[tuple[int, Row]],
    texts: Sequence[str],
    there: Sequence[str],
    how: Grouping,
    note: Callable[[str], None],
) -> list[str]:
    """Find the language of each row, for its negations; "" if nothing tells it."""
    column = tables.column(there, ("lang", "language"))
    langs = [cell_text(row.get(column)) if column else "" for _, row in rows]
    langs = [tables.language(lang or how.lang) if lang or how.lang else "" for lang in langs]
    if not all(langs):
        step = max(1, len(texts) // 200)  # single attributes are too short to tell
        told = identify.make()(". ".join(text for text in texts[::step] if text)).code
        told = told if told in registry.names(negated.FOLDER) else ""
        langs = [lang or told for lang in langs]
        if told:
            note(f"no language is given: negations are those of {told}, as the texts seem to be")
        else:
            note("no language is given: negations are not told; give a column 'lang', or --lang")
    return langs


def _lists(langs: Sequence[str], note: Callable[[str], None]) -> dict[str, negated.Words | None]:
    """Read the list of negations of each language; None where there is none."""
    found = {lang: negated.load(lang) if lang else None for lang in dict.fromkeys(langs)}
    if lacks := sorted(lang for lang, words in found.items() if lang and words is None):
        note(f"no list of negations (prompts/negation), so opposites may merge: {', '.join(lacks)}")
    return found


def _negation(text: str, words: negated.Words | None) -> str:
    """Return `yes` if a text negates, `no` if not, "" without a list of negations."""
    return "" if words is None else "yes" if words.negates(text) else "no"


def _signs(texts: Sequence[str], lists: Sequence[negated.Words | None]) -> Any:
    """Find the words that are another word of these texts with a negating affix.

    Returns the matrix `signs` of `_Texts`. Words that negate by themselves (unable) are left out.
    """
    from scipy import sparse

    signs: dict[tuple[int, int], int] = {}
    columns = 0
    for words in {ws.hash: ws for ws in lists if ws}.values():
        having: dict[str, set[int]] = defaultdict(set)
        for at, (text, ws) in enumerate(zip(texts, lists, strict=True)):
            for word in words.plain(text) if ws and ws.hash == words.hash else ():
                having[word].add(at)
        begins: dict[str, set[str]] = defaultdict(set)
        for word in having:
            begins[word[: negated.LEAST]].add(word)
        for word, where in having.items():
            denied = {
                other
                for stem in words.denied(word)
                if len(stem) >= negated.LEAST
                for other in begins.get(stem[: negated.LEAST], ())
                if other != word and negated.alike(stem, other)
            }
            if affirming := set().union(*(having[other] for other in denied)) - where:
                signs |= dict.fromkeys(((at, columns) for at in where), -1)
                signs |= dict.fromkeys(((at, columns) for at in affirming), 1)
                columns += 1
    places = ([at for at, _ in signs], [column for _, column in signs])
    shape = (len(texts), max(columns, 1))
    return sparse.csr_matrix((list(signs.values()), places), shape=shape, dtype="int8")


def _opposed(found: _Texts, first: Any, second: Any) -> np.ndarray[Any, Any]:
    """Tell of pairs of texts whether only one of the two negates.

    first, second: the indexes of their texts. Affixes count as negations of the word that they
    deny; the sum of all negations decides, so that "not unreliable" is not opposed to "reliable".
    """
    import numpy as np

    negates = np.array([said == "yes" for _, _, said in found.cells])
    opposed = negates[first] != negates[second]
    signed = np.diff(found.signs.indptr) > 0
    at = np.flatnonzero(signed[first] & signed[second])
    for start in range(0, len(at), 65_536):
        some = at[start : start + 65_536]
        product = found.signs[first[some]].multiply(found.signs[second[some]])
        opposed[some] ^= np.asarray((product < 0).sum(axis=1)).ravel() % 2 == 1
    return opposed


def _tell_parted(found: _Texts, graph: Any, note: Callable[[str], None]) -> None:
    """Say how many pairs of similar texts are kept apart because only one of them negates."""
    pairs = graph.tocoo()
    code = _codes(found)
    half = (pairs.row < pairs.col) & (code[pairs.row] == code[pairs.col])
    parted = int(_opposed(found, pairs.row[half], pairs.col[half]).sum())
    if parted:
        note(f"similar texts kept apart, as only one of the two negates: {many(parted, 'pair')}")


def _codes(found: _Texts) -> np.ndarray[Any, Any]:
    """Give texts that may share a group the same number: of one polarity and `within`."""
    import numpy as np

    numbers: dict[tuple[str, str], int] = {}
    return np.array([numbers.setdefault(cell[:2], len(numbers)) for cell in found.cells])


# --- vectors, rows of length one


def _ngrams(texts: Sequence[str]) -> Any:
    """Compute TF-IDF vectors of the character 3- and 4-grams within words (scikit-learn).

    Chinese writes a word in one or two characters, so there it is single characters and pairs.
    """
    import numpy as np

    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError:
        raise InputError("grouping needs scikit-learn; install genprobe[group]") from None
    kind: dict[str, Any] = {"sublinear_tf": True, "dtype": np.float32}
    make = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), **kind)
    if any(map(_HAN.search, texts)):
        words = make.build_analyzer()
        make = TfidfVectorizer(analyzer=lambda text: _with_han(text, words), **kind)
    try:
        return make.fit_transform(texts)
    except ValueError:
        raise InputError("no text holds a letter or sign to compare") from None


def _with_han(text: str, words: Callable[[str], list[str]]) -> list[str]:
    """List the n-grams of a text: single ideographs and pairs, and those of its other words."""
    found = [run for part in _HAN.findall(text) for run in (*part, *map("".join, pairwise(part)))]
    rest = _HAN.sub(" ", text)
    return found + words(rest) if rest.strip() else found


def nearest(text: str, others: Sequence[str]) -> float:
    """Compute the greatest cosine of a text with other texts, on TF-IDF of character n-grams."""
    vectors = _ngrams([_plain(one) for one in (text, *others)])
    return float((vectors[1:] @ vectors[0].T).max())


def _embedded(model: str, texts: Sequence[str]) -> Any:
    """Embed texts with a model from a folder or the hub; each vector has length one.

    model2vec loads its own models; sentence-transformers loads models whose pooling is not the mean
    over tokens; transformers loads every other encoder, and the mean over tokens is taken.
    """
    import numpy as np

    try:
        folder = folder_of(model)
        if _static(folder):
            from model2vec import StaticModel

            found = StaticModel.from_pretrained(folder).encode(list(texts))
        elif (folder / "modules.json").is_file() and not _mean_pooled(folder):
            _no_code(folder)
            from sentence_transformers import SentenceTransformer

            net = SentenceTransformer(
                str(folder), device="cpu", local_files_only=True, trust_remote_code=False
            )
            found = net.encode(list(texts), batch_size=64, show_progress_bar=False)
        else:
            found = _mean_of_tokens(str(folder), texts)
    except ImportError as error:
        raise InputError(f"{model}: needs {error.name}; install it with pip") from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{model}: no embeddings can be made ({reason})") from None
    vectors = np.asarray(found, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-12)


def folder_of(model: str) -> Path:
    """Find the folder of a model; a model on the hub is downloaded unless it is in the cache.

    model: a folder, a name on the hub, or a name with its commit (`NAME@COMMIT`). The folder of a
    model of the hub is named after its commit. No weights but safetensors are fetched.
    """
    if Path(model).is_dir():
        return Path(model)
    name, _, commit = model.partition("@")
    from huggingface_hub import snapshot_download

    kinds = ["*.json", "*.txt", "*.model", "*.safetensors"]
    return Path(snapshot_download(name, revision=commit or None, allow_patterns=kinds))


def named(model: str) -> str:
    """Name a model for a history or signature, with its commit if it is of the hub."""
    folder = folder_of(model)
    commit = "" if Path(model).is_dir() else f"@{folder.name[:12]}"
    return Path(model.partition("@")[0] if commit else model).name + commit


def _says(path: Path, word: str) -> bool:
    return path.is_file() and word in door.content(path).decode("utf-8", "replace")


def _static(folder: Path) -> bool:
    """Tell whether model2vec wrote a folder; its versions name it in different files."""
    return _says(folder / "config.json", "model2vec") or _says(
        folder / "modules.json", "StaticEmbedding"
    )


def _mean_pooled(folder: Path) -> bool:
    """Tell whether the mean over tokens is all that sentence-transformers would compute."""
    if _says(folder / "modules.json", "Dense"):
        return False
    path = folder / "1_Pooling" / "config.json"
    said = parsed(door.content(path)) if path.is_file() else {}
    older = {name for name, on in said.items() if name.startswith("pooling_mode_") and on is True}
    return said.get("pooling_mode") == "mean" or older == {"pooling_mode_mean_tokens"}


def _no_code(folder: Path) -> None:
    """Raise ValueError if a folder names classes of its own: version 5 imports them unasked."""
    for module in parsed(door.content(folder / "modules.json")):
        if not str(module["type"]).startswith("sentence_transformers."):
            raise ValueError(f"modules.json names code of its own: {module['type']}")


def _mean_of_tokens(model: str, texts: Sequence[str]) -> Any:
    """Compute the mean of the last layer over the tokens of each text, without padding."""
    import numpy as np
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
    net = AutoModel.from_pretrained(model, dtype=torch.float32, trust_remote_code=False).eval()
    longest = min(getattr(net.config, "max_position_embeddings", 512) or 512, 512)
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    found: list[Any] = [None] * len(texts)
    for start in range(0, len(order), 64):
        chosen = order[start : start + 64]
        rows = tokenizer(
            [texts[at] for at in chosen],
            padding=True,
            truncation=True,
            max_length=longest,
            return_tensors="pt",
        )
        rows.pop("token_type_ids", None)
        with torch.no_grad():
            states = net(**rows).last_hidden_state
        mask = rows["attention_mask"].unsqueeze(-1).float()
        means = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
        for at, vector in zip(chosen, means.numpy(), strict=True):
            found[at] = vector
    return np.stack(found)


# --- the groups


def _cosines(vectors: Any, rows: Sequence[int]) -> np.ndarray[Any, Any]:
    """Compute the cosines of some texts with each other, as a dense matrix."""
    import numpy as np
    from scipy import sparse

    part = vectors[list(rows)]
    found = (part @ part.T).toarray() if sparse.issparse(part) else part @ part.T
    return np.clip(np.asarray(found, dtype=np.float64), -1.0, 1.0)


def _allowed(found: _Texts, graph: Any) -> Any:
    """Keep the pairs that may share a group: of one polarity and `within`, and not opposed."""
    pairs = graph.tocoo()
    code = _codes(found)
    keep = code[pairs.row] == code[pairs.col]
    keep &= ~_opposed(found, pairs.row, pairs.col)
    return type(pairs)((pairs.data[keep], (pairs.row[keep], pairs.col[keep])), pairs.shape).tocsr()


def _cluster(
    found: _Texts, graph: Any, how: Grouping, note: Callable[[str], None] = lambda line: None
) -> list[int]:
    """Find the group of each text."""
    import numpy as np
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial.distance import squareform

    pairs = _allowed(found, graph)
    if how.linkage == "single":
        return _linked(found, pairs, connected_components(pairs, directed=False)[1])
    groups = [-1] * len(found.texts)
    free = 0
    for texts in _parts(pairs, np.arange(len(groups)), how.threshold, note):
        if len(texts) < 3:  # one text, or two connected texts, are a group
            for text in texts:
                groups[text] = free
            free += 1
            continue
        distance = 1 - _cosines(found.vectors, texts)
        np.fill_diagonal(distance, 0)
        distance[_apart(found, texts)] = _APART
        tree = linkage(squareform(np.maximum(distance, 0), checks=False), how.linkage)
        own = fcluster(tree, 1 - how.threshold + 1e-9, "distance")
        for text, label in zip(texts, own, strict=True):
            groups[text] = free + int(label) - 1
        free += int(own.max())
    return groups


def _apart(found: _Texts, texts: Sequence[int]) -> np.ndarray[Any, Any]:
    """Tell of every two of some texts whether they are opposed."""
    import numpy as np

    at = np.asarray(texts)
    negates = np.array([found.cells[text][2] == "yes" for text in texts])
    opposed = negates[:, None] != negates[None, :]
    signed = np.flatnonzero(np.diff(found.signs.indptr)[at] > 0)
    if len(signed):
        part = found.signs[at[signed]].astype(float)
        odds = ((abs(part) @ abs(part).T - part @ part.T) / 2).toarray()
        opposed[np.ix_(signed, signed)] ^= odds % 2 == 1
    return opposed


def _linked(found: _Texts, pairs: Any, label: Any) -> list[int]:
    """Divide connected texts that are opposed: the most similar are joined first (Kruskal)."""
    import numpy as np

    groups = [int(part) for part in label]
    free = max(groups) + 1
    order = np.argsort(label, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
        if len(members) < 3 or not (apart := _apart(found, members.tolist())).any():
            continue
        part = pairs[members][:, members].tocoo()
        own = np.arange(len(members))
        for at in np.argsort(-part.data, kind="stable"):
            a, b = own == own[part.row[at]], own == own[part.col[at]]
            if not apart[np.ix_(a, b)].any():
                own[b] = own[part.row[at]]
        for at, text in enumerate(members.tolist()):
            groups[text] = free + int(own[at])
        free += len(members)
    return groups


def _parts(
    pairs: Any, texts: Any, threshold: float, note: Callable[[str], None]
) -> Iterator[list[int]]:
    """Find the connected components of some texts; divide large ones at higher thresholds."""
    import numpy as np
    from scipy.sparse.csgraph import connected_components

    part = pairs[texts][:, texts]
    part = part.multiply(part >= threshold).tocsr()
    _, label = connected_components(part, directed=False)
    order = np.argsort(label, kind="stable")
    for members in np.split(texts[order], np.flatnonzero(np.diff(label[order])) + 1):
        if len(members) <= _MOST:
            yield members.tolist()
        elif threshold >= 1:
            raise InputError(
                f"{len(members):,} different texts are the same to {_MOST:,} others and more; "
                "group within a column, or take --linkage single"
            )
        else:
            higher = min(1.0, round(threshold + _STEP, 6))
            note(f"{len(members):,} texts are connected at {threshold:g}: divided at {higher:g}")
            yield from _parts(pairs, members, higher, note)


def _medoids(found: _Texts, groups: Sequence[int]) -> tuple[dict[int, int], list[float]]:
    """Find the medoid of each group, and the cosine of each text to its medoid.

    The medoid is the text with the greatest sum of cosines to the rows of its group.
    """
    import numpy as np
    from scipy import sparse

    group = np.asarray(groups)
    first = {label: text for text, label in reversed(list(enumerate(groups)))}
    similarity = np.ones(len(group))
    texts = np.flatnonzero(np.bincount(group)[group] > 1)  # the others are their own medoids
    if not len(texts):
        return first, similarity.tolist()
    label = np.unique(group[texts], return_inverse=True)[1]
    part, weight = found.vectors[texts], np.bincount(found.of).astype(float)[texts]
    # The sum of a text's cosines is its dot product with the sum of vectors, which needs no pairs.
    place = (label, np.arange(len(texts)))
    sums = sparse.csr_matrix((weight, place)) @ part
    # Rounded to six digits, so that the first in the table wins a tie, not a rounding error.
    total = _dots(part, sums, label).round(6)
    order = np.lexsort((texts, -total, label))
    best = order[np.flatnonzero(np.diff(label[order], prepend=-1))]
    similarity[texts] = np.minimum(_dots(part, part, best[label]), 1.0)
    nearest = {groups[text]: text for text in texts[best].tolist()}
    return first | nearest, similarity.tolist()


def _dots(vectors: Any, others: Any, which: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Compute the dot product of each vector with `others[which]`, in 64 bits."""
    import numpy as np
    from scipy import sparse

    parts = []
    for at in range(0, len(which), 8_192):
        part, other = vectors[at : at + 8_192].astype(float), others[which[at : at + 8_192]]
        product = part.multiply(other) if sparse.issparse(part) else part * other
        parts.append(np.asarray(product.sum(axis=1)).ravel())
    return np.concatenate(parts)


def _contradictions(found: _Texts, graph: Any, groups: Sequence[int]) -> dict[int, set[int]]:
    """Find groups that contradict each other: same `within` value, and a pair in the graph.

    They are of opposite polarity, or only one of them is negated.
    """
    import numpy as np

    against: dict[int, set[int]] = defaultdict(set)
    signs = {pole: sign for sign, pole in zip((1, -1), _OPPOSITE, strict=True)}
    pole = np.array([signs.get(pole, 0) for pole, _, _ in found.cells])
    codes = {within: at for at, within in enumerate(dict.fromkeys(w for _, w, _ in found.cells))}
    within = np.array([codes[within] for _, within, _ in found.cells])
    pairs = graph.tocoo()
    opposed = pole[pairs.row] * pole[pairs.col] < 0
    opposed |= _opposed(found, pairs.row, pairs.col)
    opposed &= within[pairs.row] == within[pairs.col]
    for a, b in zip(pairs.row[opposed].tolist(), pairs.col[opposed].tolist(), strict=True):
        against[groups[a]].add(groups[b])
    return against


# --- quality of a grouping


def _silhouette(found: _Texts, groups: Sequence[int]) -> float | None:
    import numpy as np

    members: dict[int, list[int]] = defaultdict(list)
    for text, group in enumerate(groups):
        members[group].append(text)
    chosen: list[int] = []
    for texts in members.values():
        if len(chosen) + len(texts) <= _SHOWN:
            chosen += texts
    labels = [groups[text] for text in chosen]
    if not 1 < len(set(labels)) < len(labels):
        return None
    from sklearn.metrics import silhouette_score

    distance = np.maximum(1 - _cosines(found.vectors, chosen), 0)
    np.fill_diagonal(distance, 0)
    return round(float(silhouette_score(distance, labels, metric="precomputed")), 4)


def _purity(groups: Sequence[int], labels: Sequence[str]) -> float:
    counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for group, label in zip(groups, labels, strict=True):
        counts[group][label] += 1
    return round(sum(max(one.values()) for one in counts.values()) / len(labels), 4)
