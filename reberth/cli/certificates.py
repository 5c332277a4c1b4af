"""`certificates renew`: the certificates of Reberth in Secrets of the cluster, renewed before they end.

A CronJob runs it every day, a person for the first time. It is safe to run it at any time, also twice at
once: each write names the version that it is based on.
"""

import argparse
import asyncio
import sys
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from reberth.cli.inputs import add_access_arguments, read_access, read_now
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.cluster.kinds import Resource, plain_kind
from reberth.config import settings
from reberth.records import ObjectMeta
from reberth.records.meta import Record
from reberth.runtime.tls import openssl, renewal
from reberth.runtime.tls.openssl import Pair
from reberth.runtime.tls.renewal import CA_FILE, Authority, CertificateSettings, SecretSettings
from reberth.runtime.tls.validity import split_certificates
from reberth.values import errors
from reberth.values.errors import ReberthError
from reberth.values.timestamp import write_time

_ORIGIN = "reberth.dev/certificates-from"
_GROUP = "admissionregistration.k8s.io"
_DAY = 86400
# The files of the authority's Secret: as in a Secret of type tls, which an operator may have made.
_SIGNER, _SUCCESSOR = "tls", "next"


class _Secret(Record, frozen=True):
    metadata: ObjectMeta
    data: dict[str, bytes] | None = None
    type: str = "Opaque"


class _WebhookConfiguration(Record, frozen=True):
    metadata: ObjectMeta
    webhooks: list[dict[str, Any]] | None = None


