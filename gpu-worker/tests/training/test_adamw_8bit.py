"""AdamW with moments in 8 bits: its numbers, its state in checkpoints, and what it is refused for."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load
from torch import Tensor, nn

from temper_gpu.commits.checkpoints import Commit
from temper_gpu.contract import Checkpoint, LoraConfig, OptimizerConfig
from temper_gpu.failures import TemperError
from temper_gpu.model.bits import REQUIREMENT, import_bitsandbytes
from temper_gpu.model.full_weights import initial_weights
from temper_gpu.model.lora import adapter_bytes, initial_tensors, target_modules
from temper_gpu.model.models import POCKET_FOLDER, load_base, outline
from temper_gpu.store import FileStore
from temper_gpu.training import optimizers
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.needs import optimizer_bytes
from temper_gpu.training.optimizers import (
    BLOCK,
    EightBitAdamW,
    Float32AdamW,
    Optimizer,
    in_float32,
    initial_optimizer_tensors,
    without_scales,
)
from temper_gpu.training.packing import Row, pack
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.ranks import ALONE
from temper_gpu.training.ranks.joined import Joined
from temper_gpu.training.step import train_step
from temper_gpu.training.trainer import Trainer
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

CPU = torch.device("cpu")
CONFIG = OptimizerConfig(beta1=0.9, beta2=0.99, epsilon=1e-8, weight_decay=0.1, max_grad_norm=1)
LEARNING_RATE = 1e-2
# Of a whole tensor: neither a multiple of a block nor of what is updated at once.
COUNT = 10_007
# On CPUs bitsandbytes looks codes up in a table, and may miss the nearest by a place of it (a share of the block).
PLACE = 2**-15
# 4,096 numbers and more of the tiny model's adapter.
WIDE = lora(256)


@pytest.fixture(autouse=True)
def updates_are_of_several_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizers, "MOST_AT_ONCE", 16 * BLOCK)


def parameter(seed: int, count: int = COUNT) -> nn.Parameter:
    return nn.Parameter(torch.randn(count, generator=torch.Generator().manual_seed(seed)))


def fresh(optimizer: Optimizer, parameters: dict[str, nn.Parameter]) -> Optimizer:
    optimizer.load(initial_optimizer_tensors({name: p.detach() for name, p in parameters.items()}))
    return optimizer


def coded(seed: int) -> dict[str, Tensor]:
    """A file whose second moments are those of no zero gradient."""
    numbers = torch.Generator().manual_seed(seed)
    num_blocks = -(-COUNT // BLOCK)
    moments = {
        "exp_avg/w": torch.randint(0, 256, (COUNT,), generator=numbers, dtype=torch.uint8),
        "exp_avg_sq/w": torch.randint(100, 256, (COUNT,), generator=numbers, dtype=torch.uint8),
    }
    scales = {"exp_avg": 1e-2, "exp_avg_sq": 1e-3}
    absmax = {f"absmax/{m}/w": scale * torch.rand(num_blocks, generator=numbers) for m, scale in scales.items()}
    return {**moments, **absmax, "step": torch.tensor(3.0)}


def dynamic_map(signed: bool) -> NDArray[np.float64]:
    return import_bitsandbytes("a test").functional.create_dynamic_map(signed=signed).double().numpy()


def decoded(tensors: dict[str, Tensor], moment: str) -> NDArray[np.float64]:
    """Without bitsandbytes' kernels."""
    scales = tensors[f"absmax/{moment}/w"].double().numpy().repeat(BLOCK)[:COUNT]
    return dynamic_map(moment == "exp_avg")[tensors[f"{moment}/w"].numpy()] * scales


def require_near(tensors: dict[str, Tensor], moment: str, wanted: NDArray[np.float64]) -> None:
    """Each number is as near as a code can be, but for a place of bitsandbytes' table."""
    padded = np.pad(np.abs(wanted), (0, -len(wanted) % BLOCK)).reshape(-1, BLOCK)
    scales = padded.max(1).repeat(BLOCK)[: len(wanted)]
    distances = np.abs(wanted[:, None] / scales[:, None] - dynamic_map(moment == "exp_avg")).min(1)
    errors = np.abs(decoded(tensors, moment) - wanted) / scales
    assert (errors <= distances + PLACE + 1e-6).all()


@pytest.mark.numerics
def test_an_update_is_adams_of_the_numbers_that_the_codes_stand_for():
    weights, before = parameter(0), coded(1)
    optimizer = EightBitAdamW({"w": weights})
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
    whole = [{"w": parameter(0), "small": parameter(1, 100), "unused": parameter(2)} for _ in range(2)]
    for optimizer, parameters in zip((EightBitAdamW, Float32AdamW), whole, strict=True):
        made = fresh(optimizer(parameters), parameters)
        for seed, name in enumerate(("w", "small")):
            parameters[name].grad = parameter(seed + 3, parameters[name].numel()).detach()
        made.step(CONFIG, LEARNING_RATE)
        made.zero_grad()
        assert all(p.grad is None for p in parameters.values())
    for name, found in whole[0].items():
        torch.testing.assert_close(found, whole[1][name], rtol=1e-6, atol=1e-7)


def test_a_first_moment_whose_second_is_rounded_to_zero_does_not_move_the_parameter():
    weights, tensors = nn.Parameter(torch.zeros(COUNT)), coded(1)
    tensors["exp_avg_sq/w"].zero_()
    optimizer = EightBitAdamW({"w": weights})
    optimizer.load(tensors)
    weights.grad = torch.zeros(COUNT)
    optimizer.step(CONFIG, LEARNING_RATE)
    assert not weights.detach().any()


