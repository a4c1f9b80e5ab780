"""How long to wait before trying again: exponential, with full jitter on the upper half."""

from __future__ import annotations


def delay_s(failures: int, base_s: float, cap_s: float, chance: float) -> float:
    """Seconds to wait after the ``failures``-th failure in a row (1 is the first).

    Doubles from ``base_s`` to ``cap_s``; ``chance`` in [0, 1) takes up to half of it away, so that many
    who failed together don't come back together.
    """
    full = min(cap_s, base_s * 2.0 ** min(failures - 1, 60))
    return full * (1.0 - 0.5 * chance)
