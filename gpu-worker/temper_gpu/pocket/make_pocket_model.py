"""Makes the pocket model from nothing: python -m temper_gpu.pocket.make_pocket_model --out DIR --seed 0

Shapes: B rows, T tokens.
"""

import argparse
import functools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from temper_gpu.pocket.episodes import Episode, draw_episode
from temper_gpu.pocket.tokenizer import build_tokenizer, save_tokenizer
from temper_gpu.pocket.tool_episodes import ToolEpisode, draw_tool_episode

STEPS, ROWS = 4000, 128
PEAK_LR, WARM_UP_STEPS = 4e-3, 50
TIC_TAC_TOE_SHARE = 0.7
# First the skilled player alone, then ever less of it, the last part none: what is seen only in one reply of seven is
# hardly learned from the start (threats were found on half of the boards), but once learned it survives as a habit.
SCHOOLED_PART, MIXED_PART = 0.5, 0.25
NOT_TRAINED = -100

Tokenise = Callable[[Episode], tuple[torch.Tensor, torch.Tensor]]


def make_pocket_model(out: Path, seed: int, steps: int = STEPS, tool_share: float = 0.0) -> None:
    # The sums of another number of threads differ in their last bits, and so would the weights.
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    tokenizer = build_tokenizer()
    model = build_model(tokenizer)
    print(f"{model.num_parameters():,} parameters")
    warm_start(model, tokenizer, random.Random(seed), steps, tool_share)
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
        eos_token_id=tokenizer.convert_tokens_to_ids("<|end|>"),  # pyright: ignore[reportArgumentType]  (one name, one id)
        pad_token_id=tokenizer.convert_tokens_to_ids("<|endoftext|>"),  # pyright: ignore[reportArgumentType]
    )
    return Qwen2ForCausalLM(config)


def warm_start(
    model: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerFast, rng: random.Random, steps: int, tool_share: float
) -> None:
    """Supervised training on drawn episodes; only replies and their ends of turns are trained."""
    optimizer = torch.optim.AdamW(model.parameters(), PEAK_LR, betas=(0.9, 0.99), weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate_factor(step, steps))
    tokenise = tokeniser(tokenizer)
    num_tool_rows = round(tool_share * ROWS)
    for step in range(steps):
        schooling = schooling_share(step / steps)
        rows = [tokenise(draw_episode(rng, TIC_TAC_TOE_SHARE, schooling)) for _ in range(ROWS - num_tool_rows)]
        loss = supervised_loss(model, rows)
        loss.backward()
        if num_tool_rows:
            # Apart from the others, which are so short that they would be padding for the most part.
            tool_rows = [tokenise_tools(tokenizer, draw_tool_episode(rng, schooling)) for _ in range(num_tool_rows)]
            supervised_loss(model, tool_rows).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 250 == 249:
            print(f"step {step + 1} of {steps}: {loss.item():.3f} nats per token", flush=True)


def schooling_share(progress: float) -> float:
    return min(1.0, max(0.0, (1 - MIXED_PART - progress) / (1 - MIXED_PART - SCHOOLED_PART)))


def learning_rate_factor(step: int, steps: int) -> float:
    """Linear warm-up, then linear decay to a twentieth."""
    return min(1.0, (step + 1) / WARM_UP_STEPS) * (1 - 0.95 * step / steps)


def tokeniser(tokenizer: PreTrainedTokenizerFast) -> Tokenise:
    @functools.cache
    def tokenise(episode: Episode) -> tuple[torch.Tensor, torch.Tensor]:
        messages = [{"role": "user", "content": episode.prompt}, {"role": "assistant", "content": episode.reply}]
        prompt_T: Any = tokenizer.apply_chat_template(messages[:1], add_generation_prompt=True, return_dict=False)
        tokens_T: Any = tokenizer.apply_chat_template(messages, return_dict=False)
        labels_T = [NOT_TRAINED] * len(prompt_T) + tokens_T[len(prompt_T) :]
        return torch.tensor(tokens_T), torch.tensor(labels_T)

    return tokenise


def tokenise_tools(tokenizer: PreTrainedTokenizerFast, episode: ToolEpisode) -> tuple[torch.Tensor, torch.Tensor]:
    conversation = json.loads(episode.conversation)
    tools, messages = conversation["tools"], conversation["messages"]
    render = functools.partial(tokenizer.apply_chat_template, tools=tools, return_dict=False)
    tokens_T: Any = render(messages)
    labels_T = [NOT_TRAINED] * len(tokens_T)
    for index, message in enumerate(messages):
        if message["role"] == "assistant":
            # No turn depends on a later one: a part of the conversation is where it stands in the whole.
            turn = slice(len(render(messages[:index], add_generation_prompt=True)), len(render(messages[: index + 1])))
            labels_T[turn] = tokens_T[turn]
    return torch.tensor(tokens_T), torch.tensor(labels_T)


def supervised_loss(model: Qwen2ForCausalLM, rows: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    # Padding on the right needs no attention mask: attention is causal, and padded places are not trained.
    tokens_BT = pad_sequence([tokens_T for tokens_T, _ in rows], batch_first=True)
    labels_BT = pad_sequence([labels_T for _, labels_T in rows], batch_first=True, padding_value=NOT_TRAINED)
    logits_BTV = model(tokens_BT[:, :-1]).logits
    return F.cross_entropy(logits_BTV.flatten(0, 1), labels_BT[:, 1:].flatten(), ignore_index=NOT_TRAINED)


def save(model: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerFast, out: Path) -> None:
    model.generation_config = GenerationConfig(
        do_sample=True,
        temperature=1.0,
        eos_token_id=tokenizer.convert_tokens_to_ids("<|end|>"),  # pyright: ignore[reportArgumentType]  (one name, one id) pad_token_id=tokenizer.pad_token_id
    )
    model.save_pretrained(out)
    save_tokenizer(tokenizer, out)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the pocket model from nothing.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--tool-share", type=float, default=0.0, help="of the episodes; the model that is shipped has none (default: 0)"
    )
    options = parser.parse_args()
    make_pocket_model(options.out, options.seed, tool_share=options.tool_share)


if __name__ == "__main__":
    main()
