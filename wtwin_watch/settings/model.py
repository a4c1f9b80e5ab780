"""The settings as values: already read, checked and complete. Times are in seconds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    Strict,
)

from wtwin_watch.alerting.budget import parse_budget
from wtwin_watch.alerting.digest import Digest
from wtwin_watch.alerting.maintenance import Window
from wtwin_watch.alerting.routing import Recipient, Routing
from wtwin_watch.model import Severity
from wtwin_watch.protocols import Options, SourceOptions
from wtwin_watch.secrets import shown_url
from wtwin_watch.settings.durations import Duration, shown_duration

if TYPE_CHECKING:
    from wtwin_watch.monitor.options import DetectorOptions

LONGEST_NAME = 64
SHORTEST_INTERVAL_S = 0.1


class Section(BaseModel):
    """A table of the settings file: frozen, and an unknown key is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _read_receivers(value: Any) -> Any:
    """Take the name of one receiver for a list of one."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not all(isinstance(one, str) for one in values):
        raise ValueError('should be names of receivers, such as ["team"]')
    return tuple(dict.fromkeys(values))


ReceiverNames = Annotated[
    tuple[str, ...],
    BeforeValidator(_read_receivers, json_schema_input_type=str | list[str]),
]


def _read_false_alarms(value: Any) -> Any:
    """Read a budget as how many false alarms a second; None where it is off."""
    if value is None or value == "off":
        return None
    if not isinstance(value, str):
        raise ValueError("should be a text such as '1 per week', or 'off'")
    return parse_budget(value)


FalseAlarms = Annotated[
    float | None, BeforeValidator(_read_false_alarms, json_schema_input_type=str)
]


class AlertSettings(Section):
    """The table ``[alerts]``: how patient alerts are, and who is told."""

    for_s: Duration = Field(
        0.0, alias="for", description="a detection must last this long before its alert fires"
    )
    cooldown_s: Duration = Field(
        600.0,
        alias="cooldown",
        description="after an alert is resolved, the same alert of the same run waits this long",
    )
    old_after_s: Duration = Field(
        3600.0,
        alias="old_after",
        description="a run whose log is older than this when it is first seen pages nobody",
    )
    source_down_after_s: Duration = Field(
        60.0,
        alias="source_down_after",
        description="a source that can't be read for this long is an alert of its own",
    )
    failed_after_s: Duration = Field(
        300.0,
        alias="failed_after",
        description="a run that failed or crashed is told if it hasn't gone on within this time",
    )
    stall_after_s: Duration = Field(
        300.0,
        alias="stall_after",
        description="a run whose steps stop coming is told after this time, or four times its longest pause",
    )
    min_steps: int = Field(
        0,
        ge=0,
        le=10**9,
        description="nothing is told of a run before it has logged so many losses",
    )
    forget_after_s: Duration = Field(
        7 * 86_400.0,
        alias="forget_after",
        description="a run that is listed no longer is forgotten after this time",
    )
    group_wait_s: Duration = Field(
        5.0,
        alias="group_wait",
        description="the first alert of a group waits this long for others; critical ones don't",
    )
    group_interval_s: Duration = Field(
        300.0,
        alias="group_interval",
        description="later alerts of a group are told at most this often",
    )
    group_window_s: Duration = Field(
        600.0,
        alias="group_window",
        description="alerts of one source and family that begin within this time of each other are"
        " told together; 0s: each by itself",
    )
    repeat_s: Duration = Field(
        86_400.0,
        alias="repeat",
        description="what still fires and nobody has acknowledged is told again after this time;"
        " 0s: never",
    )
    false_alarms: FalseAlarms = Field(
        "1 per week",
        validate_default=True,
        description="false alarms that may be told of all that is watched, such as '1 per week'; 'off':"
        " all that detector.far allows a run. Off if left out where detector.far is given",
    )
    receivers: ReceiverNames | None = Field(
        None, description="who is told where no route matches; every receiver if left out"
    )


def _read_far(value: Any) -> Any:
    """Read a false-alarm rate as a number or a text; what is neither is left to the type's own check."""
    from wtwin_watch.monitor.far import parse_far  # it comes with numpy

    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("should be a number of points, or a text such as '1 per 100000 points'")
    return parse_far(value)


