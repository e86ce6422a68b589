"""Rows and pictures of a dataset to their description in Croissant 1.0, which dataset search and loaders read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

ENDINGS: Final = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif"}
LINES, PARQUET = "application/jsonlines", "application/x-parquet"
CARD = "croissant.json"
CONTEXT: Final[Mapping[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataBiases": "cr:dataBiases",
    "dataCollection": "cr:dataCollection",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "personalSensitiveInformation": "cr:personalSensitiveInformation",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context as the specification (1.0) writes it: readers compare it whole."""


class Field(NamedTuple):
    """A column of texts; `repeated`: each cell is a list of them."""

    words: str
    repeated: bool = False


class Rows(NamedTuple):
    """The file of the rows."""

    name: str
    sha256: str
    fields: Mapping[str, Field]
    encoding: str = LINES


def card_bytes(about: Mapping[str, str], rows: Rows, pictures: Mapping[str, Sequence[str]]) -> bytes:
    """Return croissant.json; `about` has name, and may have description, licence, url, date.

    `pictures` is folder -> the endings of the files in it.
    """
    return json.dumps(describe(about, rows, pictures), indent=2, ensure_ascii=False).encode() + b"\n"


def describe(about: Mapping[str, str], rows: Rows, pictures: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the same as an object."""
    mimes = {ending: mime for mime, ending in ENDINGS.items()}
    sets = [
        {
            "@type": "cr:FileSet",
            "@id": f"pictures-{ending}",
            "name": f"pictures-{ending}",
            "encodingFormat": mimes.get(ending, f"image/{ending}"),
            "includes": f"{folder}/*.{ending}",
        }
        for folder, endings in sorted(pictures.items())
        for ending in sorted(endings)
    ]
    file = {
        "@type": "cr:FileObject",
        "@id": rows.name,
        "name": rows.name,
        "contentUrl": rows.name,
        "encodingFormat": rows.encoding,
        "sha256": rows.sha256,
    }
    return {
        "@context": dict(CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": about["name"],
        "description": about.get("description") or f"Questions of {about['name']}, written by Snellen.",
        "license": about.get("licence") or "unknown",
        "url": about.get("url") or "https://example.org/unpublished",
        "version": "1.0.0",
        "citeAs": about["name"],
        **({"datePublished": about["date"]} if about.get("date") else {}),
        "distribution": [file, *sets],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": list(_fields(rows))}],
    }


def _fields(rows: Rows) -> Iterator[dict[str, Any]]:
    for name, field in rows.fields.items():
        yield {
            "@type": "cr:Field",
            "@id": f"rows/{name}",
            "name": name,
            "description": field.words,
            "dataType": "sc:Text",
            **({"repeated": True} if field.repeated else {}),
            "source": {"fileObject": {"@id": rows.name}, "extract": {"column": name}},
        }
