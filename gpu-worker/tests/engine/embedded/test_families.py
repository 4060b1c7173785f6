"""Which families of models are served and trained: tiny random ones, from a folder to the answers of the engine, and
from these to the trainer's log-probabilities.

The table of docs/engine.md says the same.
"""

import json
import random
import shutil
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, PreTrainedConfig

import temper_gpu
from temper_gpu.contract import LoraConfig
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.interface import Generation, GenerationRequest
from temper_gpu.failures import TemperError
from temper_gpu.model.lora import initial_tensors, target_modules
from temper_gpu.model.models import POCKET_FOLDER, BaseModel, ModelLibrary
from temper_gpu.training.optimizers import initial_optimizer_tensors
from temper_gpu.training.packing import MicroBatch, Row, pack
from temper_gpu.training.policy import TrainablePolicy
from tests.engine.embedded.test_against_naive import greedy
from tests.engine.embedded.tiny import SHAPE, ask, ask_together, open_engine, request

PAGE = Path(temper_gpu.__file__).parents[2] / "docs/engine.md"
LENGTHS = (5, 90)
TINY: dict[str, Any] = SHAPE
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256,
}
# Shorter than some prompts, and no whole number of key blocks.
WINDOW = 25
LOCAL_AND_GLOBAL: dict[str, Any] = {
    "sliding_window": WINDOW,
    "layer_types": ["sliding_attention", "full_attention"],
}
EXPERTS: dict[str, Any] = {"num_experts_per_tok": 2}
FP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
# Of generations that are none of a tiny vocabulary.
NO_IDS: dict[str, Any] = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}

SERVED: dict[str, Callable[[], PreTrainedConfig]] = {
    "Llama 3": lambda: transformers.LlamaConfig(**TINY, rope_parameters=LLAMA3),
    "Qwen2, Qwen2.5": lambda: transformers.Qwen2Config(**TINY),
    "Qwen3": lambda: transformers.Qwen3Config(**TINY, head_dim=24),
    "Mistral": lambda: transformers.MistralConfig(**TINY, sliding_window=None),
    "Phi-4": lambda: transformers.Phi3Config(**TINY, **NO_IDS),
    "OLMo 2": lambda: transformers.Olmo2Config(**TINY, **NO_IDS),
    # One layer in two without positions.
    "SmolLM3": lambda: transformers.SmolLM3Config(**TINY, **NO_IDS, no_rope_layers=[1, 0]),
    "Granite 3": lambda: transformers.GraniteConfig(**TINY),
    "Mistral with a sliding window": lambda: transformers.MistralConfig(**TINY, sliding_window=WINDOW),
    "Qwen2 with a sliding window": lambda: transformers.Qwen2Config(
        **TINY, use_sliding_window=True, sliding_window=WINDOW, max_window_layers=1
    ),
    "Gemma 3": lambda: transformers.Gemma3TextConfig(
        **TINY, **NO_IDS, **LOCAL_AND_GLOBAL, head_dim=24, query_pre_attn_scalar=20
    ),
    # Caps that change what is computed.
    "Gemma 2": lambda: transformers.Gemma2Config(
        **TINY,
        **NO_IDS,
        **LOCAL_AND_GLOBAL,
        head_dim=24,
        query_pre_attn_scalar=20,
        attn_logit_softcapping=1.5,
        final_logit_softcapping=4.0,
    ),
    "OLMo 3": lambda: transformers.Olmo3Config(**TINY, **NO_IDS, **LOCAL_AND_GLOBAL),
    # The first layer is dense.
    "Qwen3-MoE": lambda: transformers.Qwen3MoeConfig(
        **TINY, **EXPERTS, num_experts=6, moe_intermediate_size=40, mlp_only_layers=[0]
    ),
    "Mixtral": lambda: transformers.MixtralConfig(**TINY, **EXPERTS, num_local_experts=4),
    "OLMoE": lambda: transformers.OlmoeConfig(**TINY, **EXPERTS, **NO_IDS, num_experts=4),
    # The intermediate size is that of an expert.
    "gpt-oss": lambda: transformers.GptOssConfig(
        **TINY, **EXPERTS, **LOCAL_AND_GLOBAL, head_dim=16, num_local_experts=4
    ),
}
# Where masks differ by layer, or tokens meet others in a pass.
INVARIANT = ("Gemma 2", "Gemma 3", "gpt-oss")


