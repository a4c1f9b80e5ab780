"""Which of several processes of one training this is: only the first one watches and tells."""

from __future__ import annotations

import sys
from collections.abc import Mapping

_GLOBAL = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


def rank(environ: Mapping[str, str]) -> int:
    """Say the rank of this process: by ``torch.distributed`` where it is set up, else by ``environ``.

    torchrun, Slurm, Open MPI and MPICH each set a variable of their own; ``LOCAL_RANK`` is believed where
    there is none of these. 0 where nothing is said: then there is one process.
    """
    # Not imported: who doesn't use it hasn't set it up either.
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    for name in (*_GLOBAL, "LOCAL_RANK"):
        if environ.get(name, "").isdecimal():
            return int(environ[name])
    return 0
