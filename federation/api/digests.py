"""Hashes that Karmada and Kubernetes use in names: ours must agree with theirs."""

_PRIME = 16777619
_BASIS = 2166136261
_HARMLESS = "bcdfghjklmnpqrstvwxz2456789"
"""Characters that form no bad words: the alphabet of k8s.io/apimachinery/pkg/util/rand."""


def fnv_1a(text: str) -> int:
    """Hash a text with 32-bit FNV-1a."""
    digest = _BASIS
    for byte in text.encode():
        digest = (digest ^ byte) * _PRIME & 0xFFFFFFFF
    return digest


def write_harmless(number: int) -> str:
    """Encode a number, digit by digit, as Kubernetes does in the names of Pods (SafeEncodeString)."""
    return "".join(_HARMLESS[ord(digit) % len(_HARMLESS)] for digit in str(number))
