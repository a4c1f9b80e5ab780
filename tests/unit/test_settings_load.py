from pathlib import Path

import pytest
from pydantic import SecretStr

from wtwin_watch import logs
from wtwin_watch.errors import SettingsError, UsageError
from wtwin_watch.settings import Flags, Settings, load_settings, load_state, secret_values
from wtwin_watch.settings.durations import LONGEST_S
from wtwin_watch.settings.files import SYSTEM_FILE, find_file

pytestmark = pytest.mark.usefixtures("toy_adapter")

SOURCE = '[[source]]\nadapter = "toy"\npath = "x.toy"\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def load(config: Path, text: str, environ: dict[str, str] | None = None, **flags) -> Settings:
    config.write_text(text)
    return load_settings(Flags(config=config, **flags), environ or {})


def mistakes(config: Path, text: str, environ: dict[str, str] | None = None, **flags) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(config, text, environ, **flags)
    return [line.removeprefix(str(config)) for line in caught.value.mistakes]


def asked_wrongly(environ: dict[str, str] | None = None, **flags) -> str:
    with pytest.raises(UsageError) as caught:
        load_settings(Flags(**flags), environ or {"HOME": "/nowhere"})
    return str(caught.value)


def test_a_short_file_gives_complete_settings(config: Path):
    settings = load(config, SOURCE)

    [source] = settings.sources
    assert (source.name, source.adapter, source.interval_s) == ("toy", "toy", 3.0)
    assert source.options.model_dump()["path"] == "x.toy"
    assert source.origin == f"{config}:1"
    assert [receiver.notifier for receiver in settings.receivers] == ["terminal"]
    assert settings.notes == ("no receiver is given: alerts are shown on this terminal only",)
    assert settings.file == config
    assert (settings.alerts.for_s, settings.alerts.cooldown_s) == (0.0, 600.0)
    assert (settings.alerts.old_after_s, settings.alerts.source_down_after_s) == (3600.0, 60.0)
    detector = settings.detector.model_dump()
    assert detector == {
        "name": "trend",
        "far": 1e5,
        "min_effect": None,
        "alpha": 2.0,
        "warmup_steps": 100,
        "n_consec": 5,
        "mad_window": 50,
        "tau": 1e-3,
        "calibration_frac": 0.1,
        "threshold_window": 200,
        "use_adaptive_T": False,
    }


def test_a_full_file_is_taken_at_its_word(config: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MY_TOKEN", "xoxb-not-a-real-token")
    settings = load(
        config,
        """
        state = "here.db"
        alerts = { for = "30s", cooldown = 5, old_after = "2h", source_down_after = "5m" }
        [detector]
        name = "classic"
        alpha = 3
        use_adaptive_T = true
        [[source]]
        name = "lab: night runs"
        adapter = "toy"
        interval = "1m30s"
        path = "x.toy"
        loss = "my loss"
        [[receiver]]
        name = "team"
        notifier = "slack"
        token = { env = "MY_TOKEN" }
        channel = "C012AB3CD"
        """,
    )

    assert settings.state == "here.db"
    assert (settings.alerts.for_s, settings.alerts.cooldown_s) == (30.0, 5.0)
    assert (settings.alerts.old_after_s, settings.alerts.source_down_after_s) == (7200.0, 300.0)
    assert (settings.detector.alpha, settings.detector.use_adaptive_T) == (3.0, True)
    assert settings.sources[0].name == "lab: night runs"
    assert settings.sources[0].interval_s == 90.0
    assert settings.sources[0].options.names.loss == "my loss"
    assert settings.receivers[0].name == "team"
    assert settings.notes == ()
    assert secret_values(settings) == {"xoxb-not-a-real-token"}
    assert "xoxb-not-a-real-token" not in repr(settings)
    assert logs.masked("token xoxb-not-a-real-token!") == "token (hidden)!"


def test_all_mistakes_are_told_at_once_each_with_its_line_and_cure(config: Path):
    told = mistakes(
        config,
        """\
state = 3
[alert]
for = "1m"
[alerts]
coldown = "1m"
for = "5 minutes"
[detector]
alpha = -1
n_consec = 2.5
mad_window = true
name = "clasic"
[[source]]
adapter = "toy"
pth = "x.toy"
[[source]]
adapter = "tooy"
[[source]]
path = "x"
[[source]]
name = "a/b"
adapter = "toy"
path = "x"
interval = "0s"
[[receiver]]
notifier = "slack"
token = "xoxb-secret-secret"
channel = "C1"
[[receiver]]
notifier = "webhook"
secret = { env = "NOT_SET_ANYWHERE" }
""",
    )

    assert told == [
        ":1: state: should be a path or a database URL",
        ":2: alert: unknown key; did you mean 'alerts'?",
        ":5: alerts.coldown: unknown key; did you mean 'cooldown'?",
        ':6: alerts.for: should be a duration such as "30s", "5m" or "1h30m",'
        " or a number of seconds",
        ":8: detector.alpha: should be greater than 0",
        ":9: detector.n_consec: should be a valid integer",
        ":10: detector.mad_window: should be a valid integer",
        ":11: detector.name: should be 'trend' or 'classic'",
        ":12: source.path: is missing; add it",
        ":14: source.pth: unknown key; did you mean 'path'?",
        ":16: source.adapter: this version has no adapter 'tooy'; did you mean 'toy'?",
        ":17: source.adapter: is missing; add it",
        ":20: source.name: should begin with a letter or digit and hold letters, digits, spaces"
        " and . : @ + - _",
        ":23: source.interval: should be at least 100ms",
        ':26: receiver.token: a secret is given by reference: { env = "NAME" },'
        ' { file = "/path" } or { credential = "name" }',
        ":28: receiver.url: is missing; add it",
        ":30: receiver.secret: the environment variable NOT_SET_ANYWHERE is not set",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[alerts\n",
            ":1: is not TOML: Expected ']' at the end of a table declaration, at column 8",
        ),
        ("a = 1\n\nb = \n", ":3: is not TOML: Invalid value, at column 5"),
        ('a = """never closed\n', ":2: is not TOML: Unterminated string, at the end of the file"),
        ("x = 1\nx = 2\n", ":2: is not TOML: Cannot overwrite a value, at column 6"),
    ],
)
def test_what_is_no_toml_is_told_with_its_line(config: Path, text: str, told: str):
    assert mistakes(config, text) == [told]


