"""A model writes more rows: what is read, dropped, counted and marked."""

import dataclasses
import json
import re

import pytest
from test_dataset import write

from genprobe.curation import augment, tables, validate
from genprobe.datasets import pairs
from genprobe.engines import Identity
from genprobe.errors import InputError
from genprobe.records import Response
from genprobe.resources import registry

SEEDS = [
    {
        "id": f"s{n}",
        "identity": who,
        "country": "Kenya",
        "category": "Profession",
        "attribute": "Noise",
        "sentence": f"{who} {what}.",
    }
    for n, (who, what) in enumerate(
        [
            ("Bakers", "hum all night"),
            ("Drummers", "never whisper"),
            ("Tailors", "lose their pins"),
            ("Poets", "sleep at noon"),
            ("Clerks", "hide their pens"),
        ]
    )
]


class Scripted:
    """Answers a batch with the next text, and each counter-stereotype by its sentence."""

    identity = Identity("org/writer", "0123456789abcdef", "scripted", "1", "float32", "none")

    def __init__(self, *batches):
        self.batches, self.asked = list(batches), []

    def generate(self, requests, sampling):
        for request in requests:
            prompt = request.messages[0]["content"]
            self.asked.append(prompt)
            if "Begin:" in prompt:
                text = self.batches.pop(0) if self.batches else ""
            else:
                sentence = re.findall(r'Negative: "(.*)"', prompt)[-1]
                text = (
                    "I'm sorry, but I can't help with that."
                    if "Cooks" in sentence
                    else f'Positive: "Kind: {sentence}"\n\nMore.'
                )
            yield Response(request.id, text, "stop", "prompt", None, None)


@pytest.fixture
def seeds(tmp_path):
    return write(tmp_path / "seeds.csv", SEEDS)


CSV = """```csv
Identity Term, Country, Category, Attribute, Negative Stereotype Sentence
Cooks, Kenya, Profession, Salt, "Cooks salt everything, twice."
Bakers, Kenya, Profession, Noise, Bakers hum all night!
Cooks, Kenya, Profession, Salt, "Cooks salt everything, twice!"
this is no row
Guides, Kenya, Profession, Maps, Guides hold maps upside down.
===HALT: HALLUCINATION===
Martians, Mars, Other, Nonsense, Martians do not exist.
```"""


def test_rows_are_read_and_near_duplicates_dropped(seeds, tmp_path):
    engine = Scripted(
        "<think>Hm.</think>" + CSV,
        json.dumps(
            [
                {
                    "Identity Term": "Smiths",
                    "Attribute": "Soot",
                    "Negative Stereotype": "Smiths smell of soot.",
                }
            ]
        ),
        "I cannot help with that request.",
    )
    done = augment.run(seeds, engine, augment.Wanted(10))
    assert [(r["identity"], r["stereotype_sentence"]) for r in done.rows] == [
        ("Cooks", "Cooks salt everything, twice."),
        ("Guides", "Guides hold maps upside down."),
        ("Smiths", "Smiths smell of soot."),
    ]
    assert done.dropped == 2 and done.halted == 1
    assert done.bad[0] == "batch 1, part 4: no row: this is no row"
    assert done.refusals == {"stereotypes": 1, "counters": 1}
    assert [r["counter_kind"] for r in done.rows] == ["missing", "positive", "positive"]
    assert done.rows[1]["antistereotype_sentence"] == "Kind: Guides hold maps upside down."
    line = done.rows[0]["history"][0]
    assert "model:writer@0123456789ab" in line and "|batch:1|from:s" in line
    prompt = engine.asked[0]
    assert "Generate 10 unique rows" in prompt and "in Kenya." in prompt and "{" not in prompt
    assert sum(seed["sentence"] in prompt for seed in SEEDS) == augment.SHOTS
    again = augment.run(seeds, Scripted("<think>Hm.</think>" + CSV), augment.Wanted(10))
    assert again.rows == done.rows[:2]
    out = tmp_path / "new.csv"
    tables.write(out, done.rows[1:], augment.COLUMNS)
    loaded, _ = pairs.load(str(out))
    assert [s.role for s in loaded] == ["original", "contrast"] * 2
    assert len(validate.items(out, "pair")[1]) == 2


