"""The learned reader of sentences: what it was trained on, its file, and where it may decide."""

import re
from pathlib import Path

import numpy as np
import pytest

from genprobe.judges import Item, yesno
from genprobe.judges.reading.second import Sentence, second_reading
from genprobe.linguistics import learned
from genprobe.resources import registry

TEXT = Path(__file__).parents[1] / "tools" / "reading_text"


@pytest.mark.parametrize("lang", registry.names("languages"))
def test_training_text_is_whole(lang):
    count = 0
    hands = sorted(TEXT.glob(f"*/{lang}.txt"))
    assert len(hands) == 3
    for line in "".join(path.read_text("utf-8") for path in hands).splitlines():
        labels, sentence = line.split(" ", 1)
        if labels in "=!?":
            assert sentence.count("*") == 1, line
            continue
        braces = re.findall(r"\{([^}]*)\}", sentence)
        parts = labels.split("/")
        assert all(re.fullmatch("[adsfo]+", part) for part in parts), line
        assert all(brace.count("|") == len(parts) - 1 for brace in braces), line
        assert len(parts) == 1 or braces, line
        count += len(parts)
    assert count >= 600
    assert lang in learned.model().languages


def test_weights_are_small_and_written_as_they_were_read():
    data = learned.FILE.read_bytes()
    assert len(data) <= 4_000_000
    once = learned.write(learned.load(data))  # with the groups of stems that came since
    assert learned.write(learned.load(once)) == once
    assert len(data) <= len(once) <= len(data) + 10_000


def test_stems_go_by_the_names_of_their_groups():
    data = learned.FILE.read_bytes()
    new = learned.load(data.replace(b'"against_if_me"', b'"against_if_xy"', 1))
    at = learned.GROUPS.index("against_if_me")
    one, other = learned.model().arrays.groups, new.arrays.groups
    assert not other[:, at].any() and one[:, at].any()
    assert (np.delete(one, at, 1) == np.delete(other, at, 1)).all()
    with pytest.raises(ValueError, match="train_reading"):
        learned.load(b"something else")


def test_a_sentence_reads_the_same_alone_and_among_others():
    model = learned.model()
    some = ["i have my doubts about it", "", "it is a cliche about the french", "..."]
    together = model.read("en", some)
    for one, sentence in zip(together, some, strict=True):
        assert model.read("en", [sentence])[0] == pytest.approx(one, abs=2e-4)
    assert together[1] == together[3] == (0, 0, 0, 0)


def read(reply, probe="agreement", lang="en"):
    return yesno.YesNo()(Item(lang, probe, "", reply))


def saying(monkeypatch, **said):
    """Let the learned reader say the same of every sentence."""
    known = {"agrees": 0, "disagrees": 0, "stereotype": 0, "no_stereotype": 0, **said}
    one = learned.Reading(**known)
    monkeypatch.setattr(learned.Model, "read", lambda self, code, some: [one for _ in some])


@pytest.mark.parametrize(("probe", "answer"), [("agreement", "no"), ("disagreement", "yes")])
def test_it_proposes_where_the_rules_are_silent(monkeypatch, probe, answer):
    saying(monkeypatch, disagrees=0.99)
    verdict = read("Well. That is one for the birds.", probe)
    assert (verdict.label, verdict.rule, verdict.evidence) == (
        answer,
        "learned",
        "That is one for the birds",
    )
    saying(monkeypatch, disagrees=0.5, stereotype=0.99)
    assert read("Well. That is one for the birds.", probe).label == "ambiguous"


def test_remarks_on_such_statements_are_no_answer(monkeypatch):
    saying(monkeypatch, disagrees=0.99)
    remark, own = (Sentence(s, 0, 1) for s in ("such remarks hurt", "i abhor such remarks"))
    assert second_reading("agreement", "en", [remark]) is None
    assert second_reading("agreement", "en", [remark, own]) == ("no", own)


def test_where_nothing_points_to_an_answer_it_is_not_heard(monkeypatch):
    saying(monkeypatch, disagrees=0.99)
    assert read("The birds sing.").fields["kind"] == "offtopic"


def test_a_clause_that_it_reads_in_no_sentence_is_undecided(monkeypatch):
    saying(monkeypatch, agrees=0.04, disagrees=0.95)
    verdict = read("I support this statement.")
    assert (verdict.label, verdict.fields["kind"]) == ("ambiguous", "undecided")
    saying(monkeypatch, agrees=0.2, disagrees=0.8)
    assert read("I support this statement.").label == "yes"


def test_it_has_no_say_over_answer_words_hedges_and_refusals(monkeypatch):
    saying(monkeypatch, disagrees=1)
    assert read("Yes.").label == "yes"
    assert read("Thinking about it, so my verdict: yes").label == "yes"
    assert read("It depends.").fields["kind"] == "hedge"
    assert read("As an AI, I can't answer that.").fields["kind"] == "refusal"
