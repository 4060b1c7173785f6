"""What the proof catches, each by its name: another base model, an adapter that was not loaded, another adapter, one
under another name, another model's answers, log-probabilities of another distribution."""

import pytest
import torch

from temper_gpu.engine.vllm.client import Address
from temper_gpu.engine.vllm.engine import VllmEngine
from temper_gpu.engine.vllm.proof import PROBE_TOKENS, TEMPERATURE, TOLERANCES, require_adapter, score
from temper_gpu.failures import TemperError
from temper_gpu.model.models import POCKET_FOLDER
from tests.engine.vllm.stood import adapter_of, ask, eventually, request, settings
from tests.failing import failing

OURS = Address("key", socket="/nowhere")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("no adapter", "of what the adapter changes -?0% is found.*answers as the base model does"),
        ("another adapter", "nats off the trainer's on average, which may be 0.002 in float32"),
        ("wrong name", "lists its folder under run@1"),
        ("another model", "but answered as 'another'"),
        ("another base", "nats off the trainer's on average"),
        ("raw", "nats off the trainer's on average"),
    ],
)
def test_a_server_that_does_not_sample_from_the_adapter_is_caught(engine, pocket, fault, wrong, told):
    # One that is not loaded yet.
    adapter = adapter_of(pocket, sum(wrong.encode()))
    fault.write_text(wrong)
    with pytest.raises(TemperError, match=told) as caught:
        ask(engine, request(), adapter)
    fault.write_text("")
    assert (caught.value.type, caught.value.retryable) == ("PolicyMismatch", False)
    assert adapter.sha256 not in engine.health().adapters
    # Nothing of it stays: the next one that is right is loaded and proven.
    assert ask(engine, request(), adapter).token_ids


def test_an_adapter_of_a_first_small_step_is_told_from_none(engine, pocket, fault):
    small = adapter_of(pocket, 2, scale=3e-5)
    ids = list(range(PROBE_TOKENS + 24))
    change = (score(pocket, small.read(), ids) - score(pocket, None, ids)).abs().mean()
    assert change < TOLERANCES["float32"].mean, "the distance alone must not tell it"
    fault.write_text("no adapter")
    with pytest.raises(TemperError, match="without an adapter"):
        ask(engine, request(), small)
    fault.write_text("")
    assert ask(engine, request(), small).token_ids


def test_the_first_adapter_of_a_run_changes_nothing_and_is_accepted(engine, pocket):
    assert ask(engine, request(), adapter_of(pocket, 3, scale=0.0)).token_ids


def test_flags_that_the_server_refuses_are_the_users_mistake(pocket, fault):
    with failing("BadConfig", "refused them: .*--no-such-flag; correct engine.vllm.args"):
        VllmEngine(pocket, str(POCKET_FOLDER), settings(fault, args=("--no-such-flag",)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_noise_within_its_bound_is_no_mismatch(pocket, dtype):
    generator = torch.Generator().manual_seed(0)
    tolerance = TOLERANCES[dtype]
    plain_T = torch.randn(71, generator=generator, dtype=torch.float64)
    for size in (0.0, 1e-6, tolerance.noise, 1.0):
        adapted_T = plain_T + size * torch.randn(71, generator=generator, dtype=torch.float64)
        noise_T = tolerance.noise * torch.randn(71, generator=generator, dtype=torch.float64)
        base = pocket if dtype == "float32" else rounded(pocket)
        require_adapter(base, OURS, "a" * 64, adapted_T + noise_T, adapted_T, plain_T)


def test_in_bfloat16_a_change_is_judged_only_where_it_is_more_than_everybodys_rounding(pocket):
    base = rounded(pocket)
    generator = torch.Generator().manual_seed(0)

    def heard(logprobs_T):
        return logprobs_T + 0.05 * torch.randn(71, generator=generator, dtype=torch.float64)

    plain_T = torch.randn(71, generator=generator, dtype=torch.float64)
    for size in (0.0, 0.01, 0.05, 0.1, 0.3, 1.0):
        adapted_T = plain_T + size * torch.randn(71, generator=generator, dtype=torch.float64)
        for _ in range(50):
            require_adapter(base, OURS, "a" * 64, heard(adapted_T), heard(adapted_T), heard(plain_T))
            if size >= 0.3:
                with pytest.raises(TemperError, match="of what the adapter changes"):
                    require_adapter(base, OURS, "a" * 64, heard(plain_T), heard(adapted_T), heard(plain_T))


def rounded(base):
    from dataclasses import replace

    return replace(base, tensors={name: tensor.bfloat16() for name, tensor in base.tensors.items()})


def test_the_probe_is_scored_at_the_temperatures_that_it_is_sampled_at(pocket):
    ids = list(range(60, 60 + PROBE_TOKENS + 2))
    logits = pocket.instantiate("sdpa")(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    scored = score(pocket, None, ids)
    assert scored[0] == pytest.approx(float(logits[0].log_softmax(-1)[ids[1]]), abs=1e-5)
    assert scored[-1] == pytest.approx(float((logits[-2] / TEMPERATURE).log_softmax(-1)[ids[-1]]), abs=1e-5)


def test_a_server_that_comes_back_with_another_base_model_answers_nothing_more(engine, fault):
    """The last one: the engine that all tests share is given up."""
    fault.write_text("dies")
    with pytest.raises(TemperError, match="being restarted"):
        ask(engine, request())
    assert eventually(lambda: engine.health().details["state"] == "starting")
    fault.write_text("another base")
    waiting = engine.submit(None, request(), 120)
    assert eventually(lambda: engine.health().failure is not None)
    for asked in (lambda: waiting.result(60), lambda: ask(engine, request())):
        with failing("PolicyMismatch", "must serve the weights of pocket"):
            asked()
