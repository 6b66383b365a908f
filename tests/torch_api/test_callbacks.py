"""The callback protocol and the progress bar."""

import contextlib
import io
from typing import Any

import pytest
from torch_api.small_data import QUICK, regression
from tqdm.std import tqdm as terminal_tqdm

import torchgbdt as tg
from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.torch_api.callbacks import Callback, ProgressBar

X, Y = regression()


class Diary(Callback):
    def __init__(self, entries: list[str], name: str = "", stop_at: int | None = None) -> None:
        self.entries, self.name, self.stop_at = entries, name, stop_at

    def on_train_begin(self, context: Any) -> None:
        self.entries.append(f"{self.name}begin {context.round}")

    def on_round_begin(self, context: Any) -> None:
        self.entries.append(f"{self.name}round {context.round}")

    def on_round_end(self, context: Any) -> None:
        self.entries.append(f"{self.name}end {context.round}")
        if context.round == self.stop_at:
            context.request_stop()

    def on_train_end(self, context: Any) -> None:
        self.entries.append(f"{self.name}done {context.round}")

    def close(self) -> None:
        self.entries.append(f"{self.name}close")


def test_events_come_in_order() -> None:
    entries: list[str] = []
    tg.train(X, Y, callbacks=[Diary(entries)], **{**QUICK, "n_estimators": 2})
    assert entries == ["begin -1", "round 0", "end 0", "round 1", "end 1", "done 1", "close"]


def test_all_callbacks_run_in_the_round_in_which_one_stops() -> None:
    entries: list[str] = []
    callbacks = [Diary(entries, "a ", stop_at=0), Diary(entries, "b ")]
    model = tg.train(X, Y, callbacks=callbacks, **QUICK)
    assert model.n_rounds == 1
    assert entries[4:8] == ["a end 0", "b end 0", "a done 0", "b done 0"]


def test_any_object_with_the_four_events_is_a_callback() -> None:
    class Mine:
        rounds = 0

        def on_train_begin(self, context: Any) -> None: ...

        def on_round_begin(self, context: Any) -> None: ...

        def on_round_end(self, context: Any) -> None:
            self.rounds += 1

        def on_train_end(self, context: Any) -> None: ...

        def close(self) -> None:
            raise AssertionError("its close is its own affair")

    mine = Mine()
    tg.train(X, Y, callbacks=[mine], **QUICK)
    assert mine.rounds == 3


class Failing(Callback):
    def on_round_end(self, context: Any) -> None:
        raise RuntimeError("mine")


class FailingToClose(Callback):
    def close(self) -> None:
        raise OSError("cannot close")


def test_all_callbacks_are_closed_when_training_fails() -> None:
    entries: list[str] = []
    with pytest.raises(RuntimeError, match="mine"):
        tg.train(X, Y, callbacks=[Diary(entries, "a "), Failing(), Diary(entries, "b ")], **QUICK)
    assert entries[-2:] == ["b close", "a close"]
    assert not any("done" in entry for entry in entries)


def test_all_callbacks_are_closed_when_data_is_refused() -> None:
    entries: list[str] = []
    with pytest.raises(tg.errors.InvalidDataError):
        tg.train(X, Y[1:], callbacks=[Diary(entries)], **QUICK)
    assert entries == ["close"]


def test_one_that_fails_to_close_does_not_stop_the_others_nor_cost_the_model() -> None:
    entries: list[str] = []
    trainer = tg.Trainer(callbacks=[Diary(entries), FailingToClose()], **QUICK)
    with pytest.warns(RuntimeWarning, match="cannot close"):
        model = trainer.fit(X, Y)
    assert entries[-1] == "close"
    assert trainer.model is model
    assert trainer.state is tg.TrainerState.COMPLETED


def test_one_that_fails_to_close_does_not_hide_what_ended_the_run() -> None:
    with pytest.raises(RuntimeError, match="mine") as caught:
        tg.train(X, Y, callbacks=[Failing(), FailingToClose()], **QUICK)
    assert "cannot close" in caught.value.__notes__[0]


