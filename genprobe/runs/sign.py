"""Sign the seal of a run with the user's own SSH key, and check such a signature (ssh-keygen -Y).

`MANIFEST.sig` is a signature of the file `MANIFEST` in the namespace `genprobe`, so that anybody
can check it without genprobe: PROTOCOL.sshsig of OpenSSH.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from genprobe.errors import InputError, RunError
from genprobe.files import disk, door
from genprobe.runs import seal

_NAMESPACE = "genprobe"
_FINGERPRINT = re.compile(r"with (\S{1,40} key SHA256:[A-Za-z0-9+/]{43})")
_SECONDS = 600  # a security key waits for a touch, and a person for a passphrase


def sign(folder: Path, key: Path) -> None:
    """Write `MANIFEST.sig` with a private SSH key, or with a public one whose agent runs.

    The caller holds the lock of the folder. Raises InputError if the key cannot be used.
    """
    if not key.is_file():
        raise InputError(f"{key}: no such key; `ssh-keygen -t ed25519 -f {key}` makes one")
    done = _run(["sign", "-n", _NAMESPACE, "-f", str(key)], _read(folder / seal.NAME))
    if done.returncode or not done.stdout.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        raise InputError(f"{key}: cannot sign ({_reason(done)}); is it an SSH key, and unlocked?")
    disk.replace_bytes(folder / seal.SIGNATURE, [done.stdout])


def check(folder: Path, allowed: Path | None = None) -> tuple[str, bool]:
    """Return what the signature of a run says, as one line, and whether that is a problem.

    "" if there is none. allowed: a file of allowed signers, as ssh-keygen has them; without it the
    line names the key only. Raises InputError if that file or ssh-keygen is missing.
    """
    if allowed is not None and not allowed.is_file():
        raise InputError(f"{allowed}: no such file of allowed signers")
    if not (folder / seal.SIGNATURE).exists():
        return ("not signed", True) if allowed is not None else ("", False)
    if allowed is None and not _there():
        return "signed, not checked (ssh-keygen is not installed)", False
    manifest = _read(folder / seal.NAME)
    with tempfile.TemporaryDirectory() as own:
        copy = Path(own) / seal.SIGNATURE  # of a file that is regular for certain
        copy.write_bytes(_read(folder / seal.SIGNATURE))
        return _checked(manifest, copy, allowed)


def _checked(manifest: bytes, signature: Path, allowed: Path | None) -> tuple[str, bool]:
    made = ["-s", str(signature)]
    good = _run(["check-novalidate", "-n", _NAMESPACE, *made], manifest)
    if good.returncode:
        return f"{seal.SIGNATURE} is no signature of this {seal.NAME} ({_reason(good)})", True
    known = _FINGERPRINT.search(good.stdout.decode("utf-8", "replace"))
    key = known[1] if known else "an unknown key"
    if allowed is None:
        return f"signed with {key}, not checked; --allowed-signers FILE checks whose it is", False
    made += ["-f", str(allowed.absolute())]
    names = _run(["find-principals", *made], manifest).stdout.decode("utf-8", "replace")
    for name in re.split(r"[\s,]+", names.strip()):
        if not _run(["verify", "-n", _NAMESPACE, "-I", name, *made], manifest).returncode:
            return f"signed by {name} with {key}", False
    return f"signed with {key}, which is of nobody in {allowed}", True


def _read(path: Path) -> bytes:
    try:
        return door.content(path)
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror})") from None


def _there() -> bool:
    with contextlib.suppress(InputError):
        _run(["find-principals"], b"")
        return True
    return False


def _run(arguments: list[str], given: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run `ssh-keygen -Y`. Without a terminal it cannot wait for a passphrase: it fails."""
    alone = sys.stdin is None or not sys.stdin.isatty()
    environment = {
        **os.environ,
        "LC_ALL": "C",
        **({"SSH_ASKPASS_REQUIRE": "never"} if alone else {}),
    }
    try:
        return subprocess.run(
            ["ssh-keygen", "-Y", *arguments],
            input=given,
            capture_output=True,
            env=environment,
            start_new_session=alone,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise InputError("signatures need ssh-keygen, which is not installed (OpenSSH)") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"ssh-keygen gave no answer in {_SECONDS} seconds") from None


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = (done.stderr or done.stdout).decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in lines if line.strip()), f"exit code {done.returncode}")[
        :200
    ]
