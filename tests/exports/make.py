"""Make the exports in this folder with the tools' own code, from checkouts of their repositories.

    python tests/exports/make.py LABEL_STUDIO_SDK POTATO DOCCANO

HumanSignal/label-studio-sdk 97fcff19 (`Converter`), davidjurgens/potato f5ed5d48 (2.8.0,
`JSONLExporter`; 2.12.1 writes the same fields) and doccano/doccano ab6b765e (1.8.5, the pipeline of
`data_export`). What stands before their export (a server, its data base) is given here in the shape
that this code reads; packages that it imports and does not use are stand-ins.
"""

import json
import shutil
import sys
import tempfile
import types
from pathlib import Path
from unittest.mock import MagicMock

from genprobe.curation import exchange

HERE = Path(__file__).parent
SOURCE = HERE / "pairs.csv"
# item -> what two people said of both questions of RuBia; the second has skipped an item.
SAID = {
    "tea": (("yes", "yes"), ("yes", "no")),
    "run": (("no", "yes"), ("no", "yes")),
    "fit": (("yes", "yes"), None),
}
RATERS = ("aida", "berik")


def said_of(item: str) -> tuple:
    """What was said of an item; behind its name stands a hash of what is shown."""
    return SAID[item.partition("#")[0]]


def label_studio(checkout: Path, made: Path) -> None:
    sys.path.insert(0, str(checkout / "src"))
    reader = types.ModuleType("ijson")
    reader.backend = "json"
    reader.items = lambda file, _, **__: iter(json.load(file))
    sys.modules |= {"ijson": reader, "ujson": json}
    sys.modules |= {"jwt": MagicMock(), "appdirs": MagicMock()}
    package = "label_studio_sdk.converter"
    for name in ("brush", "audio", "keypoints", "exports.yolo"):
        sys.modules[f"{package}.{name}"] = MagicMock()
    for name, folder in (("label_studio_sdk", "."), (package, "converter")):
        module = types.ModuleType(name)
        module.__path__ = [str(checkout / "src" / "label_studio_sdk" / folder)]
        sys.modules[name] = module
    from label_studio_sdk.converter.converter import Converter

    tasks = json.loads((made / "t.json").read_text("utf-8"))
    for number, task in enumerate(tasks, 1):
        task |= {"id": number, "annotations": []}
        for by, answers in enumerate(said_of(task["data"]["item"]), 1):
            result = [
                {"from_name": name, "to_name": "text", "type": "choices", "id": f"r{number}{by}"}
                | {"value": {"choices": [answer]}}
                for name, answer in zip(("trope", "minimal"), answers or (), strict=False)
            ]
            who = {"id": by, "email": f"{RATERS[by - 1]}@example.org"}
            at = f"2026-11-0{by}T10:00:00Z"
            task["annotations"].append(
                {"id": 10 * number + by, "completed_by": who, "was_cancelled": answers is None}
                | {"created_at": at, "updated_at": at, "lead_time": 3.5, "result": result}
            )
    text = json.dumps(tasks, ensure_ascii=False, indent=1)
    (HERE / "label-studio.json").write_text(text, "utf-8")
    config = (made / "t-config.xml").read_text("utf-8")
    converter = Converter(config, str(made), download_resources=False)
    given = str(HERE / "label-studio.json")
    converter.convert_to_json_min(given, str(made / "min"), is_dir=False)
    shutil.copy(made / "min" / "result.json", HERE / "label-studio-min.json")
    converter.convert_to_csv(given, str(made / "csv"), is_dir=False, sep=",", header=True)
    shutil.copy(made / "csv" / "result.csv", HERE / "label-studio.csv")


def potato(checkout: Path, made: Path) -> None:
    sys.path.insert(0, str(checkout))
    sys.modules["potato"] = types.ModuleType("potato")
    sys.modules["potato"].__path__ = [str(checkout / "potato")]
    for name in ("export", "server_utils"):
        module = sys.modules[f"potato.{name}"] = types.ModuleType(f"potato.{name}")
        module.__path__ = [str(checkout / "potato" / name)]
    from potato.export.base import ExportContext
    from potato.export.tabular_exporter import CSVExporter, JSONLExporter

    config = json.loads((made / "p-config.yaml").read_text("utf-8"))
    words = [
        dict(zip(("yes", "no"), s["labels"], strict=True)) for s in config["annotation_schemes"]
    ]
    lines = (made / "p.jsonl").read_text("utf-8").splitlines()
    said = [
        {"instance_id": item, "user_id": who, "spans": {}, "links": {}}
        | {
            "labels": {
                scheme["name"]: {known[answer]: known[answer]}
                for scheme, known, answer in zip(
                    config["annotation_schemes"], words, answers, strict=True
                )
            }
        }
        for item in (json.loads(line)["id"] for line in lines)
        for who, answers in zip(RATERS, said_of(item), strict=True)
        if answers
    ]
    context = ExportContext(config, said, {}, config["annotation_schemes"], str(made))
    for exporter, name in ((JSONLExporter(), "jsonl"), (CSVExporter(), "csv")):
        exporter.export(context, str(made / "exports" / name))
        shutil.copy(made / "exports" / name / f"annotations.{name}", HERE / f"potato.{name}")


def doccano(checkout: Path, made: Path) -> None:
    sys.path.insert(0, str(checkout / "backend"))
    models = MagicMock(DATA="data")
    for name in ("data_export", "data_export.pipeline"):
        module = sys.modules[name] = types.ModuleType(name)
        module.__path__ = [str(checkout / "backend" / name.replace(".", "/"))]
    sys.modules |= {"data_export.models": models, "projects": MagicMock()}
    sys.modules |= {"projects.models": MagicMock(), "django": MagicMock()}
    sys.modules |= {"django.db": MagicMock(), "django.db.models": MagicMock()}
    sys.modules |= {"django.db.models.query": MagicMock()}
    from data_export.pipeline import formatters, writers
    from data_export.pipeline.services import ExportApplicationService

    class Label:
        def __init__(self, text):
            self.to_string = lambda: text

    items = [json.loads(line) for line in (made / "d.jsonl").read_text("utf-8").splitlines()]
    folder = made / "export"
    folder.mkdir()
    for at, who in enumerate(RATERS):
        rows = []
        for number, item in enumerate(items, 1):
            said = said_of(item["item"])[at]
            labels = [Label(said[0])] if said else []
            meta = {name: item[name] for name in ("item", "genprobe_row")}
            rows.append({"id": number, "data": item["text"], **meta})
            rows[-1] |= {"categories": labels, "Comments": []}
        import pandas as pd

        class Dataset:
            def to_dataframe(self, rows=rows):
                return pd.DataFrame(rows)

        applied = [
            formatters.ListedCategoryFormatter("categories"),
            formatters.ListedCategoryFormatter("Comments"),
            formatters.RenameFormatter(data="text", categories="label"),
        ]
        service = ExportApplicationService(Dataset(), applied, writers.JsonlWriter())
        service.export(folder / f"{who}.jsonl")
    shutil.make_archive(str(HERE / "doccano"), "zip", folder)


def main() -> None:
    checkouts = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as name:
        made = Path(name)
        exchange.write(SOURCE, "label-studio", made / "t.json", "rubia")
        exchange.write(SOURCE, "potato", made / "p.jsonl", "rubia")
        exchange.write(SOURCE, "doccano", made / "d.jsonl", "aqbileq")
        for tool, checkout in zip((label_studio, potato, doccano), checkouts, strict=True):
            tool(checkout, made)


if __name__ == "__main__":
    main()
