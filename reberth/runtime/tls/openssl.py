"""Keys and certificates, made by the program `openssl`.

The standard library cannot make keys, and a library that can would be the largest dependency of all
programs, for one that runs once a day. Keys are passed in memory, never as files or arguments.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address
from typing import Literal, NamedTuple

from reberth.values.errors import ReberthError

Use = Literal["server", "client"]
_SECONDS = 60
_AUTHORITY = """\
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
"""
_LEAF = """\
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = {use}Auth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""
_CONFIGURATION = """\
[req]
prompt = no
string_mask = utf8only
distinguished_name = subject
x509_extensions = extensions
[subject]
CN = {name}
[extensions]
{extensions}"""
_MARK = "-----BEGIN CERTIFICATE-----"


class OpenSslError(ReberthError):
    """openssl is missing, or did not make what it should."""


class Pair(NamedTuple):
    """A certificate and its key, as PEM."""

    certificate: str
    key: str


def make_authority(name: str, *, days: int) -> Pair:
    """Make a certificate that signs others, and itself."""
    with _open(_CONFIGURATION.format(name=name, extensions=_AUTHORITY)) as configuration:
        return _make(name, days, configuration, {})


def sign(authority: Pair, name: str, *, use: Use, hosts: tuple[str, ...], days: int) -> Pair:
    """Make a certificate for a server at these hosts, or for a client, with a new key."""
    extensions = _LEAF.format(use=use)
    if hosts:
        extensions += f"subjectAltName = {','.join(map(_name_host, hosts))}\n"
    with ExitStack() as stack:
        texts = (
            _CONFIGURATION.format(name=name, extensions=extensions),
            authority.certificate,
            authority.key,
        )
        configuration, certificate, key = (stack.enter_context(_open(text)) for text in texts)
        return _make(name, days, configuration, {"-CA": certificate, "-CAkey": key})


def _make(name: str, days: int, configuration: int, signer: dict[str, int]) -> Pair:
    options = [word for option, file in signer.items() for word in (option, _path(file))]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]
    fixed = ["-x509", "-sha256", "-days", str(days), "-keyout", "-", "-out", "-"]
    command = ["openssl", "req", *fixed, *curve, "-config", _path(configuration), *options]
    try:
        done = subprocess.run(  # noqa: S603 - our own command; the names are checked
            command,
            pass_fds=(configuration, *signer.values()),
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    except FileNotFoundError:
        raise OpenSslError("openssl is missing: install it") from None
    except subprocess.TimeoutExpired:
        raise OpenSslError(f"{name}: openssl did not end within {_SECONDS} s") from None
    key, mark, certificate = done.stdout.partition(_MARK)
    if done.returncode or not mark:
        raise OpenSslError(f"{name}: openssl: {' '.join(done.stderr.split())}")
    return Pair(mark + certificate, key)


def _name_host(host: str) -> str:
    try:
        return f"IP:{ip_address(host)}"
    except ValueError:
        return f"DNS:{host}"


def _path(file: int) -> str:
    return f"/proc/self/fd/{file}"


@contextmanager
def _open(text: str) -> Iterator[int]:
    """Give a file in memory with this content, for a process that is started meanwhile."""
    file = os.memfd_create("reberth")
    try:
        os.write(file, text.encode())
        yield file
    finally:
        os.close(file)
