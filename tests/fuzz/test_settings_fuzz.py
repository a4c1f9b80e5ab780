from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wtwin_watch.errors import SettingsError
from wtwin_watch.settings import Flags, Settings, load_settings

EXAMPLE = (Path(__file__).parents[2] / "config" / "example.toml").read_text().splitlines()
ROUTED = [
    *("[[route]]", 'match = "run=~x severity>=info"', 'receivers = ["team"]', "continue = true"),
    *("[[digest]]", 'receiver = "team"', 'at = "09:00"', 'timezone = "Europe/Berlin"'),
    *('every = "week"', 'weekday = "friday"', 'severity = "info"', "group = false"),
]
LINES = [*(line for line in EXAMPLE if line and not line.startswith("#")), *ROUTED]
PIECES = [
    *("=", "[", "]", "[[", "]]", "{", "}", '"', '"""', "'", ",", ".", "#", "\\", "\n", "\r", "\0"),
    *("1e999", "nan", "-1", "true", "1979-05-27", "[[source]]", "x.y.z = 1", "\u2028", "é"),
]


@st.composite
def documents(draw: st.DrawFn) -> str:
    """The example with lines lost, repeated and out of order, and pieces of TOML thrown in."""
    lines = draw(st.lists(st.sampled_from(LINES), max_size=12))
    text = "\n".join(lines)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(PIECES)) + text[at + draw(st.integers(0, 3)) :]
    return text


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settings") / "config.toml"


def outcome(config: Path) -> Settings | SettingsError:
    try:
        return load_settings(Flags(config=config), {"HOME": "/nowhere"})
    except SettingsError as error:
        return error


@given(text=documents() | st.text(max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_text_gives_settings_or_mistakes_with_their_place(config: Path, text: str):
    config.write_text(text, encoding="utf-8", newline="")

    result = outcome(config)

    if isinstance(result, SettingsError):
        assert result.mistakes
        assert all(line.startswith(f"{config}:") for line in result.mistakes)
