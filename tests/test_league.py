"""The league table of languages: partly pooled shares, and which is named the highest."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from genprobe import api, metrics
from genprobe.analysis import league
from genprobe.analysis.score import score
from genprobe.errors import InputError
from genprobe.report.sections import Sections
from genprobe.report.sources import load

# Efron & Morris 1975, JASA 70:311, table 1: 18 batters' hits in their first 45 times at bat, their
# averages in the rest of the season, and the James-Stein estimates.
HITS = np.array([18, 17, 16, 15, 14, 14, 13, 12, 11, 11, 10, 10, 10, 10, 10, 9, 8, 7])
REST = np.array(
    [346, 298, 276, 222, 273, 270, 263, 210, 269, 230, 264, 256, 303, 264, 226, 286, 316, 200]
)
STEIN = np.array(
    [290, 286, 281, 277, 273, 273, 268, 264, 259, 259, 254, 254, 254, 254, 254, 249, 244, 239]
)


def test_eighteen_batters_are_shrunk_as_published():
    drawn = league.draw(HITS, np.full(18, 45))
    pooled = drawn.mean(0)
    assert pooled == pytest.approx(STEIN / 1000, abs=0.02)
    raw, shrunk = (float(np.square(x - REST / 1000).sum()) for x in (HITS / 45, pooled))
    assert raw / shrunk > 2.5  # published: 3.5
    assert np.bincount(drawn.argmax(1)).max() / len(drawn) < 0.5  # nobody is named


def test_a_share_unlike_all_others_is_hardly_pooled():
    """Of 17 with 20 of 100 and one with 90 of 100: nearly the posterior of that one alone."""
    hits, sizes = np.array([20] * 17 + [90]), np.full(18, 100)
    drawn = league.draw(hits, sizes)
    alone = beta(91, 11)
    assert drawn[:, 17].mean() == pytest.approx(alone.mean(), abs=0.02)
    assert (drawn.argmax(1) == 17).mean() > league.NAMED
    assert np.ptp(drawn[:, :17].mean(0)) < 0.01


def test_replies_that_are_all_alike_count_once():
    rng = np.random.default_rng(1)
    hits = [rng.binomial(1, 0.4, 40) * 6.0 for _ in range(8)]
    sizes = [np.full(40, 6.0) for _ in range(8)]
    assert league.design_effect(hits, sizes) == pytest.approx(6, rel=0.05)
    apart = [rng.binomial(6, 0.4, 400).astype(float) for _ in range(8)]
    assert league.design_effect(apart, [np.full(400, 6.0)] * 8) == pytest.approx(1, abs=0.1)
    assert league.design_effect([np.zeros(5)] * 3, [np.ones(5)] * 3) == 1


def test_of_many_equal_languages_none_is_named():
    rng = np.random.default_rng(2)
    named = 0
    for _ in range(20):
        drawn = league.draw(rng.binomial(50, 0.3, 18), np.full(18, 50), 1_000)
        named += (np.bincount(drawn.argmax(1)) / 1_000).max() > league.NAMED
    assert named <= 1


@pytest.fixture
def answers(tmp_path):
    """Twenty statements in six languages; kk says yes to nearly all, the others to a quarter."""
    rows = [
        {"lang": lang, "probe": "agreement", "measures": "endorsed", "statement": f"s{at}",
         "answer": "yes" if at % 4 == 0 or (lang == "kk" and at < 18) else "no",
         "kind": "answer", "left_out": "", "model": "m"}
        for lang in ("de", "en", "fr", "kk", "pl", "ru") for at in range(20)
    ]  # fmt: skip
    table = tmp_path / "answers.csv"
    pd.DataFrame(rows).assign(response=lambda t: t["answer"]).to_csv(table, index=False)
    return table


def test_the_league_table_names_a_language_only_if_it_is_shown(answers):
    lines = []
    found = score(answers, metrics="yes", by="lang", league="lang", note=lines.append)
    rows = [s for s in found if s.by.get("of") == "yes"]
    raw = {s.by["lang"]: s for s in found if s.metric == "yes"}
    shares = {s.by["lang"]: s for s in rows if s.metric == "share"}
    pooled = [s for s in rows if s.metric == "pooled-share"]
    for lang, one in shares.items():
        assert (one.value, one.low, one.high, one.n) == (
            raw[lang].value,
            raw[lang].low,
            raw[lang].high,
            raw[lang].n,
        )
    assert pooled[0].by["lang"] == "kk"
    assert shares["en"].value < pooled[1].value < pooled[0].value < shares["kk"].value
    assert all(s.low < s.value < s.high for s in pooled)
    chances = [s.value for s in rows if s.metric == "chance-highest"]
    assert sum(chances) == pytest.approx(1) and chances[0] > 0.95
    assert any("yes by lang: the highest is kk" in str(line) for line in lines)
    assert "pooled95" in rows[0].signature and metrics.shown("pooled-share").note
    alike = pd.read_csv(answers).assign(answer=lambda t: np.where(t.index % 4, "no", "yes"))
    alike.to_csv(answers, index=False)
    lines.clear()
    score(answers, metrics="yes", by="lang", league="lang", note=lines.append)
    assert any("none of 6 is shown to be the highest" in str(line) for line in lines)


def test_no_language_is_named_where_unclear_replies_may_account_for_it(answers):
    hedged, at = pd.read_csv(answers), np.arange(120) % 20
    unclear = ((hedged["lang"] == "de") & (at >= 4)) | ((hedged["lang"] == "kk") & (at % 6 == 1))
    hedged.loc[unclear, ["answer", "kind"]] = ["ambiguous", "hedge"]
    hedged["says"] = hedged["answer"].map({"yes": True, "no": False})
    hedged.to_csv(answers, index=False)
    lines = []
    score(answers, metrics="endorsed", by="lang", league="lang", note=lines.append)
    assert any("kk" in str(one) and "unclear ones may account" in str(one) for one in lines), lines


def test_models_that_are_counted_together_are_told(answers):
    """Where columns are asked for, and the model is none of them."""
    both = pd.read_csv(answers).assign(model=lambda t: np.where(t.index % 2, "m", "n"))
    both.to_csv(answers, index=False)
    lines: list[str] = []
    score(answers, metrics="yes", by="lang", note=lambda line: lines.append(str(line)))
    assert any("2 models are counted together; --by model,lang" in line for line in lines)
    lines.clear()
    score(answers, metrics="yes", note=lambda line: lines.append(str(line)))
    assert not lines


def test_a_league_needs_languages_and_a_share(answers):
    with pytest.raises(InputError, match="fewer than 5 values of probe"):
        score(answers, metrics="yes", league="probe")
    with pytest.raises(InputError, match="unknown column 'planet'"):
        score(answers, metrics="yes", league="planet")


def test_the_page_has_the_league_table_in_the_words_of_score(tmp_path):
    """Six languages, of which Kazakh alone says yes; five would do, four would not."""
    langs = ["de", "en", "fr", "kk", "pl", "ru"]
    words = {"kk": "Иә.", "de": "Nein.", "en": "No.", "fr": "Non.", "pl": "Nie.", "ru": "Нет."}
    said = [
        {"lang": lang, "statement": f"s{at}", "probe": "agreement", "response": words[lang]}
        for lang in langs
        for at in range(12)
    ]
    texts = [{"id": f"s{at}", "lang": lang, "text": f"{at}."} for lang in langs for at in range(12)]
    for name, rows in (("said", said), ("texts", texts)):
        pd.DataFrame(rows).to_csv(tmp_path / f"{name}.csv", index=False)
    run = api.yesno(
        str(tmp_path / "said.csv"), engine="replay", data=str(tmp_path / "texts.csv"),
        langs=langs, probes=["agreement"], out=tmp_path / "run",
    ).folder  # fmt: skip
    lines = []
    found = score(run, metrics="endorsed", league="lang", note=lines.append)
    (section,) = (s for s in Sections(load([run]), False).made()[1] if s.id == "answers-league")
    (shown,) = section.tables
    (line,) = (str(one) for one in lines if "by lang:" in str(one))
    assert "the highest is kk" in line
    assert "endorsed by language" in shown.caption  # the line need not repeat it
    assert shown.notes == [f"said.csv: {line.rpartition(': ')[2]}"]
    key = lambda s: (s.metric, s.by["lang"])  # noqa: E731
    mine = {key(s): (s.value, s.low, s.high, s.n) for s in found if "of" in s.by}
    assert {key(s): (s.value, s.low, s.high, s.n) for s in shown.scores} == mine
    assert [column.metric for column in shown.columns] == [
        "share",
        "pooled-share",
        "chance-highest",
    ]
