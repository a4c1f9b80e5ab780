"""Feeds the readers of files with bytes that atheris chooses by the code they reach.

``python -m tests.support.guided_fuzz READER [options of libFuzzer]`` runs until something fails: a reader
raises anything but a `SourceError`, doesn't come to an end, or gives other points when the file grows
between two looks. READER is one of ``tables``, ``text``, ``events`` or ``wandb``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["wtwin_adapters"]):
    from wtwin_adapters.logfiles import LogSource
    from wtwin_adapters.recognition import recognise_log, recognise_table
    from wtwin_adapters.tensorboard import TensorBoardSource
    from wtwin_adapters.wandb_files import WandbFilesSource

from tests.support import wandb_writer, writers
from wtwin_watch.errors import SourceError
from wtwin_watch.protocols import Source
from wtwin_watch.testing import read_on

Read = Callable[[Path, bytes, int], None]


def records(data: bytes) -> list[bytes]:
    """Cut ``data`` into records, each after a byte that tells its length."""
    found = []
    while data:
        found.append(data[1 : 1 + data[0]])
        data = data[1 + data[0] :]
    return found


def said(source: Source, path: Path, pieces: list[bytes]) -> list[str]:
    """The points that are read where ``path`` is written in ``pieces``, and looked at after each."""
    path.write_bytes(b"")
    told: list[str] = []
    cursor = None
    for piece in pieces:
        with path.open("ab") as file:
            file.write(piece)
        for run in source.runs():
            try:
                batches = read_on(source, run, cursor, limit=7)
            except SourceError:
                continue
            cursor = batches[-1].cursor
            for batch in batches:
                told += [repr(batch.restart)] * (batch.restart is not None)
                told += map(repr, batch.points)
    return told


def tables(folder: Path, data: bytes, cut: int) -> None:
    """CSV and JSON Lines."""
    for name in ("run.csv", "run.jsonl"):
        path = folder / name
        source = LogSource("x", LogSource.Options(path=str(path)))
        recognise_table(path)
        assert said(source, path, [data]) == said(source, path, [data[:cut], data[cut:]]), name


def text(folder: Path, data: bytes, cut: int) -> None:
    """Text logs. Which pattern reads one is settled by what is there at the first look."""
    path = folder / "run.log"
    said(LogSource("x", LogSource.Options(path=str(path))), path, [data[:cut], data[cut:]])
    recognise_log(path)


def events(folder: Path, data: bytes, cut: int) -> None:
    """Event files: as they are, or sound frames around any records."""
    path = folder / "events.out.tfevents.1.host"
    whole = data if cut % 2 else b"".join(map(writers.framed, records(data)))
    source = TensorBoardSource("x", TensorBoardSource.Options(path=str(folder)))
    whole_said = said(source, path, [whole])
    assert whole_said == said(source, path, [whole[:cut], whole[cut:]])


def wandb(folder: Path, data: bytes, cut: int) -> None:
    """Files of wandb: as they are, or sound blocks around any records."""
    path = folder / "run-abc.wandb"
    whole = wandb_writer.HEADER + (data if cut % 2 else wandb_writer.framed(records(data)))
    source = WandbFilesSource("x", WandbFilesSource.Options(path=str(folder)))
    assert said(source, path, [whole]) == said(source, path, [whole[:cut], whole[cut:]])


READERS: dict[str, Read] = {"tables": tables, "text": text, "events": events, "wandb": wandb}
SEEDS: dict[str, list[bytes]] = {
    "tables": [
        b"step,loss,lr\n1,0.5,0.1\n2,nan,\n",
        b"epoch;batch;loss\n1;0;0,5\n2;0;0,25\n",
        b'{"step": 1, "loss": 0.5}\n{"epoch": 1, "iter": 2, "loss": NaN}\n',
    ],
    "text": [
        b"step 1 loss 0.5\nstep 2 loss 0.25\n",
        b" iteration 1/ 9 | lm loss: 1.2E+00 | grad norm: 1.0 |\n",
        b"[step=1/9]\n    train/loss=0.5\n",
        b"Epoch 1/2\n 1/9 [=>.] - loss: 0.5\r 2/9 [=>.] - loss: 0.4\n",
    ],
    "events": [b"".join(bytes([len(r)]) + r for r in (writers.scalar(3, 0.5)[12:-4],))],
    "wandb": [
        b"".join(
            bytes([len(r)]) + r
            for r in (wandb_writer.run(), wandb_writer.history(1, loss=0.5), wandb_writer.end(3))
        )
    ],
}


def main() -> None:
    """Run one reader until something fails or libFuzzer's options end it."""
    read = READERS[sys.argv[1]]
    with tempfile.TemporaryDirectory() as place:
        folder, corpus = Path(place, "run"), Path(place, "corpus")
        folder.mkdir()
        corpus.mkdir()
        for i, seed in enumerate(SEEDS[sys.argv[1]]):
            (corpus / str(i)).write_bytes(b"\x04" + seed)

        def one(data: bytes) -> None:
            read(folder, data[1:], data[0] if data else 0)

        atheris.Setup([sys.argv[0], *sys.argv[2:], str(corpus)], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
