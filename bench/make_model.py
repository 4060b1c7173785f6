"""A random Qwen2 of about 50 M parameters with the pocket model's tokenizer: weights without sense, speed with it."""

import sys

import torch
from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM

from temper_gpu.model.models import POCKET_FOLDER


def main(folder: str) -> None:
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(POCKET_FOLDER)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=576,
        intermediate_size=1728,
        num_hidden_layers=12,
        num_attention_heads=9,
        num_key_value_heads=9,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = Qwen2ForCausalLM(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters in {folder}")


if __name__ == "__main__":
    main(sys.argv[1])
