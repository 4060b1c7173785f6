"""TRL's GRPOTrainer as a peer of `npm run bench -- endtoend`: whole steps, with its own sampling by transformers.

Prints one JSON object: of each step its seconds, mean reward and mean answer tokens; and peak memory.
"""

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
    def __init__(self, most_seconds: float) -> None:
        self._most_seconds = most_seconds
        self.seconds: list[float] = []
        self.rewards: list[float] = []
        self.tokens: list[float] = []
        self._last = 0.0

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        forget_peak()
        self._last = time.perf_counter()

    def on_step_end(self, _args: Any, _state: Any, control: Any, **__: Any) -> None:
        now = time.perf_counter()
        self.seconds.append(now - self._last)
        self._last = now
        control.should_training_stop = control.should_training_stop or sum(self.seconds) >= self._most_seconds

    def on_log(self, *_: Any, logs: dict[str, float], **__: Any) -> None:
        if "reward" in logs:
            self.rewards.append(float(logs["reward"]))
            self.tokens.append(float(logs["completions/mean_length"]))


def grade(
    prompts: list[Any],
    completions: list[Any],
    answer: list[str | None],
    max_tokens: list[int],
    said: list[str] | None = None,
    **_: Any,
) -> list[float]:
    """The reward of endtoend-agent.ts. `said`: of several turns, the answers alone; `max_tokens`: of all of them."""
    texts = said or [completion[0]["content"] for completion in completions]
    return [
        len(re.sub(r"\D", "", text, flags=re.ASCII)) / most if right is None else float(text == right)
        for text, right, most in zip(texts, answer, max_tokens, strict=True)
    ]


def grade_receipts(prompts: list[Any], completions: list[Any], answer: list[str], **_: Any) -> list[float]:
    """The reward of examples/receipts/grade.ts."""
    texts = [completion[0]["content"].strip() for completion in completions]
    return [
        max(0.2, 1 - 0.1 * (len(text.split()) - 1)) if re.search(rf"\b{right}\b", text, re.ASCII) else 0.0
        for text, right in zip(texts, answer, strict=True)
    ]


GRADES = {"exact": grade, "receipts": grade_receipts}


class Turns:
    """TRL's `rollout_func` for conversations whose tool is the bench's: each turn is one generation of TRL's own over
    the tokens so far, as in its loop of tool calls, and what the tool gives back is masked."""

    def __init__(self, prompts: list[dict[str, Any]], max_tokens: int) -> None:
        self._results = {prompt["text"]: prompt["results"] for prompt in prompts}
        self._max_tokens = max_tokens

    def __call__(self, prompts: list[list[dict[str, str]]], trainer: Any) -> dict[str, Any]:
        tokenizer = trainer.processing_class
        trainer.generation_config.max_new_tokens = self._max_tokens
        results = [self._results[prompt[-1]["content"]] for prompt in prompts]
        prompt_ids = [
            tokenizer.apply_chat_template(prompt, add_generation_prompt=True, return_dict=False) for prompt in prompts
        ]
        ids: list[list[int]] = [[] for _ in prompts]
        mask: list[list[int]] = [[] for _ in prompts]
        said = [""] * len(prompts)
        for turn in range(len(results[0]) + 1):
            if turn > 0:
                for row, result in enumerate(results):
                    added = after_answer(tokenizer, ids[row][-1], result[turn - 1])
                    ids[row] += added
                    mask[row] += [0] * len(added)
            histories = [[*prompt, *of_row] for prompt, of_row in zip(prompt_ids, ids, strict=True)]
            answers, _ = trainer._generate_single_turn(histories, None, {}, 1)
            for row, answer in enumerate(answers):
                ids[row] += answer
                mask[row] += [1] * len(answer)
                said[row] += tokenizer.decode(answer, skip_special_tokens=True)
        return {"prompt_ids": prompt_ids, "completion_ids": ids, "logprobs": None, "env_mask": mask, "said": said}


def after_answer(tokenizer: Any, last_id: int, result: str) -> list[int]:
    """Text that ChatML's template writes between an answer, whole or cut, and the next one."""
    end = "" if last_id == tokenizer.eos_token_id else tokenizer.eos_token
    return tokenizer.encode(f"{end}\n<|im_start|>user\n{result}{tokenizer.eos_token}\n<|im_start|>assistant\n")


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
    parser.add_argument("--grade", choices=GRADES, default="exact")
    parser.add_argument("--most-seconds", type=float, default=float("inf"), help="no step begins after so many")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    # TRL reports on stdout, which is for the answer.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    prompts = json.loads(Path(options.prompts).read_text())
    columns = {
        "prompt": [[{"role": "user", "content": prompt["text"]}] for prompt in prompts],
        "answer": [prompt["answer"] for prompt in prompts],
        "max_tokens": [prompt["maxTokens"] * (1 + len(prompt["results"])) for prompt in prompts],
    }
    max_tokens = max(prompt["maxTokens"] for prompt in prompts)
    turns = Turns(prompts, max_tokens) if any(prompt["results"] for prompt in prompts) else None
    size = options.groups * options.group_size
    steps = Steps(options.most_seconds)
    with tempfile.TemporaryDirectory() as scratch:
        trainer = GRPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32),
            reward_funcs=GRADES[options.grade],
            args=GRPOConfig(
                output_dir=scratch,
                per_device_train_batch_size=options.batch,
                gradient_accumulation_steps=size // options.batch,
                num_generations=options.group_size,
                max_completion_length=max_tokens,
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
            rollout_func=turns,
        )
        trainer.train()
    found = {"seconds": steps.seconds, "rewards": steps.rewards, "tokens": steps.tokens, "peakBytes": peak_bytes()}
    print(json.dumps(found), file=answer, flush=True)


if __name__ == "__main__":
    main()
