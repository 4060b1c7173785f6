"""AdamW with moments in 8 bits: its numbers, its state in checkpoints, and what it is refused for."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load
from torch import Tensor, nn

from temper_gpu.contract import LoraConfig, OptimizerConfig
from temper_gpu.failures import TemperError
from temper_gpu.model.bits import REQUIREMENT, import_bitsandbytes
from temper_gpu.model.full_weights import initial_weights
from temper_gpu.model.lora import adapter_bytes, initial_tensors, target_modules
from temper_gpu.model.models import POCKET_FOLDER, load_base, outline
from temper_gpu.store import FileStore
from temper_gpu.training import optimizers
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.needs import optimizer_bytes
from temper_gpu.training.optimizers import BLOCK, AdamW, OptimizerKind, initial_optimizer_tensors, without_scales
from temper_gpu.training.packing import Row, pack
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.ranks import ALONE
from temper_gpu.training.ranks.joined import Joined
from temper_gpu.training.step import train_step
from tests.failing import failing
from tests.training.agreement import require_same_gradients
from tests.training.samples import (
    STEADY,
    initialise_input,
    lora,
    sampled_groups,
    tiny_base,
    train_config,
    train_input,
)
from tests.training.trainers import never, new_trainer, step_at_once

make_deterministic(1)

GPU_WORKER = Path(optimizers.__file__).parents[2]
CPU = torch.device("cpu")
CONFIG = OptimizerConfig(beta1=0.9, beta2=0.99, epsilon=1e-8, weight_decay=0.1, max_grad_norm=1)
LEARNING_RATE = 1e-2
KINDS: tuple[OptimizerKind, ...] = ("adamw", "adamw_8bit")
# Of a whole tensor: no multiple of a block.
COUNT = 5_003
# On CPUs bitsandbytes looks codes up in a table, and may miss the nearest by a place of it (a share of the block).
PLACE = 2**-15
# 4,096 numbers and more of the tiny model's adapter.
WIDE = lora(256)


def parameter(seed: int, count: int = COUNT) -> nn.Parameter:
    return nn.Parameter(torch.randn(count, generator=torch.Generator().manual_seed(seed)))


def eight_bits(weights: nn.Parameter) -> AdamW:
    return AdamW("adamw_8bit", {"w": weights})


def coded(seed: int) -> dict[str, Tensor]:
    """A file whose second moments are those of no zero gradient."""
    numbers = torch.Generator().manual_seed(seed)
    tensors = {"step": torch.tensor(3.0)}
    for moment, least, scale in (("exp_avg", 0, 1e-2), ("exp_avg_sq", 100, 1e-3)):
        tensors[f"{moment}/w"] = torch.randint(least, 256, (COUNT,), generator=numbers, dtype=torch.uint8)
        tensors[f"absmax/{moment}/w"] = scale * torch.rand(-(-COUNT // BLOCK), generator=numbers)
    return tensors


def shares_of(moment: str) -> NDArray[np.float64]:
    return import_bitsandbytes("a test").functional.create_dynamic_map(signed=moment == "exp_avg").double().numpy()


def decoded(tensors: dict[str, Tensor], moment: str) -> NDArray[np.float64]:
    """Without bitsandbytes' kernels."""
    scales = tensors[f"absmax/{moment}/w"].double().numpy().repeat(BLOCK)[:COUNT]
    return shares_of(moment)[tensors[f"{moment}/w"].numpy()] * scales


def require_near(tensors: dict[str, Tensor], moment: str, wanted: NDArray[np.float64]) -> None:
    """Each number is as near as a code can be, but for a place of bitsandbytes' table."""
    magnitudes = np.pad(np.abs(wanted), (0, -COUNT % BLOCK)).reshape(-1, BLOCK).max(1)
    np.testing.assert_allclose(tensors[f"absmax/{moment}/w"].numpy(), magnitudes, rtol=1e-5)
    scales = magnitudes.repeat(BLOCK)[:COUNT]
    distances = np.abs(wanted[:, None] / scales[:, None] - shares_of(moment)).min(1)
    errors = np.abs(decoded(tensors, moment) - wanted) / scales
    assert (errors <= distances + PLACE + 1e-6).all()


@pytest.mark.numerics
def test_an_update_is_adams_of_the_numbers_that_the_codes_stand_for():
    weights, before = parameter(0), coded(1)
    optimizer = eight_bits(weights)
    optimizer.load(before)
    start, gradient = weights.detach().clone(), 0.1 * parameter(2).detach()
    weights.grad = gradient.clone()
    optimizer.step(CONFIG, LEARNING_RATE)
    after = optimizer.tensors()

    gradient_64 = gradient.double().numpy()
    first = 0.9 * decoded(before, "exp_avg") + 0.1 * gradient_64
    second = 0.99 * decoded(before, "exp_avg_sq") + 0.01 * gradient_64**2
    # Loshchilov & Hutter 2019 (arXiv 1711.05101), algorithm 2, the fourth step.
    ratio = (first / (1 - 0.9**4)) / (np.sqrt(second / (1 - 0.99**4)) + 1e-8)
    wanted = start.double().numpy() * (1 - LEARNING_RATE * 0.1) - LEARNING_RATE * ratio
    np.testing.assert_allclose(weights.detach().double().numpy(), wanted, rtol=1e-5, atol=1e-6)
    require_near(after, "exp_avg", first)
    require_near(after, "exp_avg_sq", second)
    assert after["step"] == 4