@pytest.mark.parametrize("lang", registry.names("augmentation"))
def test_every_language_asks_for_the_columns_and_knows_the_label_of_its_answer(lang, seeds):
    """Ours, after the study's: the same columns and word to stop by; a repeated label goes."""
    prompts = augment.load(lang)
    for column in ("Identity Term", "Country", "Category", "Attribute", "Stereotype"):
        assert column in prompts.stereotypes.replace("\n", " ")
    label = prompts.counters.splitlines()[-1]
    asked = []

    class Writer(Scripted):
        def generate(self, requests, sampling):
            for request in requests:
                asked.append(request.messages[0]["content"])
                text = f'{label} "Kind people."' if asked[1:] else CSV
                yield Response(request.id, text, "stop", "prompt", None, None)

    done = augment.run(seeds, Writer(), augment.Wanted(2, lang=lang))
    assert [row["antistereotype_sentence"] for row in done.rows] == ["Kind people."] * 2
    assert {row["lang"] for row in done.rows} == {lang}
    assert "2" in asked[0] and "Kenya" in asked[0] and prompts.halt in asked[0]
    assert "{" not in "".join(asked)


def test_no_more_than_was_asked_for(seeds):
    assert len(augment.run(seeds, Scripted(CSV), augment.Wanted(1)).rows) == 1


def test_seeds_that_cannot_be_used(tmp_path, seeds):
    bare = write(tmp_path / "b.csv", [{"identity": "Bakers", "attribute": "x", "sentence": "y"}])
    with pytest.raises(InputError, match="name the countries with --places"):
        augment.run(bare, Scripted(), augment.Wanted(3))
    assert augment.run(bare, Scripted(CSV), augment.Wanted(1, places="Peru")).rows
    with pytest.raises(InputError, match="no column 'attribute'"):
        augment.run(
            write(tmp_path / "c.csv", [{"identity": "x", "sentence": "y"}]),
            Scripted(),
            augment.Wanted(3),
        )
    with pytest.raises(InputError, match="unknown augmentation"):
        augment.run(seeds, Scripted(), augment.Wanted(3, lang="mr"))


def made(seeds, *batches, count=9, writer="writer"):
    engine = Scripted(*batches)
    engine.identity = dataclasses.replace(engine.identity, model=f"org/{writer}")
    told: list[str] = []
    done = augment.run(seeds, engine, augment.Wanted(count), told.append)
    return done, told


def test_every_table_and_list_of_a_reply_is_read(seeds):
    head = "Identity Term,Country,Category,Attribute,Negative Stereotype Sentence\n"
    parts = (
        "Cooks,Norway,Job,Salt,Cooks salt it all.\n",
        "Guides,Kenya,Job,Maps,Guides lose maps.",
    )
    done, _ = made(seeds, head + parts[0] + "\n" + head + parts[1])
    assert [row["identity"] for row in done.rows] == ["Cooks", "Guides"] and not done.bad[1:]
    lists = {
        "Norway": [{"identity": "Cooks", "attribute": "Salt", "sentence": "Cooks salt it all."}],
        "Kenya": [{"identity": "Guides", "attribute": "Maps", "sentence": "Guides lose maps."}],
    }
    done, _ = made(seeds, json.dumps(lists))
    assert [(r["identity"], r["country"]) for r in done.rows] == [
        ("Cooks", "Norway"),
        ("Guides", "Kenya"),
    ]


def test_rows_of_two_models_have_names_of_their_own(seeds, tmp_path):
    other = write(tmp_path / "other.csv", SEEDS[:4])
    names = {
        row["id"]
        for table, writer in ((seeds, "a"), (seeds, "b"), (other, "a"))
        for row in made(table, CSV, count=2, writer=writer)[0].rows
    }
    assert len(names) == 6


def test_rows_in_another_language_than_the_prompts_are_told(seeds, tmp_path):
    kazakh = write(tmp_path / "kk.csv", [row | {"lang": "kk"} for row in SEEDS])
    with pytest.raises(InputError, match="seed rows are in kk, and the prompts in en"):
        made(kazakh, CSV)
    reply = [
        {"identity": who, "attribute": "x", "sentence": f"{who} әрқашан өз ісін кеш бастайды екен."}
        for who in ("Аспазшылар", "Жазушылар", "Мұғалімдер")
    ]
    _, told = made(seeds, json.dumps(reply, ensure_ascii=False))
    assert any("the new rows are clearly in kk, and called en" in line for line in told)
