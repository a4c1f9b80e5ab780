"""The options of the adapter ``mlflow``."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, ConfigDict

from wtwin_adapters.mlflow_experiments import Experiments, no_runs
from wtwin_adapters.mlflow_login import check_uri
from wtwin_watch.protocols import SourceOptions
from wtwin_watch.secrets import Secret


class MlflowOptions(SourceOptions):
    """Where the server is, which runs of it are watched, and who asks."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    uri: Annotated[str, AfterValidator(check_uri)]
    """The tracking server's http:// or https:// address, or databricks, or databricks://PROFILE."""
    experiments: Experiments = ()
    """Names or ids of experiments; left out, all active ones."""
    filter: str | None = None
    """Which runs, in MLflow's own search language: ``tags.team = 'llm'``."""
    username: str | None = None
    """The user, where it isn't in MLFLOW_TRACKING_USERNAME."""
    password: Secret | None = None
    """A secret: the password, where it isn't in MLFLOW_TRACKING_PASSWORD."""
    token: Secret | None = None
    """A secret: the bearer token, where it isn't in MLFLOW_TRACKING_TOKEN."""

    @property
    def no_runs(self) -> str:
        """Say where nothing was found."""
        return no_runs(self.experiments, "is running or ended within a day")
