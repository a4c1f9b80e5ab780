import pytest

from wtwin_watch.errors import UsageError
from wtwin_watch.settings import Flags, load_settings
from wtwin_watch.settings.arguments import secret_in

SECRETS = [
    "https://me:pass@example.test/hook",
    "https://tok3n@example.test/hook",
    "https://hooks.slack.com/services/T0/B0/abcdefgh",
    "https://HOOKS.slack.com/services/T0/B0/abcdefgh",
    "https://hooks.slack-gov.com/services/T0/B0/abcdefgh",
    "https://discord.com/api/webhooks/1/abcdefgh",
    "https://acme.webhook.office.com/webhookb2/abcdefgh",
    "https://prod-1.westeurope.logic.azure.com:443/workflows/abcdefgh",
    "https://chat.googleapis.com/v1/spaces/A/messages?x=1",
    "https://example.test/hook?token=abcdefgh",
    "https://example.test/hook?a=1&api_key=abcdefgh",
    "https://example.test/hook?sig=abcdefgh",
    "https://example.test/hook?access_token=",
    "xoxb-1-2-abcdefgh",
    "whsec_abcdefgh",
]


@pytest.mark.parametrize("argument", SECRETS)
def test_a_secret_on_the_command_line_is_refused_and_never_repeated(argument: str):
    for flags in ({"webhook": argument}, {"slack_channel": argument}, {"mlflow": argument}):
        with pytest.raises(UsageError) as caught:
            load_settings(Flags(**flags), {})

        told = str(caught.value)
        assert "every user of this machine can read a command line" in told
        assert "environment variable" in told
        assert all(part not in told for part in ("abcdefgh", "pass@", "tok3n"))


@pytest.mark.parametrize(
    "argument",
    [
        "https://example.test/hook",
        "http://127.0.0.1:8080/",
        "https://example.test/hook?team=llm",
        "https://notdiscord.company.test/x",
        "https://discord.com.company.test/x",
        "postgresql://me@db/watch",
        "C012AB3CD",
        "runs/*.csv",
        "https://[broken",
        "",
    ],
)
def test_what_holds_no_secret_is_let_through(argument: str):
    assert secret_in(argument) is None
