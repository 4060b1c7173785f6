"""TRL's GRPOTrainer as a peer of `npm run bench -- trainer`: it trains the attempts that the other peers train.

Only what samples and scores is replaced: micro-batches, loss, backward and optimizer are TRL's. An attempt whose calls
do not extend each other is several rows, as in the other peers. Shapes: R rows, P prompt tokens, T tokens after those.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from math import ceil
from typing import Any

import pyarrow
import torch
from datasets import Dataset
from peft import LoraConfig
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from trainer_peers import MICRO_BATCH_TOKENS, RANK, forget_peak, peak_bytes, plan_groups, plan_rows
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from temper_gpu.training.packing import Row

# With a name of its own: what finds one by pickling does not know all that this process has imported.
PROMPTS = Dataset(pyarrow.table({"prompt": ["given"]}), fingerprint="given")


class Given(GRPOTrainer):
    """One step on given rows. `seconds` are those after sampling and scoring."""

    def __init__(self, folder: str, rows: list[Row], gradient_checkpointing: bool, scratch: str) -> None:
        num_batches = ceil(len(rows) * max(len(row.token_ids) for row in rows) / MICRO_BATCH_TOKENS)
        size = ceil(len(rows) / num_batches)
        super().__init__(
            model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
            reward_funcs=lambda completions, **_: [0.0] * len(completions),
            args=GRPOConfig(
                output_dir=scratch,
                per_device_train_batch_size=size,
                gradient_accumulation_steps=num_batches,
                num_generations=size * num_batches,
                max_steps=1,
                learning_rate=0.0,
                adam_beta2=0.99,
                loss_type="cispo",
                epsilon_high=5.0,
                beta=0.0,
                gradient_checkpointing=gradient_checkpointing,
                bf16=False,
                use_cpu=True,
                report_to=[],
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
            ),
            train_dataset=PROMPTS,
            processing_class=AutoTokenizer.from_pretrained(folder),
            peft_config=LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear"),
        )
        self._rows = [*rows, *[Row([0, 0])] * (size * num_batches - len(rows))]
        self.loss = 0.0
        self._started = 0.0

    def take(self) -> float:
        """Seconds of the step."""
        self.train()
        return time.perf_counter() - self._started

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Tensor]:
        self._started = time.perf_counter()
        begins = [row.positions[0] if row.positions else 1 for row in self._rows]
        of_rows = list(zip(self._rows, begins, strict=True))
        prompts = [torch.tensor(row.token_ids[:begin]) for row, begin in of_rows]
        answers = [torch.tensor(row.token_ids[begin:]) for row, begin in of_rows]
        mask_RT, sampled_RT, advantages_RT = [], [], []
        for row, begin in of_rows:
            at = torch.tensor(row.positions, dtype=torch.long) - begin
            empty_T = torch.zeros(len(row.token_ids) - begin)
            mask_RT.append(empty_T.index_fill(0, at, 1.0))
            sampled_RT.append(empty_T.index_put((at,), torch.tensor(row.logprobs)))
            advantages_RT.append(empty_T.index_put((at,), torch.tensor(row.advantages)))
        return {
            "prompt_ids": padded(prompts, "left"),
            "prompt_mask": padded([torch.ones_like(ids) for ids in prompts], "left"),
            "completion_ids": padded(answers),
            "completion_mask": padded([torch.ones_like(ids) for ids in answers]),
            "tool_mask": padded(mask_RT),
            "old_per_token_logps": padded(sampled_RT),
            "advantages": padded(advantages_RT),
            "num_items_in_batch": torch.tensor(sum(len(row.positions) for row in self._rows)),
        }

    def _compute_loss(self, model: Any, inputs: dict[str, Tensor]) -> Tensor:
        loss = super()._compute_loss(model, inputs)
        self.loss += loss.item()
        return loss


def padded(rows: list[Tensor], side: str = "right") -> Tensor:
    return pad_sequence(rows, batch_first=True, padding_side=side)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", required=True, choices=["trl", "trl-checkpointing"])
    parser.add_argument("--model", required=True)
    parser.add_argument("--groups", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    # TRL reports on stdout, which is for answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        name, seed = json.loads(line)
        rows = plan_rows(plan_groups(name, options.groups, seed))
        with tempfile.TemporaryDirectory() as scratch:
            trainer = Given(options.model, rows, options.peer == "trl-checkpointing", scratch)
            forget_peak()
            took = {"seconds": trainer.take(), "peakBytes": peak_bytes(), "loss": trainer.loss}
        print(json.dumps(took), file=answers, flush=True)


if __name__ == "__main__":
    main()