Far = Annotated[
    float,
    BeforeValidator(_read_far, json_schema_input_type=float | str),
]


class DetectorSettings(Section):
    """The table ``[detector]``: which detector judges the loss, and the parameters of each."""

    name: Literal["trend", "classic"] = Field("trend", description="which detector judges the loss")
    far: Far = Field(
        1e5,
        description="trend: mean points between two false alarms; a number, or a text such as"
        " '1% per run of 20000 points'",
    )
    min_effect: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="trend: rises below this share of the loss are ignored; 0.0005 if left out, 0.00025"
        " where the learning rate is logged",
    )
    alpha: float = Field(
        2.0,
        gt=0,
        le=1e4,
        allow_inf_nan=False,
        description="classic: threshold of D, in robust deviations",
    )
    warmup_steps: int = Field(
        100,
        ge=0,
        le=10**9,
        description="classic: steps at the beginning that the forecast isn't fitted to",
    )
    n_consec: int = Field(
        5,
        ge=1,
        le=10**6,
        description="classic: observations above the threshold in a row that are an alert",
    )
    mad_window: int = Field(
        50, ge=2, le=100_000, description="classic: observations whose spread is the scale of D"
    )
    tau: float = Field(
        1e-3,
        gt=0,
        allow_inf_nan=False,
        description="classic: how fast a bad fit lowers the confidence Q",
    )
    calibration_frac: float = Field(
        0.10,
        gt=0,
        le=1,
        description="classic: part of the observations that the forecast is fitted to",
    )
    threshold_window: int = Field(
        200,
        ge=10,
        le=100_000,
        description="classic: values of D that the adaptive threshold looks at",
    )
    use_adaptive_T: bool = Field(False, description="classic: let the threshold fall below alpha")

    def options(self) -> DetectorOptions:
        """Make what the monitors take."""
        from wtwin_watch.monitor.options import ClassicOptions, TrendOptions  # it comes with numpy

        options = TrendOptions if self.name == "trend" else ClassicOptions
        return options(**{field.name: getattr(self, field.name) for field in fields(options)})


def check_name(name: str) -> str:
    """Refuse names that can't stand in a log line, an alert's key and a message alike."""
    if not re.fullmatch(r"[\w][\w .:@+-]*", name) or name != name.strip():
        raise ValueError(
            "should begin with a letter or digit and hold letters, digits, spaces and . : @ + - _"
        )
    return name


def check_interval(interval_s: float | None) -> float | None:
    """Refuse to look again at once: it would take a whole core."""
    if interval_s is not None and interval_s < SHORTEST_INTERVAL_S:
        raise ValueError(f"should be at least {shown_duration(SHORTEST_INTERVAL_S)}")
    return interval_s


