"""Whatever a W&B run goes through, the points that stand are those of its history, each once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.wandb_history import KeptHistory, Watcher, losses_of

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("log"), st.integers(1, 40), st.sampled_from([1, 1, 1, 7, 5_000])),
        st.tuples(st.just("rewind"), st.integers(0, 60), st.just(0)),
        st.tuples(st.just("export"), st.just(0), st.just(0)),
        st.tuples(st.just("look"), st.just(0), st.just(0)),
    ),
    max_size=14,
)


@settings(deadline=None, max_examples=60)
@given(EVENTS, st.sampled_from([1, 2, 7, 100, 5_000]))
def test_any_history_is_read_exactly_once(events, limit):
    history = KeptHistory()
    watcher = Watcher(history, limit=limit)
    number, rewound = 0, False
    for event, count, gap in events:
        if event == "log":
            # A rewound run that leapt over the steps it lost would leave them standing.
            apart = 1 if rewound else gap
            history.log(*({"loss": number + n, "lr": 0.1} for n in range(count)), gap=apart)
            number, rewound = number + count, False
        elif event == "rewind" and history.live_from <= history.last_step - count:
            history.rewind(history.last_step - count)
            rewound = True
        elif event == "export":
            history.export()
        elif event == "look":
            watcher.look()
    watcher.look()

    stands = losses_of(history.rows)
    if watcher.losses() and not history.rows:
        return  # all was taken back, and nothing was logged since that would show it
    told = watcher.losses()
    # What a rewind took away stands until a row replaces it.
    assert told[: len(stands)] == stands
    assert len({step for step, _ in told}) == len(told)
