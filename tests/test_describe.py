"""Counts of a data set before any model."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from genprobe.commands import cli
from genprobe.datasets import describe, pairs
from genprobe.report import counted
from genprobe.report.figures import _plot

DATA = Path(__file__).parents[2] / "shared" / "data"


def counts(source, **more):
    found, notes = describe.describe(str(source), **more)
    return {(c.table, c.value): c.n for c in found}, notes


def test_what_is_shipped():
    found, _ = counts("builtin", langs=["en", "kk"])
    assert found["role", "original"] == found["role", "contrast"]
    assert found["language", "en"] == found["language", "kk"] == found["role", "original"] / 2
    domains, _ = counts("templates")
    assert domains["items", "templates"] >= 155 and domains["domain", "economic-status"] > 0


def test_what_is_odd_is_told(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(
        "item,lang,pro,anti,domain\n1,en,Cats sleep.,Dogs sleep.,a\n2,en,cats sleep,Birds sing.,b\n",
        "utf-8",
    )
    found, notes = counts(path)
    assert found["domain", "a"] == 1
    assert any("under 1 names: 1, 2" in note for note in notes)


@pytest.mark.parametrize("head", [",sent_more,sent_less", "\tpro-trope\tanti-trope\tdomain"])
def test_a_column_of_row_numbers_without_a_name_is_no_group(head, tmp_path):
    """CrowS-Pairs and RuBia are published with one; it was counted as the entity of each pair."""
    tab = "\t" in head
    rows = [["0", "Cats sleep.", "Dogs sleep."], ["1", "Cats eat.", "Dogs eat."]]
    lines = [("\t" if tab else ",").join(row + ["class"] * tab) for row in rows]
    path = tmp_path / ("t.tsv" if tab else "t.csv")
    path.write_text("\n".join([head, *lines]) + "\n", "utf-8")
    items, _ = pairs.load(str(path), ["en"])
    assert [item.entity for item in items] == [""] * 4
    found, _ = counts(path, langs=["en"])
    assert found["items", "sentences of pairs"] == 4 and found["role", "original"] == 2
    assert not any(table == "entity" for table, _ in found)


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not here")
@pytest.mark.slow
def test_published_counts():
    """RuBia and CrowS-Pairs have 2,239 and 1,508 pairs; BBQ's Age 3,680 choices of 25 templates."""
    rubia, _ = counts(DATA / "rubia" / "pairs.csv")
    assert rubia["role", "original"] == 2239 and rubia["task_type", "freeform_antisem"] == 110
    assert counts(DATA / "crows-pairs" / "crows_pairs.csv")[0]["role", "original"] == 1508
    bbq, _ = counts(DATA / "bbq" / "Age.jsonl")
    assert bbq["items", "choices"] == 3680 and bbq["templates of a category", "Age"] == 25
    assert bbq["condition", "ambig"] == bbq["condition", "disambig"] == 1840
    shades, _ = counts(DATA / "shades" / "statements.csv", langs=["en"])
    assert 250 < shades["language", "en"] < 300 and shades["region", "CN"] > 26


def test_the_command(tmp_path):
    done = CliRunner().invoke(cli, ["describe", "builtin", "--lang", "en", "-f", "json"])
    rows = json.loads(done.stdout)
    assert {"table": "language", "value": "en", "n": 60, "of": 60} in rows
    done = CliRunner().invoke(cli, ["describe", "builtin", "--lang", "en"])
    assert "language (of 60)" in done.stdout


@pytest.mark.skipif(not (DATA / "bbq").is_dir(), reason="../shared/data/bbq is not here")
def test_a_folder_in_bbqs_layout_is_one_data_set():
    assert counts(DATA / "bbq")[0]["items", "choices"] == 3680 + 1200


def test_values_that_look_alike_are_counted_as_one(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("text,lang,domain\nA b.,en,work\nC d.,en,work\u200f\n", "utf-8")
    (count,) = [c for c in describe.describe(str(path))[0] if c.table == "domain"]
    assert (count.value, count.n, count.of) == ("work", 2, 2)


def test_domains_are_crossed_with_languages(tmp_path):
    path = tmp_path / "pairs.csv"
    rows = ["1,kk,А,Б,a,x", "1,ru,В,Г,a,x", "2,kk,Д,Е,a,y"]
    path.write_text("\n".join(["item,lang,pro,anti,domain,subdomain", *rows]) + "\n", "utf-8")
    found, _ = describe.describe(str(path))
    crossed = {(c.value, c.across): c.n for c in found if c.table == "domain, subdomain, language"}
    assert crossed == {
        ("a / x", "kk"): 1,
        ("a / x", "ru"): 1,
        ("a / y", "kk"): 1,
        ("a / y", "ru"): 0,
    }
    done = CliRunner().invoke(cli, ["describe", str(path)])
    assert "        kk        ru\n         1         1  a / x\n" in done.stdout


def test_groups_are_counted_by_what_is_said(tmp_path):
    path = tmp_path / "grouped.csv"
    path.write_text(
        "id,lang,identity,attribute,group,group_size,medoid,contradicts\n"
        "1,en,women,very smart,2,2,false,3\n"
        "2,en,men,smart,2,2,true,3\n"
        "3,en,women,not smart,3,1,true,2\n"
        "4,kk,women,,,0,false,\n",
        "utf-8",
    )
    found, _ = counts(path)
    said = "what is said (a group, by its medoid)"
    assert found["rows", "in a group"] == 3 and found["identity", "women"] == 2
    assert (found[said, "smart"], found[said, "not smart"]) == (2, 1)
    assert found["groups", "that another group contradicts"] == 2
    assert counts(path, langs=["kk"])[0]["rows", "in a group"] == 0


def test_counts_are_drawn(tmp_path):
    found = [
        describe.Count("entity", "bakers", 3, 5),
        describe.Count("entity", "poets", 1, 5),
        describe.Count("entity", "2 more values", 2, 5),
        describe.Count("domain, language", "a", 2, 3, "kk"),
        describe.Count("domain, language", "b", 1, 3, "ru"),
        describe.Count("label", "0", 3, 3),  # one value is no figure
    ]
    bars, heat = counted._figures(found, "x.csv")
    with _plot.style():
        ax = bars.plot().axes[0]
        assert [int(bar.get_width()) for bar in ax.patches] == [3, 1]
        assert ax.get_xlabel() == "entity (of 5, 2 more values not drawn)"
        assert [text.get_text() for text in heat.plot().axes[0].texts] == ["2", "1"]
    (svg, *_, tex) = counted.draw(found[:3], "x.csv", tmp_path)
    assert svg.name == "counts-entity.svg" and "poets" in tex.read_text()