def test_text_that_is_not_utf8_is_told_with_its_line(config: Path):
    config.write_bytes(b'a = 1\nb = "\xff"\n')

    with pytest.raises(SettingsError, match=r"config.toml:2: is not UTF-8 text"):
        load_settings(Flags(config=config), {"WTWIN_WATCH_CONFIG": str(config)})


def test_a_file_far_too_large_is_not_read(config: Path):
    config.write_bytes(b"#" * (1 << 20) + b"\n")

    assert "larger than 1 MiB" in asked_wrongly(config=config)


def test_brackets_without_end_are_told(config: Path):
    config.write_text("a = " + "[" * 50_000)

    assert "too many brackets" in asked_wrongly(config=config)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[source]\nadapter = 'toy'\n", ":1: source: should be tables; write [[source]], with two brackets"),
        ("source = 'runs/*.csv'\n", ":1: source: should be tables; write [[source]], with two brackets"),
        ("receiver = ['slack']\n", ":1: receiver: should be tables; write [[receiver]], with two brackets"),
        ("alerts = '5m'\n", ":1: alerts: should be a table; write [alerts]"),
        ("[[detector]]\n", ":1: detector: should be a table; write [detector]"),
    ],
)  # fmt: skip
def test_a_table_of_the_wrong_shape_is_told_with_the_right_one(config: Path, text, told):
    assert mistakes(config, text) == [told]


def test_a_value_that_may_have_several_forms_is_one_mistake(config: Path):
    told = mistakes(
        config,
        """\
[[source]]
adapter = "csv"
path = 3
[[source]]
adapter = "csv"
path = []
[[source]]
adapter = "csv"
path = [
  "a.csv",
  3,
]
[[source]]
adapter = "csv"
path = ""
loss = 3
""",
    )

    assert told == [
        ":3: source.path: should be a valid string or a valid list",
        ":6: source.path: is empty; name a file, folder or pattern",
        ":11: source.path.1: should be a valid string",
        ":15: source.path: is empty; name a file, folder or pattern",
        ":16: source.loss: should be a valid string",
    ]


def test_a_file_with_a_byte_order_mark_and_dos_line_ends_is_read(config: Path):
    config.write_bytes(b"\xef\xbb\xbf" + SOURCE.replace("\n", "\r\n").encode())

    assert load_settings(Flags(config=config), {}).sources[0].name == "toy"


def test_sources_without_a_name_are_numbered_and_names_are_used_once(config: Path):
    settings = load(config, SOURCE + SOURCE + SOURCE.replace("adapter", 'name = "toy-2"\nadapter'))

    assert [source.name for source in settings.sources] == ["toy", "toy-3", "toy-2"]

    [told] = mistakes(config, 2 * SOURCE.replace("adapter", 'name = "lab"\nadapter'))
    assert told == (
        f":6: source.name: 'lab' is already the name of the source at {config}:2; choose another"
    )