def load(config: PreTrainedConfig, folder: Path) -> BaseModel:
    torch.manual_seed(0)
    shutil.copytree(POCKET_FOLDER, folder)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return library(folder).get("tiny")


def library(folder: Path) -> ModelLibrary:
    return ModelLibrary(lambda: {"tiny": str(folder)}, torch.float32, torch.device("cpu"))


@pytest.fixture(scope="module", params=SERVED)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    base = load(SERVED[request.param](), tmp_path_factory.mktemp("family") / "model")
    engine = open_engine(base, max_pass_tokens=64)
    yield base, engine
    engine.close()


def test_a_family_is_served_with_the_numbers_of_transformers(served: tuple[BaseModel, EmbeddedEngine]):
    base, engine = served
    model = base.instantiate("eager")
    requests = [request(length, length, 12, temperature=0) for length in LENGTHS]
    for asked, answer in zip(requests, ask_together(engine, requests), strict=True):
        ids, logprobs = greedy(model, asked.prompt_token_ids, answer.token_ids)
        assert answer.token_ids == ids
        assert answer.logprobs == pytest.approx(logprobs, abs=1e-4)


def test_the_trainer_gives_what_was_sampled_the_engines_log_probabilities(served: tuple[BaseModel, EmbeddedEngine]):
    base, engine = served
    policy = untrained(base)
    requests = [request(length, length, 12) for length in LENGTHS]
    rows = [row_of(*pair) for pair in zip(requests, ask_together(engine, requests), strict=True)]
    [batch] = pack(rows, 24, 1000, base.device)
    found = policy.log_probabilities(batch).logprobs_N
    assert found.tolist() == pytest.approx(batch.sampled_logprobs_N.tolist(), abs=1e-4)
    found.sum().backward()
    assert all(parameter.grad is not None for parameter in policy.parameters.values())


def test_shared_prefixes_are_computed_once_with_the_numbers_of_separate_rows(
    served: tuple[BaseModel, EmbeddedEngine], monkeypatch: pytest.MonkeyPatch
):
    """A prompt of two windows and more, whose attempts fork; in blocks that windows and forks cut in all ways."""
    monkeypatch.setattr("temper_gpu.training.packing.blocks.MAX_QUERIES", 24)
    base, _ = served
    policy = untrained(base, moved=0.1)
    assert policy.knows_trees
    rng = random.Random(0)
    prompt, fork = ([rng.randrange(256) for _ in range(length)] for length in (60, 30))
    rows = []
    for number in range(6):
        ids = [*prompt, *(fork if number % 2 else []), *(rng.randrange(256) for _ in range(5 + 4 * number))]
        positions = [50, *range(len(ids) - 5, len(ids))]
        rows.append(Row(ids, "attempt", positions, [-5.0] * 6, [1.0] * 6, [number - 2.0] * 6))
    found = [scores(policy, pack(rows, 36, 10**6, base.device, packing)) for packing in ("rows", "tree")]
    for plain, tree in zip(*found, strict=True):
        assert (tree - plain).norm() <= 1e-5 * plain.norm()


