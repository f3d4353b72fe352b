"""Columns by which scores are grouped and that no reply has: facts of models, regions, forms."""

import pytest

from genprobe import files
from genprobe.analysis.score import score
from genprobe.errors import InputError
from genprobe.metrics import score as of_table
from genprobe.outcomes import facts, table


def write(tmp_path, rows):
    path = tmp_path / "rows.jsonl"
    files.write_rows(path, rows)
    return path


def reply(name, answer, regions="", model="m", lang="en", **more):
    return {
        "model": model,
        "lang": lang,
        "probe": "recognition",
        "statement": name,
        "answer": answer,
        "stereotype_valid_regions": regions,
        **more,
    }


ROWS = [
    reply("a", "yes", ["KZ", "RU"]),
    reply("b", "no", "['KZ']"),
    reply("c", "yes", "IT, FR"),
    reply("d", "no", []),
]


def values(scores, column):
    return {s.by[column]: (s.value, s.n) for s in scores if s.metric == "recognised"}


def test_a_region_is_a_filter_and_a_grouping(tmp_path):
    path = write(tmp_path, ROWS)
    by_region = values(score(path, by="region", metrics="recognised"), "region")
    assert by_region == {"KZ": (0.5, 2), "RU": (1.0, 1), "IT": (1.0, 1), "FR": (1.0, 1)}
    [only] = score(path, metrics="recognised", regions=["kz"], by="lang")
    assert (only.value, only.n) == (0.5, 2) and "regions:kz" in only.signature
    inside = values(score(path, by="inside", metrics="recognised", regions=["KZ"]), "inside")
    assert inside == {"yes": (0.5, 2), "no": (1.0, 1)}


def test_what_regions_cannot_do(tmp_path):
    path = write(tmp_path, ROWS)
    with pytest.raises(InputError, match="known in atlantis; regions: FR, IT, KZ, RU"):
        score(path, regions=["Atlantis"])
    with pytest.raises(InputError, match="--by inside needs --region"):
        score(path, by="inside")
    bare = [{k: v for k, v in row.items() if "regions" not in k} for row in ROWS]
    with pytest.raises(InputError, match="stereotype_valid_regions"):
        score(write(tmp_path, bare), by="region")


def test_facts_of_models_are_columns(tmp_path):
    rows = [
        reply("a", "yes", model="Qwen/Qwen2-7B"),
        reply("b", "no", model="Qwen/Qwen2-7B-Instruct"),
        reply("c", "no", model="somebody/Thing-560m"),
    ]
    path = write(tmp_path, rows)
    kinds = values(score(path, by=["model", "model_kind"], metrics="recognised"), "model_kind")
    assert kinds == {"base": (1.0, 1), "instruct": (0.0, 1), None: (0.0, 1)}
    assert facts.of_model("Qwen/Qwen2-7B")["model_family"] == "Qwen"
    sizes = {"a/B-7B": "7B", "a/qwen2.5-1.5b-x": "1.5B", "a/bloomz-7b1": "7.1B", "a/gpt4o": None}
    sizes |= {
        "s/stablelm-2-1_6b": "1.6B",
        "i/internlm2_5-1_8b-chat": "1.8B",
        "b/bloom-560m": "0.56B",
    }
    sizes |= {"b/bloom-1b1": "1.1B", "b/bloom-1b7": "1.7B", "m/llama_2_7b": "7B", "m/8x7b": None}
    assert {name: facts.of_model(name)["model_size"] for name in sizes} == sizes
    assert facts.of_model("dorna-legacy")["model_size"] == "8B"


def test_sayings_and_descriptions_are_told(tmp_path):
    rows = [
        reply("a", "yes", role="original", type="declaration"),
        reply("b", "no", role="original", type="description"),
        reply("c", "no", role="original", type="declaration", expression="TRUE"),
    ]
    said = []
    score(write(tmp_path, rows), note=said.append)
    [line] = said
    assert "descriptions 1, sayings 1" in line and "--by type" in line
    said.clear()
    score(write(tmp_path, rows), by="type", note=said.append)
    assert said == []


def test_the_average_of_six_domains():
    """Aqbileq's bottom line: the mean of the domains' S_D, not of all subdomains."""
    pairs = [("A", "a1", 1.0), ("A", "a1", 1.0), ("A", "a2", 1.0), ("B", "b1", -1.0)]
    rows = [
        {
            "item": str(n),
            "lang": "kk",
            "model": "m",
            "domain": d,
            "subdomain": s,
            "pro": p,
            "anti": 0,
        }
        for n, (d, s, p) in enumerate(pairs)
    ]
    found = of_table(table.from_rows(rows), ["win-rate-mean", "win-rate-domains"], [], str)
    assert [s.value for s in found] == [pytest.approx(2 / 3), pytest.approx(0.5)]