def test_moments_are_converted_between_both_kinds():
    weights = {"w": parameter(0)}
    eight, plain = EightBitAdamW(weights), Float32AdamW(weights)
    plain.load(coded(1))
    as_float = plain.tensors()
    assert as_float.keys() == {"exp_avg/w", "exp_avg_sq/w", "step"}
    for moment in ("exp_avg", "exp_avg_sq"):
        np.testing.assert_allclose(as_float[f"{moment}/w"].numpy(), decoded(coded(1), moment), rtol=1e-6)
    eight.load(as_float)
    found = eight.tensors()
    assert found["step"] == as_float["step"] == 3
    for moment in ("exp_avg", "exp_avg_sq"):
        require_near(found, moment, as_float[f"{moment}/w"].double().numpy())
    eight.load(coded(1))
    assert adapter_bytes(eight.tensors()) == adapter_bytes(coded(1))


def test_zeros_are_converted_to_zeros():
    weights = {"w": parameter(0)}
    zeros = without_scales(fresh(EightBitAdamW(weights), weights).tensors())
    assert zeros.keys() == {"exp_avg/w", "exp_avg_sq/w", "step"}
    assert not any(tensor.any() for tensor in zeros.values())


def test_moments_of_other_shapes_are_errors():
    optimizer = EightBitAdamW({"w": parameter(0)})
    with pytest.raises(RuntimeError, match="size of tensor"):
        optimizer.load({**coded(1), "exp_avg/w": torch.zeros(COUNT + 1, dtype=torch.uint8)})
    with pytest.raises(TemperError, match=r"exp_avg/w has \[3\] for 10,007"):
        in_float32({**coded(1), "absmax/exp_avg/w": torch.zeros(3)}, "exp_avg/w")


def begin(trainer: Trainer, run: str) -> Checkpoint:
    return trainer.initialise(initialise_input(run, lora=WIDE)).commit.checkpoint(run)


def step(
    store: FileStore, trainer: Trainer, parent: Checkpoint, kind: str = "adamw_8bit", adapter: LoraConfig = WIDE
) -> Commit:
    optimizer = train_config().optimizer.model_copy(update={"kind": kind})
    config = train_config(lora=adapter, max_logprob_mismatch=100.0, optimizer=optimizer)
    groups = sampled_groups(parent.adapter_sha256, seed=parent.step)
    return trainer.train(train_input(store, parent, groups, train=config), never).commit


@pytest.mark.numerics
def test_steps_after_a_restart_have_the_bytes_of_steps_in_one_go(store: FileStore):
    found: list[list[tuple[str, str]]] = []
    for run in ("whole", "halves"):
        trainer = new_trainer(store)
        place, commits = begin(trainer, run), []
        for number in range(4):
            if run == "halves" and number == 2:
                trainer = new_trainer(store)
            commits.append(step(store, trainer, place))
            place = commits[-1].checkpoint(run)
        found.append([(c.manifest.adapter.sha256, c.manifest.optimizer.sha256) for c in commits])
    assert found[0] == found[1]
    assert all(earlier != later for earlier, later in pairwise(found[0]))


def test_a_run_goes_on_with_another_optimizer(store: FileStore, trainer: Trainer):
    """As a fork would. The policy in memory is made again. Some of its tensors are small, and stay float32."""
    place, dtypes, versions = begin(trainer, "demo"), [], []
    for kind in ("adamw", "adamw_8bit", "adamw"):
        commit = step(store, trainer, place, kind)
        place = commit.checkpoint("demo")
        tensors = load(store.get_blob(commit.manifest.optimizer))
        dtypes.append({t.dtype for name, t in tensors.items() if name.startswith("exp_avg")})
        versions.append("bitsandbytes" in commit.manifest.platform)
        assert tensors["step"] == commit.manifest.step
    assert dtypes == [{torch.float32}, {torch.uint8, torch.float32}, {torch.float32}]
    assert versions == [False, True, False]


def test_an_adapter_without_large_tensors_is_refused(store: FileStore, trainer: Trainer):
    place = trainer.initialise(initialise_input("demo", lora=lora())).commit.checkpoint("demo")
    with pytest.raises(TemperError, match=r"at least 4,096 numbers, .* but the largest of 28 has 128; leave") as found:
        step(store, trainer, place, adapter=lora())
    assert found.value.type == "BadConfig"
    assert not found.value.retryable


def test_a_python_without_bitsandbytes_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch):
    requirements = Path(optimizers.__file__).parents[2] / "requirements.in"
    assert REQUIREMENT in requirements.read_text().splitlines()
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    import_bitsandbytes.cache_clear()
    with pytest.raises(TemperError, match="install bitsandbytes==0.50.2 there, or leave") as found:
        TrainablePolicy(tiny_base(), WIDE, optimizer="adamw_8bit")
    assert found.value.type == "BadConfig"


def test_only_this_optimizer_imports_bitsandbytes_and_it_logs_nothing():
    program = """
import gc, logging, sys
gc.disable()
logging.basicConfig(level=logging.INFO)
from temper_gpu.training.policy import TrainablePolicy
from tests.training.samples import lora, tiny_base
TrainablePolicy(tiny_base(), lora())
print("bitsandbytes" in sys.modules)
TrainablePolicy(tiny_base(), lora(256), optimizer="adamw_8bit")
print("bitsandbytes" in sys.modules)
TrainablePolicy(tiny_base(), lora())
"""
    folder = Path(optimizers.__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
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
    for kind in ("adamw", "adamw_8bit"):
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
