"""`genprobe dataset`: tables in and out, extraction, diversity, annotators, documents."""

import csv
import importlib.util
import itertools
import json
import random
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

import genprobe
from genprobe.commands import cli
from genprobe.curation import diversity, document, extract, tables, validate
from genprobe.datasets import pairs, statements
from genprobe.errors import InputError
from genprobe.files import read_rows
from genprobe.resources import registry
from genprobe.review.agreement import agreement

DATA = Path(__file__).parents[2] / "shared" / "data"


def run(*arguments, code=0, input=None):
    done = CliRunner().invoke(
        cli, ["dataset", *map(str, arguments)], standalone_mode=False, input=input
    )
    if isinstance(done.exception, InputError):
        assert code == 2, done.exception
        line = str(done.exception)
        assert "\n" not in line
        return line
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert (done.return_value or 0) == code
    return done.stdout


def write(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.DictWriter(file, list(rows[0]))
        lines.writeheader()
        lines.writerows(rows)
    return path


def benchmark(name):
    path = Path(__file__).parents[1] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- tables


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "xlsx", "tsv"])
def test_a_step_writes_what_the_next_one_reads_and_the_same_bytes_again(tmp_path, suffix):
    source = write(
        tmp_path / "in.csv",
        [{"sentence": s, "type": "men"} for s in ("Men cook.", "- Men - tea", "=1+1", "men")],
    )
    first, again = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    for path in (first, again):
        run("extract", source, "-o", path, "-q")
    assert first.read_bytes() == again.read_bytes()
    rows = [row for _, row in tables.read(first)]
    assert [row["sentence"] for row in rows] == ["Men cook.", "- Men - tea", "=1+1", "men"]
    assert all(row["history"][0].startswith("extract/1|rules:en@") for row in rows)
    assert len({row["id"] for row in rows}) == 4
    run("extract", first, "-o", again, "-q")
    assert len(tables.read(again)[0][1]["history"]) == 1  # the same step once more


def test_a_workbook_never_runs_what_a_text_says(tmp_path):
    import openpyxl

    path = tmp_path / "a.xlsx"
    tables.write(path, [{"id": "=1+1", "n": 3, "x": "a\x0bb"}], ["id", "n", "x"])
    cells = [
        cell for row in openpyxl.load_workbook(path).active.iter_rows(min_row=2) for cell in row
    ]
    assert [(c.value, c.data_type) for c in cells] == [("=1+1", "s"), (3, "n"), ("a\ufffdb", "s")]


def test_bad_tables_are_one_line(tmp_path):
    path = tmp_path / "a.xlsx"
    path.write_bytes(b"no workbook")
    assert "not a workbook" in run("extract", path, code=2)
    twice = write(tmp_path / "t.csv", [{"id": "1", "sentence": "a"}, {"id": "1", "sentence": "b"}])
    assert "row 3: the id '1' is already in row 2" in run("extract", twice, code=2)
    wrong = write(tmp_path / "w.csv", [{"words": "a"}])
    assert "no column 'sentence'" in run("extract", wrong, code=2)
    assert "unknown extraction 'xx'" in run("extract", wrong, "--rules", "xx", code=2)


# --- extraction


@pytest.fixture(scope="module")
def extractions():
    path = DATA / "afristereo" / "extraction.csv"
    if not path.is_file():
        pytest.skip("the published extractions are not here")
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_published_extraction_comes_back_exactly(extractions):
    rules = extract.load("afristereo")
    for row in extractions:
        found = extract.extract(row["sentence"], rules, row["stereotype_type"])
        expected = row["identity_expected"], row["attribute_expected"]
        assert (found.identity, found.attribute) == expected, row["sentence"]


def test_the_command_gives_published_texts_to_any_reader_of_csv(extractions, tmp_path):
    out = tmp_path / "out.csv"
    run("extract", DATA / "afristereo" / "extraction.csv", "--rules", "afristereo", "-o", out, "-q")
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    wrong = sum(
        (row["identity"], row["attribute"]) != (old["identity_expected"], old["attribute_expected"])
        for row, old in zip(rows, extractions, strict=True)
    )
    assert wrong == 0
    assert {"rule", "confidence"} <= set(rows[0])


def test_our_rules_are_better_where_the_published_ones_err(extractions):
    """By what two people read in 200 of the sentences, kept as hashes "
    "(benchmarks/extraction.py)."""
    agreed, right = benchmark("extraction").count(DATA / "afristereo" / "extraction.csv")
    assert (agreed["sure"], agreed["other"], agreed["settled"]) == (189, 171, 199)  # as in the docs
    assert right == {"en": 196, "afristereo": 142}
    assert (agreed["high, right"], agreed["high"], agreed["medium, right"]) == (143, 145, 21)


# What docs/datasets.md says: of 30 sentences that mended the rules, and of 20 that came after.
RIGHT = {"fr": (30, 16), "ru": (27, 18), "kk": (30, 19), "tr": (30, 18)}
RIGHT |= {"hi": (30, 18), "mr": (29, 14), "fa": (30, 15)}


