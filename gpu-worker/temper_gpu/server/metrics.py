"""Numbers for Prometheus, in its text format: vLLM's names where it has them, so that its dashboards show them."""

import os
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from temper_gpu.engine.interface import Engine, Generation

PROMETHEUS = "text/plain; version=0.0.4"

# Upper bounds, as vLLM has them.
LATENCY_S = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
FIRST_TOKEN_S = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640),
    2560,
)
# From a pocket model's step to an hour.
STEP_S = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
# Counters by the engine's names; its other sums have our own names.
OF_VLLM = {
    "prompt_tokens": ("vllm:prompt_tokens_total", "Prompt tokens that were computed."),
    "prefix_tokens": ("vllm:prefix_cache_hits_total", "Prompt tokens that were taken from the prefix cache."),
    "sampled_tokens": ("vllm:generation_tokens_total", "Tokens that were sampled."),
}
# Optional details of an engine.
OF_DETAILS = {
    "kv_cache_usage": ("vllm:kv_cache_usage_perc", "Share of the key-value cache in use, 1 for all of it."),
    "prefix_cache_bytes": ("temper_prefix_cache_bytes", "Memory of prompts that are kept for reuse."),
}


class Histogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def samples(self, name: str, labels: str) -> Iterator[str]:
        total = 0
        for bound, count in zip((*self._bounds, "+Inf"), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{{labels},le="{bound}"}} {total}'
        yield f"{name}_sum{{{labels}}} {self._sum}"
        yield f"{name}_count{{{labels}}} {total}"


class Metrics:
    """Counters of answers by base model, and of training steps; the rest is read from the engines on request. The
    server reads them in a thread of its own."""

    def __init__(self) -> None:
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self._waits: dict[str, Histogram] = {}
        self._steps: dict[str, Histogram] = {}
        self._phases: Counter[str] = Counter()
        self._reasons: Counter[tuple[str, str]] = Counter()
        self._latencies: dict[str, Histogram] = {}
        self._first_tokens: dict[str, Histogram] = {}

    def answered(
        self, model: str, generations: Iterable[Generation], took_s: float, first_token_s: float | None
    ) -> None:
        for generation in generations:
            self._reasons[model, generation.finish_reason] += 1
        self._latencies.setdefault(model, Histogram(LATENCY_S)).observe(took_s)
        if first_token_s is not None:
            self._first_tokens.setdefault(model, Histogram(FIRST_TOKEN_S)).observe(first_token_s)

    def executed(
        self, activity: str, outcome: str, waited_s: float, took_s: float, phases: Mapping[str, float]
    ) -> None:
        """One execution of an activity of the trainer. A step that is retried has several."""
        self._outcomes[activity, outcome] += 1
        self._waits.setdefault(activity, Histogram(STEP_S)).observe(max(0.0, waited_s))
        self._steps.setdefault(activity, Histogram(STEP_S)).observe(took_s)
        self._phases.update(phases)

    def text(self, engines: Mapping[str, Engine], num_tasks: int = 0) -> str:
        """`num_tasks`: of the server's event loop."""
        lines = [*of_engines(engines), *self._of_answers(), *self._of_training(), *of_process(num_tasks)]
        return "".join(f"{line}\n" for line in lines)

    def _of_answers(self) -> Iterator[str]:
        name = "vllm:request_success_total"
        yield from head(name, "counter", "Choices that were answered, by why they ended.")
        for (model, reason), count in sorted(self._reasons.items()):
            yield f'{name}{{{label(model)},finished_reason="{reason}"}} {count}'
        latency = ("vllm:e2e_request_latency_seconds", "Time of a request.", self._latencies)
        first = ("vllm:time_to_first_token_seconds", "Time to the first token of a stream.", self._first_tokens)
        for name, text, histograms in (latency, first):
            yield from head(name, "histogram", text)
            for model, histogram in sorted(histograms.items()):
                yield from histogram.samples(name, label(model))

    def _of_training(self) -> Iterator[str]:
        name = "temper_train_executions_total"
        yield from head(name, "counter", "Executions of the trainer's activities; a retried step has several.")
        for (activity, outcome), count in sorted(list(self._outcomes.items())):
            yield f'{name}{{activity="{activity}",outcome="{outcome}"}} {count}'
        waits = ("temper_train_schedule_to_start_seconds", "Time in the GPU worker's queue.", self._waits)
        steps = ("temper_train_execution_seconds", "Time of an execution.", self._steps)
        for name, text, histograms in (waits, steps):
            yield from head(name, "histogram", text)
            for activity, histogram in sorted(list(histograms.items())):
                yield from histogram.samples(name, f'activity="{activity}"')
        name = "temper_train_phase_seconds_total"
        yield from head(name, "counter", "Time of executions that ended well, by phase.")
        for phase, seconds in sorted(list(self._phases.items())):
            yield f'{name}{{phase="{phase}"}} {seconds}'


def of_engines(engines: Mapping[str, Engine]) -> Iterator[str]:
    health = {label(model): engine.health() for model, engine in sorted(engines.items())}
    gauges = (
        ("vllm:num_requests_running", "Requests that are computed.", {by: of.running for by, of in health.items()}),
        ("vllm:num_requests_waiting", "Requests that wait.", {by: of.waiting for by, of in health.items()}),
        ("temper_adapters_loaded", "Adapters in memory.", {by: len(of.adapters) for by, of in health.items()}),
        ("temper_engine_up", "0: the engine failed.", {by: int(of.failure is None) for by, of in health.items()}),
        *(
            (*described, {by: of.details[name] for by, of in health.items() if name in of.details})
            for name, described in OF_DETAILS.items()
        ),
    )
    for name, text, values in gauges:
        yield from head(name, "gauge", text)
        yield from (f"{name}{{{by}}} {value}" for by, value in values.items())
    sums = {label(model): engine.counters() for model, engine in sorted(engines.items())}
    for counter in sorted({counter for counters in sums.values() for counter in counters}):
        name, text = OF_VLLM.get(counter) or (f"temper_{unit(counter)}_total", "Since the engine was started.")
        yield from head(name, "counter", text)
        yield from (f"{name}{{{by}}} {counters[counter]}" for by, counters in sums.items() if counter in counters)


def of_process(num_tasks: int) -> Iterator[str]:
    """Memory and files under the names that Prometheus's own clients have."""
    values = [("temper_server_tasks", "Tasks of the server, about one for each request.", num_tasks)]
    if sys.platform == "linux":
        num_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        values += [
            ("process_resident_memory_bytes", "Memory in use.", num_pages * os.sysconf("SC_PAGE_SIZE")),
            ("process_open_fds", "Open files and connections.", len(os.listdir("/proc/self/fd"))),
        ]
    for name, text, value in values:
        yield from head(name, "gauge", text)
        yield f"{name} {value}"


def unit(counter: str) -> str:
    return f"{counter.removesuffix('_s')}_seconds" if counter.endswith("_s") else counter


def head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def label(model: str) -> str:
    escaped = model.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'model_name="{escaped}",engine="0"'
