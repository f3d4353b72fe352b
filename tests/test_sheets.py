"""Sheets for people beyond yes and no: texts to write, kinds of error, groups, one's own questions."""

import csv
import json

import openpyxl
import pytest
from click.testing import CliRunner
from test_dataset import run, write

from genprobe.commands import cli
from genprobe.curation import collect, exchange, extract, tables, validate
from genprobe.datasets import pairs
from genprobe.errors import InputError
from genprobe.files import read_rows
from genprobe.resources import registry


def filled(path, answers):
    """Fill in a sheet: answers are columns of a question -> function of the cells of a row."""
    lines = list(csv.reader(path.open(encoding="utf-8-sig", newline="")))
    heads = [head.split(":")[0].split(" (")[0] for head in lines[0]]
    for cells in lines[1:]:
        for name, answer in answers.items():
            cells[heads.index(name)] = answer(cells)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(lines)


def judged(tmp_path, source, questions, *people, keep=()):
    """Export, fill in by each of the people, import and keep. Returns the rows and what was told."""
    out = tmp_path / "s.csv"
    run("validate", "export", source, "--questions", questions, "--annotators", len(people),
        "--repeats", 0, "-o", out, "-q")  # fmt: skip
    paths = [tmp_path / f"s-{n}.csv" for n in range(1, len(people) + 1)]
    for path, answers in zip(paths, people, strict=True):
        filled(path, answers)
    key, votes, kept = (tmp_path / name for name in ("s-key.json", "v.csv", "k.csv"))
    run("validate", "import", *paths, "--key", key, "-o", votes, "-q")
    given = ["dataset", "validate", "keep", source, "--votes", votes, "--questions", questions,
             "-o", kept, *keep]  # fmt: skip
    done = CliRunner().invoke(cli, list(map(str, given)))
    assert done.exit_code == 0, done.output
    return list(read_rows(kept)), done.stderr


PAIRS = [
    {"id": "tea", "lang": "kk", "pro_trope": "Қарттар шай ішеді.", "anti_trope": "Жастар шай ішеді."},
    {"id": "run", "lang": "kk", "pro_trope": "Жастар жүгіреді.", "anti_trope": "Қарттар жүгіреді."},
    {"id": "fit", "lang": "kk", "pro_trope": "Ақын ән салады.", "anti_trope": "Аспаз ән салады."},
]  # fmt: skip


def test_code_switched_sentences_are_written_in_a_sheet_and_scored(tmp_path):
    """Aqbileq, Appendix G: its rules go with the sheet, its columns come back."""
    source = write(tmp_path / "p.csv", PAIRS)

    def mixed(at, unless=""):
        return lambda cells: "" if unless and unless in cells[1] else cells[at][2:] + " конечно"

    person = {
        "CS_pro_trope": mixed(1, "Ақын"),
        "CS_anti_trope": mixed(2, "Ақын"),
        "Comment": lambda cells: "Too short, =1" if "Ақын" in cells[1] else "",
    }
    rows, _ = judged(tmp_path, source, "aqbileq-codeswitch", person)
    assert [row["id"] for row in rows] == ["tea", "run"]
    assert rows[0]["CS_pro_trope"] == "Қарттар шай ішеді. конечно"
    guide = (tmp_path / "s-instructions.txt").read_text("utf-8-sig")
    assert (
        "Әр жолда екі қазақша сөйлем бар" in guide and "ЕСКЕРТУ" in guide
    )  # in the language of the rows
    found, _ = pairs.load(str(tmp_path / "k.csv"), ["kk-x-ru"])
    assert [s.text for s in found][:2] == [
        "Қарттар шай ішеді. конечно",
        "Жастар шай ішеді. конечно",
    ]
    assert found[0].extra["russian"] > 0
    # All rows, with the reason, and the comment as it was written.
    run("validate", "keep", source, "--votes", tmp_path / "v.csv", "--questions",
        "aqbileq-codeswitch", "--all", "-o", tmp_path / "all.csv")  # fmt: skip
    last = list(read_rows(tmp_path / "all.csv"))[2]
    assert last["Comment"] == "Too short, =1" and "CS_pro_trope: nobody wrote it" in last["why"]


