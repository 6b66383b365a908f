"""What callbacks see and may ask for."""

from typing import Any

import pytest

from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.core.observer import (
    ObserverGroup,
    TrainingContext,
    dataset_names,
    named_dataset,
)

EVENTS = ["on_train_begin", "on_round_begin", "on_round_end", "on_train_end"]


def context(round_index: int = -1, **more: Any) -> TrainingContext:
    arguments: dict[str, Any] = {
        "n_estimators": 5,
        "history": {},
        "higher_is_better": {"rmse": False},
        "read_predictions": lambda name: f"predictions of {name}",
    }
    result = TrainingContext(**{**arguments, **more})
    result.round = round_index
    return result


class Noting:
    """Writes down (name, event, context) and may stop."""

    def __init__(self, name: str, notes: list[Any], *, stop: bool = False) -> None:
        self.name, self.notes, self.stop = name, notes, stop

    def __getattr__(self, event: str) -> Any:
        assert event in EVENTS

        def note(seen: TrainingContext) -> None:
            self.notes.append((self.name, event, seen))
            if self.stop:
                seen.request_stop()

        return note


def test_a_context_begins_before_the_first_round() -> None:
    history: dict[str, Any] = {"train": {"rmse": []}}
    fresh = TrainingContext(5, history, {"rmse": False}, str)
    assert fresh.round == -1
    assert fresh.n_estimators == 5
    assert fresh.history is history
    assert fresh.higher_is_better == {"rmse": False}
    assert not fresh.stop_requested
    assert fresh.best_iteration is None


def test_a_context_of_a_continued_run_begins_before_its_first_round() -> None:
    fresh = TrainingContext(5, {}, {}, str, 7)
    assert (fresh.round, fresh.first_round) == (6, 7)
    assert TrainingContext(5, {}, {}, str).first_round == 0


def test_predictions_are_read_only_when_asked_for() -> None:
    read: list[str] = []
    one = context(read_predictions=lambda name: read.append(name) or name)
    assert read == []
    assert one.raw_predictions() == "train"
    assert one.raw_predictions("valid_0") == "valid_0"
    assert read == ["train", "valid_0"]


def test_a_stop_is_remembered() -> None:
    one = context()
    one.request_stop()
    one.request_stop()
    assert one.stop_requested


@pytest.mark.parametrize("best", [0, 2, 3])
def test_a_finished_round_can_be_kept_as_the_best(best: int) -> None:
    one = context(3)
    one.keep_best(0)
    one.keep_best(best)
    assert one.best_iteration == best


@pytest.mark.parametrize("best", [-1, 4, 1.5, True, None, "1"], ids=repr)
def test_only_a_finished_round_can_be_kept(best: Any) -> None:
    one = context(3)
    with pytest.raises(InvalidParameterError) as caught:
        one.keep_best(best)
    assert str(caught.value) == f"round_index must be an integer from 0 to 3; found {best!r}."
    assert one.best_iteration is None


@pytest.mark.parametrize("best", [0, -1])
def test_before_the_first_round_none_can_be_kept(best: int) -> None:
    with pytest.raises(InvalidParameterError, match="there is none yet"):
        context(-1).keep_best(best)


@pytest.mark.parametrize(
    ("best", "allowed"), [(2, True), (3, True), (5, True), (1, False), (0, False), (6, False)]
)
def test_a_continued_model_keeps_its_rounds(best: int, allowed: bool) -> None:
    one = context(5, first_round=3)
    if allowed:
        one.keep_best(best)
        assert one.best_iteration == best
    else:
        with pytest.raises(InvalidParameterError, match="must be an integer from 2 to 5; found"):
            one.keep_best(best)
        assert one.best_iteration is None
    before = context(2, first_round=3)
    before.keep_best(2)  # all of them are there before the first round of the run
    assert before.best_iteration == 2


@pytest.mark.parametrize("event", EVENTS)
def test_every_observer_sees_every_event_in_the_order_given(event: str) -> None:
    notes: list[Any] = []
    group = ObserverGroup([Noting("first", notes, stop=True), Noting("second", notes)])
    one = context()
    getattr(group, event)(one)
    assert notes == [("first", event, one), ("second", event, one)]
    assert one.stop_requested


@pytest.mark.parametrize("event", EVENTS)
def test_no_observers_are_fine(event: str) -> None:
    getattr(ObserverGroup([]), event)(context())


def test_observers_added_to_the_list_later_are_not_called() -> None:
    notes: list[Any] = []
    observers = [Noting("first", notes)]
    group = ObserverGroup(observers)
    observers.append(Noting("late", notes))
    group.on_round_end(context())
    assert [name for name, _, _ in notes] == ["first"]


def test_data_sets_are_named_train_and_valid() -> None:
    assert dataset_names(0) == ["train"]
    assert dataset_names(2) == ["train", "valid_0", "valid_1"]


def test_a_data_set_is_found_by_its_name() -> None:
    assert [named_dataset(name, 2) for name in dataset_names(2)] == [0, 1, 2]


@pytest.mark.parametrize("name", ["valid_2", "valid", "Train", ""])
def test_an_unknown_data_set_is_named_with_those_there_are(name: str) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        named_dataset(name, 2)
    assert str(caught.value) == (
        f"dataset must be one of ['train', 'valid_0', 'valid_1']; found {name!r}."
    )
