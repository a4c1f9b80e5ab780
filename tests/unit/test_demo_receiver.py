import base64
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from wtwin_watch.demo.receiver import decode_secret, verify

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
NOW = 1_800_000_000.0
BODY = '{"type":"run.alert.firing","data":{"run":"größe"}}'


def test_what_the_standards_own_library_signs_is_let_in():
    verify(decode_secret(SECRET), _headers(), BODY.encode(), NOW)


def test_one_good_signature_among_several_is_enough():
    headers = _headers()
    headers["webhook-signature"] = f"v2,other v1,AAAA {headers['webhook-signature']}"

    verify(decode_secret(SECRET), headers, BODY.encode(), NOW)


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-id": "msg_2"},
        {"webhook-timestamp": str(int(NOW) + 1)},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1,größe"},
    ],
)
def test_a_changed_header_is_refused(change: dict[str, str]):
    with pytest.raises(ValueError, match="signature is wrong"):
        verify(decode_secret(SECRET), {**_headers(), **change}, BODY.encode(), NOW)


def test_a_changed_body_is_refused():
    with pytest.raises(ValueError, match="signature is wrong"):
        verify(decode_secret(SECRET), _headers(), BODY.encode() + b" ", NOW)


def test_another_secret_is_refused():
    other = "whsec_" + base64.b64encode(b"x" * 32).decode()

    with pytest.raises(ValueError, match="signature is wrong"):
        verify(decode_secret(SECRET), _headers(other), BODY.encode(), NOW)


@pytest.mark.parametrize("missing", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_missing_header_is_refused(missing: str):
    headers = _headers()
    del headers[missing]

    with pytest.raises(ValueError, match=r"no id or no timestamp|signature is wrong"):
        verify(decode_secret(SECRET), headers, BODY.encode(), NOW)


@pytest.mark.parametrize("timestamp", ["", "soon", "-5", "1e9", "²", "9" * 5000])
def test_a_timestamp_that_is_no_number_is_refused(timestamp: str):
    with pytest.raises(ValueError, match="no id or no timestamp"):
        verify(
            decode_secret(SECRET),
            {**_headers(), "webhook-timestamp": timestamp},
            BODY.encode(),
            NOW,
        )


@pytest.mark.parametrize("later", [301.0, -301.0])
def test_an_old_delivery_is_refused_though_its_signature_is_good(later: float):
    with pytest.raises(ValueError, match="too far from now"):
        verify(decode_secret(SECRET), _headers(), BODY.encode(), NOW + later)


@pytest.mark.parametrize("secret", ["", "whsec_!!!!", "k" * 32, "other_" + "A" * 44])
def test_a_secret_of_another_form_is_refused_unquoted(secret: str):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - two texts are possible
        decode_secret(secret)

    assert not secret or secret not in str(refusal.value)


def _headers(secret: str = SECRET) -> dict[str, str]:
    moment = datetime.fromtimestamp(NOW, UTC)
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(NOW)),
        "webhook-signature": Webhook(secret).sign("msg_1", moment, BODY),
    }
