"""The adapter `mlflow` and servers that are old, broken or down: a stand-in answers what a real one won't."""

import base64
import json
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.faulty_http import Answer, Fault, StandIn
from wtwin_adapters import mlflow_http
from wtwin_adapters.mlflow_seen import quiet_looks
from wtwin_adapters.mlflow_server import MlflowSource
from wtwin_adapters.mlflow_ways import way_of
from wtwin_watch.errors import SourceError
from wtwin_watch.model import RunKey
from wtwin_watch.testing import points_of, read_on

pytestmark = pytest.mark.integration

AT = 1_790_000_000_000


class OldServer(StandIn):
    """One run of one metric with ``count`` rows. ``pages`` False: it gives all of them every time."""

    def __init__(self, version: str | None, count: int, *, pages: bool = True):
        super().__init__()
        self.version = version
        self.count = count
        self.pages = pages
        self.stuck = False
        self.headers: list[dict[str, str]] = []

    def answer(self, request):
        self.headers.append(dict(request.headers))
        path = urlsplit(request.path).path
        if path == "/version":
            return Answer(404) if self.version is None else Answer(body=self.version.encode())
        found = {
            "experiments/search": {"experiments": [{"experiment_id": "1", "name": "a"}]},
            "runs/search": {"runs": [self._run()]},
            "runs/get": {"run": self._run()},
            "metrics/get-history": self._history(parse_qs(urlsplit(request.path).query)),
        }.get(path.removeprefix("/api/2.0/mlflow/"))
        return Answer(404) if found is None else Answer(body=json.dumps(found).encode())

    def asked(self, what):
        return [r["path"] for r in self.requests if what in r["path"]]

    def _run(self):
        info = {"run_id": "r", "run_name": "r", "experiment_id": "1", "status": "RUNNING"}
        return {"info": info, "data": {"metrics": [self._row(self.count - 1)]}}

    def _history(self, query):
        begin = 0
        if self.pages and "page_token" in query:
            begin = json.loads(base64.b64decode(query["page_token"][0]))["offset"]
        end = (
            begin + int(query["max_results"][0]) if self.pages and "max_results" in query else 10**9
        )
        if self.stuck:
            return {"next_page_token": query.get("page_token", ["x"])[0]}
        more = {"next_page_token": "more"} if end < self.count else {}
        return {"metrics": [self._row(i) for i in range(begin, min(end, self.count))], **more}

    def _row(self, number):
        return {"key": "loss", "value": number / 2, "timestamp": AT + number, "step": number}


class ShiftingServer(OldServer):
    """Its list of runs is cut into pages by their number; one begins earlier while it is being listed."""

    def __init__(self):
        super().__init__("3.6.0", 1)
        self.names = ["b", "c", "d"]

    def answer(self, request):
        if not request.path.endswith("runs/search"):
            return super().answer(request)
        begin = int(request.json().get("page_token", "0"))
        page = {
            "runs": [self._named(name) for name in self.names[begin : begin + 2]],
            "next_page_token": str(begin + 2) if begin + 2 < len(self.names) else "",
        }
        if "a" not in self.names:
            self.names.insert(0, "a")
        return Answer(body=json.dumps(page).encode())

    def _named(self, name):
        run = self._run()
        return {**run, "info": {**run["info"], "run_id": name}}


def source(server, **options):
    return MlflowSource("m", MlflowSource.Options(uri=server.url, **options))


def test_the_way_to_read_histories_follows_from_the_version():
    versions = ("3.17.2", "3.12.0", "3.11.9", "3.4.0rc1", "3.3.2", "2.9.2", "<html>")

    ways = [way.value if (way := way_of(version)) else None for version in versions]

    assert ways == ["windows", "windows", "pages", "pages", "whole", "whole", None]


@pytest.mark.parametrize(
    ("version", "pages"), [("2.9.2", False), ("3.6.0", True), (None, True), (None, False)]
)
def test_an_older_server_gives_each_row_once(version, pages):
    with OldServer(version, 3000, pages=pages) as server:
        watched = source(server)
        [run] = watched.runs()
        batches = read_on(watched, run, limit=700)
        server.count += 50
        cursor = json.loads(json.dumps(batches[-1].cursor))
        later = source(server)
        [run] = later.runs()
        batches += read_on(later, run, cursor)
        watched.close()
        later.close()

    assert [point.step for point in points_of(batches)] == list(range(3050))


