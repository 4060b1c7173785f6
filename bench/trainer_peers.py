"""One trainer of `npm run bench -- trainer`: reads a workload a line, trains a step on it, writes what it took as JSON.

A workload is a name and a seed: every peer makes the same attempts of them. Shapes: B rows, T tokens, V vocabulary.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from peft import LoraConfig as PeftConfig
from peft import get_peft_model
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from temper_gpu.contract import CispoLoss, LoraConfig, OptimizerConfig, TrainConfig
from temper_gpu.model.lora import initial_tensors, target_modules
from temper_gpu.model.models import ModelLibrary
from temper_gpu.training.groups import Attempt, Call, Group
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.optimizers import initial_optimizer_tensors
from temper_gpu.training.packing import Row
from temper_gpu.training.platform import fix_kernels
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.rows import attempt_rows
from temper_gpu.training.step import train_step

PARENT = "0" * 64
RANK = 16
GROUP_SIZE = 8
MICRO_BATCH_TOKENS = 16_384
TURNS = 6
# In kB, since it was last forgotten.
PEAK = "VmHWM:"


def plan_groups(name: str, num_groups: int, seed: int) -> list[Group]:
    rng = random.Random(f"{name} {seed}")

    def tokens(count: int) -> list[int]:
        return [rng.randrange(256) for _ in range(count)]

    def call(prompt: list[int], count: int) -> Call:
        return Call(prompt, tokens(count), [-5.0] * count, 1.0, PARENT)

    def shared(length: int, answer: int) -> Callable[[], list[list[Call]]]:
        def make() -> list[list[Call]]:
            prompt = tokens(length)
            return [[call(prompt, answer)] for _ in range(GROUP_SIZE)]

        return make

    def turns() -> list[list[Call]]:
        prompt = tokens(256)
        return [conversation(prompt) for _ in range(GROUP_SIZE)]

    def conversation(history: list[int]) -> list[Call]:
        """Each turn extends what was said, or rewrites its last answer, as agents do that drop thoughts."""
        calls: list[Call] = []
        for _ in range(TURNS):
            calls.append(call(history, 48))
            answer = calls[-1].token_ids if rng.random() < 0.5 else tokens(16)
            history = [*history, *answer, *tokens(48)]
        return calls

    def apart() -> list[list[Call]]:
        return [[call(tokens(rng.randrange(24, 72)), 16)] for _ in range(GROUP_SIZE)]

    makers = {"short": apart, "shared512": shared(512, 64), "shared2400": shared(2400, 32), "turns6": turns}
    rewards = [1.0, -1.0] * (GROUP_SIZE // 2)
    return [
        Group(index, [Attempt(reward, False, calls) for reward, calls in zip(rewards, makers[name](), strict=True)])
        for index in range(num_groups)
    ]


def plan_rows(groups: list[Group]) -> list[Row]:
    attempts = [attempt for group in groups for attempt in group.attempts]
    return [row for attempt in attempts for row in attempt_rows(attempt.calls, [attempt.reward or 0.0])]


class Temper:
    """The trainer as a library, with one way to pack."""

    def __init__(self, folder: str, packing: str) -> None:
        base = ModelLibrary(lambda: {"bench": folder}, torch.float32, torch.device("cpu")).get("bench")
        self._config = TrainConfig(
            lora=LoraConfig(rank=RANK, alpha=2 * RANK, target_modules=None),
            loss=CispoLoss(name="cispo", epsilon_low=1, epsilon_high=4),
            optimizer=OptimizerConfig(beta1=0.9, beta2=0.99, epsilon=1e-8, weight_decay=0, max_grad_norm=1),
            advantage_scale="none",
            leave_one_out=False,
            truncated="keep",
            max_logprob_mismatch=1e6,
            micro_batch_tokens=MICRO_BATCH_TOKENS,
            packing="tree" if packing == "tree" else "rows",
        )
        self._policy = TrainablePolicy(base, self._config.lora)
        model = base.instantiate("eager")
        adapter = initial_tensors(model, target_modules(model, None), RANK, 0)
        self._policy.load(adapter, initial_optimizer_tensors(adapter))

    def step(self, groups: list[Group]) -> float:
        return train_step(self._policy, StepInputs(PARENT, groups, self._config, 0.0))["loss"]


class Plain:
    """A plain trainer with PyTorch, transformers and PEFT: as many padded rows at once as fit the bound."""

    def __init__(self, folder: str) -> None:
        base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        config = PeftConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear")
        self._model: nn.Module = get_peft_model(base, config)
        self._trained = [p for p in self._model.parameters() if p.requires_grad]
        self._optimizer = torch.optim.AdamW(self._trained, 0.0, betas=(0.9, 0.99), weight_decay=0.0)

    def step(self, groups: list[Group]) -> float:
        rows = plan_rows(groups)
        num_trained, loss = sum(len(row.positions) for row in rows), 0.0
        size = max(1, MICRO_BATCH_TOKENS // max(len(row.token_ids) for row in rows))
        for part in [rows[at : at + size] for at in range(0, len(rows), size)]:
            width = max(len(row.token_ids) for row in part)
            ids_BT, mask_BT = torch.zeros(len(part), width, dtype=torch.long), torch.zeros(len(part), width)
            sampled_BT, advantages_BT = torch.zeros(len(part), width), torch.zeros(len(part), width)
            for b, row in enumerate(part):
                ids_BT[b, : len(row.token_ids)], mask_BT[b, : len(row.token_ids)] = torch.tensor(row.token_ids), 1
                sampled_BT[b, row.positions] = torch.tensor(row.logprobs)
                advantages_BT[b, row.positions] = torch.tensor(row.advantages)
            of_part = self._loss(ids_BT, mask_BT, sampled_BT, advantages_BT) / num_trained
            of_part.backward()
            loss += of_part.item()
        nn.utils.clip_grad_norm_(self._trained, 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return loss

    def _loss(self, ids_BT: Tensor, mask_BT: Tensor, sampled_BT: Tensor, advantages_BT: Tensor) -> Tensor:
        logits_BTV = self._model(ids_BT, attention_mask=mask_BT).logits[:, :-1].float()
        logprobs_BT = F.log_softmax(logits_BTV, -1).gather(2, ids_BT[:, 1:, None])[..., 0]
        ratio_BT = (logprobs_BT - sampled_BT[:, 1:]).exp().detach().clamp(0, 5)
        return -(ratio_BT * advantages_BT[:, 1:] * logprobs_BT).sum()


def peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(PEAK)) * 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", required=True, choices=["tree", "rows", "plain"])
    parser.add_argument("--model", required=True)
    parser.add_argument("--groups", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    if options.peer != "plain":
        fix_kernels()  # as the GPU worker does
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    folder = str(Path(options.model).resolve())
    trainer = Plain(folder) if options.peer == "plain" else Temper(folder, options.peer)
    for line in sys.stdin:
        name, seed = json.loads(line)
        groups = plan_groups(name, options.groups, seed)
        forget_peak()
        started = time.perf_counter()
        loss = trainer.step(groups)
        took = {"seconds": time.perf_counter() - started, "peakBytes": peak_bytes(), "loss": loss}
        print(json.dumps(took), flush=True)


if __name__ == "__main__":
    main()
