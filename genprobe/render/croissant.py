"""Croissant 1.1 with its responsible-AI fields: what the files of a data set are, for machines.

https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html; `mlcroissant validate` checks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{
        name: f"cr:{name}"
        for name in (
            *("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty"),
            *("fileObject", "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key"),
            *("md5", "parentField", "path", "recordSet", "references", "regex", "repeated"),
            *("replace", "samplingRate", "separator", "source", "subField", "transform"),
        )
    },
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "sc": "https://schema.org/",
}
_TYPES = {"bool": "sc:Boolean", "int64": "sc:Integer", "float64": "sc:Float"}


class File(NamedTuple):
    """A file of a data set.

    id, path: its name in the document, and where it lies. sha256: of its bytes. rows: name of its
    set of records. kinds: column -> the name that `datasets` has for its type, or `list`.
    """

    id: str
    path: str
    sha256: str
    rows: str
    kinds: Mapping[str, str]

    @property
    def format(self) -> str:
        """Return its media type."""
        parquet = self.path.endswith(".parquet")
        return "application/x-parquet" if parquet else "application/jsonlines"

    def fields(self) -> list[dict[str, Any]]:
        """Describe the columns."""
        fields = []
        for name, kind in self.kinds.items():
            one: dict[str, Any] = {
                "@type": "cr:Field",
                "@id": f"{self.rows}/{name}",
                "name": name,
                "dataType": _TYPES.get(kind, "sc:Text"),
                "source": {"fileObject": {"@id": self.id}, "extract": {"column": name}},
            }
            if kind == "list":
                one |= {"isArray": True, "arrayShape": "-1"}
            fields.append(one)
        return fields


def dataset(
    name: str,
    description: str,
    licence: str,
    where: Mapping[str, str],
    creators: Sequence[str],
    languages: Sequence[str],
    files: Sequence[File],
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """Make the document of a data set.

    where: its `url`, if it has one. more: further properties, such as those of RAI.
    """
    context = _CONTEXT | {"isArray": "cr:isArray", "arrayShape": "cr:arrayShape"}
    return {
        "@context": dict(sorted(context.items())),
        "@type": "sc:Dataset",
        "conformsTo": [
            "http://mlcommons.org/croissant/1.1",
            "http://mlcommons.org/croissant/RAI/1.0",
        ],
        "name": name,
        "description": description,
        "license": licence,
        **where,
        "version": "1.0.0",
        "creator": [{"@type": "sc:Organization", "name": one} for one in creators],
        "inLanguage": list(languages),
        "isLiveDataset": False,
        **more,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": file.id,
                "name": file.path,
                "contentUrl": file.path,
                "encodingFormat": file.format,
                "sha256": file.sha256,
            }
            for file in files
        ],
        "recordSet": [
            {"@type": "cr:RecordSet", "@id": file.rows, "name": file.rows, "field": file.fields()}
            for file in files
        ],
    }
