"""TRL's GRPOTrainer as a peer of `npm run bench -- endtoend`: whole steps, with its own sampling by transformers.

Prints one JSON object: of each step its seconds, mean reward and mean answer tokens; and peak memory.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import argparse
import json
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow
import torch
from datasets import Dataset
from peft import LoraConfig
from trainer_peers import RANK, forget_peak, peak_bytes
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer


class Steps(TrainerCallback):
    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.rewards: list[float] = []
        self.tokens: list[float] = []
        self._last = 0.0

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        forget_peak()
        self._last = time.perf_counter()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        now = time.perf_counter()
        self.seconds.append(now - self._last)
        self._last = now

    def on_log(self, *_: Any, logs: dict[str, float], **__: Any) -> None:
        if "reward" in logs:
            self.rewards.append(float(logs["reward"]))
            self.tokens.append(float(logs["completions/mean_length"]))


def grade(prompts: list[Any], completions: list[Any], answer: list[str | None], max_tokens: list[int], **_: Any):
    """As endtoend-agent.ts."""
    texts = [completion[0]["content"] for completion in completions]
    return [
        len(re.sub(r"\D", "", text, flags=re.ASCII)) / most if right is None else float(text == right)
        for text, right, most in zip(texts, answer, max_tokens, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompts", required=True)
    parser.add_argument("--groups", type=int, required=True)
    parser.add_argument("--group-size", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True, help="rows of a micro-batch")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    # TRL reports on stdout, which is for the answer.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    prompts = json.loads(Path(options.prompts).read_text())
    columns = {
        "prompt": [[{"role": "user", "content": prompt["text"]}] for prompt in prompts],
        "answer": [prompt["answer"] for prompt in prompts],
        "max_tokens": [prompt["maxTokens"] for prompt in prompts],
    }
    size = options.groups * options.group_size
    steps = Steps()
    with tempfile.TemporaryDirectory() as scratch:
        trainer = GRPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32),
            reward_funcs=grade,
            args=GRPOConfig(
                output_dir=scratch,
                per_device_train_batch_size=options.batch,
                gradient_accumulation_steps=size // options.batch,
                num_generations=options.group_size,
                max_completion_length=max(prompt["maxTokens"] for prompt in prompts),
                max_steps=options.steps,
                learning_rate=options.learning_rate,
                lr_scheduler_type="linear",
                adam_beta2=0.99,
                loss_type="cispo",
                epsilon_high=5.0,
                beta=0.0,
                scale_rewards="none",
                gradient_checkpointing=False,
                bf16=False,
                use_cpu=True,
                report_to=[],
                save_strategy="no",
                logging_steps=1,
                disable_tqdm=True,
            ),
            train_dataset=Dataset(pyarrow.table(columns), fingerprint=Path(options.prompts).stem),
            processing_class=AutoTokenizer.from_pretrained(options.model),
            peft_config=LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear"),
            callbacks=[steps],
        )
        trainer.train()
    found = {"seconds": steps.seconds, "rewards": steps.rewards, "tokens": steps.tokens, "peakBytes": peak_bytes()}
    print(json.dumps(found), file=answer, flush=True)


if __name__ == "__main__":
    main()