def scores(policy: TrainablePolicy, batches: list[MicroBatch]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Loss, log-probabilities and gradient."""
    policy.zero_grad()
    [batch] = batches
    logprobs_N = policy.log_probabilities(batch).logprobs_N
    loss = -(batch.weighted_advantages_N * logprobs_N).sum()
    loss.backward()
    gradients = [parameter.grad.flatten() for parameter in policy.parameters.values() if parameter.grad is not None]
    return loss.detach(), logprobs_N.detach().sort().values, torch.cat(gradients)


def untrained(base: BaseModel, moved: float = 0.0) -> TrainablePolicy:
    policy = TrainablePolicy(base, LoraConfig(rank=2, alpha=4, target_modules=None))
    model = base.instantiate("eager")
    adapter = initial_tensors(model, target_modules(model, None), 2, 0)
    adapter = {name: tensor + (moved if ".lora_B." in name else 0) for name, tensor in adapter.items()}
    policy.load(adapter, initial_optimizer_tensors(adapter))
    return policy


def row_of(asked: GenerationRequest, answer: Generation) -> Row:
    first, num_sampled = len(asked.prompt_token_ids), len(answer.token_ids)
    row = Row([*asked.prompt_token_ids, *answer.token_ids], positions=list(range(first, first + num_sampled)))
    row.logprobs, row.temperatures, row.advantages = answer.logprobs, [1.0] * num_sampled, [1.0] * num_sampled
    return row


def test_adapters_of_a_mixture_of_experts_change_attention_alone():
    """Its first layer is dense, and stays frozen too: vLLM and PEFT know `gate_proj` as part of the experts."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(SERVED["Qwen3-MoE"]())
    assert target_modules(model, None) == ["k_proj", "o_proj", "q_proj", "v_proj"]
    with pytest.raises(
        TemperError, match="got gate_proj .*trains its attention alone.*; use k_proj, o_proj, q_proj, v_proj"
    ):
        target_modules(model, ["gate_proj"])


def test_mxfp4_is_read_as_plain_weights_of_the_same_values(tmp_path: Path):
    base = load(SERVED["gpt-oss"](), tmp_path / "model")
    file = tmp_path / "model/model.safetensors"
    tensors, expected = load_file(file), dict(base.tensors)
    for name in [name for name in tensors if name.endswith("_proj") and ".experts." in name]:
        num_experts, num_inputs, num_outputs = tensors.pop(name).shape
        shape = (num_experts, num_outputs, num_inputs // 32)
        # Sixteen bytes of two numbers each, the lower half first, and the power of two that they share.
        blocks, scales = torch.randint(0, 256, (*shape, 16)), torch.randint(120, 128, shape)
        numbers = torch.tensor(FP4)[torch.stack([blocks & 15, blocks >> 4], -1)].flatten(-2)
        values = numbers * torch.exp2(scales - 127.0)[..., None]
        expected[name] = values.flatten(-2).mT
        tensors |= {f"{name}_blocks": blocks.to(torch.uint8), f"{name}_scales": scales.to(torch.uint8)}
    save_file(tensors, file, metadata={"format": "pt"})
    config = tmp_path / "model/config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "quantization_config": {"quant_method": "mxfp4"}}))
    found = library(tmp_path / "model").get("tiny")
    assert found.tensors.keys() == expected.keys()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in found.tensors.items())
    open_engine(found, max_pass_tokens=64).close()


@pytest.mark.parametrize("family", INVARIANT)
def test_company_kept_prompts_and_a_new_start_change_no_bit(family: str, tmp_path: Path):
    """Prompts are shorter and longer than a window, and begin alike; the memory is too small for the long answers."""
    base = load(SERVED[family](), tmp_path / "model")
    roomy = open_engine(base, max_pass_tokens=64)
    num_bytes = 2048 * SlotCache(base.config, base.dtype, base.device).bytes_per_token
    tight = open_engine(base, max_pass_tokens=64, kv_cache_bytes=num_bytes, prefix_cache_bytes=num_bytes // 4)
    short = [request(length % 2, length, 5) for length in (1, 20, 24, 25, 26, 60, 100, 110)]
    requests = [*(request(seed % 2, 50 + seed, 110) for seed in range(8)), *short]
    expected = [*ask_together(roomy, requests[:8]), *(ask(roomy, asked) for asked in short)]
    assert ask_together(tight, requests[::-1])[::-1] == expected
    assert tight.counters()["preemptions"] > 0 < tight.counters()["prefix_hits"]
    roomy.close()
    tight.close()


def test_the_page_names_each_family_that_is_tested_and_no_other():
    lines = PAGE.read_text().splitlines()
    table = takewhile(lambda line: line.startswith("| "), lines[lines.index("| family | served and trained |") + 2 :])
    assert sorted(line.split(" | ")[0].removeprefix("| ") for line in table) == sorted(SERVED)