def test_the_settings_file_is_looked_for_in_four_places(tmp_path: Path):
    mine = tmp_path / "xdg" / "wtwin-watch" / "config.toml"
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "xdg"), "HOME": str(tmp_path)}

    def found(config: Path | None, environ: dict[str, str]) -> Path | None:
        result = find_file(config, environ)
        return result and result[0]

    assert found(None, environ) == (SYSTEM_FILE if SYSTEM_FILE.exists() else None)
    mine.parent.mkdir(parents=True)
    mine.write_text("")
    assert found(None, environ) == mine
    environ["WTWIN_WATCH_CONFIG"] = "/named.toml"
    assert found(None, environ) == Path("/named.toml")
    assert found(Path("/asked.toml"), environ) == Path("/asked.toml")


def test_a_named_file_that_is_not_there_is_a_mistake(tmp_path: Path):
    missing = tmp_path / "missing.toml"

    assert asked_wrongly(config=missing) == (
        f"--config: {missing} can't be read: No such file or directory; check the path"
    )
    with pytest.raises(SettingsError, match=r"\$WTWIN_WATCH_CONFIG: .* can't be read"):
        load_settings(Flags(), {"WTWIN_WATCH_CONFIG": str(missing)})


def test_flags_go_before_the_environment_and_that_before_the_file(config: Path):
    text = 'state = "file.db"\n[detector]\nname = "classic"\nalpha = 3\ntau = 0.5\n' + SOURCE
    environ = {"WTWIN_WATCH_STATE": "environment.db"}

    settings = load(config, text, alpha=4.0, warmup=7, interval="9s")
    assert settings.state == "file.db"
    assert (settings.detector.alpha, settings.detector.tau) == (4.0, 0.5)
    assert settings.detector.warmup_steps == 7
    assert settings.sources[0].interval_s == 9.0

    assert load(config, text, environ).state == "environment.db"
    assert load(config, text, environ, state="flag.db").state == "flag.db"


def test_the_state_lies_where_the_system_keeps_state():
    def state(**environ: str) -> str:
        return load_state(Flags(), environ)

    assert state(STATE_DIRECTORY="/var/lib/wtwin-watch") == "/var/lib/wtwin-watch/state.db"
    assert state(STATE_DIRECTORY="/a:/b", HOME="/h") == "/a/state.db"
    assert state(HOME="/h") == "/h/.local/state/wtwin-watch/state.db"
    assert state(HOME="/h", XDG_STATE_HOME="/s") == "/s/wtwin-watch/state.db"
    assert state(HOME="/h", XDG_STATE_HOME="rel") == "/h/.local/state/wtwin-watch/state.db"


def test_a_password_of_the_state_database_is_taken_from_the_environment_alone(config: Path):
    url = "postgresql+psycopg://me:hunter22@db/watch"

    [told] = mistakes(config, f'state = "{url}"\n' + SOURCE)
    assert told.startswith(":1: state: holds a password; leave it out and set PGPASSWORD")
    assert "hunter22" not in told
    told = asked_wrongly(state=url)
    assert told.startswith("--state: holds a password; leave it out and set PGPASSWORD")
    assert "hunter22" not in told

    settings = load(config, SOURCE, {"WTWIN_WATCH_STATE": url})
    assert settings.state == url
    assert "hunter22" not in repr(settings)
    assert logs.masked(f"can't open {url}") == (
        "can't open postgresql+psycopg://me:(hidden)@db/watch"
    )
    assert load(config, 'state = "postgresql+psycopg://me@db/watch"\n' + SOURCE).state.endswith(
        "//me@db/watch"
    )


def test_nothing_to_watch_is_answered_with_an_example():
    told = asked_wrongly()

    assert told.startswith("nothing to watch.")
    assert "wtwin-watch --csv 'runs/*.csv'" in told
    assert "/nowhere/.config/wtwin-watch/config.toml" in told
    assert told.endswith('    path = "runs/*.csv"')
    assert load_settings(Flags(), {}, needs_sources=False).sources == ()


@pytest.mark.parametrize("text", ["", "[alerts]\n"])
def test_a_file_without_a_source_is_a_mistake_in_the_file(config: Path, text: str):
    [told] = mistakes(config, text)

    assert told.startswith(": holds no source; write one into it:\n    [[source]]\n")
    assert load(config, text, csv=("a.csv",)).sources[0].name == "csv"


def test_mistakes_on_the_command_line_alone_are_a_matter_of_usage(config: Path):
    assert asked_wrongly(alpha=-1.0, n_consec=0) == (
        "--alpha: should be greater than 0\n--n-consec: should be greater than or equal to 1"
    )
    assert len(mistakes(config, "x = 1", alpha=-1.0)) == 2


