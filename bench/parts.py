"""Engine and trainer alone, as libraries: the parts of `npm run bench -- step`, beside the bare loop's in one process.

Rounds alternate between the two, so that a slow minute of the machine meets both. Prints one JSON object.
"""

import argparse
import json
import random
import time
from pathlib import Path

import torch
from bare_loop import MOVE_TOKENS, BareLoop, Game, render

from temper_gpu.contract import CispoLoss, LoraConfig, OptimizerConfig, TrainConfig
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.interface import GenerationRequest
from temper_gpu.model.lora import initial_tensors, target_modules
from temper_gpu.model.models import BaseModel, ModelLibrary
from temper_gpu.server.prompts import Prompts
from temper_gpu.training.groups import Attempt, Call, Group
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.optimizers import initial_optimizer_tensors
from temper_gpu.training.platform import fix_kernels
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.step import train_step

PARENT = "0" * 64  # stands for the adapter that sampled: the base model is one with zero adapter


class Library:
    """The engine behind the same games that the bare loop plays."""

    def __init__(self, base: BaseModel, options: argparse.Namespace, learning_rate: float) -> None:
        self.groups, self.group_size, self.learning_rate = options.groups, options.group_size, learning_rate
        self.forgiving = options.forgiving
        self.prompts = Prompts(base)
        self.base = base
        self.engine = EmbeddedEngine(base, EmbeddedSettings(num_threads=options.threads))
        self.config = TrainConfig(
            lora=LoraConfig(rank=16, alpha=32, target_modules=None),
            loss=CispoLoss(name="cispo", epsilon_low=1, epsilon_high=4),
            optimizer=OptimizerConfig(beta1=0.9, beta2=0.99, epsilon=1e-8, weight_decay=0, max_grad_norm=1),
            advantage_scale="none",
            leave_one_out=False,
            truncated="keep",
            max_logprob_mismatch=1.0,
            micro_batch_tokens=16384,
        )
        self.policy = TrainablePolicy(base, self.config.lora)
        model = base.instantiate("eager")
        adapter = initial_tensors(model, target_modules(model, None), 16, 0)
        self.policy.load(adapter, initial_optimizer_tensors(adapter))

    def generate(self, seed: int) -> list[tuple[Game, list[Call]]]:
        played = [
            (Game(random.Random(seed * 1000 + group), self.forgiving), [])
            for group in range(self.groups)
            for _ in range(self.group_size)
        ]
        while running := [(game, calls) for game, calls in played if game.reward is None]:
            prompts = [
                self.prompts.encode([{"role": "user", "content": render(game.board)}], None) for game, _ in running
            ]
            futures = [self.submit(prompt, hash((seed, index)) & 0xFFFFFFFF) for index, prompt in enumerate(prompts)]
            for (game, calls), prompt, future in zip(running, prompts, futures, strict=True):
                generation = future.result()
                calls.append(Call(list(prompt), generation.token_ids, generation.logprobs, 1.0, PARENT))
                game.play(self.prompts.decode(generation.token_ids[:1]))
        return played

    def submit(self, prompt: tuple[int, ...], seed: int):
        return self.engine.submit(None, GenerationRequest(prompt, MOVE_TOKENS, 1.0, seed), 600)

    def update(self, played: list[tuple[Game, list[Call]]]) -> None:
        attempts = [Attempt(game.reward, False, calls) for game, calls in played]
        size = self.group_size
        groups = [Group(i, attempts[i * size : (i + 1) * size]) for i in range(self.groups)]
        train_step(self.policy, StepInputs(PARENT, groups, self.config, self.learning_rate))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--group-size", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--forgiving", action="store_true")
    options = parser.parse_args()
    fix_kernels()  # as the GPU worker does
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    folder = str(Path(options.model).resolve())
    base = ModelLibrary(lambda: {"bench": folder}, torch.float32, torch.device("cpu")).get("bench")
    # A learning rate of 0: both keep sampling the same policy, so that all rounds are alike.
    sides = {
        "temper": Library(base, options, 0.0),
        "bare": BareLoop(folder, options.groups, options.group_size, 0.0, options.forgiving),
    }
    seconds = {side: {"generate": [], "update": []} for side in sides}
    for round_ in range(options.rounds + 1):
        for name, side in sides.items():
            started = time.perf_counter()
            played = side.generate(round_)
            between = time.perf_counter()
            # pyrefly: ignore[bad-argument-type]
            side.update(played)
            if round_ > 0:  # the first one warms up
                seconds[name]["generate"].append(between - started)
                seconds[name]["update"].append(time.perf_counter() - between)
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
