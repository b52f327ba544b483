"""`check_certificate` says at the start of a gateway what is wrong with its certificate (S2)."""

import ssl
from typing import Final

from afoot.errors import CallerError

WRONG_TIME: Final = {9: "is not valid yet", 10: "has expired"}  # by the numbers of OpenSSL's errors


def check_certificate(cert: str, key: str) -> None:
    """Check that a certificate and its key can be used, and are valid now; raises CallerError."""
    for name, file in (("tls_cert", cert), ("tls_key", key)):
        try:
            with open(file, "rb"):
                pass
        except OSError as error:
            raise CallerError(f"access.{name} {file}: cannot be read ({error.strerror})") from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key, password=lambda: "")
    except (OSError, ValueError) as error:
        raise CallerError(f"access.tls_cert {cert}, access.tls_key {key}: cannot be used: {error}") from None
    if why := WRONG_TIME.get(_verify_code(context, cert)):
        raise CallerError(f"access.tls_cert {cert}: {why}; every client would refuse it")


def _verify_code(context: ssl.SSLContext, cert: str) -> int:
    """OpenSSL's number for what a client that trusts this certificate finds wrong with it; 0: nothing."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusting.load_verify_locations(cert)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = trusting.wrap_bio(to_client, to_server)
    for _ in range(3):  # a handshake takes no more turns
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error.verify_code
            except ssl.SSLError:
                return 0
    return 0