def test_a_server_that_ignores_pages_though_its_version_has_them_is_read_rightly():
    with OldServer("3.6.0", 5000, pages=False) as server:
        watched = source(server)
        [run] = watched.runs()
        batches = read_on(watched, run)
        watched.close()

    assert [point.step for point in points_of(batches)] == list(range(5000))


def test_a_whole_history_is_asked_for_once_and_then_left_alone_for_a_while():
    with OldServer("2.9.2", 3000, pages=False) as server:
        watched = source(server)
        [run] = watched.runs()
        read_on(watched, run, limit=100)
        assert len(server.asked("get-history")) == 1
        watched.close()


def test_a_page_that_never_advances_is_an_error_and_no_endless_loop():
    with OldServer("3.6.0", 10) as server:
        watched = source(server)
        [run] = watched.runs()
        server.stuck = True
        with pytest.raises(
            SourceError, match="says there is more of metric 'loss', but gives none"
        ):
            watched.fetch(run, None, 100)
        watched.close()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(html=True), "answers .* with a web page"),
        (Fault(status=401), "HTTP 401; set MLFLOW_TRACKING_TOKEN"),
        (Fault(status=503), "HTTP 503"),
        (Fault(status=302), "a redirection; set the source's uri"),
        (Fault(drop=True), "can't be reached"),
        (Fault(truncate=True), "can't be reached"),
        (Fault(hang=True), "doesn't answer in time"),
    ],
)
def test_a_server_that_fails_is_an_error_that_says_how(fault, said, monkeypatch):
    monkeypatch.setattr(mlflow_http, "REQUEST_S", 1.0)
    with OldServer("3.6.0", 10) as server:
        watched = source(server)
        server.faults.append(fault)
        with pytest.raises(SourceError, match=said):
            watched.runs()
        assert len(server.requests) == 1
        assert [run.key for run in watched.runs()] == [RunKey("m", "r")]
        watched.close()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("experiments/search", '{"experiments": [1]}'),
        ("runs/search", '{"runs": [{"info": {}}]}'),
        ("runs/search", '{"runs": 7}'),
    ],
)
def test_an_answer_of_an_unknown_form_is_an_error_that_says_to_check_the_uri(path, body):
    with OldServer("3.6.0", 10) as server:
        watched = source(server)
        server.faults.append(Fault(status=200, body=body, path=path))
        with pytest.raises(SourceError, match=f"{path} has an unknown form; check uri"):
            watched.runs()
        watched.close()


def test_a_server_that_is_down_is_told_at_once_and_read_when_it_is_up_again():
    with OldServer("3.6.0", 10) as server:
        watched = source(server)
        server.down()
        with pytest.raises(SourceError, match="can't be reached: Connection refused"):
            watched.runs()
        server.up()
        assert [run.name for run in watched.runs()] == ["r"]
        watched.close()


@pytest.mark.parametrize(
    ("status", "header", "rest_s"),
    [(429, "3600", 3600), (503, "7", 7), (429, "soon", None), (503, None, None)],
)
def test_the_wish_of_a_server_to_be_left_alone_reaches_the_watcher(status, header, rest_s):
    with OldServer("3.6.0", 10) as server:
        watched = source(server)
        headers = {"Retry-After": header} if header else {}
        server.faults.append(Fault(status=status, headers=headers))
        with pytest.raises(SourceError, match=f"HTTP {status}") as caught:
            watched.runs()
        watched.close()

    assert caught.value.retry_after_s == rest_s


