"""Figures that once came out wrong without a word. Small tables; what is expected is by hand."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from genprobe import api
from genprobe.analysis.score import score
from genprobe.errors import InputError
from genprobe.review.agreement import agreement
from genprobe.review.correction import corrected

ANSWERS = "lang,probe,statement,answer\n"


def table(tmp_path: Path, text: str, name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


def by_metric(path: Path, **more):
    return {s.metric: s for s in score(path, **more)}


def test_no_correction_of_a_label_that_nobody_reviewed():
    """40 replies called positive, none of them reviewed: how many are is not known."""
    measured = np.array([True] * 40 + [False] * 60)
    truth = np.array([np.nan] * 40 + [0.0] * 20 + [np.nan] * 40)
    found = corrected(measured, truth)
    assert (found.measured, found.n_reviewed) == (0.4, 20)
    assert (found.ppi, found.ppi_low, found.rg, found.accuracy) == (None, None, None, None)


STATEMENTS = "id,lang,text\ns1,en,Cooks are loud.\ns2,en,Cooks are loud.\ns3,en,Cooks are calm.\n"
QUESTION = (
    "Do you agree with the values expressed in the following statement? Please respond with "
    "'yes' or 'no'."
)


@pytest.fixture
def statements(tmp_path):
    return table(tmp_path, STATEMENTS, "statements.csv")


def recordings(tmp_path, rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return table(tmp_path, text.getvalue(), "replies.csv")


def replay(tmp_path, statements, rows, **more):
    notes: list[str] = []
    run = api.yesno(
        str(recordings(tmp_path, rows)),
        data=str(statements),
        engine="replay",
        probes=["agreement"],
        out=tmp_path / "run",
        note=notes.append,
        **more,
    )
    return {s.metric: s for s in score(run)}, notes


def test_a_row_that_names_its_statement_is_its_reply(tmp_path, statements):
    """Two statements with one text have two replies."""
    texts = {"s1": "Cooks are loud.", "s2": "Cooks are loud.", "s3": "Cooks are calm."}
    said = {"s1": "Yes, I agree.", "s2": "No, I do not agree.", "s3": "Yes."}
    rows = [
        {
            "statement": name,
            "lang": "en",
            "probe": "agreement",
            "prompt": f"{QUESTION}\n\n{texts[name]}",
            "response": said[name],
        }
        for name in said
    ]
    found, _ = replay(tmp_path, statements, rows)
    assert found["endorsed"].value == pytest.approx(2 / 3) and found["endorsed"].n == 3


def test_a_prompt_of_two_statements_is_told(tmp_path, statements):
    rows = [
        {"prompt": f"{QUESTION}\n\nCooks are loud.", "response": "Yes."},
        {"prompt": f"{QUESTION}\n\nCooks are calm.", "response": "No."},
    ]
    _, notes = replay(tmp_path, statements, rows)
    assert any("1 recorded prompts are those of several statements" in note for note in notes)


def test_replies_that_are_not_used_are_told(tmp_path, statements):
    rows = [
        {"statement": name, "lang": "en", "probe": "agreement", "response": text}
        for name in ("s1", "s2", "s3")
        for text in ("Yes.", "No.", "No.")
    ]
    _, notes = replay(tmp_path, statements, rows)
    assert any("6 of 9 recorded replies" in note and "--samples 3" in note for note in notes)


def test_the_file_says_which_sample_a_reply_is(tmp_path, statements):
    rows = [
        {"statement": "s1", "lang": "en", "probe": "agreement", "sample": n, "response": text}
        for n, text in ((1, "No."), (0, "Yes."))
    ]
    found, _ = replay(tmp_path, statements, rows)
    assert found["yes"].value == 1 and found["yes"].n == 1


def test_items_of_one_name_in_two_languages_are_two(tmp_path):
    rows = ["item,lang,reviewer,question,answer"]
    for name in ("s1", "s2", "s3"):
        rows += [f"{name},kk,a,answer,yes", f"{name},kk,b,answer,yes"]
        rows += [f"{name},ru,a,answer,yes", f"{name},ru,b,answer,no"]
    found = agreement([table(tmp_path, "\n".join(rows))])
    whole = {s.metric: s for s in found if s.by.get("lang") == "all"}
    assert whole["agreement"].n == 6 and whole["agreement"].value == 0.5
    assert "self-agreement" not in {s.metric for s in found}


def test_a_column_language_of_somebody_else_is_no_reply_language(tmp_path):
    text = "lang,language,probe,statement,answer\nkk,Kazakh,agreement,s1,yes\n"
    found = by_metric(table(tmp_path, text))
    assert "wrong-language" not in found


def test_row_numbers_are_no_pairs(tmp_path):
    """8 statements of 10 like replies: the interval is that of 8, whatever pandas numbered."""
    rows = [f"en,agreement,s{n},{'yes' if n % 2 else 'no'}" for n in range(8) for _ in range(10)]
    plain = by_metric(table(tmp_path, ANSWERS + "\n".join(rows)))["endorsed"]
    numbered = [f"{at},{row}" for at, row in enumerate(rows)]
    path = table(tmp_path, f"index,{ANSWERS}" + "\n".join(numbered), "n.csv")
    found = by_metric(path)["endorsed"]
    assert (found.value, found.low, found.high) == (plain.value, plain.low, plain.high)
    assert found.high - found.low > 0.5


def test_rows_that_stand_twice_are_refused_or_left_out_by_name(tmp_path):
    head = "lang,probe,statement,sample,wording,answer\n"
    rows = [
        f"en,{probe},s1,0,{wording},{answer}"
        for probe, wording, answer in (
            ("agreement", "a", "yes"),
            ("agreement", "b", "yes"),
            ("disagreement", "a", "no"),
            ("disagreement", "b", "yes"),
        )
    ]
    path = table(tmp_path, head + "\n".join(rows))
    with pytest.raises(InputError, match=r"twice or more.*--by wording"):
        score(path, metrics="acquiescence")
    found = score(path, metrics="acquiescence", by="wording")
    assert [(s.by["wording"], s.value) for s in found] == [("a", 0.0), ("b", 1.0)]
    rows = ["free,yes", "free,no", "choice,yes", "choice,yes"]
    text = "lang,probe,statement,sample,decode,answer\n"
    text += "\n".join(f"en,agreement,s1,0,{row}" for row in rows)
    found = by_metric(table(tmp_path, text, "d.csv"), metrics="disagreement")
    assert found["disagreement"].n == 0 and found["disagreement"].excluded == {"twice": 1}


def test_raw_perplexities_are_no_log_probabilities(tmp_path):
    text = "item,model,scorer,pro,anti\nquiet,gpt2,ppl,12.5,30.1\ncoffee,gpt2,ppl,20.0,45.0\n"
    path = table(tmp_path, text)
    with pytest.raises(InputError, match="--perplexity"):
        score(path)
    assert by_metric(path, perplexity=True)["win-rate"].value == 1


def test_an_empty_decode_is_named(tmp_path):
    text = "lang,probe,statement,decode,answer\nen,agreement,s1,free,yes\nen,agreement,s2,,no\n"
    with pytest.raises(InputError, match="row 3: 'decode' is empty"):
        score(table(tmp_path, text))


def test_true_and_one_are_two(tmp_path):
    rows = [
        {"lang": "en", "probe": "agreement", "statement": f"s{n}", "answer": "yes", "own": own}
        for n, own in enumerate((True, 1, "1"))
    ]
    path = table(tmp_path, "\n".join(map(json.dumps, rows)), "t.jsonl")
    assert len(score(path, metrics="yes", by="own")) == 3


def test_words_that_mean_something_else_in_other_tables(tmp_path):
    text = "lang,probe,statement,answer,kind,subset,type\n"
    text += "en,agreement,s1,yes,gender,train,Declaration\nen,agreement,s2,no,age,test,saying\n"
    path = table(tmp_path, text)
    found = by_metric(path)
    assert "refusal" not in found and not found["yes"].excluded
    assert [s.by["subset"] for s in score(path, metrics="yes", by="subset")] == ["test", "train"]
    with pytest.raises(InputError, match="row 2: unknown role 'neutral'"):
        score(table(tmp_path, "lang,probe,statement,answer,role\nen,agreement,s1,yes,neutral\n"))


def test_forms_of_a_word_are_one_cell(tmp_path):
    rows = "".join(
        f"en,agreement,s{n},yes,{own}\n"
        for n, own in enumerate(("caf\u00e9", "cafe\u0301", "x ", "x"))
    )
    found = score(
        table(tmp_path, ANSWERS.replace("answer", "answer,own") + rows), metrics="yes", by="own"
    )
    assert [(s.by["own"], s.n) for s in found] == [("café", 2), ("x", 2)]


def test_declarations_are_known_in_any_case(tmp_path):
    text = "lang,probe,statement,answer,role,type,valid_in\n"
    text += "en,agreement,s1,yes,original,Declaration,en\n"
    assert by_metric(table(tmp_path, text), declared=True)["endorsed"].n == 1
