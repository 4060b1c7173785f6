"""Supervised training of the pocket model: what is learned, and how fast. Shapes: B rows, T tokens, V vocabulary."""

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedTokenizerFast, Qwen2ForCausalLM
from transformers.cache_utils import Cache

from pocket_build.dialogues import Dialogue

WARM_UP_STEPS = 50
NOT_TRAINED = -100

Row = tuple[torch.Tensor, torch.Tensor]
Tokenise = Callable[[Dialogue], Row]


def tokeniser(tokenizer: PreTrainedTokenizerFast) -> Tokenise:
    """Only the reply and its end of turn are learned."""

    @functools.cache
    def tokenise(dialogue: Dialogue) -> Row:
        messages = [{"role": "user", "content": dialogue.prompt}, {"role": "assistant", "content": dialogue.reply}]
        prompt_T: Any = tokenizer.apply_chat_template(messages[:1], add_generation_prompt=True, return_dict=False)
        tokens_T: Any = tokenizer.apply_chat_template(messages, return_dict=False)
        labels_T = [NOT_TRAINED] * len(prompt_T) + tokens_T[len(prompt_T) :]
        return torch.tensor(tokens_T), torch.tensor(labels_T)

    return tokenise


def optimizer_for(model: Qwen2ForCausalLM, peak_lr: float, steps: int) -> tuple[AdamW, LambdaLR]:
    optimizer = AdamW(model.parameters(), peak_lr, betas=(0.9, 0.99), weight_decay=0.0)
    return optimizer, LambdaLR(optimizer, lambda step: learning_rate_factor(step, steps))


def learning_rate_factor(step: int, steps: int) -> float:
    """Linear warm-up, then linear decay to a twentieth."""
    return min(1.0, (step + 1) / WARM_UP_STEPS) * (1 - 0.95 * step / steps)


def update(model: Qwen2ForCausalLM, optimizer: AdamW, schedule: LambdaLR) -> None:
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()


def falling(progress: float, first_part: float, falling_part: float) -> float:
    """1 in the first part, then ever less of it, and at last none."""
    return min(1.0, max(0.0, (first_part + falling_part - progress) / falling_part))


def supervised_loss(model: Qwen2ForCausalLM, rows: list[Row], cache: Cache | None = None) -> torch.Tensor:
    """Nats per token that is learned; `cache` holds what stands before all the rows."""
    # Padding on the right needs no attention mask: attention is causal, and padded places are not trained.
    tokens_BT = pad_sequence([tokens_T for tokens_T, _ in rows], batch_first=True)
    labels_BT = pad_sequence([labels_T for _, labels_T in rows], batch_first=True, padding_value=NOT_TRAINED)
    logits_BTV = model(tokens_BT[:, :-1], past_key_values=cache, use_cache=cache is not None).logits
    return F.cross_entropy(logits_BTV.flatten(0, 1), labels_BT[:, 1:].flatten(), ignore_index=NOT_TRAINED)
