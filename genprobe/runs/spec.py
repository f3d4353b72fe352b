"""Define a run (`Spec`) and the short signature that is stored with every number.

The signature is made by iterating over the fields of `Spec`, so a field added there appears in
every later signature.
"""

from __future__ import annotations

import dataclasses
import hashlib
import platform
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genprobe._version import __version__
from genprobe.errors import InputError, RunError
from genprobe.files import door
from genprobe.files.rows import Rows, Table, rows_of
from genprobe.limits import parsed
from genprobe.records import JSON, Record, canonical, described, digest
from genprobe.text import natural

LOG = "log"  # the engine of a run of replies that another harness, or its owner, asked for


@dataclass(frozen=True, kw_only=True)
class Spec(Record):
    """All settings of a run. It never holds a key or a token.

    Two runs with equal specs ask the same model the same questions in the same way.
    """

    command: str = described("Command that made the run, such as `yesno`.")
    model: str = described("Name of the model, as the engine gives it.")
    checkpoint: str = described(
        "Name of the revision: the branch or tag that was requested, or the folder of a training "
        "step; empty if it has no name.",
        default="",
    )
    revision: str = described("Commit on the Hub, or a hash of the files of a local folder.")
    engine: str = described(
        "Name of the engine, such as `transformers`; `log` for replies in a file that others made."
    )
    engine_version: str = described("Version of the engine.")
    dtype: str = described("Number format of the weights, such as `bfloat16`.")
    chat_template: str = described("Hash of the chat template; `none` if there is none.")
    engine_args: dict[str, JSON] = described(
        "Further arguments of the engine that can change a reply."
    )
    server: str = described(
        "Address of the server (scheme, host, port and path, never credentials); empty if there "
        "was no server or its address is unknown.",
        default="",
    )
    thinking: str = described(
        "Requested thinking: `on`, `off`, `low`, `medium` or `high`, and the token limit of a "
        "thought; empty if nothing was requested.",
        default="",
    )
    thinking_put: str = described(
        "How thinking was requested, such as `enable_thinking=false`; empty if it was not.",
        default="",
    )
    thinking_seen: str = described(
        "How the model thinks: the prompt `opens` a thought or has a `closed` one; the model "
        "`thinks` without being told; `none`; empty if this was not tested.",
        default="",
    )
    pack: str = described("Name and version of the prompt pack.")
    pack_hashes: dict[str, str] = described(
        "For each language, the version (if any) and the hash of its prompts."
    )
    data: str = described("Source of the statements: `builtin`, `shades`, or the name of a file.")
    data_version: str = described(
        "Hash of the description of a public data set, and the commit or hash of its files; empty "
        "for other data.",
        default="",
    )
    data_licence: str = described(
        "Licence of a public data set; `none` if it has none.", default=""
    )
    data_citation: str = described("What to cite for a public data set.", default="")
    statements: str = described("Hash of the statements, in their order.")
    languages: tuple[str, ...] = described("Languages (BCP 47 codes).")
    probes: tuple[str, ...] = described("Kinds of questions asked about each statement.")
    decode: tuple[str, ...] = described(
        "`free`: the reply may be any text; `choice`: it must be an answer word; `logprob`: "
        "probabilities of the answer words; `score`: log-probabilities of texts; `recorded`: "
        "replies read from a file."
    )
    temperature: float | None = described(
        "Sampling temperature; 0 is greedy; null for recorded replies."
    )
    top_p: float | None = described("Nucleus sampling; 1 means that it is off.")
    max_tokens: int | None = described("Token limit of a reply.")
    seed: int = described("Base seed, from which the seed of each request is derived.")
    samples: int = described("Number of replies to each question.")
    limit: int | None = described("Most statements per language; null means all.")
    wordings: str = described(
        "Number of wordings in which each statement is asked, or `all`; empty if only the "
        "published wordings are used.",
        default="",
    )
    personas: str = described(
        "Number of personas as which each statement is asked, or `all`; empty if none are used.",
        default="",
    )
    instruct: tuple[str, ...] = described(
        "Languages of the questions: `own` (of the statement) or `en`; empty means `own` only.",
        default=(),
    )
    system: str = described(
        "Hash of the user's system prompt; empty if there was none.", default=""
    )
    packages: dict[str, str] = described("Versions of Python and of the packages.")
    version: str = described("Version of genprobe.")

    def __post_init__(self) -> None:
        self._check(vars(self))  # before a folder is made that could not be read again

    @property
    def hash(self) -> str:
        """Return the hash of the spec, 16 hex digits.

        Empty optional fields do not count, so that older runs without these fields keep their hash.
        """
        fields = dataclasses.fields(self)
        return digest({f.name: v for f in fields if (v := getattr(self, f.name)) != f.default})

    @property
    def not_taken(self) -> tuple[str, ...]:
        """Name the settings that the server refused and that later requests left out."""
        left = self.engine_args.get("left_out")
        return tuple(map(str, left)) if isinstance(left, list | tuple) else ()

    @property
    def greedy(self) -> bool:
        """Tell whether the most likely token was always taken, also by the server."""
        return self.temperature == 0 and "temperature" not in self.not_taken

    @property
    def drawn_otherwise(self) -> str:
        """Return a message if replies were sampled in another way than requested, else ""."""
        asked = {"temperature": self.temperature, "top_p": self.top_p}
        names = [name for name in self.not_taken if name in asked and asked[name] != 1]
        if not names:
            return ""
        settings = " and ".join(f"{name} {asked[name]:g}" for name in names)
        return f"the server does not take {settings}: it drew the replies in its own way"

    @property
    def who(self) -> tuple[str, str]:
        """Return the model with its revision."""
        return self.model, self.revision

    @property
    def shown(self) -> str:
        """Return the name of the revision."""
        return self.checkpoint or self.revision

    @property
    def order(self) -> tuple[str, list[str | int]]:
        """Return the key that runs are sorted by.

        Checkpoints of a model are sorted by step, after runs without a checkpoint.
        """
        return self.model if self.checkpoint else "", natural(self.checkpoint)

    def like(self, other: Spec) -> Spec:
        """Update the spec of an older run, for which less was recorded.

        Unknown fields are taken from `other`, so that the run can be resumed.
        """
        if self.server or not other.server:
            return self
        local = self.engine_version in ("localhost", "::1", "0.0.0.0")
        known = {k: v for k, v in other.engine_args.items() if k in ("left_out", "answers")}
        return dataclasses.replace(
            self,
            server=other.server,
            engine_version="127.0.0.1" if local else self.engine_version,
            engine_args=known | self.engine_args,
            packages={k: v for k, v in self.packages.items() if k != "httpx"},
            thinking=self.thinking or other.thinking,
            thinking_seen=self.thinking_seen or other.thinking_seen,
        )

    def differences(self, other: Spec, but: Collection[str] = ()) -> list[str]:
        """List the fields that differ from another spec: `field: mine -> other's`.

        One entry for each field, or key of a table, except the fields in `but`.
        """
        lines = []
        for f in dataclasses.fields(self):
            if f.name in but:
                continue
            old, new = getattr(self, f.name), getattr(other, f.name)
            if isinstance(old, dict) and isinstance(new, dict):
                lines += [
                    f"{f.name}.{key}: {_clip(old.get(key))} -> {_clip(new.get(key))}"
                    for key in sorted(old.keys() | new.keys())
                    if old.get(key) != new.get(key)
                ]
            elif old != new:
                lines.append(f"{f.name}: {_clip(old)} -> {_clip(new)}")
        return lines