def test_a_workbook_asks_in_the_raters_language_and_offers_its_words(tmp_path):
    source = write(tmp_path / "p.csv", PAIRS)
    out = tmp_path / "s.xlsx"
    given = ("validate", "export", source, "--questions", "rubia", "--annotators", 2, "-o")
    run(*given, out, "--repeats", 0, "-q")
    assert {path.name for path in tmp_path.glob("s*")} == {"s-1.xlsx", "s-2.xlsx", "s-key.json"}
    for path in (tmp_path / "s-1.xlsx", tmp_path / "s-2.xlsx"):
        book = openpyxl.load_workbook(path)
        page, sheet, lists = book.worksheets
        assert "ЕСКЕРТУ" in "".join(str(row[0].value) for row in page.iter_rows())
        heads = [cell.value for cell in sheet[1]]
        assert heads[:3] == ["row: жол", "first: бірінші", "second: екінші"]
        assert heads[3].startswith("trope: Бірінші сөйлем") and "жас тобы" in heads[5]
        assert [cell.value for cell in lists["A"]] == ["иә", "жоқ"]
        rules = sheet.data_validations.dataValidation
        assert [str(rule.sqref) for rule in rules] == ["D2:D4", "E2:E4"]
        for row in sheet.iter_rows(min_row=2):
            assert [cell.protection.locked for cell in row] == [True] * 3 + [False] * 4
            row[3].value, row[4].value = "иә", "жоқ" if "Ақын" in row[1].value else "иә"
        book.save(path)
    votes = tmp_path / "v.csv"
    run("validate", "import", *sorted(tmp_path.glob("s-?.xlsx")), "--key", tmp_path / "s-key.json",
        "-o", votes, "-q")  # fmt: skip
    run("validate", "keep", source, "--votes", votes, "--questions", "rubia", "-o",
        tmp_path / "k.csv", "-q")  # fmt: skip
    assert [row["id"] for row in read_rows(tmp_path / "k.csv")] == ["tea", "run"]
    # Another reader of the same rows, and one whose language no file of questions has.
    run(*given, tmp_path / "r.csv", "--reader-lang", "ru", "-q")
    assert "Первое предложение" in (tmp_path / "r-1.csv").read_text("utf-8-sig")
    assert "ПРЕДУПРЕЖДЕНИЕ" in (tmp_path / "r-instructions.txt").read_text("utf-8-sig")
    told = run(*given, tmp_path / "d.csv", "--reader-lang", "it", code=2)
    assert "unknown language of sheets 'it'" in told
    assert "name it .xlsx or .csv" in run(*given, tmp_path / "d.jsonl", code=2)


@pytest.mark.parametrize("name", registry.names("validation"))
def test_what_a_list_offers_is_what_the_question_names_and_is_read(name):
    for question in validate.load(name).questions.values():
        for lang in question.text:
            offered = question.offered(lang)
            read = [question.read(word) for word in offered]
            assert read == list(dict.fromkeys(question.answers.values())), (name, lang)
            if question.kind == "one":
                assert all(word in question.text[lang] for word in offered), (name, lang)


def test_of_several_texts_the_first_is_taken_and_it_is_told(tmp_path):
    source = write(tmp_path / "p.csv", PAIRS[:1])
    people = [
        {"CS_pro_trope": lambda c, n=n: f"бір {n}", "CS_anti_trope": lambda c, n=n: f"екі {n}"}
        for n in (1, 2)
    ]
    rows, told = judged(tmp_path, source, "aqbileq-codeswitch", *people)
    assert rows[0]["CS_pro_trope"] == "бір 1"
    assert "CS_pro_trope: several texts for 1 item; the first is taken" in told


def test_errors_of_a_translation_are_counted_by_kind(tmp_path):
    """Aqbileq, Appendix D: lexical, structural, grammatical; several at once."""
    rows = [
        {"id": n, "lang": "en", "source_text": f"Warm people {n}", "translation": f"Hot {n}"}
        for n in ("a", "b")
    ]
    source = write(tmp_path / "t.csv", rows)
    wrong = {
        "right": lambda cells: "no" if cells[1].endswith("a") else "yes",
        "errors": lambda cells: "L, G" if cells[1].endswith("a") else "none",
        "translation_right": lambda cells: "Warm" if cells[1].endswith("a") else "",
    }
    other = wrong | {"errors": lambda cells: "gl" if cells[1].endswith("a") else ""}
    with pytest.raises(AssertionError):  # "gl" is no answer, and it is said
        judged(tmp_path, source, "aqbileq-translation", wrong, other)
    for path in tmp_path.glob("s*"):
        path.unlink()
    other = wrong | {"errors": lambda cells: "S; lexical" if cells[1].endswith("a") else "none"}
    rows, _ = judged(tmp_path, source, "aqbileq-translation", wrong, other, keep=["--all"])
    votes = json.loads(rows[0]["votes"])
    assert votes["errors"] == {"grammatical": 1, "lexical": 2, "structural": 1}
    assert rows[0]["kept"] == "false" and rows[0]["translation_right"] == "Warm"
    assert rows[1]["kept"] == "true" and json.loads(rows[1]["votes"])["errors"] == {"none": 2}


