import base64
import datetime as dt
from pathlib import Path

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from localcluster.credentials import Authority
from reberth.runtime.tls.validity import list_validities, split_certificates

GOOD = (
    "MIIBcjCCARigAwIBAgIUducr1HVuE9YJYTyXtjZpagLdK5owCgYIKoZIzj0EAwIwFzEVMBMGA1UEAwwMbG9jYWxjbHVzdGVyMB4X"
    "DTI2MTExOTE3MzIyOVoXDTM2MTExNjE4MzIyOVowFzEVMBMGA1UEAwwMbG9jYWxjbHVzdGVyMFkwEwYHKoZIzj0CAQYIKoZIzj0D"
    "AQcDQgAEd3CT5qNRaFBC2z4q7OarjK+R0OF0D93CEcT0gPSZm6ACq4plrublqDm4rmPXYA8NUQO0UPI0vKQB7edhLy9zbKNCMEAw"
    "DwYDVR0TAQH/BAUwAwEB/zAOBgNVHQ8BAf8EBAMCAYYwHQYDVR0OBBYEFClfdowRyKCW2bWnEX5vQTyDAIb1MAoGCCqGSM49BAMC"
    "A0gAMEUCIELrT4sQPwZEgJM/qaDtSPMnD6O2q/7LDgp9sxSZeYo5AiEA5VE08uRi4CdqRbNDSliDYMbAvcCMTPUrC+dibqqCsHQ="
)


@pytest.mark.parametrize("days", [1, 400, 365 * 40])
def test_the_dates_are_those_of_the_certificate(tmp_path: Path, days: int) -> None:
    """UTCTime until 2049, then GeneralizedTime."""
    authority = Authority(tmp_path).create()
    pair = authority.issue("one", hosts=["localhost"], lifetime=dt.timedelta(days=days))
    pem = pair.certificate.read_text()
    known = x509.load_pem_x509_certificate(pem.encode())
    expected = known.not_valid_before_utc.timestamp(), known.not_valid_after_utc.timestamp()
    assert list_validities(pem) == [expected]
    both = f"a comment\n{pem}\n{authority.certificate.read_text()}"
    assert list_validities(both)[0] == expected
    assert [list_validities(one)[0] for one in split_certificates(both)] == list_validities(both)
    assert len(list_validities(both)) == 2


def test_what_has_no_certificate_has_no_end() -> None:
    assert list_validities("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----") == []


@given(st.binary(max_size=60), st.integers(0, 400), st.integers(0, 255))
def test_a_malformed_certificate_is_told_as_such(noise: bytes, at: int, byte: int) -> None:
    good = base64.b64decode(GOOD)
    for der in (noise, good[:at], good[:at] + bytes([byte]) + good[at + 1 :]):
        text = base64.b64encode(der).decode()
        try:
            found = list_validities(f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----")
        except ValueError:
            continue
        assert len(found) == 1