@pytest.mark.numerics
def test_the_first_step_is_that_of_adamw_in_float32():
    """Also of a parameter that keeps float32 moments, and of one without a gradient."""
    names = {"w": COUNT, "small": 100, "unused": COUNT}
    whole = {kind: {n: parameter(i, size) for i, (n, size) in enumerate(names.items())} for kind in KINDS}
    for kind, parameters in whole.items():
        optimizer = AdamW(kind, parameters)
        optimizer.load(initial_optimizer_tensors({name: p.detach() for name, p in parameters.items()}))
        zeros = without_scales(optimizer.tensors())
        assert zeros.keys() == {"step", *(f"{moment}/{name}" for moment in ("exp_avg", "exp_avg_sq") for name in names)}
        assert not any(tensor.any() for tensor in zeros.values())
        for name in ("w", "small"):
            parameters[name].grad = parameter(3, names[name]).detach()
        optimizer.step(CONFIG, LEARNING_RATE)
        optimizer.zero_grad()
        assert all(p.grad is None for p in parameters.values())
    for name, found in whole["adamw_8bit"].items():
        torch.testing.assert_close(found, whole["adamw"][name], rtol=1e-6, atol=1e-7)
    assert whole["adamw"]["unused"].equal(parameter(2))


def test_a_first_moment_whose_second_is_rounded_to_zero_does_not_move_the_parameter():
    weights, tensors = nn.Parameter(torch.zeros(COUNT)), coded(1)
    tensors["exp_avg_sq/w"].zero_()
    optimizer = eight_bits(weights)
    optimizer.load(tensors)
    weights.grad = torch.zeros(COUNT)
    optimizer.step(CONFIG, LEARNING_RATE)
    assert not weights.detach().any()


def test_moments_are_converted_between_both_kinds():
    eight, plain = eight_bits(parameter(0)), AdamW("adamw", {"w": parameter(0)})
    plain.load(coded(1))
    as_float = plain.tensors()
    assert as_float.keys() == {"exp_avg/w", "exp_avg_sq/w", "step"}
    eight.load(as_float)
    found = eight.tensors()
    assert found["step"] == as_float["step"] == 3
    for moment in ("exp_avg", "exp_avg_sq"):
        numbers = as_float[f"{moment}/w"].double().numpy()
        np.testing.assert_allclose(numbers, decoded(coded(1), moment), rtol=1e-6)
        require_near(found, moment, numbers)
    eight.load(coded(1))
    assert adapter_bytes(eight.tensors()) == adapter_bytes(coded(1))


def test_moments_of_other_shapes_are_errors():
    eight, plain = eight_bits(parameter(0)), AdamW("adamw", {"w": parameter(0)})
    with pytest.raises(RuntimeError, match="size of tensor"):
        eight.load({**coded(1), "exp_avg/w": torch.zeros(COUNT + 1)})
    for optimizer in (eight, plain):
        with failing("StoreCorrupt", r"exp_avg/w has \[3\] for 5,003"):
            optimizer.load({**coded(1), "absmax/exp_avg/w": torch.zeros(3)})


@pytest.mark.numerics
def test_a_run_goes_on_with_another_optimizer_and_after_a_restart_with_the_same_bytes(store: FileStore):
    """As a fork would. The policy in memory is made again. Some of its tensors are small, and stay float32."""
    hashes: dict[str, list[str]] = {"whole": [], "restarted": []}
    for run, found in hashes.items():
        trainer = new_trainer(store)
        place = trainer.initialise(initialise_input(run, lora=WIDE)).commit.checkpoint(run)
        for number, kind in enumerate(("adamw", "adamw_8bit", "adamw_8bit", "adamw")):
            if run == "restarted":
                trainer = new_trainer(store)
            optimizer = train_config().optimizer.model_copy(update={"kind": kind})
            config = train_config(lora=WIDE, max_logprob_mismatch=100.0, optimizer=optimizer)
            groups = sampled_groups(place.adapter_sha256, seed=number)
            commit = trainer.train(train_input(store, place, groups, train=config), never).commit
            place = commit.checkpoint(run)
            found += [commit.manifest.adapter.sha256, commit.manifest.optimizer.sha256]
            tensors = load(store.get_blob(commit.manifest.optimizer))
            dtypes = {tensor.dtype for name, tensor in tensors.items() if name.startswith("exp_avg")}
            assert dtypes == {torch.float32} | ({torch.uint8} if kind == "adamw_8bit" else set())
            own = commit.manifest.platform.keys() & {"bitsandbytes", "optimizer"}
            assert len(own) == (2 if kind == "adamw_8bit" else 0)
            assert tensors["step"] == number + 1
    assert hashes["whole"] == hashes["restarted"]
    assert len(set(hashes["restarted"])) == 8


