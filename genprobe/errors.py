"""The exceptions. Each one's message is a line for a person: what is wrong, where, the cure.

GenprobeError
├── InputError     statements, packs, languages, files, options that name something unknown
│   └── RowErrors  several rows of a file, a line each
├── RunError       a run folder that is broken, locked, full or of another spec
└── EngineError    a model or an engine that cannot be started
"""

from __future__ import annotations


class Caution(str):
    """A line for a person without which a figure would be misread.

    It is said also where notes are not wanted (`-q`).
    """


class GenprobeError(Exception):
    """What the command line shows as one line, with exit code 2."""


class InputError(GenprobeError):
    """Something that the user gave cannot be used as it is."""


class RowErrors(InputError):
    """Several rows of a file cannot be used as they are; each has a line."""


class RunError(GenprobeError):
    """A run folder cannot be read or written as asked."""


class EngineError(GenprobeError):
    """A model or engine cannot be loaded or started."""
