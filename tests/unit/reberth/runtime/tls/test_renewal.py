"""Renewal with real certificates: openssl makes them, `cryptography` and TLS judge them."""

import datetime as dt
import ssl
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from reberth.config.settings import parse
from reberth.runtime.tls import openssl, renewal
from reberth.runtime.tls.openssl import OpenSslError, Pair
from reberth.runtime.tls.renewal import Authority, CertificateSettings, PairSettings, SecretSettings
from reberth.values.duration import PositiveDuration
from reberth.values.errors import SettingsError

DAY = 86400.0
HOST = "reberth-extender.reberth-system.svc"
SERVER = PairSettings("tls", "reberth-extender", "server", (HOST, "127.0.0.1"))
CLIENT = PairSettings("scheduler", "system:kube-scheduler", "client")
ASKED = SecretSettings("pairs", (SERVER, CLIENT))
SETTINGS = CertificateSettings((ASKED,), "authority")
NOW = dt.datetime.now(dt.UTC).timestamp()


@pytest.fixture(scope="module")
def signer() -> Pair:
    return openssl.make_authority("authority", days=3650)


def make(signer: Pair, pair: PairSettings) -> Pair:
    return openssl.sign(signer, pair.name, use=pair.use, hosts=pair.hosts, days=90)


def test_a_server_and_a_client_know_each_other_by_them(signer: Pair, tmp_path: Path) -> None:
    contexts = []
    for pair, protocol in ((SERVER, ssl.PROTOCOL_TLS_SERVER), (CLIENT, ssl.PROTOCOL_TLS_CLIENT)):
        made = make(signer, pair)
        crt, key = tmp_path / "crt", tmp_path / "key"
        crt.write_text(made.certificate)
        key.write_text(made.key)
        context = ssl.SSLContext(protocol)
        context.load_cert_chain(crt, key)
        context.load_verify_locations(cadata=signer.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        contexts.append(context)
    there, here = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = contexts[0].wrap_bio(there, here, server_side=True)
    client = contexts[1].wrap_bio(here, there, server_hostname=HOST)
    for _ in range(3):
        for side in (client, server):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    shown = server.getpeercert()
    assert shown
    assert shown["subject"] == ((("commonName", "system:kube-scheduler"),),)


def test_what_is_made_is_for_its_use_alone(signer: Pair) -> None:
    made = x509.load_pem_x509_certificate(make(signer, SERVER).certificate.encode())
    usages = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.SERVER_AUTH]
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [HOST]
    assert names.get_values_for_type(x509.IPAddress) == [ip_address("127.0.0.1")]
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert isinstance(made.public_key(), ec.EllipticCurvePublicKey)
    made.verify_directly_issued_by(x509.load_pem_x509_certificate(signer.certificate.encode()))


def test_a_missing_openssl_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(OpenSslError, match="openssl is missing"):
        openssl.make_authority("authority", days=1)


def test_an_error_of_openssl_is_shown(signer: Pair) -> None:
    with pytest.raises(OpenSslError, match="^a: openssl: .+"):
        openssl.sign(Pair(signer.certificate, "no key"), "a", use="client", hosts=(), days=1)


def hold(signer: Pair) -> dict[str, str]:
    made = {pair.file: make(signer, pair) for pair in ASKED.pairs}
    return {
        **{f"{file}.crt": pair.certificate for file, pair in made.items()},
        **{f"{file}.key": pair.key for file, pair in made.items()},
    }


def due(held: Mapping[str, str], signer: Pair, *, after: float = 0.0, asked: SecretSettings = ASKED) -> bool:
    origin = renewal.describe_origin(ASKED, signer)
    return renewal.is_due(held, asked, SETTINGS, made_from=origin, signer=signer, now=NOW + after)


def test_pairs_are_renewed_before_they_end_and_when_they_are_not_as_asked_for(signer: Pair) -> None:
    held = hold(signer)
    assert not due(held, signer)
    assert not due(held, signer, after=44 * DAY)
    assert due(held, signer, after=46 * DAY)
    assert due({**held, "tls.key": ""}, signer)
    assert due({**held, "tls.crt": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"}, signer)
    assert due({}, signer)
    assert due(held, signer, asked=SecretSettings("pairs", (SERVER,)))
    other = openssl.make_authority("other", days=3650)
    origin = renewal.describe_origin(ASKED, signer)
    assert renewal.is_due(held, ASKED, SETTINGS, made_from=origin, signer=other, now=NOW)
    assert renewal.is_due(held, ASKED, SETTINGS, made_from=None, signer=signer, now=NOW)


def test_an_authority_is_announced_before_it_signs_and_trusted_until_it_ends() -> None:
    made: list[Pair] = []

    def begin() -> Pair:
        made.append(openssl.make_authority(f"authority-{len(made)}", days=3650))
        return made[-1]

    def step(before: Authority | None, days: float) -> Authority:
        return renewal.follow_on(before, SETTINGS, now=NOW + days * DAY, make=begin)

    first = step(None, 0)
    assert first == Authority(made[0])
    assert step(first, 3000) == first
    # Its date is that of this machine, so the successor is announced now and signs seven days from now.
    soon = CertificateSettings((ASKED,), "authority", authority_renew_before=PositiveDuration(3649 * DAY))
    announced = renewal.follow_on(first, soon, now=NOW + 2 * DAY, make=begin)
    assert announced == Authority(made[0], made[1])
    assert announced.bundle == made[0].certificate + made[1].certificate
    assert step(announced, 6) == announced
    signing = step(announced, 8)
    assert signing == Authority(made[1], None, (made[0].certificate,))
    assert renewal.list_retired(signing.bundle, signing.signer, None) == (made[0].certificate,)
    assert step(signing, 3000).bundle == made[1].certificate + made[0].certificate
    assert len(made) == 2
    late = step(signing, 3651)  # both have ended: a new one is announced, and the first forgotten
    assert late.retired == ()


@pytest.mark.parametrize(
    "wrong",
    [
        "lifetime: 1h",
        "authorityRenewBefore: 100h",
        "authority: 'a b'",
        "webhooks: ['x y']",
        "secrets: [{name: a, pairs: [{file: tls, name: 'a\\nb', use: server}]}]",
        "secrets: [{name: a, pairs: [{file: tls, name: a, use: server, hosts: ['a,DNS:b']}]}]",
        "secrets: [{name: a, pairs: [{file: tls, name: a, use: both}]}]",
        "secrets: [{name: a, pairs: [{file: ../tls, name: a, use: server}]}]",
    ],
)
def test_settings_that_openssl_could_read_otherwise_are_refused(wrong: str) -> None:
    header = "apiVersion: reberth.dev/v1alpha1\nkind: CertificateSettings\n"
    given = {"authority": "authority", "secrets": "[]"}
    assert parse(f"{header}{yaml.safe_dump(given)}".replace("'[]'", "[]").encode(), CertificateSettings)
    field, _, value = wrong.partition(": ")
    lines = "\n".join(f"{name}: {text}" for name, text in {**given, field: value}.items())
    with pytest.raises(SettingsError, match=field):
        parse(f"{header}{lines}".encode(), CertificateSettings)