def test_extraction_in_other_languages_is_as_good_as_the_documentation_says():
    found = benchmark("extraction").count_languages()
    assert {lang: (found[1, lang][1], found[2, lang][1]) for lang in RIGHT} == RIGHT
    assert all(n == (30, 20)[which - 1] for (which, _), (n, _, _) in found.items())


def test_each_row_has_the_rules_of_its_language(tmp_path):
    texts = {"fr": "Les femmes sont douces.", "kk": "Әйелдер көп күледі.", "en": "Women are kind."}
    rows = [{"lang": lang, "sentence": text} for lang, text in texts.items()]
    source, out = write(tmp_path / "a.csv", rows), tmp_path / "out.csv"
    run("extract", source, "-o", out, "-q")
    found = [(r["identity"], r["attribute"]) for r in read_rows(out)]
    assert found == [("femmes", "douces"), ("әйелдер", "көп күледі"), ("women", "kind")]
    assert [json.loads(r["history"])[0][:16] for r in read_rows(out)] == [
        f"extract/1|rules:{lang}"[:16] for lang in texts
    ]
    write(source, [{"lang": "yo", "sentence": "Ẹ kú."}])
    told = run("extract", source, "-o", out, code=2)
    assert "row 2: no rules in 'yo', only in en, fa, fr, hi, kk, mr, ru, tr; name some" in told


def test_a_language_is_not_guessed_in_silence(tmp_path):
    texts = ["Бабушки пекут пироги.", "Мужчины любят чай.", "Учителя приходят рано."]
    source = write(tmp_path / "t.csv", [{"sentence": text} for text in texts])
    told = run("extract", source, "-o", tmp_path / "o.csv", code=2)
    assert "assumed en, but the sentences are clearly in ru; give a column 'lang'" in told
    assert not (tmp_path / "o.csv").exists()
    run("extract", source, "--rules", "ru", "-o", tmp_path / "o.csv", "-q")
    write(source, [{"sentence": "Bakers are kind."}])
    given = ["dataset", "extract", str(source), "-o", str(tmp_path / "o.csv")]
    assert "no column gives the language: the rules of en were used" in (
        CliRunner().invoke(cli, given).stderr
    )


def test_turkish_letters_become_small_as_turkish_writes_them():
    found = extract.extract("IRGATLAR SICAKTA ÇALIŞIR", extract.load("tr"))
    assert (found.identity, found.attribute) == ("ırgatlar", "sıcakta çalışır")


PRINTED = [  # AfriStereo, Table 3
    ("Men are strong", "men", "strong"),
    ("People from Senegal are welcoming", "people from senegal", "welcoming"),
    ("Yoruba people are loud", "yoruba people", "loud"),
    ("Young Nigerian men are aggressive", "young nigerian men", "aggressive"),
    ("Teachers tend to be patient", "teachers", "patient"),
]
OURS = [
    ("The elderly are seen as wise.", "old people", "wise"),
    ("*Strength*: Bakers are often up early", "bakers", "often up early"),
    ("Assuming bakers are early risers", "bakers", "early risers"),
    ("Portraying drummers as loud", "drummers", "loud"),
    ("Most people in Ghana believe that bakers are kind", "bakers", "kind"),
    ("Old people don’t hurry", "old people", "don't hurry"),
    ("People from the middle belt are calm", "people from the middle belt", "calm"),
    ("Doctors - tidy", "doctors", "tidy"),
    ("Tall women run fast", "tall women", "run fast"),
    ("House chores are for men only", "men", "house chores"),
    ("IT workers are quiet", "it workers", "quiet"),
    # Groups named together are one, and a second sentence says nothing of the first's.
    ("Yoruba women throw big parties", "yoruba women", "throw big parties"),
    ("Elderly rural farmers distrust banks", "elderly rural farmers", "distrust banks"),
    ("Farmers are early, but the nurses are up all night", "farmers", "early"),
    ("Nurses are kind and work hard", "nurses", "kind and work hard"),
]


@pytest.mark.parametrize(("sentence", "identity", "attribute"), PRINTED + OURS)
def test_what_is_said_of_whom(sentence, identity, attribute):
    found = extract.extract(sentence, extract.load("en"))
    assert (found.identity, found.attribute) == (identity, attribute)
    assert found.confidence in extract.CONFIDENCE


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("3", "no answer"),
        ("Na", "no answer"),
        ("people from [XYZ ethnic group] are kind", "the example of the question, not filled in"),
        ("*Doctors*:", "a heading"),
        ("tidy", "no group named"),
        ("They are tidy", "no group named"),
    ],
)
def test_what_names_no_group_is_left_out_and_says_why(sentence, why):
    found = extract.extract(sentence, extract.load("en"), "age")
    assert (found.identity, found.attribute, found.excluded) == ("", "", why)


def test_answers_are_split_and_a_part_without_a_group_is_said_of_the_one_before(tmp_path):
    source = write(
        tmp_path / "a.csv",
        [{"id": "r1", "task": "age", "answer": "Old people are wise, slow, Young people sing"}],
    )
    run("extract", source, "-o", tmp_path / "out.csv", "-q")
    rows = list(read_rows(tmp_path / "out.csv"))
    assert [(r["id"], r["identity"], r["attribute"], r["rule"]) for r in rows] == [
        ("r1-1", "old people", "wise", "sentence"),
        ("r1-2", "old people", "slow", "of the part before"),
        ("r1-3", "young people", "sing", "group first"),
    ]
    assert all(json.loads(r["history"])[0].endswith("|from:r1") for r in rows)


