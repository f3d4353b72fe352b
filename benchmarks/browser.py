"""Measure how fast the browser of replies in a report responds, and how large it is.

    python benchmarks/browser.py RUN... [--replies 20000 100000]

The given number of replies is taken from the runs. If the runs have too few, copies are added, each
with a text of its own. The section is made and opened in a headless Chromium. Then filters are set,
words are typed letter by letter, and orders and pages are changed. The page's own clock measures
how long each takes, for the script and the layout that it causes. Prints medians and worst times of
--rounds rounds.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import resource
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import pandas as pd

from genprobe.outcomes import table
from genprobe.report import replies
from genprobe.runs.run import Run

WORDS = ("women", "нет", "الرجال", "मह", "নারী", "不", "zzz")

STEPS = """async (words) => {
  const get = (name) => document.getElementById(`replies-${name}`);
  const took = {};
  const timed = (what, act) => {
    const start = performance.now();
    act();
    document.body.offsetHeight; // lays the page out
    (took[what] ??= []).push(performance.now() - start);
  };
  const set = (control, value, event) => {
    control.value = value;
    control.dispatchEvent(new Event(event));
  };
  for (const select of document.querySelectorAll("#replies-view .r-facets select")) {
    for (let k = 0; k < select.options.length && k < 8; k++) {
      timed("filter", () => set(select, select.options[k].value, "change"));
    }
    timed("filter", () => set(select, "-1", "change"));
  }
  for (const word of words) {
    for (let end = 1; end <= word.length; end++) {
      timed("search, each letter", () => set(get("q"), word.slice(0, end), "input"));
    }
    timed("search, each letter", () => set(get("q"), "", "input"));
  }
  for (const option of get("sort").options) {
    timed("order, first time", () => set(get("sort"), option.value, "change"));
  }
  for (const option of get("sort").options) {
    timed("order, again", () => set(get("sort"), option.value, "change"));
  }
  for (let k = 0; k < 10; k++) timed("page", () => get("next").click());
  return took;
}"""


def rows(tables: dict[str, pd.DataFrame], count: int) -> dict[str, pd.DataFrame]:
    """Return `count` rows of the tables; copies with changed replies are added if there are fewer.

    Each table gives the same share of the rows.
    """
    share = -(-count // len(tables))
    found = {}
    for name, one in tables.items():
        parts, left = [], share
        while left > 0:
            part = one[:left].copy()
            if parts:
                part["response"] = part["response"] + f" {len(parts)}"
            parts.append(part)
            left -= len(part)
        found[name] = pd.concat(parts, ignore_index=True)
    return found


def page(section: str) -> str:
    css, js = ((replies.HERE / f"replies.{kind}").read_text("utf-8") for kind in ("css", "js"))
    digest = base64.b64encode(hashlib.sha256(js.encode()).digest()).decode()
    return (
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Replies</title>'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'\">"
        f"<style>{css}</style><body>{section}<script>{js}</script>"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--replies", nargs="+", type=int, default=[20_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    tables = {path.name: table.outcomes(Run.open(path)) for path in options.runs}
    print(f"{'replies':>8}  {'what':22} {'median ms':>10} {'worst ms':>10}")
    for count in options.replies:
        start = time.perf_counter()
        section = str(replies.section(rows(tables, count), False))
        made = time.perf_counter() - start
        with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
            file = Path(folder) / "page.html"
            file.write_text(page(section), "utf-8")
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            took: dict[str, list[float]] = {}
            for _ in range(options.rounds):
                view = browser.new_page()
                view.goto(file.as_uri())
                opened = view.evaluate(
                    """async () => {
                      const start = performance.now();
                      document.getElementById("replies-open").click();
                      while (!document.querySelector("#replies-list li")) {
                        await new Promise((go) => setTimeout(go, 1));
                      }
                      return performance.now() - start;
                    }"""
                )
                took.setdefault("opening", []).append(opened)
                for what, times in view.evaluate(STEPS, list(WORDS)).items():
                    took.setdefault(what, []).extend(times)
                view.close()
            browser.close()
        for what, times in took.items():
            print(f"{count:8,}  {what:22} {statistics.median(times):10.1f} {max(times):10.1f}")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{count:8,}  section: {len(section):,} characters, {made:.1f} s, peak {peak:.0f} MB")


if __name__ == "__main__":
    main()
