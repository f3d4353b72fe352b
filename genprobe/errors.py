"""The exceptions. Each message is one line: what is wrong, where, and how to correct it.

GenprobeError
├── InputError     an option, file, language, pack or data set that cannot be used
│   ├── NoRows     a table without rows
│   └── RowErrors  several rows of a file, one line each
├── RunError       a run folder that is damaged, locked, of another spec, or on a full disk
└── EngineError    a model or an engine that cannot be started
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

# What the extra `models` installs: reading, counting and reporting need none of it.
_OF_MODELS = ("torch", "transformers", "tokenizers", "safetensors")


class Caution(str):
    """A note without which a figure would be misread; it is printed even with `-q`."""


class GenprobeError(Exception):
    """An error that the command line prints as one line, with exit code 2."""


class InputError(GenprobeError):
    """Something that the user gave cannot be used."""


class NoRows(InputError):
    """A table holds no rows."""


class RowErrors(InputError):
    """Several rows of a file cannot be used; each has a line."""


class RunError(GenprobeError):
    """A run folder cannot be read or written as asked."""


class EngineError(GenprobeError):
    """A model or engine cannot be loaded or started."""


@contextlib.contextmanager
def need_models(what: str, extra: str = "models") -> Iterator[None]:
    """Raise EngineError, with what to install, if packages that run models cannot be imported here.

    what: what needs them. extra: the extra of genprobe that brings them.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _OF_MODELS:
            raise
        raise EngineError(
            f"{what} needs {package}, which is not installed; `pip install 'genprobe[{extra}]'`"
        ) from None
