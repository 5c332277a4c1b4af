import datetime as dt
import shutil
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from localcluster.credentials import Authority
from reberth.config.settings import Section, parse
from reberth.runtime.certificates import CertificateFiles, LiveCertificate, server_context
from reberth.values.errors import ServingError

Break = Callable[[CertificateFiles], None]


class TlsSettings(Section, frozen=True):
    tls: CertificateFiles


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca").create()


@pytest.fixture
def files(authority: Authority) -> CertificateFiles:
    pair = authority.issue("server", hosts=["127.0.0.1"])
    return CertificateFiles(
        cert_file=str(pair.certificate), key_file=str(pair.key), client_ca_file=str(authority.certificate)
    )


def other_key(files: CertificateFiles) -> None:
    folder = Path(files.key_file).parent
    shutil.copy(Authority(folder).issue("other").key, files.key_file)


def key_of_another_type(files: CertificateFiles) -> None:
    write_key(files.key_file, serialization.NoEncryption())


def encrypted_key(files: CertificateFiles) -> None:
    write_key(files.key_file, serialization.BestAvailableEncryption(b"secret"))


def write_key(file: str, lock: serialization.KeySerializationEncryption) -> None:
    key = rsa.generate_private_key(65537, 2048)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    Path(file).write_bytes(key.private_bytes(serialization.Encoding.PEM, form, lock))


def broken(name: str, content: str | None) -> Break:
    """Give what writes a content into one of the files, or removes it."""

    def do(files: CertificateFiles) -> None:
        file = Path(getattr(files, name))
        file.unlink()
        if content is not None:
            file.write_text(content)

    return do


GARBLED = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("make_bad", "message"),
    [
        (broken("cert_file", None), "{cert_file}: cannot be read: No such file or directory"),
        (broken("key_file", None), "{key_file}: cannot be read: No such file or directory"),
        (broken("client_ca_file", None), "{client_ca_file}: cannot be read: No such file or directory"),
        (broken("cert_file", ""), "{cert_file}: contains no valid certificate"),
        (broken("cert_file", GARBLED), "{cert_file}: contains no valid certificate"),
        (broken("client_ca_file", GARBLED), "{client_ca_file}: contains no valid certificate"),
        (broken("key_file", "hello"), "{key_file}: contains no key, or one that needs a password"),
        (encrypted_key, "{key_file}: contains no key, or one that needs a password"),
        (other_key, "{key_file}: is not the key of {cert_file}"),
        (key_of_another_type, "{key_file}: is not the key of {cert_file}"),
    ],
)
def test_a_file_that_is_of_no_use_is_named(files: CertificateFiles, make_bad: Break, message: str) -> None:
    make_bad(files)
    with pytest.raises(ServingError) as caught:
        server_context(files)
    names = {name: getattr(files, name) for name in ("cert_file", "key_file", "client_ca_file")}
    assert str(caught.value) == message.format(**names)


def test_a_certificate_rejected_by_openssl_is_refused_with_the_reason(files: CertificateFiles) -> None:
    weak = rsa.generate_private_key(65537, 1024)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "weak")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder(name, name, weak.public_key(), 1, now, now + dt.timedelta(days=1))
    ).sign(weak, hashes.SHA256())
    Path(files.cert_file).write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    with pytest.raises(ServingError) as caught:
        server_context(files)
    assert str(caught.value) == f"{files.cert_file}: ee key too small"


def test_bad_files_are_an_error_from_the_start(files: CertificateFiles) -> None:
    Path(files.cert_file).unlink()
    with pytest.raises(ServingError):
        LiveCertificate(files)


def test_the_files_are_named_in_the_settings_as_kubernetes_does() -> None:
    content = b"""
apiVersion: reberth.dev/v1alpha1
kind: TlsSettings
tls: {certFile: /a, keyFile: /b, clientCAFile: /c}
"""
    assert parse(content, TlsSettings).tls.paths() == [Path("/a"), Path("/b"), Path("/c")]


def test_a_client_ca_is_not_needed(files: CertificateFiles) -> None:
    assert server_context(CertificateFiles(files.cert_file, files.key_file)).verify_mode == ssl.CERT_NONE
    assert server_context(files).verify_mode == ssl.CERT_REQUIRED
