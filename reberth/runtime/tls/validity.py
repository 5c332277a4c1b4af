"""From when until when the certificates of a file are valid.

The standard library tells that of a certificate that a peer has shown, and of none that lies in a file. So
the few bytes that lead to the dates are read here: of X.509's `Certificate`, only `validity`.
"""

import base64
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----")
_VERSION, _UTC_TIME, _GENERALIZED_TIME = 0xA0, 0x17, 0x18
_FORMATS = {_UTC_TIME: "%y%m%d%H%M%SZ", _GENERALIZED_TIME: "%Y%m%d%H%M%SZ"}
_VALIDITY = 3  # after the serial number, the algorithm and the issuer
_PIVOT = 2050  # two digits stand for 1950 to 2049
_LONG = 0x80


class Validity(NamedTuple):
    """As seconds since the epoch."""

    not_before: float
    not_after: float


class _Element(NamedTuple):
    """One element of DER: its tag, and where its content is."""

    tag: int
    start: int
    end: int


def list_validities(pem: str) -> list[Validity]:
    """Give the validity of each certificate, in order. Raises ValueError if one is malformed."""
    return [_find_validity(base64.b64decode(block)) for block in _BLOCK.findall(pem)]


def split_certificates(pem: str) -> list[str]:
    """Give each certificate as a text of its own."""
    return [f"{found.group()}\n" for found in _BLOCK.finditer(pem)]


def _find_validity(der: bytes) -> Validity:
    try:
        certificate = next(_elements(der, 0, len(der)))
        signed = next(_elements(der, certificate.start, certificate.end))
        parts = [part for part in _elements(der, signed.start, signed.end) if part.tag != _VERSION]
        validity = parts[_VALIDITY]
        start, end = _elements(der, validity.start, validity.end)
        return Validity(
            *(_read_time(one.tag, der[one.start : one.end].decode("ascii")) for one in (start, end))
        )
    except (IndexError, KeyError, StopIteration) as error:
        raise ValueError("not an X.509 certificate") from error


def _elements(der: bytes, at: int, end: int) -> Iterator[_Element]:
    """Give the elements one after the other."""
    while at < end:
        tag, length, at = der[at], der[at + 1], at + 2
        if length >= _LONG:
            size = length - _LONG
            length, at = int.from_bytes(der[at : at + size], "big"), at + size
        if at + length > end:
            raise ValueError("a certificate that is cut off")
        yield _Element(tag, at, at + length)
        at += length


def _read_time(tag: int, text: str) -> float:
    found = datetime.strptime(text, _FORMATS[tag]).replace(tzinfo=UTC)
    if tag == _UTC_TIME and found.year >= _PIVOT:
        found = found.replace(year=found.year - 100)
    return found.timestamp()