@pytest.mark.parametrize("folder", ["mlruns", "./runs:1", "/a/mlruns", "file:///a/mlruns"])
def test_the_folder_of_a_file_store_is_watched_where_mlflow_names_one(folder: str):
    [source] = load_settings(Flags(mlflow=folder, experiment=("llm",)), {}).sources

    assert (source.adapter, source.name) == ("mlflow-files", "mlflow-files")
    assert source.options.model_dump(exclude_none=True, exclude_defaults=True) == {
        "path": folder.removeprefix("file://"),
        "experiments": ("llm",),
    }


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("sqlite:///mlflow.db", "names a database; start `mlflow server --backend-store-uri"),
        ("localhost:5000", "starts with http"),
    ],
)
def test_what_is_neither_a_server_nor_a_folder_is_a_mistake_that_says_what_to_do(
    uri: str, said: str
):
    assert said in asked_wrongly(mlflow=uri)


def test_an_experiment_alone_says_what_it_lacks():
    assert asked_wrongly(experiment=("a",)) == (
        "--experiment: names an experiment of MLflow; add --mlflow URI"
    )


@pytest.mark.parametrize(
    ("environ", "flags", "receivers"),
    [
        ({}, {"webhook": "http://127.0.0.1:9/hook"}, [("webhook", "--webhook")]),
        (
            {"WTWIN_WATCH_WEBHOOK_URL": "https://example.test/x?token=secret99"},
            {},
            [("webhook", "$WTWIN_WATCH_WEBHOOK_URL")],
        ),
        (
            {"WTWIN_WATCH_WEBHOOK_URL": "https://example.test/x?token=secret99"},
            {"webhook": "https://example.test/"},
            [("webhook", "--webhook")],
        ),
        (
            {"SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/T0/B0/abcdefgh"},
            {},
            [("slack", "$SLACK_WEBHOOK_URL")],
        ),
        (
            {"SLACK_BOT_TOKEN": "xoxb-not-real"},
            {"slack_channel": "C012AB3CD"},
            [("slack", "--slack-channel")],
        ),
        ({"SLACK_BOT_TOKEN": "xoxb-not-real"}, {}, [("terminal", "no receiver is given")]),
    ],
)
def test_flags_and_environment_name_receivers(environ, flags, receivers):
    settings = load_settings(Flags(**flags), environ, needs_sources=False)

    assert [(r.notifier, r.origin) for r in settings.receivers] == receivers


def test_a_bot_token_without_a_channel_is_noted():
    settings = load_settings(Flags(), {"SLACK_BOT_TOKEN": "xoxb-not-real"}, needs_sources=False)

    assert settings.notes[0].startswith("SLACK_BOT_TOKEN is set but no channel is named")
    assert asked_wrongly(slack_channel="C012AB3CD") == (
        "--slack-channel: posting to a channel takes a bot token;"
        " set the environment variable SLACK_BOT_TOKEN"
    )


def test_the_environment_makes_no_second_receiver_of_a_kind_that_the_file_has(
    config: Path, monkeypatch: pytest.MonkeyPatch
):
    url = "https://hooks.slack.com/services/T0/B0/abcdefgh"
    monkeypatch.setenv("SLACK_WEBHOOK_URL", url)
    text = SOURCE + '[[receiver]]\nnotifier = "slack"\nwebhook = { env = "SLACK_WEBHOOK_URL" }\n'

    settings = load(config, text, {"SLACK_WEBHOOK_URL": url})

    assert len(settings.receivers) == 1


def test_webhooks_from_the_environment_are_signed_with_its_secret():
    secret = "whsec_" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB"
    environ = {
        "WTWIN_WATCH_WEBHOOK_URL": "https://example.test/x",
        "WTWIN_WATCH_WEBHOOK_SECRET": secret,
    }

    [receiver] = load_settings(Flags(), environ, needs_sources=False).receivers

    assert receiver.options.model_dump()["secret"] == (SecretStr(secret),)
    assert secret not in repr(receiver)

    with pytest.raises(SettingsError) as caught:
        load_settings(Flags(), environ | {"WTWIN_WATCH_WEBHOOK_SECRET": "no secret"})
    assert caught.value.mistakes[0].startswith("$WTWIN_WATCH_WEBHOOK_SECRET: ")
    assert "no secret" not in str(caught.value)


def test_the_api_of_slack_can_lie_elsewhere():
    environ = {"SLACK_BOT_TOKEN": "xoxb-not-real", "SLACK_API_URL": "http://127.0.0.1:9/api/"}

    [receiver] = load_settings(
        Flags(slack_channel="C012AB3CD"), environ, needs_sources=False
    ).receivers

    assert receiver.options.model_dump()["api_url"] == "http://127.0.0.1:9/api/"


def test_settings_cannot_be_changed_afterwards(config: Path):
    settings = load(config, SOURCE)

    with pytest.raises(ValueError, match="frozen"):
        settings.alerts.for_s = 3.0
    assert settings.alerts.for_s <= LONGEST_S
