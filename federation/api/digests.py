"""Short digests of texts, the same as other programs of the same APIs find."""

_PRIME = 16777619
_BASIS = 2166136261
_HARMLESS = "bcdfghjklmnpqrstvwxz2456789"
"""Letters and digits that make no words, as Kubernetes has them in the names of Pods."""


def fnv_1a(text: str) -> int:
    """Digest a text to 32 bits by FNV-1a."""
    digest = _BASIS
    for byte in text.encode():
        digest = (digest ^ byte) * _PRIME & 0xFFFFFFFF
    return digest


def write_harmless(number: int) -> str:
    """Write a number with one harmless character for each of its digits."""
    return "".join(_HARMLESS[ord(digit) % len(_HARMLESS)] for digit in str(number))
