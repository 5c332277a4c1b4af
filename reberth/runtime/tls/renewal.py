"""When certificates are renewed, and how one authority follows another without a moment of distrust.

A new authority is first trusted everywhere, and signs only after everybody has heard of it; the old one is
trusted until it ends. What was made is known by a digest beside it, so that a change of the settings, or of
the authority, is a reason for renewal as well.
"""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from reberth.config.settings import Section
from reberth.runtime.tls.openssl import Pair, Use
from reberth.runtime.tls.validity import list_validities, split_certificates
from reberth.values.duration import PositiveDuration

CA_FILE = "ca.crt"
_DAY = 86400.0
# What openssl's configuration reads as itself.
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9]([A-Za-z0-9:._-]{0,62}[A-Za-z0-9])?$")]
Host = Annotated[str, Meta(pattern=r"^[A-Za-z0-9:]([A-Za-z0-9:.-]{0,251}[A-Za-z0-9])?$")]


class PairSettings(Section, frozen=True):
    """One certificate and its key."""

    file: Name
    """The pair is FILE.crt and FILE.key."""
    name: Name
    use: Use
    hosts: tuple[Host, ...] = ()


class SecretSettings(Section, frozen=True):
    """A Secret with pairs, and ca.crt to verify the other side with."""

    name: Name
    pairs: tuple[PairSettings, ...]


class CertificateSettings(Section, frozen=True):
    """Which certificates there are, and for how long."""

    secrets: tuple[SecretSettings, ...]
    authority: Name
    """The Secret with the key that signs them all."""
    namespace: Name = "reberth-system"
    webhooks: tuple[Name, ...] = ()
    """Webhook configurations that trust the authority."""
    lifetime: PositiveDuration = PositiveDuration(90 * _DAY)
    renew_before: PositiveDuration = PositiveDuration(45 * _DAY)
    authority_lifetime: PositiveDuration = PositiveDuration(3650 * _DAY)
    authority_renew_before: PositiveDuration = PositiveDuration(365 * _DAY)
    announced_for: PositiveDuration = PositiveDuration(7 * _DAY)
    """How long a new authority is trusted before it signs."""

    def __post_init__(self) -> None:
        if not self.renew_before < self.lifetime:
            raise ValueError("renewBefore must be less than lifetime")
        if not self.authority_renew_before < self.authority_lifetime:
            raise ValueError("authorityRenewBefore must be less than authorityLifetime")
        if not self.lifetime + self.announced_for < self.authority_renew_before:
            raise ValueError("authorityRenewBefore must be more than lifetime and announcedFor together")


class Authority(NamedTuple):
    """Who signs, and who is trusted."""

    signer: Pair
    successor: Pair | None = None
    retired: tuple[str, ...] = ()
    """Certificates of those that have signed before."""

    @property
    def bundle(self) -> str:
        """Give all certificates that are trusted."""
        successor = (self.successor.certificate,) if self.successor else ()
        return "".join((self.signer.certificate, *successor, *self.retired))


def follow_on(
    before: Authority | None,
    settings: CertificateSettings,
    *,
    now: float,
    make: Callable[[], Pair],
    is_trusted: bool = True,
) -> Authority:
    """Give the authority as it should be now; `make` makes a new one.

    A successor that is not trusted everywhere does not sign.
    """
    if before is None:
        return Authority(make())
    signer, successor, retired = before
    retired = tuple(one for one in retired if find_end(one) > now)
    is_known = successor and find_start(successor.certificate) + settings.announced_for <= now
    if successor and is_known and is_trusted:
        return Authority(successor, None, (signer.certificate, *retired))
    if not successor and find_end(signer.certificate) - settings.authority_renew_before <= now:
        successor = make()
    return Authority(signer, successor, retired)


def list_retired(bundle: str, *others: Pair | None) -> tuple[str, ...]:
    """Give the certificates of a bundle that are none of these."""
    known = {digest(one.certificate) for one in others if one}
    return tuple(one for one in split_certificates(bundle) if digest(one) not in known)


def is_due(
    held: Mapping[str, str],
    asked: SecretSettings,
    settings: CertificateSettings,
    *,
    made_from: str | None,
    signer: Pair,
    now: float,
) -> bool:
    """Tell whether the pairs of a Secret must be made; `held` are its files, by name."""
    if made_from != describe_origin(asked, signer):
        return True
    files = [(held.get(f"{pair.file}.crt", ""), held.get(f"{pair.file}.key", "")) for pair in asked.pairs]
    return any(not key or find_end(crt) - settings.renew_before <= now for crt, key in files)


def describe_origin(asked: SecretSettings, signer: Pair) -> str:
    """Give a digest of what the pairs are made from: another one means other pairs."""
    return sha256(msgspec.json.encode([asked, digest(signer.certificate)])).hexdigest()


def digest(certificate: str) -> str:
    return sha256("".join(certificate.split()).encode()).hexdigest()


def find_end(certificate: str) -> float:
    """Give when a certificate ends; one that cannot be read has ended."""
    try:
        return min((each.not_after for each in list_validities(certificate)), default=0.0)
    except ValueError:
        return 0.0


def find_start(certificate: str) -> float:
    return max(each.not_before for each in list_validities(certificate))