def test_rules_are_checked(tmp_path):
    good = (registry.PROMPTS / "extraction" / "afristereo.toml").read_text(encoding="utf-8")
    path = tmp_path / "x.toml"
    for old, new, said in [
        ('find = "first"', 'find = "last"', "find = 'known' or 'first'"),
        ("(?P<attribute>\\S+)", "(\\S+)", "no group (?P<attribute>"),
        ('confidence = "low"', 'confidence = "sure"', "'confidence' must be one of"),
        ("(?P<identity>.*?\\bpeople", "(?P<identity>(.*?\\bpeople", "is not a valid pattern"),
        ('title = "', 'titel = "', "unknown key 'titel'"),
    ]:
        assert old in good
        path.write_text(good.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(InputError, match=r"x\.toml") as raised:
            extract.read_rules(path)
        assert said in str(raised.value)


# --- diversity


def test_self_bleu_is_the_mean_of_sacrebleus_scores():
    from sacrebleu.metrics.bleu import BLEU

    drawn = random.Random(2)
    words = [
        "the",
        "a",
        "cat",
        "dog",
        "sat",
        "on",
        "mat",
        "with",
        "hat",
        "and",
        "ran",
        "to",
        "big",
        "red",
        "house",
    ]
    texts = [" ".join(drawn.choices(words, k=drawn.randint(1, 12))) for _ in range(40)]
    texts += ["The cat.", "The cat.", "cat"]
    bleu = BLEU(lowercase=True, effective_order=True)
    one_by_one = [
        bleu.sentence_score(text, texts[:at] + texts[at + 1 :]).score
        for at, text in enumerate(texts)
    ]
    value, _ = diversity.self_bleu(texts, ["en"])
    assert value == pytest.approx(sum(one_by_one) / len(texts) / 100, abs=1e-12)


def test_n_gram_diversity_by_hand():
    # a b a b: 2/4 words, 2/3 pairs, 2/2 triples, 1/1 of four
    ratios = diversity.ngram_ratios([["a", "b"], ["a", "b"]])
    assert ratios == pytest.approx([2 / 4, 2 / 3, 1.0, 1.0])


def test_diversity_of_a_table(tmp_path):
    source = write(
        tmp_path / "a.csv",
        [
            {"lang": "en", "text": t, "kind": k}
            for t, k in [
                ("The cat sat.", "x"),
                ("The cat ran.", "x"),
                ("", "x"),
                ("Rain fell on the old roof all night.", "y"),
            ]
        ],
    )
    scores = {(s.metric, s.by["kind"]): s for s in diversity.run(source, by=["kind"])}
    assert scores["ttr", "x"].value == 4 / 6  # the cat sat the cat ran
    assert scores["ttr", "x"].excluded == {"empty": 1}
    assert scores["ttr", "x"].n == 2
    assert scores["ngd-sum", "x"].value == pytest.approx(4 * scores["ngd-mean", "x"].value)
    assert scores["self-bleu", "y"].value is None  # one text has no others
    assert scores["homogenisation", "x"].value is None
    assert scores["homogenisation", "x"].excluded == {"no model named": 2}
    assert "sacrebleu" in scores["self-bleu", "x"].signature
    assert "all.words" in scores["ttr", "x"].signature


def test_words_keep_their_marks():
    assert diversity.tokens("बच्चे मीठा खाते हैं।", "hi") == ["बच्चे", "मीठा", "खाते", "हैं"]
    assert diversity.tokens("می‌خورند، don't", "fa") == ["می‌خورند", "don't"]
    assert diversity.tokens("小猫睡觉。", "zh") == ["小", "猫", "睡", "觉"]


def test_homogenisation_is_the_mean_over_pairs_of_bertscore(tmp_path):
    """Against the formula of Zhang et al., by hand, on a random BERT."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cats", "dogs", "sleep", "run", "all"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    folder = tmp_path / "bert"
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizerFast(vocab_file=str(tmp_path / "vocab.txt")).save_pretrained(folder)
    texts = ["cats sleep", "dogs run all", "cats run"]
    source = write(tmp_path / "a.csv", [{"lang": "en", "text": t} for t in texts])
    scores = {s.metric: s for s in diversity.run(source, model=str(folder))}
    net, tokenizer = (
        BertModel.from_pretrained(folder).eval(),
        BertTokenizerFast.from_pretrained(folder),
    )
    vectors = []
    for text in texts:
        with torch.no_grad():
            states = net(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 1:-1]
        vectors.append(states / states.norm(dim=1, keepdim=True))
    f1 = []
    for a, b in itertools.combinations(vectors, 2):
        cosines = a @ b.T
        p, r = cosines.max(1).values.mean().item(), cosines.max(0).values.mean().item()
        f1.append(2 * p * r / (p + r))
    assert scores["homogenisation"].value == pytest.approx(sum(f1) / 3, abs=1e-6)
    assert "pairs3" in scores["homogenisation"].signature


# --- several annotators


PAIRS = [
    {"id": f"p{n}", "lang": "en", "pro": f"Bakers hum tune {n}.", "anti": f"Clerks hum tune {n}."}
    for n in range(20)
]


@pytest.fixture
def pair_table(tmp_path):
    return write(tmp_path / "pairs.csv", PAIRS)


def answer(paths, say):
    """Fill in sheets: say(annotator, text of the pair) -> the answers, in order."""
    for annotator, path in enumerate(paths):
        with path.open(encoding="utf-8-sig", newline="") as file:
            head, *rows = csv.reader(file)
        start = len(head) - sum("only if you want" in name for name in head)
        asked = list(range(3, start))
        for row in rows:
            for at, word in zip(asked, say(annotator, row[1]), strict=True):
                row[at] = word
        rows[0][start:] = ["26-35"][: len(head) - start] + rows[0][start + 1 :]
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file, delimiter=";").writerows([head, *rows])


def test_five_of_seven_from_sheets_to_what_is_kept(pair_table, tmp_path):
    out = tmp_path / "sheet.csv"
    *sheets, _, key = validate.export(pair_table, out, annotators=7, repeats=0.2, seed=3)
    assert len(sheets) == 7
    text = sheets[0].read_text(encoding="utf-8-sig")
    assert "p1" not in text and text != sheets[1].read_text(encoding="utf-8-sig")
    with pytest.raises(InputError, match="already exists"):
        validate.export(pair_table, out)

    def say(annotator, text):
        number = int(text.strip("> .").split()[-1])
        return ["yes" if annotator < number % 8 else "НЕТ"]

    answer(sheets, say)
    votes = tmp_path / "votes.csv"
    run("validate", "import", *sheets, "--key", key, "-o", votes, "-q")
    rows = list(read_rows(votes))
    assert len(rows) == 7 * 24 and {row["label"] for row in rows} == {"yes", "no"}
    assert {row["age_group"] for row in rows} == {"26-35"}
    kept = tmp_path / "kept.csv"
    figure = tmp_path / "kappa.svg"
    run("validate", "keep", pair_table, "--votes", votes, "-o", kept, "--kappas", figure, "-q")
    found = list(read_rows(kept))
    assert [row["id"] for row in found] == [f"p{n}" for n in range(20) if n % 8 >= 5]
    assert json.loads(found[0]["votes"]) == {"bias": {"no": 2, "yes": 5}}
    assert figure.read_bytes().startswith(b"<?xml")
    scores = {s.metric for s in agreement([votes])}
    assert {"fleiss-kappa", "krippendorff-alpha", "self-agreement"} <= scores


def test_people_of_two_exports_all_have_their_votes(pair_table, tmp_path):
    """Every export called its people 1, 2, …: those of the second were taken for the first's."""
    votes = []
    for at, (people, word) in enumerate(((3, "yes"), (4, "no"))):
        out = tmp_path / f"w{at}.csv"
        *sheets, _, key = validate.export(pair_table, out, annotators=people, repeats=0)
        answer(sheets, lambda *_, word=word: [word])
        votes.append(tmp_path / f"v{at}.csv")
        run("validate", "import", *sheets, "--key", key, "-o", votes[-1], "-q")
    done = validate.keep(pair_table, votes, rule=">50%")
    assert done.counts == {"left out": 20}
    assert done.rows[0]["votes"] == {"bias": {"no": 4, "yes": 3}}
    # The sheets of one export are not read by the key of another.
    _, problems = validate.collect(sheets, tmp_path / "w0-key.json")
    assert any("is not a row of the export" in line for line in problems)


def test_votes_count_for_the_texts_that_people_were_shown(pair_table, tmp_path):
    """Two edits were silent: of a cell of the sheet, and of the table after the export."""
    *sheets, _, key = validate.export(pair_table, tmp_path / "s.csv", annotators=2, repeats=0)
    answer(sheets, lambda *_: ["yes"])
    text = sheets[0].read_text(encoding="utf-8-sig")
    assert "Bakers hum tune 3." in text
    sheets[0].write_text(text.replace("Bakers hum tune 3.", "Cooks hum tune 3."), "utf-8-sig")
    votes, problems = validate.collect(sheets, key)
    assert len(votes) == 39 and len(problems) == 1 and "was changed; not counted" in problems[0]
    source = write(tmp_path / "v.csv", votes)
    edited = [row | ({"pro": "Cooks rest."} if row["id"] == "p5" else {}) for row in PAIRS]
    table = write(tmp_path / "t.csv", edited[::-1])
    done = validate.keep(table, [source], rule="1/1")
    assert done.changed == ["p5"] and done.counts == {"kept": 19, "left out": 1}
    told: list[str] = []
    genprobe.dataset_validate_keep(table, source, rule="1/1", note=told.append)
    assert any("votes on 1 item that" in line and "another text" in line for line in told)
    with pytest.raises(InputError, match="'p5' is not as annotators were shown it"):
        validate.keep(write(tmp_path / "o.csv", edited[5:6]), [source], rule="1/1")


def test_the_members_of_a_group_keep_the_numbers_of_the_sheet(tmp_path):
    """Sorted anew, another member was taken out of its group."""
    texts = ("cold", "chilly", "not warm", "icy")
    rows = [
        {"id": f"a{n}", "lang": "en", "group": "g1", "attribute": text, "medoid": n == 0}
        for n, text in enumerate(texts)
    ]
    source = write(tmp_path / "g.csv", rows)
    asked = "afristereo-groups"
    *sheets, _, key = validate.export(
        source, tmp_path / "s.csv", name=asked, annotators=3, repeats=0
    )
    answer(sheets, lambda *_: ["yes", "2"])
    votes, _ = validate.collect(sheets, key)
    votes_file = write(tmp_path / "v.csv", votes)
    out = [r["id"] for r in validate.keep(source, [votes_file], asked).rows if r["group"] != "g1"]
    assert out == ["a2"]
    other = write(tmp_path / "o.csv", [rows[0], rows[3], rows[1], rows[2]])
    with pytest.raises(InputError, match="'g1' is not as annotators were shown it"):
        validate.keep(other, [votes_file], asked)


def test_a_person_who_names_two_errors_has_one_vote(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(
        'title = "x"\nsource = "x"\nreview = "x"\nunit = "sentence"\nrule = ">50%"\nabout = []\n'
        '[questions.errors]\nkind = "many"\nkeep = ["none"]\n[questions.errors.text]\nen = "Errors?"'
        "\n[questions.errors.answers]\n"
        + "".join(f'{word} = ["{word}"]\n' for word in ("none", "lexical", "structural")),
        "utf-8",
    )
    source = write(tmp_path / "t.csv", [{"id": "a", "lang": "en", "text": "Bakers hum."}])
    votes = [
        {"item": "a", "rater": rater, "question": "errors", "label": label}
        for rater, label in zip("abc", ("none", "none", "lexical; structural"), strict=True)
    ]
    given = [write(tmp_path / "v.csv", votes)]
    (row,) = validate.keep(source, given, str(own)).rows
    assert row["kept"] and row["votes"]["errors"] == {"lexical": 1, "none": 2, "structural": 1}
    assert validate.keep(source, given, str(own), "1/4").rows[0]["why"] == "errors: 3 of 4 votes"


def test_one_name_in_two_tables_of_votes_is_not_taken_for_one_person(pair_table, tmp_path):
    votes = [
        write(tmp_path / f"{label}.csv", [{"item": "p1", "rater": "1", "label": label}])
        for label in ("yes", "no")
    ]
    with pytest.raises(InputError, match=r"no.csv: '1' votes on 'p1', as in .*yes.csv; write two"):
        validate.keep(pair_table, votes, rule=">50%")
    assert validate.keep(pair_table, votes[:1] * 2, rule=">50%").counts["kept"] == 1
    again = [{"item": "p1", "rater": "1", "label": "no", "repeat": "1"}]
    write(votes[1], again)
    assert validate.keep(pair_table, votes, rule=">50%").counts["kept"] == 1


def test_the_card_counts_what_was_left_out_before(pair_table, tmp_path):
    votes = [{"item": f"p{n}", "rater": r, "question": "bias", "label": "no" if n < 3 else "yes"}
             for n in range(20) for r in "ab"]  # fmt: skip
    votes = write(tmp_path / "v.csv", votes)
    kept, every = tmp_path / "k.csv", tmp_path / "e.csv"
    given = ("validate", "keep", pair_table, "--votes", votes, "--rule", "2/2", "-q", "-o")
    run(*given, kept)
    run(*given, every, "--all")
    for table, line in ((kept, "- 3: not confirmed by annotators (rule 2/2)"),
                        (every, "- 3: bias: 0 of 2 for it")):  # fmt: skip
        run("document", table, "--about", about(tmp_path), "-o", tmp_path / table.stem, "-q")
        card = (tmp_path / table.stem / "README.md").read_text("utf-8")
        left = card.split("## What was left out\n\n")[1].split("\n\n")[0]
        assert left == line
        croissant = (tmp_path / table.stem / "croissant.json").read_text("utf-8")
        assert "left out: 3 (" in croissant


def test_the_card_counts_what_several_rounds_and_batches_left_out(tmp_path):
    def judged(ids, out, *more, no=()):
        table = ids if isinstance(ids, Path) else write(tmp_path / f"{out}-t.csv", [
            {"id": name, "lang": "en", "text": f"Bakers hum {name}."} for name in ids
        ])  # fmt: skip
        names = [row["id"] for row in read_rows(table)]
        votes = [{"item": i, "rater": r, "label": "no" if i in no else "yes"}
                 for i in names for r in "ab"]  # fmt: skip
        votes = write(tmp_path / f"{out}-v.csv", votes)
        asked = ("--questions", "pbbq", "--rule", "2/2", "-q", *more, "-o", tmp_path / out)
        run("validate", "keep", table, "--votes", votes, *asked)
        return tmp_path / out

    def left(table):
        run("document", table, "--about", about(tmp_path), "-o", tmp_path / "card", "-q")
        card = (tmp_path / "card" / "README.md").read_text("utf-8")
        return card.split("## What was left out\n\n")[1].split("\n\n")[0].split("\n")

    one, two = judged("abc", "one.csv", no="a"), judged("def", "two.csv", no="d")
    joined = write(tmp_path / "j.csv", [*read_rows(one), *read_rows(two)])
    assert left(joined) == ["- 2: not confirmed by annotators (rule 2/2)"]
    again = judged(one, "again.csv", "--all", no="b")
    assert left(again) == [
        "- 1: label: 0 of 2 for it",
        "- 1: not confirmed by annotators (rule 2/2)",
    ]


def test_what_is_wrong_in_a_sheet_is_said_and_the_rest_counts(pair_table, tmp_path):
    *sheets, _, key = validate.export(pair_table, tmp_path / "s.csv", annotators=2, repeats=0)
    answer(sheets, lambda _, text: ["perhaps" if text == "> Bakers hum tune 3." else "да\u200e"])
    votes, problems = validate.collect(sheets[:1], key)
    assert len(votes) == 20
    assert sum(vote["label"] == "yes" for vote in votes) == 19
    assert any("'perhaps' is not an answer to 'bias'" in line for line in problems)
    assert "20 of 40 rows are missing" in problems[-1]


@pytest.mark.parametrize(
    ("rule", "votes", "kept"),
    [
        ("5/7", (5, 7), True),
        ("5/7", (4, 7), False),
        ("5/7", (6, 6), False),  # not enough votes
        (">60%", (3, 5), False),
        (">=60%", (3, 5), True),
        (">60%", (4, 5), True),
        (">50%", (0, 0), False),
    ],
)
def test_rules(rule, votes, kept):
    assert validate.Rule.parse(rule, "x").decide(*votes)[0] is kept


def test_votes_answer_the_questions_that_rows_are_kept_by(tmp_path, pair_table):
    """Two of three rows had no vote on RuBia's questions, and were kept by their rule all the "
    "same."""
    votes = [
        {"item": "p1", "rater": rater, "question": question, "label": "yes"}
        for rater in "abc"
        for question in ("trope", "minimal")
    ]
    source = tmp_path / "votes.csv"
    write(source, votes)
    assert validate.keep(pair_table, [source], "rubia").foreign == []
    told = run("validate", "keep", pair_table, "--votes", source, "--rule", "2/3", code=2)
    assert "a question of 'rubia' and not of 'aqbileq'; give --questions rubia" in told
    write(source, [vote for vote in votes if vote["question"] == "trope"])
    with pytest.raises(InputError, match="no vote on 'minimal', which 'rubia' asks, too"):
        validate.keep(pair_table, [source], "rubia")
    # No column for the question: the only one, whose answers are known in any language.
    write(
        source, [{"item": "p1", "rater": n, "label": w} for n, w in enumerate(["Иә", "yes", "0"])]
    )
    done = validate.keep(pair_table, [source], rule="2/3")
    assert done.rows[1]["votes"] == {"bias": {"no": 1, "yes": 2}} and done.rows[1]["kept"]
    write(source, [{"item": "p1", "rater": n, "question": "mine", "label": "yes"} for n in "abc"])
    assert validate.keep(pair_table, [source], rule="2/3").foreign == ["mine"]


def test_votes_of_other_tools_are_read_in_any_words(tmp_path, pair_table):
    """With a column for the question, too: 1 and да are yes, and people who say so agree."""
    votes = [
        {"item": "p1", "rater": n, "question": "bias", "label": label}
        for n, label in enumerate(["yes", "1", "Да", "0", "perhaps"])
    ]
    source = write(tmp_path / "votes.csv", votes)
    done = validate.keep(pair_table, [source], rule=">50%")
    assert done.rows[1]["votes"] == {"bias": {"no": 1, "perhaps": 1, "yes": 3}}
    assert done.rows[1]["kept"] and done.odd == {"perhaps": 1}
    said = run("validate", "keep", pair_table, "--votes", source, "-o", tmp_path / "o.csv", "-q")
    assert "\n1  30.0 [" in said  # of the ten pairs of votes, three are of two who say yes


def test_rules_are_exact_and_no_other_text_is_one():
    assert validate.Rule.parse(">66.7%", "x").share == Fraction(667, 1000)
    for text in ("7/5", "0/7", "60%", ">101%", ">100%", "most"):
        with pytest.raises(InputError, match="is not a rule"):
            validate.Rule.parse(text, "x")


def test_a_model_of_annotators_outvotes_a_careless_majority(tmp_path):
    """Two who know and three who always say yes: Dawid and Skene find out, a majority cannot."""
    drawn = random.Random(1)
    truth = {f"p{n}": drawn.random() < 0.5 for n in range(60)}
    source = write(
        tmp_path / "t.csv", [{"id": i, "lang": "en", "text": f"Text {i}."} for i in truth]
    )
    rows = []
    for item, right in truth.items():
        for rater in range(5):
            label = "yes" if rater >= 2 or (right != (drawn.random() < 0.03)) else "no"
            rows.append({"task": item, "worker": f"w{rater}", "label": label})
    votes = write(tmp_path / "v.csv", rows)
    done = validate.keep(source, [votes], "pbbq", rule=">50%", model="dawid-skene")
    right = sum((row["label_model"] == "yes") == truth[row["id"]] for row in done.rows)
    assert right >= 54
    assert sum(truth.values()) <= 36  # what a majority of five gets right
    assert all(row["kept"] for row in done.rows)  # what the majority says
    assert all(row["history"][-1].endswith("|model:dawid-skene") for row in done.rows)
    again = validate.keep(source, [votes], "pbbq", rule=">50%", model="dawid-skene")
    assert again.rows == done.rows


def test_agreement_reads_the_names_of_others(tmp_path):
    rows = [
        {"item": f"i{n}", "rater": r, "label": "yes" if n % 2 else "no"}
        for n in range(6)
        for r in "ab"
    ]
    rows[0]["label"] = "yes"
    theirs = write(tmp_path / "v.csv", rows)
    third = [{"Unit": r["item"], "Username": r["rater"], "Judgement": r["label"]} for r in rows]
    third = write(tmp_path / "t.csv", third)
    assert [s.value for s in agreement([third])] == [s.value for s in agreement([theirs])]
    bare = write(tmp_path / "n.csv", [{"item": "i", "label": "yes"}])
    with pytest.raises(InputError, match="no column 'reviewer', by any of its names: reviewer, r"):
        agreement([bare])
    ours = write(
        tmp_path / "o.csv",
        [
            {"item": r["item"], "reviewer": r["rater"], "question": "label", "answer": r["label"]}
            for r in rows
        ],
    )
    assert [(s.metric, s.value) for s in agreement([theirs])] == [
        (s.metric, s.value) for s in agreement([ours])
    ]


# --- documents


ABOUT = {
    "title": "Tea and bread",
    "description": "Mild sentences.",
    "licence": "CC-BY-4.0",
    "url": "https://example.org/tea",
    "creators": ["The tea group"],
    "purpose": "To test.",
    "limitations": "Few.",
    "biases": "Ours <script>alert(1)</script>.",
    "collection": "Written at a table.",
    "people": "Two of us.",
    "sensitive": "None.",
    "warning": "Stereotypes.",
}


def about(folder, **changes):
    path = folder / "about.toml"
    lines = [f"{k} = {json.dumps(v)}" for k, v in (ABOUT | changes).items() if v is not None]
    path.write_text("\n".join(lines))
    return path


def test_a_folder_that_validates_and_opens(tmp_path):
    code = "abcd-efgh-jkmn"
    rows = [
        {
            "id": f"{code}-{n}",
            "lang": "kk",
            "text": f"Наубайшылар шай ішеді {n}.",
            "respondent": code,
            "about_gender": "әйел",
            "kept": str(n != 2).lower(),
            "why": "bias: 2 of 7 for it" if n == 2 else "",
            "votes": json.dumps({"bias": {"yes": n}}),
            "history": json.dumps([f"collect/1|pack:x|from:{code}"]),
        }
        for n in range(4)
    ]
    source = write(tmp_path / "t.csv", rows)
    votes = write(
        tmp_path / "v.csv",
        [
            {"item": f"{code}-{n}", "rater": r, "label": "yny"[n % 3]}
            for n in range(9)
            for r in "abc"
        ],
    )
    more = write(
        tmp_path / "r.csv",
        [
            {
                "id": f"{code}-0",
                "rewording_1": "Шай ішеді наубайшылар.",
                "rewording_2": "Шайды наубайшылар ішеді.",
            }
        ],
    )
    out = tmp_path / "set"
    run(
        "document",
        source,
        "--about",
        about(tmp_path),
        "--votes",
        votes,
        "--rewordings",
        more,
        "-o",
        out,
        "-q",
    )
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    run(
        "document",
        source,
        "--about",
        about(tmp_path),
        "--votes",
        votes,
        "--rewordings",
        more,
        "-o",
        out,
        "-q",
    )
    assert {path.name: path.read_bytes() for path in out.iterdir()} == first
    data = (out / "data.jsonl").read_text()
    assert code not in data and "әйел" not in data and "ішеді наубайшылар" not in data
    assert data.count("genprobe canary ") == 3
    card = (out / "README.md").read_text()
    assert "- 1: bias: 2 of 7 for it" in card and "Fleiss" in card and "<script>" not in card
    assert (tmp_path / "set-held-back.jsonl").read_text().count("\n") == 1

    import mlcroissant

    found = mlcroissant.Dataset(jsonld=out / "croissant.json")
    assert not found.metadata.ctx.issues.errors
    assert found.metadata.data_use_cases == ["To test."]
    records = list(found.records("rows"))
    assert [r["rows/text"].decode() for r in records] == [
        f"Наубайшылар шай ішеді {n}." for n in (0, 1, 3)
    ]

    import datasets

    opened = datasets.load_dataset(str(out), split="test", cache_dir=str(tmp_path / "cache"))
    assert opened["text"] == [f"Наубайшылар шай ішеді {n}." for n in (0, 1, 3)]
    assert opened["respondent"] == ["r1"] * 3 and opened["history"][0] == [
        "collect/1|pack:x|from:r1"
    ]


@pytest.mark.parametrize(
    ("named", "hub", "croissant"),
    [
        ("CC-BY-4.0", "cc-by-4.0", "https://spdx.org/licenses/CC-BY-4.0.html"),
        ("cc by-nc-sa 4.0", "cc-by-nc-sa-4.0", "https://spdx.org/licenses/CC-BY-NC-SA-4.0.html"),
        ("ODbL-1.0", "odbl", "https://spdx.org/licenses/ODbL-1.0.html"),
        ("pddl", "pddl", "https://spdx.org/licenses/PDDL-1.0.html"),
        ("Tea licence 3", "other", "Tea licence 3"),
        ("unknown", "unknown", "unknown"),
    ],
)
def test_a_licence_is_named_as_the_hub_and_spdx_name_it(named, hub, croissant, tmp_path):
    source = write(tmp_path / "t.csv", [{"text": "Bakers hum."}])
    out = tmp_path / "set"
    given = ["document", str(source), "--about", str(about(tmp_path, licence=named))]
    told = CliRunner().invoke(cli, ["dataset", *given, "-o", str(out)]).stderr
    from huggingface_hub import DatasetCard

    data = DatasetCard.load(out / "README.md").data
    assert data.license == hub
    assert data.to_dict().get("license_name") == (named if hub == "other" else None)
    assert json.loads((out / "croissant.json").read_text())["license"] == croissant
    assert ("no licence" in told) == (hub == "unknown")
    assert ("no identifier for this licence" in told) == (hub == "other")


def test_rewordings_are_of_statements_and_have_the_published_id(tmp_path):
    """Of a pair each sentence has its own, by the id before or after codes are replaced."""
    code = "ab12-cd34-ef56"
    row = {"id": f"{code}-1", "lang": "kk", "respondent": code, "pro": "A b.", "anti": "C b."}
    source = write(tmp_path / "t.csv", [row | {"rewording_1": "of", "rewording_2": "neither"}])
    ids = (f"{code}-1-o", "r1-1-c1")
    made = [{"id": n, "rewording_1": f"{n} x", "rewording_2": f"{n} y"} for n in ids]
    again = write(tmp_path / "r.csv", made)
    done = document.run(source, about(tmp_path), tmp_path / "set", (), again)
    held = [json.loads(line) for line in done.held_back.read_text().splitlines()]
    assert [(one["id"], one["rewording_1"]) for one in held] == [
        ("r1-1-o", f"{code}-1-o x"),
        ("r1-1-c1", "r1-1-c1 x"),
    ]
    assert {json.loads(line)["id"] for line in (tmp_path / "set" / "data.jsonl").open()} == {
        one["id"] for one in held
    }
    assert document.run(source, about(tmp_path), tmp_path / "no").lacking == 2
    other = write(tmp_path / "o.csv", [made[0] | {"id": f"{code}-1"}])
    with pytest.raises(InputError, match="is not the id of a published row, such as 'r1-1-o'"):
        document.run(source, about(tmp_path), tmp_path / "never", (), other)
    assert not (tmp_path / "never").exists()


def test_nothing_is_written_where_something_is_missing(tmp_path):
    source = write(tmp_path / "t.csv", [{"text": "Bakers hum."}])
    out = tmp_path / "set"
    assert "'people' must be a text" in run(
        "document", source, "--about", about(tmp_path, people=None), "-o", out, code=2
    )
    other = write(tmp_path / "v.csv", [{"item": "z", "rater": r, "label": "y"} for r in "ab"])
    assert "no vote on an item of" in run(
        "document", source, "--about", about(tmp_path), "--votes", other, "-o", out, code=2
    )
    for licence in (None, ""):
        told = run(
            "document", source, "--about", about(tmp_path, licence=licence), "-o", out, code=2
        )
        assert "'licence' must be a text: an SPDX identifier such as CC-BY-4.0" in told
    assert "unknown key 'colour'" in run(
        "document", source, "--about", about(tmp_path, colour="red"), "-o", out, code=2
    )
    assert not out.exists()


def test_documented_rows_load_as_statements(tmp_path):
    rows = [
        {"id": f"a-{r}", "lang": "en", "text": f"{w} hum.", "role": r, "pair": "a"}
        for w, r in (("Bakers", "original"), ("Clerks", "contrast"))
    ]
    document.run(write(tmp_path / "t.csv", rows), about(tmp_path), tmp_path / "set")
    found, _ = statements.load(str(tmp_path / "set" / "data.jsonl"))
    assert [s.role for s in found] == ["original", "contrast"]
    assert len(pairs.load(str(tmp_path / "set" / "data.jsonl"))[0]) == 2


# --- what is shipped


@pytest.mark.slow
def test_lint_reads_every_file_of_these_folders_and_finds_a_fault(tmp_path):
    import shutil

    from genprobe.lint import lint

    folders = ("extraction", "validation", "lexicon", "augmentation", "elicitation")
    copy = tmp_path / "prompts"
    shutil.copytree(registry.PROMPTS, copy)
    assert not [f for f in lint([copy]) if f.level == "error"]
    for folder in folders:
        for path in (copy / folder).rglob("*.toml"):
            path.write_text("wrong = 1\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    wrong = {f.where for f in lint([copy]) if f.level == "error"}
    assert wrong == {str(p) for folder in folders for p in (copy / folder).rglob("*.toml")}
