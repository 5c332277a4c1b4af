"""Credentials of a cluster: its certificate authority, tokens for its fixed users, kubeconfigs."""

import csv
import datetime as dt
import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from localcluster.components import KUBELET_CLIENT, SERVICE_ADDRESS, Design
from localcluster.host.ports import HOST
from localcluster.realnodes import links

ADMIN = "admin"
USERS = {
    ADMIN: "system:masters",
    "kwok": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
}
_VALID_FOR = dt.timedelta(days=3650)
_CLOCK_SKEW = dt.timedelta(hours=1)


def create(design: Design) -> None:
    """Create authority, server certificate, service account keys, and each user's token and kubeconfig."""
    authority = Authority(design.path("pki")).create()
    hosts = [HOST, "localhost", "kubernetes.default.svc", SERVICE_ADDRESS, links.GATEWAY]
    authority.issue("kube-apiserver", hosts=hosts, file="apiserver")
    if design.has_kubelets:
        authority.issue(KUBELET_CLIENT, organizations=["system:masters"])
    service_account_key(authority.folder)
    tokens = {user: secrets.token_urlsafe(24) for user in USERS}
    _write_tokens(authority.folder / "tokens.csv", tokens)
    for user, token in tokens.items():
        write_kubeconfig(design, user, {"token": token})


def _write_tokens(path: Path, tokens: dict[str, str]) -> None:
    path.touch(mode=0o600)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([token, user, f"uid-{user}", USERS[user]] for user, token in tokens.items())


def certify(design: Design, user: str, groups: Sequence[str] = ()) -> Path:
    """Create a user with a client certificate; the path of the kubeconfig."""
    pair = Authority(design.path("pki")).issue(user, organizations=groups)
    return write_kubeconfig(
        design, user, {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    )


def write_kubeconfig(
    design: Design,
    user: str,
    credentials: dict[str, str],
    *,
    server: str | None = None,
    name: str | None = None,
) -> Path:
    """Write a kubeconfig for this cluster's API server, or for a proxy in front of it."""
    path = design.kubeconfig(name or user)
    path.parent.mkdir(exist_ok=True)
    path.touch(mode=0o600)
    authority = str(design.path("pki", "ca.crt"))
    cluster = {"server": server or design.url, "certificate-authority": authority}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "local",
        "clusters": [{"name": "local", "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": user}}],
    }
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def read_token(design: Design, user: str = ADMIN) -> str:
    content: dict[str, Any] = yaml.safe_load(design.kubeconfig(user).read_text())
    return str(content["users"][0]["user"]["token"])


@dataclass(frozen=True)
class KeyPair:
    certificate: Path
    key: Path


@dataclass(frozen=True)
class Authority:
    """Signs certificates and writes them into its folder."""

    folder: Path

    @property
    def certificate(self) -> Path:
        return self.folder / "ca.crt"

    def create(self) -> "Authority":
        self.folder.mkdir(parents=True, exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("localcluster")
        builder = _builder(name, name, key.public_key(), _VALID_FOR)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = builder.add_extension(usage, critical=True)
        builder = builder.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
        )
        _write_key(self.folder / "ca.key", key)
        _write_certificate(self.certificate, builder.sign(key, hashes.SHA256()))
        return self

    def issue(
        self,
        name: str,
        *,
        organizations: Sequence[str] = (),
        hosts: Sequence[str] = (),
        lifetime: dt.timedelta = _VALID_FOR,
        file: str | None = None,
    ) -> KeyPair:
        """A certificate for a server (with hosts) and a client (user `name` in groups `organizations`)."""
        stem = file or name.replace(":", "-").replace("/", "-")
        pair = KeyPair(self.folder / f"{stem}.crt", self.folder / f"{stem}.key")
        signer = serialization.load_pem_private_key((self.folder / "ca.key").read_bytes(), password=None)
        if not isinstance(signer, ec.EllipticCurvePrivateKey):
            raise TypeError(f"{self.folder}/ca.key is not an elliptic curve key")
        issuer = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name, organizations), issuer.subject, key.public_key(), lifetime)
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
        builder = builder.add_extension(authority, critical=False)
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        _write_key(pair.key, key)
        _write_certificate(pair.certificate, builder.sign(signer, hashes.SHA256()))
        return pair


def service_account_key(folder: Path) -> KeyPair:
    """The pair that signs and verifies service account tokens: a bare public key, no certificate."""
    pair = KeyPair(folder / "service-accounts.pub", folder / "service-accounts.key")
    key = ec.generate_private_key(ec.SECP256R1())
    _write_key(pair.key, key)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    pair.certificate.write_bytes(public)
    return pair


def _name(common: str, organizations: Sequence[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, value) for value in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, lifetime: dt.timedelta
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


def _write_certificate(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
