"""Make prompts/real.jsonl: pointers to labelled replies in public repositories, without texts.

    python tools/pointers.py LABELLED.jsonl --clones FOLDER [--more OWNER/NAME:PATH]

LABELLED.jsonl has the texts: `source` (OWNER/NAME@COMMIT:PATH), `licence`, `lang`, `reads`,
`prompt`, `response`, `gold`, `labelled_by`, `sure`. FOLDER has a clone of each repository, called
OWNER+NAME. Written is, for each repository and commit, what to fetch, and for each row its labels
and the SHA-256 of prompt and reply. A row whose texts are not whole in those files is left out and
counted: a prompt may be its last paragraph, or stand in another file (--more).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from genprobe.analysis.licence import sha, texts_in

ROOT = Path(__file__).parents[1]
READ = (".json", ".jsonl", ".csv", ".parquet")


def git(clone: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(clone), *words], check=True, capture_output=True).stdout


def texts(clone: Path, commit: str, path: str) -> set[str]:
    """The texts of a file of a repository."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / f"copy{Path(path).suffix}"
        copy.write_bytes(git(clone, "show", f"{commit}:{path}"))
        return set(texts_in(copy))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("labelled", type=Path)
    parser.add_argument("--clones", type=Path, required=True)
    parser.add_argument("--more", action="append", default=[])
    asked = parser.parse_args()
    rows = [json.loads(line) for line in asked.labelled.read_text("utf-8").splitlines()]
    sources: dict[tuple[str, str], list[dict]] = {}
    for row in rows:
        where, _, row["path"] = row["source"].partition(":")
        if row["sure"] and row["path"].endswith(READ):
            sources.setdefault(tuple(where.split("@")), []).append(row)
    lines, kept = [], 0
    for (repo, commit), own in sorted(sources.items()):
        clone = next(p for p in asked.clones.glob(f"{repo.replace('/', '+')}*") if p.is_dir())
        clone = clone / "repo" if (clone / "repo").is_dir() else clone
        commit = git(clone, "rev-parse", f"{commit}^{{commit}}").decode().strip()
        more = [one.partition(":")[2] for one in asked.more if one.startswith(f"{repo}:")]
        paths = sorted({row["path"] for row in own} | {*more})
        there = set().union(*(texts(clone, commit, path) for path in paths))
        found, before = [], ""
        for row in own:
            shown = [
                row["prompt"],
                row["prompt"].split("\n\n")[-1],
                row["prompt"].removeprefix("Q: "),
            ]
            prompt = next((text for text in shown if text in there), None)
            if prompt == shown[2] != shown[0]:
                before = "Q: "  # so in all its rows
            if prompt is not None and row["response"] in there:
                about = [row[name] for name in ("lang", "reads", "gold", "labelled_by")]
                found.append([*about, sha(prompt), sha(row["response"])])
        print(f"{repo}@{commit[:10]}: {len(found)} of {len(own)} rows")
        kept += len(found)
        line = {"repo": repo, "commit": commit, "paths": paths, "licence": own[0]["licence"]}
        line["before"] = before
        lines.append(json.dumps(line | {"rows": sorted(found)}, ensure_ascii=True))
    (ROOT / "prompts" / "real.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    print(f"prompts/real.jsonl: {kept} of {len(rows)} rows")


if __name__ == "__main__":
    main()