def test_parameters_that_are_all_small_or_embeddings_are_refused():
    message = r"at least 4,096 numbers, .* but the largest of 1 has 100; leave"
    with pytest.raises(TemperError, match=message) as found:
        AdamW("adamw_8bit", {"small": parameter(0, 100), "rows": parameter(1)}, frozenset(["rows"]))
    assert found.value.type == "BadConfig"
    assert not found.value.retryable


def test_a_python_without_bitsandbytes_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch):
    assert REQUIREMENT in (GPU_WORKER / "requirements.in").read_text().splitlines()
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    import_bitsandbytes.cache_clear()
    with failing("BadConfig", r"install bitsandbytes==0.50.2 there, or leave"):
        eight_bits(parameter(0))


def test_only_this_optimizer_imports_bitsandbytes_and_nothing_imports_peft():
    program = """
import gc, logging, sys
gc.disable()
logging.basicConfig(level=logging.INFO)
from temper_gpu.training.policy import TrainablePolicy
from tests.training.samples import lora, tiny_base
TrainablePolicy(tiny_base(), lora())
print("bitsandbytes" in sys.modules)
TrainablePolicy(tiny_base(), lora(256), optimizer="adamw_8bit")
print("bitsandbytes" in sys.modules, "peft" in sys.modules)
TrainablePolicy(tiny_base(), lora())
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=GPU_WORKER, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]
    assert "bitsandbytes" not in done.stderr and "gemm_4bit" not in done.stderr


@pytest.mark.parametrize("adapter", [None, LoraConfig(rank=64, alpha=64, target_modules=None)])
def test_a_policy_learns_as_with_float32_moments_and_its_state_is_as_large_as_planned(adapter: LoraConfig | None):
    base, model = load_base("pocket", str(POCKET_FOLDER), torch.float32, CPU), outline(str(POCKET_FOLDER))
    weights = initial_weights(base)
    if adapter is not None:
        weights = initial_tensors(model, target_modules(model, None), adapter.rank, 0)
    ids = [(7 * place) % 200 for place in range(40)]
    row = Row(ids, "attempt", list(range(1, 40)), [0.0] * 39, [1.0] * 39, [0.0] * 39)
    [batch] = pack([row], 39, 100, CPU)
    losses: dict[str, list[float]] = {}
    for kind in KINDS:
        policy = TrainablePolicy(base, adapter, optimizer=kind)
        policy.load(weights, initial_optimizer_tensors(weights))
        losses[kind] = []
        for _ in range(6):
            loss = -policy.log_probabilities(batch).logprobs_N.mean()
            losses[kind].append(loss.item())
            loss.backward()
            policy.clip_gradients(1.0)
            policy.optimizer_step(CONFIG, 1e-3)
        held = [tensor for name, tensor in policy.optimizer_tensors().items() if name != "step"]
        assert optimizer_bytes(model, adapter, kind) == sum(tensor.nbytes for tensor in held)
        if adapter is None:
            # It is larger than all others.
            assert policy.optimizer_tensors()["exp_avg/model.embed_tokens.weight"].dtype == torch.float32
    plain, found = losses["adamw"], losses["adamw_8bit"]
    assert plain[-1] < plain[0] - 0.5
    assert found == pytest.approx(plain, rel=0.02)
    assert found[:2] == pytest.approx(plain[:2], rel=1e-5)


@pytest.mark.numerics
def test_two_ranks_come_to_what_one_does(tmp_path: Path):
    groups = sampled_groups("0" * 64, 1)
    config = train_config(lora=WIDE, max_logprob_mismatch=100.0, optimizer=STEADY)
    model = tiny_base().instantiate("eager")
    start = initial_tensors(model, target_modules(model, None), WIDE.rank, 0)
    kinds = (ALONE, Joined(0, 2), Joined(1, 2))
    policies = [TrainablePolicy(tiny_base(), WIDE, ranks, "adamw_8bit") for ranks in kinds]
    inputs = StepInputs("0" * 64, groups, config, 1e-3)
    step_at_once(policies, start, tmp_path, lambda policy: train_step(policy, inputs))
    alone, first, second = (policy.adapter_tensors() for policy in policies)
    require_same_gradients({n: first[n] - start[n] for n in start}, {n: alone[n] - start[n] for n in start})
    for name, tensor in first.items():
        assert second[name].equal(tensor)