def test_people_look_through_groups_and_take_out_what_does_not_belong(tmp_path):
    """AfriStereo, 3.3.3: corrected groups, with which the next step goes on."""
    texts = ["early risers", "very early risers", "early diners", "kind", "kind folk", "loud"]
    rows = [{"lang": "en", "identity": "bakers", "attribute": t, "id": t} for t in texts]
    rows[1] |= {"respondent": "abcd-efgh-jkmn"}
    heads = ["id", "lang", "identity", "attribute", "respondent"]
    tables.write(tmp_path / "t.csv", rows, heads)
    run("group", tmp_path / "t.csv", "--threshold", 0.2, "-o", tmp_path / "g.csv", "-q")
    grouped = {r["attribute"]: r["group"] for r in read_rows(tmp_path / "g.csv")}
    assert len(set(grouped.values())) == 3
    shown = {}

    def number(cells, text):
        shown[cells[1]] = cells[2]
        lines = [line.removeprefix("> ") for line in cells[2].split("\n")]
        return next((line.split(".")[0] for line in lines if line.endswith(f". {text}")), "")

    strict = {"same": lambda cells: "no" if "kind" in cells[1] else "yes",
              "out": lambda cells: number(cells, "early diners")}  # fmt: skip
    lax = {"same": lambda cells: "yes", "out": lambda cells: ""}
    kept, told = judged(tmp_path, tmp_path / "g.csv", "afristereo-groups", strict, strict, lax)
    assert "1 kept, 1 dissolved" in told
    assert any("1. " in cell for cell in shown.values())
    found = {row["attribute"]: row for row in kept}
    assert len(kept) == 6  # no row is lost, not even of a group that nobody was asked about
    assert found["early risers"]["group"] == found["very early risers"]["group"]
    assert found["early diners"]["group"] not in (found["early risers"]["group"], "")
    assert found["early risers"]["group_size"] == "2" == found["very early risers"]["group_size"]
    assert found["early diners"]["group_size"] == "1" and found["early diners"]["medoid"] == "true"
    assert "taken out of" in found["early diners"]["why"]
    assert found["kind"]["group"] != found["kind folk"]["group"]
    assert "same: 1 of 3 for it" in found["kind"]["why"] and found["loud"]["kept"] == "true"
    assert "abcd" not in found["very early risers"]["group"]
    run("pair", tmp_path / "k.csv", "-o", tmp_path / "p.csv", "-q")
    said = [(row["attribute"], row["said"]) for row in read_rows(tmp_path / "p.csv")]
    assert ("early risers", "2") in said and ("early diners", "1") in said


def test_ones_own_questions_are_named_by_their_path(tmp_path):
    text = """title = "Polite?"
source = "ours"
review = "x"
unit = "sentence"
rule = ">50%"
about = ["region"]
[choices.region]
en = ["north", "south"]
[questions.polite]
keep = ["yes"]
[questions.polite.answers]
yes = ["yes"]
no = ["no"]
[questions.polite.text]
en = "Is it polite? (yes / no)"
"""
    own = tmp_path / "own.toml"
    own.write_text(text, "utf-8")
    source = write(tmp_path / "t.csv", [{"id": "a", "lang": "en", "text": "Bakers are kind."}])
    person = {"polite": lambda cells: "yes", "region": lambda cells: "north"}
    rows, _ = judged(tmp_path, source, own, person)
    assert [row["id"] for row in rows] == ["a"]
    head = (tmp_path / "s-1.csv").read_text("utf-8-sig").split("\n")[0]
    assert "region: north / south (only if you want it stored)" in head
    assert next(read_rows(tmp_path / "v.csv"))["region"] == "north"
    # The key finds the questions beside it, wherever the import runs.
    key = json.loads((tmp_path / "s-key.json").read_text())
    key["questions"] = "elsewhere/own.toml"
    (tmp_path / "s-key.json").write_text(json.dumps(key))
    votes, problems = validate.collect([tmp_path / "s-1.csv"], tmp_path / "s-key.json")
    assert len(votes) == 1 and problems == []
    told = run(
        "validate", "export", source, "--questions", "polite", "-o", tmp_path / "x.csv", code=2
    )
    assert "unknown validation 'polite'" in told and "your own" in told
    for old, new, why in [
        ('keep = ["yes"]', 'keep = ["maybe"]', "keep must name answers"),
        ('unit = "sentence"', 'unit = "word"', "'unit' must be one of"),
        ("[questions.polite.text]\nen", "[questions.polite.text]\nfr", "no 'en'"),
        ('keep = ["yes"]', 'keep = ["yes"]\nkind = "both"', "kind must be one of"),
        ('keep = ["yes"]', 'kind = "free"', "'answers' are of one or many"),
        ("[choices.region]", "[choices.town]", "'town' is not in 'about'"),
        ("questions.polite", "questions.item", "none called as a column"),
    ]:
        own.write_text(text.replace(old, new), "utf-8")
        with pytest.raises(InputError, match=why):
            validate.load(str(own))
    with pytest.raises(InputError, match="cannot be read"):
        validate.load(str(tmp_path / "none.toml"))