def test_an_interrupt_while_closing_leaves_state_failed_and_the_model_untouched() -> None:
    class Interrupted(Callback):
        armed = False

        def close(self) -> None:
            if self.armed:
                raise KeyboardInterrupt

    callback = Interrupted()
    trainer = tg.Trainer(callbacks=[callback], **QUICK)
    good = trainer.fit(X, Y)
    callback.armed = True
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(X, Y)
    assert trainer.state is tg.TrainerState.FAILED
    assert trainer.model is good


def test_base_class_does_nothing() -> None:
    model = tg.train(X, Y, callbacks=[Callback()], **QUICK)
    assert model.digest() == tg.train(X, Y, **QUICK).digest()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def open_bars() -> list[Any]:
    return list(getattr(terminal_tqdm, "_instances", []))


def shown(stream: io.StringIO, bar: ProgressBar, *others: Callback, **arguments: Any) -> str:
    """What a run writes to this stream as stderr."""
    with contextlib.redirect_stderr(stream):
        tg.train(X, Y, callbacks=[bar, *others], **QUICK, **arguments)
    return stream.getvalue()


def test_bar_shows_rounds_rate_and_metric_in_a_terminal() -> None:
    text = shown(Terminal(), ProgressBar(), eval_set=[regression(seed=1)])
    for part in ("training", "3/3", "round/s", "valid_0 rmse="):
        assert part in text


def test_bar_works_without_any_metric() -> None:
    assert "3/3" in shown(Terminal(), ProgressBar())


@pytest.mark.parametrize("show", [None, False])
def test_bar_is_silent_outside_a_terminal(show: bool | None) -> None:
    assert shown(io.StringIO(), ProgressBar(show)) == ""


def test_bar_is_shown_outside_a_terminal_when_asked() -> None:
    assert "3/3" in shown(io.StringIO(), ProgressBar(show=True))


def test_bar_is_hidden_in_a_terminal_when_asked() -> None:
    assert shown(Terminal(), ProgressBar(show=False)) == ""


@pytest.mark.parametrize("show", [None, True])
def test_bar_is_silent_where_there_is_no_stderr(show: bool | None) -> None:
    with contextlib.redirect_stderr(None):
        assert tg.train(X, Y, callbacks=[ProgressBar(show)], **QUICK).n_rounds == 3


@pytest.mark.parametrize("show", [None, True])
def test_stream_that_was_closed_before_does_not_stop_training(show: bool | None) -> None:
    stream = io.StringIO()
    stream.close()
    with contextlib.redirect_stderr(stream):
        assert tg.train(X, Y, callbacks=[ProgressBar(show)], **QUICK).n_rounds == 3


def test_closed_stream_does_not_stop_training() -> None:
    stream = io.StringIO()

    class ClosesIt(Callback):
        def on_round_begin(self, context: Any) -> None:
            stream.close()

    with contextlib.redirect_stderr(stream):
        model = tg.train(X, Y, callbacks=[ProgressBar(show=True), ClosesIt()], **QUICK)
    assert model.n_rounds == 3


def test_bar_is_closed_after_training() -> None:
    bar = ProgressBar()
    shown(Terminal(), bar)
    assert bar._bar is None
    assert open_bars() == []


def test_bar_is_closed_when_training_fails() -> None:
    bar = ProgressBar()
    with pytest.raises(RuntimeError):
        shown(Terminal(), bar, Failing())
    assert bar._bar is None
    assert open_bars() == []


def test_bar_can_be_used_again() -> None:
    bar = ProgressBar()
    assert "3/3" in shown(Terminal(), bar)
    assert "3/3" in shown(Terminal(), bar)
    assert open_bars() == []


def test_bar_that_was_left_open_is_closed_by_the_next_run() -> None:
    bar = ProgressBar()
    context: Any = type("Context", (), {"n_estimators": 5, "history": {}})()
    with contextlib.redirect_stderr(Terminal()):
        bar.on_train_begin(context)
        left_open = bar._bar
        bar.on_train_begin(context)
        assert open_bars() == [bar._bar]
        assert bar._bar is not left_open
        bar.close()
        bar.close()
    assert open_bars() == []


@pytest.mark.parametrize("show", [1, "yes"])
def test_refused_show(show: Any) -> None:
    with pytest.raises(InvalidParameterError, match="show must be None, True or False"):
        ProgressBar(show)
