"""What vLLM releases while a step is trained on its GPU: planned by bytes, told to the server, more after a lack."""

from contextlib import nullcontext

import pytest
import torch

from temper_gpu.engine.vllm import training
from temper_gpu.engine.vllm.switching import Held, Release, StepNeed, more, plan_release
from temper_gpu.engine.vllm.training import Training
from temper_gpu.failures import TemperError
from tests.training.samples import train_config

GPU = torch.device("cuda", 0)
GIB = 1 << 30
HELD = Held(cache=20 * GIB, weights=15 * GIB)


@pytest.mark.parametrize(
    ("free", "need", "expected", "words"),
    [
        (60, (45, 10, 50), "nothing", "a step wants 50.0 GiB of free memory, and 60.0 GiB are free beside vLLM"),
        (40, (45, 10, 50), "cache", "of free memory; 40.0 GiB are free beside vLLM, its key-value cache has 20.0 GiB"),
        (20, (45, 10, 50), "all", "its key-value cache has 20.0 GiB, its weights 15.0 GiB"),
        # Beside a sleeping vLLM, layers would be computed again, too.
        (14, (45, 10, 50), "nothing", "a step wants 11.1 GiB"),
        (8, (45, 10, 50), "cache", "a step wants 11.1 GiB"),
        (0, (45, 27, 50), "all", "a step wants 30.0 GiB"),
        # It fits nowhere: the trainer says so.
        (0, (90, 80, 100), "all", "a step wants 88.9 GiB"),
    ],
)
def test_as_little_is_released_as_a_step_needs(free: int, need: tuple[int, int, int], expected: str, words: str):
    plan = plan_release(free * GIB, HELD, StepNeed(*(size * GIB for size in need)))
    assert (plan.release, words in plan.reason) == (expected, True), plan.reason


def test_after_a_lack_of_memory_the_next_one_releases_more():
    assert [more(release) for release in ("nothing", "cache", "all")] == ["cache", "all", None]


class Engine:
    """Notes what it is told."""

    is_live = True

    def __init__(self, told: list[str], keeps_cache: bool = False, fails: bool = False) -> None:
        self._told = told
        self._fails = fails
        self._keeps_cache = keeps_cache

    def pause(self) -> None:
        self._told.append("pause")

    def release(self, release: Release) -> Release:
        if self._fails:
            raise ValueError("an answer without a body")
        done: Release = "all" if release == "cache" and self._keeps_cache else release
        self._told.append(done)
        return done

    def resume(self) -> None:
        self._told.append("resume")


def train(lock: Training, error: Exception | None = None, model: str = "mine") -> None:
    lock.expect(model, train_config())
    with nullcontext() if error is None else pytest.raises(type(error)), lock:
        if error is not None:
            raise error


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """GiB, of which the last one counts."""
    sizes = [60]
    monkeypatch.setattr(training, "free_bytes", lambda device: sizes[-1] * GIB)
    monkeypatch.setattr(training, "give_back", lambda device: sizes.append(sizes[-1]))
    return sizes


def needs(model: str, config: object) -> tuple[StepNeed, Held]:
    return StepNeed(45 * GIB, 10 * GIB, 50 * GIB), HELD


def test_a_plan_is_made_once_and_told(free: list[int], caplog: pytest.LogCaptureFixture):
    told: list[str] = []
    lock = Training(lambda: {"mine": Engine(told)}, GPU, needs)
    with caplog.at_level("INFO"):
        train(lock)
        free.append(0)
        train(lock)
    assert told == ["pause", "nothing", "resume"] * 2
    assert [record.__dict__["release"] for record in caplog.records] == ["nothing"]
    assert lock.take_seconds() == {}


def test_after_a_lack_of_memory_vllm_releases_more_for_as_long_as_the_process_lives(free: list[int]):
    told: list[str] = []
    lock = Training(lambda: {"mine": Engine(told)}, GPU, needs)
    lack = torch.OutOfMemoryError("CUDA out of memory")
    for has_more in (True, True, False):
        train(lock, lack)
        # Before vLLM takes its memory again, what the step had made is given back.
        assert len(free) == len([word for word in told if word == "pause"]) + 1
        assert (lock.take_more_room(), lock.take_more_room()) == (has_more, False)
    train(lock)
    assert [word for word in told if word not in ("pause", "resume")] == ["nothing", "cache", "all", "all"]


@pytest.mark.parametrize("failing", [0, 1])
def test_an_engine_that_fails_leaves_none_paused(free: list[int], failing: int):
    told: list[str] = []
    engines = {str(index): Engine(told, fails=index == failing) for index in range(2)}
    lock = Training(lambda: engines, GPU, None)
    with pytest.raises(ValueError, match="without a body"), lock:
        pass
    assert (told.count("pause"), told[-2:], told.count("resume")) == (2, ["resume"] * 2, 2)


def test_another_failure_changes_nothing(free: list[int]):
    told: list[str] = []
    lock = Training(lambda: {"mine": Engine(told)}, GPU, needs)
    train(lock, TemperError("LossNotFinite", "no"))
    assert (lock.take_more_room(), told) == (False, ["pause", "nothing", "resume"])


def test_a_server_without_the_smaller_release_is_not_asked_again(free: list[int]):
    free.append(40)
    told: list[str] = []
    lock = Training(lambda: {"mine": Engine(told, keeps_cache=True)}, GPU, needs)
    for _ in range(2):
        train(lock)
    assert told == ["pause", "all", "resume"] * 2
    assert lock.take_seconds().keys() == {"wait", "train"}


def test_all_is_released_where_nothing_can_be_planned(free: list[int]):
    told: list[str] = []
    starting = Engine(told)
    starting.is_live = False
    engines = [{"mine": Engine(told)}, {"mine": Engine(told), "another": Engine(told)}, {"mine": starting}]
    for shared, given, num_engines in zip(engines, (None, needs, needs), (1, 2, 1), strict=True):
        told.clear()
        train(Training(lambda found=shared: found, GPU, given))
        assert told == [*["pause"] * num_engines, *["all"] * num_engines, *["resume"] * num_engines]


def test_without_an_engine_on_the_gpu_nothing_is_switched(free: list[int]):
    lock = Training(dict, GPU, needs)
    train(lock, torch.OutOfMemoryError("CUDA out of memory"))
    assert (lock.take_seconds(), lock.take_more_room()) == ({}, False)