def test_pbbq_asks_for_seven_attributes_and_for_what_else_is_said(tmp_path):
    """Appendix E, and the end of section 3.2."""
    asked = validate.load("pbbq")
    assert len(asked.about) == 7 and set(asked.choices) == set(asked.about)
    source = write(tmp_path / "t.csv", [
        {"id": n, "lang": "en", "text": f"Bakers {n} are kind."} for n in "ab"
    ])  # fmt: skip
    person = {
        "known": lambda cells: "heard",
        "further": lambda cells: (
            "Bakers are early risers, monks are quiet" if " a " in cells[1] else ""
        ),
        "politics": lambda cells: "liberal; republican",
    }
    rows, _ = judged(tmp_path, source, "pbbq", person)
    assert len(rows) == 2
    votes = list(read_rows(tmp_path / "v.csv"))
    assert {vote["politics"] for vote in votes} == {"liberal; republican"}
    # What they wrote goes the way of all answers.
    made, _ = extract.run(tmp_path / "v.csv")
    told = [
        row["sentence"] if "sentence" in row else row["text"] for row in made if row["identity"]
    ]
    assert told == ["Bakers are early risers, monks are quiet"] or len(told) == 2


def test_tools_ask_for_texts_and_several_answers_too(tmp_path):
    rows = [{"id": "a", "lang": "en", "source_text": "Warm", "translation": "Hot"}]
    source = write(tmp_path / "t.csv", rows)
    exchange.write(source, "label-studio", tmp_path / "l.json", "aqbileq-translation")
    config = (tmp_path / "l-config.xml").read_text("utf-8")
    assert '<TextArea name="translation_right"' in config
    assert 'name="errors" toName="text" choice="multiple"' in config
    exchange.write(source, "potato", tmp_path / "p.jsonl", "aqbileq-translation")
    schemes = json.loads((tmp_path / "p-config.yaml").read_text())["annotation_schemes"]
    assert [s["annotation_type"] for s in schemes] == ["radio", "multiselect", "text"]
    export = json.loads((tmp_path / "l.json").read_text("utf-8"))
    result = [
        {"from_name": "errors", "value": {"choices": ["lexical", "structural"]}},
        {"from_name": "right", "value": {"choices": ["no"]}},
        {"from_name": "translation_right", "value": {"text": ["Warm."]}},
    ]
    export[0]["annotations"] = [{"completed_by": 7, "result": result}]
    (tmp_path / "e.json").write_text(json.dumps(export))
    _, votes, _ = exchange.read([tmp_path / "e.json"], "label-studio")
    tables.write(tmp_path / "v.csv", votes, exchange.VOTES)
    done = validate.keep(source, [tmp_path / "v.csv"], "aqbileq-translation")
    (row,) = done.rows
    assert row["votes"]["errors"] == {"lexical": 1, "structural": 1} and not row["kept"]
    assert row["translation_right"] == "Warm." and not done.odd


@pytest.mark.parametrize("lang", ["en", "ru", "kk"])
def test_shades_has_an_elicitation_with_its_seed_categories(lang, tmp_path):
    """Appendix D: the list of identities, and what is asked of each stereotype (Figures 10 to 12)."""
    pack = collect.load("shades", lang)
    assert [domain.id for domain in pack.domains] == [
        "gender", "age", "gender_age", "ability", "appearance", "profession", "politics", "wealth",
    ]  # fmt: skip
    for domain in pack.domains:
        (task,) = domain.tasks
        assert task.gives == ("pro", "anti", "regions", "type", "slots")
        assert task.needed == ("pro", "anti") and len(task.messages) == 5
    rows = [
        {"id": "a-1", "respondent": "r1", "pack": "shades", "lang": lang, "domain": "age",
         "task": "stereotype", "pro": "Old people get up.", "anti": "Young people get up.",
         "regions": "KZ, RU", "type": "declaration", "slots": "AGE-PL get up."}
    ]  # fmt: skip
    tables.write(tmp_path / "t.csv", rows, list(rows[0]))
    found, _ = pairs.load(str(tmp_path / "t.csv"), None)
    assert found[0].type == "declaration" and found[0].extra["regions"] == "KZ, RU"


def test_every_file_of_questions_is_listed_in_the_help():
    told = CliRunner().invoke(cli, ["dataset", "validate", "export", "--help"]).stdout
    assert all(name in told for name in registry.names("validation"))
