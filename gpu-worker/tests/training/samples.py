"""Samples for the trainer's tests: a random tiny base model, attempts sampled from it, and their files in a store."""

import gzip
import hashlib
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load
from torch.func import functional_call
from transformers import PreTrainedModel, Qwen2Config, Qwen2ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

from temper_gpu.commits.checkpoints import Manifest, load_policy, read_parent
from temper_gpu.contract import (
    Checkpoint,
    CispoLoss,
    ExampleRendering,
    GroupRef,
    InitialiseInput,
    LoraConfig,
    OptimizerConfig,
    Sampler,
    TrainConfig,
    TrainInput,
)
from temper_gpu.model.lora import Adapter
from temper_gpu.model.models import BaseModel
from temper_gpu.model.outlines import without_numbers
from temper_gpu.store import FileStore, Store
from temper_gpu.training.examples import Turn
from temper_gpu.training.groups import Attempt, Call, Group

VOCABULARY = 37
INPUTS = "1" * 64
# Its updates follow the gradient: epsilon is large beside it, so that rounding near zero moves nothing.
STEADY = OptimizerConfig(beta1=0.9, beta2=0.99, epsilon=1e-2, weight_decay=0, max_grad_norm=1)


@cache
def tiny_base() -> BaseModel:
    torch.manual_seed(7)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128,
        tie_word_embeddings=False,
        initializer_range=0.2,
    )
    return base_of("tiny", Qwen2ForCausalLM(config))


@cache
def tiny_experts() -> BaseModel:
    """A mixture in bfloat16, whose output head is its embedding."""
    torch.manual_seed(8)
    config = Qwen3MoeConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        num_experts=3,
        num_experts_per_tok=2,
        moe_intermediate_size=8,
        max_position_embeddings=128,
        tie_word_embeddings=True,
        initializer_range=0.2,
    )
    return base_of("tiny-experts", Qwen3MoeForCausalLM(config).bfloat16())


def base_of(name: str, model: PreTrainedModel) -> BaseModel:
    model.eval().requires_grad_(False)
    tensors = {key: tensor.detach() for key, tensor in model.state_dict().items()}
    buffers = {key: buffer for key, buffer in model.named_buffers() if key not in tensors}
    return BaseModel(name, model.config, tensors, None, buffers)


@cache
def tiny_model() -> PreTrainedModel:
    return tiny_base().instantiate("eager")


class TinyLibrary:
    """Stands for ModelLibrary."""

    def get(self, name: str) -> BaseModel:
        return {"tiny": tiny_base, "tiny-experts": tiny_experts}[name]()


class TinyOutlines(TinyLibrary):
    """Stands for OutlineLibrary: whose weights come from elsewhere."""

    def get(self, name: str) -> BaseModel:
        base = super().get(name)
        shapes = without_numbers(base.config, base.dtype, torch.device("meta"))
        return replace(shapes, name=name, parts_on=torch.device("cpu"))


def read_ids(base: BaseModel, chat: dict[str, Any], rendering: ExampleRendering) -> list[Turn]:
    """Of chats whose messages are token ids, a prompt and its answer in turns."""
    ids = [tuple(message["ids"]) for message in chat["messages"]]
    return [(tuple(chain(*ids[:place])), ids[place]) for place in range(1, len(ids), 2)]


def lora(rank: int = 4) -> LoraConfig:
    return LoraConfig(rank=rank, alpha=8, target_modules=None)


def train_config(**changes: object) -> TrainConfig:
    loss = CispoLoss(name="cispo", epsilon_low=1, epsilon_high=4)
    optimizer = STEADY.model_copy(update={"epsilon": 1e-8})
    config = TrainConfig(
        lora=lora(),
        loss=loss,
        optimizer=optimizer,
        advantage_scale="none",
        leave_one_out=False,
        truncated="mask",
        max_logprob_mismatch=1e-4,
        micro_batch_tokens=64,
        packing="rows",
        kl_estimator="k3",
    )
    return config.model_copy(update=changes)


def sampled_groups(
    adapter_sha256: str, seed: int = 0, num_groups: int = 2, num_attempts: int = 4, shared: int = 0
) -> list[Group]:
    """Attempts of one to three turns of one conversation, sampled from the base model (what a fresh adapter is).
    `shared`: tokens of a prompt with which all attempts of a group begin."""
    rng = random.Random(seed)
    groups: list[Group] = []
    for index in range(num_groups):
        prompt = rng.choices(range(VOCABULARY), k=shared)
        groups.append(Group(index, [sampled_attempt(rng, adapter_sha256, prompt) for _ in range(num_attempts)]))
    return groups