def _read_patterns(value: Any) -> Any:
    """Take one pattern for a list of one."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not all(
        isinstance(one, str) and one.strip() for one in values
    ):
        raise ValueError('should be a pattern such as "gan-*", or a list of them')
    return tuple(values)


Patterns = Annotated[
    tuple[str, ...],
    BeforeValidator(_read_patterns, json_schema_input_type=str | list[str]),
]
Name = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(check_name)]


class SourceTable(Section):
    """What every ``[[source]]`` has besides the options of its adapter."""

    name: Name | None = Field(
        None, description="what it is called in alerts; stable, since the state is kept by it"
    )
    adapter: str = Field(description="which kind of tracker it is")
    interval: Annotated[Duration | None, AfterValidator(check_interval)] = Field(
        None, description="time between two looks; the adapter's own if left out"
    )
    exclude: Patterns = Field(
        (), description="runs whose name or id has one of these patterns are not watched"
    )
    exclude_metrics: Patterns = Field(
        (), description="metrics whose name has one of these patterns are not looked at"
    )
    max_severity: Annotated[Severity, Strict(False)] = Field(
        Severity.CRITICAL, description="what is told of its runs is at most this grave"
    )
    stalls: bool = Field(True, description="whether a run whose steps stop coming is told")
    rate: float | None = Field(
        None,
        gt=0,
        le=1e6,
        allow_inf_nan=False,
        description="looks and fetches a second at most; as many as come if left out",
    )


class ReceiverTable(Section):
    """What every ``[[receiver]]`` has besides the options of its notifier."""

    name: Name | None = Field(None, description="what it is called in logs and commands")
    notifier: str = Field(description="which kind of channel it is")
    severity: Annotated[Severity, Strict(False)] = Field(
        Severity.WARNING, description="what is less grave than this begins no message to it"
    )
    group: bool | None = Field(
        None,
        description="whether alerts that belong together are one message; if left out, unless its"
        " notifier groups by itself",
    )


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One place to watch."""

    name: str
    adapter: str
    interval_s: float
    options: SourceOptions
    origin: str
    """Where it was asked for: ``config.toml:12`` or ``--csv``."""
    table: SourceTable
    """The keys that every source has."""


@dataclass(frozen=True, slots=True)
class ReceiverSettings:
    """One destination of notifications."""

    name: str
    notifier: str
    options: Options
    origin: str
    """Where it was asked for: ``config.toml:12`` or ``$SLACK_WEBHOOK_URL``."""
    recipient: Recipient
    """What it isn't told, and whether alerts are put together for it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the daemon is built from."""

    state: str = field(repr=False)
    """A path, or a database URL; one from the environment may hold a password."""
    alerts: AlertSettings
    detector: DetectorSettings
    sources: tuple[SourceSettings, ...]
    receivers: tuple[ReceiverSettings, ...]
    routing: Routing
    """Which of the receivers are told of what."""
    digests: tuple[Digest, ...] = ()
    maintenance: tuple[Window, ...] = ()
    """When people are told of nothing new about what."""
    file: Path | None = None
    """The settings file that was read, if any."""
    notes: tuple[str, ...] = ()
    """What a person should know about how the settings came together."""


def allowed_false_alarms(settings: Settings) -> float | None:
    """How many false alarms a second may be told of all runs; None: what each run's detector finds.

    Who gives ``far`` has chosen a threshold, and a budget beside it only by saying so.
    """
    asked = "false_alarms" in settings.alerts.model_fields_set
    threshold = "far" in settings.detector.model_fields_set
    if settings.detector.name != "trend" or (threshold and not asked):
        return None
    return settings.alerts.false_alarms


@dataclass(frozen=True, slots=True)
class Flags:
    """The settings given on the command line; None and empty where not given."""

    config: Path | None = None
    state: str | None = None
    interval: str | None = None
    csv: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    tensorboard: tuple[str, ...] = ()
    wandb_dir: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    mlflow: str | None = None
    experiment: tuple[str, ...] = ()
    webhook: str | None = None
    slack_channel: str | None = None
    detector: str | None = None
    far: str | None = None
    min_effect: float | None = None
    alpha: float | None = None
    warmup: int | None = None
    n_consec: int | None = None
    mad_window: int | None = None
    tau: float | None = None


def secret_values(settings: Settings) -> set[str]:
    """Collect the secrets that the settings hold, to be masked wherever text leaves the program.

    An address that is shown whole anyway, scheme and host alone, isn't one of them.
    """
    parts: list[Options] = [source.options for source in settings.sources]
    parts += [receiver.options for receiver in settings.receivers]
    found = {secret for options in parts for _, value in options for secret in _secrets(value)}
    return {secret for secret in found if secret.rstrip("/") != shown_url(secret)}


def _secrets(value: Any) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _secrets(item)