def test_mlflows_variables_log_in_and_a_sources_own_options_go_before_them(monkeypatch, tmp_path):
    def shown(**options):
        with OldServer("3.6.0", 10) as server:
            watched = source(server, **options)
            list(watched.runs())
            watched.close()
            return server.headers[0].get("authorization")

    monkeypatch.setenv("HOME", str(tmp_path))
    assert shown() is None
    (tmp_path / ".mlflow").mkdir()
    (tmp_path / ".mlflow" / "credentials").write_text(
        "[mlflow]\nmlflow_tracking_username = a\nmlflow_tracking_password = b%\n"
    )
    assert shown() == "Basic " + base64.b64encode(b"a:b%").decode()
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "u")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "p")
    assert shown() == "Basic " + base64.b64encode(b"u:p").decode()
    monkeypatch.setenv("TEAM_TOKEN", "t0ken")
    assert shown(token={"env": "TEAM_TOKEN"}) == "Bearer t0ken"


@pytest.mark.parametrize("name", ["MLFLOW_TRACKING_AWS_SIGV4", "MLFLOW_TRACKING_AUTH"])
def test_a_login_that_is_not_supported_is_said_to_be_so(name, monkeypatch):
    monkeypatch.setenv(name, "true")
    with OldServer("3.6.0", 1) as server, pytest.raises(SourceError, match=f"{name} is set"):
        source(server).runs()


@pytest.mark.parametrize("name", ["SERVER_CERT_PATH", "CLIENT_CERT_PATH"])
def test_a_certificate_that_is_not_there_is_an_error_that_names_the_variable(name, monkeypatch):
    monkeypatch.setenv(f"MLFLOW_TRACKING_{name}", "/nowhere/cert.pem")
    with (
        OldServer("3.6.0", 1) as server,
        pytest.raises(SourceError, match=f"{name} names /nowhere"),
    ):
        source(server).runs()


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("mlruns", "names a folder; .* the adapter mlflow-files"),
        ("sqlite:///mlflow.db", "names a database"),
        ("http://me:secret@host", "holds a user or a password"),
        ("http://host/?token=1", "ends at its path"),
        ("ftp://host", "starts with http"),
    ],
)
def test_a_uri_that_names_no_server_is_a_mistake_that_says_what_to_do(uri, said):
    with pytest.raises(ValueError, match=said):
        MlflowSource.Options(uri=uri)


def test_a_run_that_begins_while_pages_are_read_makes_no_other_come_twice_or_be_left_out():
    with ShiftingServer() as server:
        watched = source(server)
        first = [run.key.run for run in watched.runs()]
        second = [run.key.run for run in watched.runs()]
        watched.close()

    assert sorted(first) in (["a", "b", "c", "d"], ["b", "c", "d"])
    assert len(first) == len(set(first))
    assert second == ["a", "b", "c", "d"]


def test_databricks_is_read_by_the_tokens_it_gives(monkeypatch):
    monkeypatch.setenv("DATABRICKS_TOKEN", "dapi-not-a-real-token")
    with OldServer(None, 10) as server:
        monkeypatch.setenv("DATABRICKS_HOST", server.url)
        watched = MlflowSource("m", MlflowSource.Options(uri="databricks"))
        [run] = watched.runs()
        batches = read_on(watched, run, limit=4)
        server.count += 5
        [run] = watched.runs()
        batches += read_on(watched, run, batches[-1].cursor)
        watched.close()

    assert [point.step for point in points_of(batches)] == list(range(15))
    assert server.headers[-1]["authorization"] == "Bearer dapi-not-a-real-token"


def test_a_silent_run_is_looked_into_every_five_minutes_and_more_rarely_the_longer_it_is_silent():
    assert [quiet_looks(s) for s in (-5, 299, 300, 2999, 3000, 3299, 3301)] == [
        0,
        0,
        1,
        9,
        10,
        10,
        11,
    ]


def test_a_run_whose_history_is_another_one_now_begins_anew():
    with OldServer("3.6.0", 100) as server:
        watched = source(server)
        [run] = watched.runs()
        [batch] = read_on(watched, run)
        batch.cursor["metrics"]["loss"]["recent"][0][2] = 77.0
        server.count += 1
        [run] = watched.runs()
        [anew] = read_on(watched, run, batch.cursor)
        watched.close()

    assert (anew.restart.step, anew.restart.reason) == (
        None,
        "its history on the server is another one now",
    )
    assert [point.step for point in anew.points] == list(range(101))