def sampled_attempt(rng: random.Random, adapter_sha256: str, prompt: list[int]) -> Attempt:
    conversation = prompt
    calls: list[Call] = []
    for _ in range(rng.randint(1, 3)):
        conversation = conversation + rng.choices(range(VOCABULARY), k=rng.randint(1, 6))
        sampled = rng.choices(range(VOCABULARY), k=rng.randint(1, 4))
        temperature = 1.25
        logprobs = naive_logprobs(conversation, sampled, temperature)
        calls.append(Call(conversation, sampled, logprobs, temperature, adapter_sha256))
        conversation = conversation + sampled
    return Attempt(rng.choice([-1.0, 0.0, 0.5, 1.0]), False, calls)


def played_by_roles(
    checkpoint: Checkpoint, roles: Mapping[str, str], seed: int = 0, frozen: str | None = None
) -> list[Group]:
    """Roles play attempts of their own conversations, side by side. `frozen`: a role of another adapter, which earns
    nothing."""
    rng = random.Random(seed)
    adapters = {"main": checkpoint.adapter_sha256, **(checkpoint.adapters or {})}
    groups: list[Group] = []
    for index in range(2):
        attempts: list[Attempt] = []
        for _ in range(4):
            parts = {role: sampled_attempt(rng, adapters[policy], []) for role, policy in sorted(roles.items())}
            if frozen is not None:
                parts[frozen] = sampled_attempt(rng, "f" * 64, [])
            calls = [replace(call, role=role) for role, part in parts.items() for call in part.calls]
            rewards = {role: parts[role].reward or 0.0 for role in roles}
            attempts.append(Attempt(sum(rewards.values()) / len(rewards), False, calls, role_rewards=rewards))
        groups.append(Group(index, attempts))
    return groups


def with_turn_rewards(group: Group, seed: int = 0) -> Group:
    """Every call is a turn; some earn something, and what they earn is added to the attempt's reward."""
    rng = random.Random(seed)
    attempts: list[Attempt] = []
    for attempt in group.attempts:
        calls = [replace(call, turn=t, reward=rng.choice([0.0, 0.5, 2.0])) for t, call in enumerate(attempt.calls)]
        earned = sum(call.reward for call in calls)
        attempts.append(replace(attempt, reward=(attempt.reward or 0.0) + earned, calls=calls))
    return replace(group, attempts=attempts)


def naive_logprobs(prompt: list[int], sampled: list[int], temperature: float) -> list[float]:
    return list(_naive_logprobs(tuple(prompt), tuple(sampled), temperature))


@cache
@torch.no_grad()
def _naive_logprobs(prompt: tuple[int, ...], sampled: tuple[int, ...], temperature: float) -> tuple[float, ...]:
    """Computed once: most tests train on the same samples."""
    logits = tiny_model()(torch.tensor([[*prompt, *sampled]])).logits[0].double() / temperature
    logprobs = torch.log_softmax(logits, -1)
    return tuple(logprobs[len(prompt) + i - 1, token].item() for i, token in enumerate(sampled))