_SECRETS: Resource[_Secret] = Resource(plain_kind("Secret", _Secret), "secrets")
_WEBHOOKS: tuple[Resource[_WebhookConfiguration], ...] = tuple(
    Resource(
        plain_kind(f"{kind}WebhookConfiguration", _WebhookConfiguration, _GROUP),
        f"{kind.lower()}webhookconfigurations",
        namespaced=False,
    )
    for kind in ("Mutating", "Validating")
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    text = "renew the certificates in Secrets that end soon, or are missing"
    renewing = actions.add_parser("renew", help=text, description=text)
    renewing.add_argument(
        "--settings",
        type=Path,
        required=True,
        metavar="FILE",
        help="settings file of kind CertificateSettings",
    )
    renewing.add_argument("--now", metavar="TIME", help="as if it were this time, e.g. 2027-01-31T00:00:00Z")
    add_access_arguments(renewing)
    renewing.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0: all certificates are as they should be; 1: some are not, and the next run tries again."""
    given = settings.load(arguments.settings, CertificateSettings)
    try:
        asyncio.run(_print_renewals(read_access(arguments), given, read_now(arguments.now)))
    except (errors.ApiError, openssl.OpenSslError, NotTrusted) as error:
        sys.stderr.write(f"reberth: {error}\n")
        return 1
    return 0


async def _print_renewals(access: Access, given: CertificateSettings, now: float) -> None:
    async with Api(access) as api:
        async for line in renew(api, given, now=now):
            sys.stdout.write(f"{line}\n")


class NotTrusted(ReberthError):
    """A webhook does not trust the authority yet, and this account may not change that."""


async def renew(api: Api, given: CertificateSettings, *, now: float) -> AsyncIterator[str]:
    """Bring everything up to date, and tell what was changed. Raises ReberthError; what is done stays done.

    Who verifies hears of an authority before it signs.
    """
    renewing = _Renewing(api, given, now)
    authority, done = await renewing.keep_authority()
    if done:
        yield f"authority {given.authority}: {done}"
    untrusting = []
    async for hook in renewing.list_untrusting(authority.bundle):
        if await renewing.have_trusted(hook, authority):
            yield f"{hook}: trusts the authority"
        else:
            untrusting.append(hook)
    for asked in given.secrets:
        if done := await renewing.keep_pairs(asked, authority):
            yield f"secret {asked.name}: {done}"
    if untrusting:
        names = ", ".join(map(str, untrusting))
        raise NotTrusted(f"{names}: caBundle must be ca.crt of the Secret {given.authority}")


class _Hook(NamedTuple):
    """A webhook configuration."""

    resource: Resource[_WebhookConfiguration]
    found: _WebhookConfiguration

    def __str__(self) -> str:
        return f"{self.resource.kind.name} {self.found.metadata.name}"

    def trusts(self, certificate: str) -> bool:
        """Tell whether every webhook of it trusts these certificates."""
        bundles = [one.get("clientConfig", {}).get("caBundle") or "" for one in self.found.webhooks or ()]
        known = [_list_digests(b64decode(bundle).decode(errors="replace")) for bundle in bundles]
        return all(_list_digests(certificate) <= digests for digests in known)


class _Renewing:
    """One run."""

    def __init__(self, api: Api, given: CertificateSettings, now: float) -> None:
        self._api = api
        self._given = given
        self._now = now

    async def keep_authority(self) -> tuple[Authority, str | None]:
        """Give the authority as it should be now, and what has changed."""
        found = await self._find(self._given.authority)
        before = _read_authority(_read_files(found))
        successor = before.successor if before else None
        untrusting = [hook async for hook in self.list_untrusting(successor.certificate)] if successor else []
        after = renewal.follow_on(
            before, self._given, now=self._now, make=self._make_authority, is_trusted=not untrusting
        )
        if after == before:
            return after, None
        await self._write(found, _write_authority(after))
        if before is None:
            return after, "made"
        return after, "a successor is announced" if after.successor else "the successor signs"

    async def list_untrusting(self, certificate: str) -> AsyncIterator[_Hook]:
        """Give the webhook configurations that are there and do not trust these certificates."""
        for name, resource in product(self._given.webhooks, _WEBHOOKS):
            try:
                hook = _Hook(resource, await self._api.get(resource, name))
            except errors.NotFound:
                continue
            if not hook.trusts(certificate):
                yield hook

    async def have_trusted(self, hook: _Hook, authority: Authority) -> bool:
        """Have the API server trust the authority when it calls these webhooks; False if we may not."""
        bundle = b64encode(authority.bundle.encode()).decode()
        trusting = [
            {**one, "clientConfig": {**one.get("clientConfig", {}), "caBundle": bundle}}
            for one in hook.found.webhooks or ()
        ]
        meta = hook.found.metadata
        patch = {"metadata": {"resourceVersion": meta.resource_version}, "webhooks": trusting}
        try:
            await self._api.merge(hook.resource, meta.name, patch)
        except errors.Forbidden:
            return False
        return True

    async def keep_pairs(self, asked: SecretSettings, authority: Authority) -> str | None:
        """Make the pairs of a Secret if they are due; otherwise only what it trusts."""
        found = await self._find(asked.name)
        held, origin = _read_files(found), (found.metadata.annotations or {}).get(_ORIGIN)
        if renewal.is_due(held, asked, self._given, made_from=origin, signer=authority.signer, now=self._now):
            made = {**self._sign(asked, authority), CA_FILE: authority.bundle}
            ends = min(renewal.find_end(content) for name, content in made.items() if name.endswith(".crt"))
            await self._write(found, made, renewal.describe_origin(asked, authority.signer))
            return f"renewed until {write_time(ends)}"
        if held.get(CA_FILE) != authority.bundle:
            await self._write(found, {CA_FILE: authority.bundle})
            return "trusts the authority"
        return None

    def _sign(self, asked: SecretSettings, authority: Authority) -> dict[str, str]:
        made: dict[str, str] = {}
        for pair in asked.pairs:
            signed = openssl.sign(
                authority.signer,
                pair.name,
                use=pair.use,
                hosts=pair.hosts,
                days=_count_days(self._given.lifetime),
            )
            made |= {f"{pair.file}.crt": signed.certificate, f"{pair.file}.key": signed.key}
        return made

    def _make_authority(self) -> Pair:
        # Each has a name of its own: OpenSSL finds the one that has signed by its name.
        name = f"{self._given.authority}-{int(self._now)}"
        return openssl.make_authority(name, days=_count_days(self._given.authority_lifetime))

    async def _find(self, name: str) -> _Secret:
        return await self._api.get(_SECRETS, name, namespace=self._given.namespace)

    async def _write(
        self, found: _Secret, files: Mapping[str, str | None], origin: str | None = None
    ) -> None:
        """Change these files of a Secret; None removes one."""
        meta = found.metadata
        patch = {
            "metadata": {
                "resourceVersion": meta.resource_version,
                **({"annotations": {_ORIGIN: origin}} if origin else {}),
            },
            "data": {file: content.encode() if content else None for file, content in files.items()},
        }
        await self._api.merge(_SECRETS, meta.name, msgspec.to_builtins(patch), namespace=meta.namespace)


def _list_digests(pem: str) -> set[str]:
    return {renewal.digest(one) for one in split_certificates(pem)}


def _read_files(secret: _Secret) -> dict[str, str]:
    return {name: content.decode(errors="replace") for name, content in (secret.data or {}).items()}


def _read_authority(files: Mapping[str, str]) -> Authority | None:
    signer, successor = _read_pair(files, _SIGNER), _read_pair(files, _SUCCESSOR)
    if signer is None:
        return None
    return Authority(signer, successor, renewal.list_retired(files.get(CA_FILE, ""), signer, successor))


def _read_pair(files: Mapping[str, str], name: str) -> Pair | None:
    certificate, key = files.get(f"{name}.crt"), files.get(f"{name}.key")
    return Pair(certificate, key) if certificate and key else None


def _write_authority(authority: Authority) -> dict[str, str | None]:
    signer, successor = authority.signer, authority.successor
    return {
        f"{_SIGNER}.crt": signer.certificate,
        f"{_SIGNER}.key": signer.key,
        f"{_SUCCESSOR}.crt": successor.certificate if successor else None,
        f"{_SUCCESSOR}.key": successor.key if successor else None,
        CA_FILE: authority.bundle,
    }


def _count_days(seconds: float) -> int:
    return max(1, int(seconds // _DAY))
