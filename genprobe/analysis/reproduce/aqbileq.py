"""Aqbileq: its printed tables against each other: totals, averages, shares of whole pairs.

The study publishes no values of single pairs, so no folder is needed. An average is that of six
domains; Language Use has one subdomain, so its share is a whole number of that subdomain's pairs.
"""

from __future__ import annotations

from collections.abc import Iterator

from genprobe.analysis.reproduce import Cell, File, Folder, Printed, figure

FILES: tuple[File, ...] = ()
_DOMAINS = ("cultural", "identity", "ideology", "language", "social", "economic")


def cells(folder: Folder, printed: Printed) -> Iterator[Cell]:
    """Yield the cells that follow from other printed figures."""
    *subdomains, total = printed.rows("pairs")
    pairs = {row["subdomain"]: int(row["pairs"]) for row in subdomains}
    n = sum(pairs.values())
    yield printed.cell(printed.where("pairs"), "pairs", total["pairs"], n)
    # Of each pair two statements, each in three variants.
    ours = (len(pairs), n, 2 * n, 2 * 3 * n, n)
    for row, value in zip(printed.rows("claims"), ours, strict=True):
        yield printed.cell(printed.where("claims"), row["claim"], row["figure"], value)
    for key in ("encoders", "decoders"):
        rows = printed.rows(key)
        for row in rows:
            values = [figure(row[domain]) for domain in _DOMAINS]
            mean = sum(value for _, value, _ in values) / len(values)
            slack = sum(half for _, _, half in values) / len(values)
            table = f"{printed.where(key)}, average of six domains"
            yield printed.cell(table, f"{row['model']}, {row['text']}", row["average"], mean, slack)
        for row in rows:
            share = figure(row["language"])[1]
            nearest = round(share * pairs["language"]) / pairs["language"]
            table = f"{printed.where(key)}, Language Use, of {pairs['language']} pairs"
            yield printed.cell(table, f"{row['model']}, {row['text']}", row["language"], nearest)