def merged_weights(adapter: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    scale = lora().alpha / lora().rank
    weights = {name: tensor.clone() for name, tensor in tiny_base().tensors.items()}
    for name, a in adapter.items():
        if name.endswith("lora_A.weight"):
            module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
            weights[f"{module}.weight"] = (
                weights[f"{module}.weight"] + scale * adapter[name.replace("lora_A", "lora_B")] @ a
            )
    return weights


def plain_logprobs(adapter: dict[str, torch.Tensor], call: Call) -> torch.Tensor:
    ids = torch.tensor([call.prompt_token_ids + call.token_ids])
    logits = functional_call(tiny_model(), merged_weights(adapter), (ids,)).logits
    scores = torch.log_softmax(logits[0, len(call.prompt_token_ids) - 1 : -1] / call.temperature, -1)
    return scores[range(len(call.token_ids)), call.token_ids]


def sampled_by(store: Store, checkpoint: Checkpoint, seed: int) -> Group:
    """A group whose log-probabilities are the checkpoint's."""
    adapter = load(store.get_blob(read_parent(store, checkpoint).manifest.adapter))
    [group] = sampled_groups(checkpoint.adapter_sha256, seed, num_groups=1)
    group = with_logprobs(group, lambda call: plain_logprobs(adapter, call).tolist())
    return replace(group, sampled_by=checkpoint.adapter_sha256)


def with_logprobs(group: Group, logprobs_of: Callable[[Call], list[float]]) -> Group:
    """As if another engine had sampled the same tokens."""
    attempts = [replace(a, calls=[replace(c, logprobs=logprobs_of(c)) for c in a.calls]) for a in group.attempts]
    return replace(group, attempts=attempts)


def initialise_input(run: str = "demo", inputs: str = INPUTS, **changes: object) -> InitialiseInput:
    work = InitialiseInput(run=run, branch=0, base_model="tiny", seed=3, lora=lora(), parent=None, inputs_sha256=inputs)
    return work.model_copy(update=changes)


def train_input(store: Store, parent: Checkpoint, groups: list[Group], **changes: object) -> TrainInput:
    """Writes the groups' files of the next step and names them."""
    step = parent.step + 1
    refs = [write_group(store, parent.run, step, group) for group in groups]
    work = TrainInput(
        run=parent.run,
        branch=0,
        step=step,
        base_model="tiny",
        parent=parent,
        groups=refs,
        learning_rate=1e-2,
        seed=3,
        train=train_config(),
        inputs_sha256=hashlib.sha256(str(refs).encode()).hexdigest(),
    )
    return work.model_copy(update=changes)


def sampler_of(checkpoint: Checkpoint, staleness: int = 1) -> Sampler:
    return Sampler(staleness=staleness, **checkpoint.model_dump(exclude={"run", "adapters"}))


def mixed_input(store: Store, policies: list[Checkpoint], **changes: object) -> TrainInput:
    """A step on one group of each policy, the last of which is its parent. Each group was dealt to the step that
    followed its policy, and has the same number there."""
    *older, parent = policies
    groups = [sampled_by(store, policy, 3 + place) for place, policy in enumerate(policies)]
    refs = [write_group(store, parent.run, step, replace(group, index=9)) for step, group in enumerate(groups, 1)]
    placed = [ref.model_copy(update={"step": step}) for step, ref in enumerate(refs[:-1], 1)]
    samplers = [sampler_of(policy, len(older) - place) for place, policy in enumerate(older)]
    work = train_input(store, parent, [], samplers=samplers, **changes)
    inputs_sha256 = hashlib.sha256(str([refs, samplers]).encode()).hexdigest()
    return work.model_copy(update={"groups": [*placed, refs[-1]], "inputs_sha256": inputs_sha256})


def write_group(store: Store, run: str, step: int, group: Group) -> GroupRef:
    rollouts = gzip.compress(
        "\n".join(map(json.dumps, [header_of(group), *map(attempt_line, group.attempts)])).encode(), mtime=0
    )
    rollouts_sha256 = hashlib.sha256(rollouts).hexdigest()
    verdict: dict[str, object] = {"rolloutsSha256": rollouts_sha256}
    verdict["rewards"] = [attempt.reward for attempt in group.attempts]
    if any(attempt.overlong_cost for attempt in group.attempts):
        verdict["overlongCosts"] = [attempt.overlong_cost for attempt in group.attempts]
    if any(attempt.role_rewards for attempt in group.attempts):
        verdict["roleRewards"] = [attempt.role_rewards for attempt in group.attempts]
    if any(call.reward for attempt in group.attempts for call in attempt.calls):
        verdict["turnRewards"] = [[call.reward for call in attempt.calls] for attempt in group.attempts]
    judged = json.dumps(verdict).encode()
    stem = f"runs/{run}/branches/0/steps/{step}/groups/{group.index}"
    store.publish(f"{stem}.rollouts.jsonl.gz", rollouts)
    store.publish(f"{stem}.judged.json", judged)
    judged_sha256 = hashlib.sha256(judged).hexdigest()
    return GroupRef(group=group.index, rollouts_sha256=rollouts_sha256, judged_sha256=judged_sha256)


def header_of(group: Group) -> dict[str, object]:
    return {"schema": 1, **({} if group.sampled_by is None else {"adapterSha256": group.sampled_by})}


def attempt_line(attempt: Attempt) -> dict[str, object]:
    status = "failed" if attempt.reward is None else "ok"
    return {"status": status, "truncated": attempt.truncated, "calls": [call_line(call) for call in attempt.calls]}


def call_line(call: Call) -> dict[str, object]:
    return {
        "request": {"temperature": call.temperature},
        "promptTokenIds": call.prompt_token_ids,
        "tokenIds": call.token_ids,
        "logprobs": call.logprobs,
        "adapterSha256": call.adapter_sha256,
        "turn": call.turn,
        **({} if call.role is None else {"role": call.role}),
    }


def load_adapter(store: Store, manifest: Manifest) -> Adapter:
    policy = load_policy(store, manifest)
    assert isinstance(policy, Adapter)
    return policy


def open_folder(folder: Path) -> FileStore:
    return FileStore(folder / "store")
