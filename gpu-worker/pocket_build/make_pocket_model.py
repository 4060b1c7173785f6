"""Makes the pocket model from nothing: python -m pocket_build.make_pocket_model --out DIR --seed 0

First tic-tac-toe and multiplication, then, where it is asked for, tools.
"""

import argparse
import random
from pathlib import Path

import torch
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from pocket_build.dialogues import draw_dialogue
from pocket_build.supervised import falling, optimizer_for, supervised_loss, tokeniser, update
from pocket_build.teach_tools import teach_tools
from pocket_build.tokenizer import build_tokenizer, save_tokenizer

STEPS, ROWS = 4000, 128
PEAK_LR = 4e-3
TIC_TAC_TOE_SHARE = 0.7
# First the skilled player alone, then ever less of it, the last part none: what is seen only in one reply of seven is
# hardly learned from the start (threats were found on half of the boards), but once learned it survives as a habit.
SCHOOLED_PART, FALLING_PART = 0.5, 0.25


def make_pocket_model(out: Path, seed: int, steps: int = STEPS, tool_steps: int = 0, start: Path | None = None) -> None:
    """`start` has weights of the first part: with them there is only the second."""
    # The sums of another number of threads differ in their last bits, and so would the weights.
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    tokenizer = build_tokenizer()
    if start is None:
        model = build_model(tokenizer)
        print(f"{model.num_parameters():,} parameters")
        warm_start(model, tokenizer, random.Random(seed), steps)
    else:
        model = Qwen2ForCausalLM.from_pretrained(start, dtype=torch.float32)
    if tool_steps > 0:
        teach_tools(model, tokenizer, random.Random(seed), tool_steps, TIC_TAC_TOE_SHARE)
        # Half the download. `pocket` stays in float32: recorded figures depend on its bytes.
        model.to(torch.bfloat16)
    save(model, tokenizer, out)


def build_model(tokenizer: PreTrainedTokenizerFast) -> Qwen2ForCausalLM:
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=96,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=3,
        num_key_value_heads=3,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        initializer_range=0.05,  # with the usual 0.02 so small a model never leaves the "any digit" plateau
        bos_token_id=None,
        eos_token_id=tokenizer.convert_tokens_to_ids("<|end|>"),
        pad_token_id=tokenizer.convert_tokens_to_ids("<|endoftext|>"),
    )
    return Qwen2ForCausalLM(config)


def warm_start(model: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerFast, rng: random.Random, steps: int) -> None:
    """Supervised training on drawn dialogues; only replies and their ends of turns are trained."""
    optimizer, schedule = optimizer_for(model, PEAK_LR, steps)
    tokenise = tokeniser(tokenizer)
    for step in range(steps):
        schooling = falling(step / steps, SCHOOLED_PART, FALLING_PART)
        loss = supervised_loss(model, [tokenise(draw_dialogue(rng, TIC_TAC_TOE_SHARE, schooling)) for _ in range(ROWS)])
        loss.backward()
        update(model, optimizer, schedule)
        if step % 250 == 249:
            print(f"step {step + 1} of {steps}: {loss.item():.3f} nats per token", flush=True)


def save(model: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerFast, out: Path) -> None:
    model.generation_config = GenerationConfig(
        do_sample=True,
        temperature=1.0,
        eos_token_id=tokenizer.convert_tokens_to_ids("<|end|>"),
        pad_token_id=tokenizer.pad_token_id,
    )
    model.save_pretrained(out)
    save_tokenizer(tokenizer, out)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the pocket model from nothing.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--tool-steps", type=int, default=0, help="of conversations with tools: `pocket` has none, `pocket-tools` 1500"
    )
    parser.add_argument("--start", type=Path, help="a model of the first part, to be taught tools (default: make one)")
    options = parser.parse_args()
    make_pocket_model(options.out, options.seed, tool_steps=options.tool_steps, start=options.start)


if __name__ == "__main__":
    main()