# Fields in which runs may differ although they asked two models the same questions.
WHO = (
    *("model", "revision", "checkpoint", "engine", "engine_version", "dtype", "chat_template"),
    *("engine_args", "packages", "version"),
    *("server", "thinking", "thinking_put", "thinking_seen"),
)


def versions(packages: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of Python and of packages, without importing them."""
    from importlib import metadata

    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "none"
    return found


def statements_hash(statements: Iterable[Record]) -> str:
    """Hash the content of the statements, in their order: 16 hex digits."""
    state = hashlib.sha256()
    for statement in statements:
        state.update(canonical(vars(statement)).encode("ascii") + b"\n")
    return state.hexdigest()[:16]


def refuse_newer(text: bytes, where: object) -> None:
    """Raise RunError if a JSON object was written by a newer version of genprobe than this one.

    text: the object; its other fields may be unknown here. where: what the error names.
    """
    try:
        version = parsed(text)["version"]
        written = _release(version)
    except (ValueError, TypeError, LookupError):
        return  # whoever reads the fields tells it
    if written > _release(__version__):
        found = ".".join(map(str, written))
        raise RunError(f"{where}: written by genprobe {found}; this is {__version__}: upgrade")


def _release(version: str) -> list[int]:
    """Return the numbers with which a version begins; none for any other text."""
    found = re.match(r"\d{1,6}(\.\d{1,6}){0,3}", version)
    return [int(number) for number in found[0].split(".")] if found else []


def signature(spec: Spec, judges: Mapping[str, str], metric: str, seal: str = "") -> str:
    """Write `metric:rates/1|judge.yesno:1|command:yesno|model:control|…|version:0.1.0|seal:…`.

    judges: name -> `Judge.signature`, for the judges that the number depends on. metric: name and
    version. seal: of the run; "" if it is unsealed. Equal arguments give equal signatures, and
    different ones different signatures. Empty fields are left out; a value that is long or would
    break the `key:value|` form is shortened and ends in `~` and a hash.
    """
    fields = {f.name: getattr(spec, f.name) for f in dataclasses.fields(spec)}
    if spec.engine == LOG and not spec.pack_hashes:
        fields["pack"] = ""  # by which the answers are read; its words were not asked
    return _join(metric, judges, {**fields, "seal": seal})


def both_signatures(*signatures: str) -> str:
    """Write the signature of a number from several runs.

    `key:value` where they agree, else `key:{a,b,…}`, each value once, in the order of the runs.
    """
    parts = [dict(field.split(":", 1) for field in text.split("|")) for text in signatures]
    fields = []
    for key in dict.fromkeys(key for part in parts for key in part):
        values = list(dict.fromkeys(part.get(key, "") for part in parts))
        fields.append(f"{key}:{values[0]}" if len(values) == 1 else f"{key}:{{{','.join(values)}}}")
    return "|".join(fields)


def file_signer(paths: Sequence[str | Table], judges: Mapping[str, str]) -> Callable[[str], str]:
    """Make a function from a metric to its signature, for numbers from files that are not runs.

    paths: the files, which are read once and identified by their bytes, or rows in memory, which
    are identified by their content. judges: as in `signature`,
    or name -> "given" for labels found in the file's columns. Raises InputError if a file cannot
    be read.
    """
    hashes = [_file_hash(rows_of(path)) for path in paths]
    kind = "rows" if any(isinstance(path, Rows) for path in paths) else "file"
    fields = {kind: "+".join(hashes), "version": __version__}
    return lambda metric: _join(metric, judges, fields)


def _file_hash(path: Table) -> str:
    if isinstance(path, Rows):
        return path.digest()[:16]
    try:
        with door.reading(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def _join(metric: str, judges: Mapping[str, str], fields: Mapping[str, Any]) -> str:
    rows: dict[str, Any] = {f"judge.{name}": judges[name] for name in sorted(judges)}
    rows |= fields
    parts = (f"{key}:{_short(value)}" for key, value in rows.items() if not _empty(value))
    return "|".join([f"metric:{metric.replace('|', '-')}", *parts])


def _empty(value: Any) -> bool:
    return value is None or value in ("", (), {})


# No ":" or "|" (separators) and no "~" (marks shortened values); the path of a folder is private.
# "+" is in versions ("2.9+cpu"), but joins lists.
_PLAIN = re.compile(r"(?!/)[A-Za-z0-9_./@+-]{1,48}")
_HASH = re.compile(r"[0-9a-f]{20,}")


def _short(value: Any) -> str:
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, tuple):
        joined = "+".join(value)
        whole = len(joined) <= 40 and all(_PLAIN.fullmatch(v) and "+" not in v for v in value)
        return joined if whole else f"{len(value)}~{digest(value, 8)}"
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and not _HASH.fullmatch(value):
            return value
        # Keep the end of a path or a model's name, but the first digits of a commit.
        part = value[:7] if _HASH.fullmatch(value) else re.split(r"[/\\]", value)[-1][:24]
        return f"{re.sub(r'[^A-Za-z0-9_.@-]', '-', part)}~{digest(value, 8)}"
    return f"~{digest(value, 8)}"


def _clip(value: Any) -> str:
    text = ", ".join(value) if isinstance(value, tuple) and value else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
