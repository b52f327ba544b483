"""The certificate of a gateway is checked at its start."""

from pathlib import Path

import pytest

from afoot.errors import CallerError
from afoot.serve.http_server.certificate import check_certificate
from tests.e2e.access.test_off_loopback import certified


@pytest.mark.parametrize(
    ("hours", "why"), [((-2, -1), "has expired"), ((1, 2), "is not valid yet"), ((-1, 1), "")]
)
def test_a_certificate_must_be_of_this_time(tmp_path: Path, hours: tuple[int, int], why: str) -> None:
    """S2: it is said at the start, by name."""
    made = certified(tmp_path, hours)
    files = made["tls_cert"], made["tls_key"]
    if not why:
        check_certificate(*files)
        return
    with pytest.raises(CallerError, match=f"access.tls_cert .*cert.pem: {why}"):
        check_certificate(*files)


def test_files_of_a_certificate_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    """S2: one that is not there, one that belongs to another, one that is none."""
    (tmp_path / "other").mkdir()
    cert, key = certified(tmp_path).values()
    other = certified(tmp_path / "other")["tls_key"]
    with pytest.raises(CallerError, match=r"access.tls_key .*no\.pem: cannot be read \(No such file"):
        check_certificate(cert, str(tmp_path / "no.pem"))
    for wrong in (other, __file__):
        with pytest.raises(CallerError, match="cannot be used"):
            check_certificate(cert, wrong)
    check_certificate(cert, key)
