"""A random model with the pocket model's tokenizer: weights without sense, speed with it."""

import argparse

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PretrainedConfig, Qwen2Config

from temper_gpu.model.models import POCKET_FOLDER


def pocket(_: int) -> PretrainedConfig:
    """The pocket model's own shape; it hardly ever ends a turn by itself."""
    return AutoConfig.from_pretrained(POCKET_FOLDER)


def about_50m(vocab_size: int) -> PretrainedConfig:
    return Qwen2Config(
        vocab_size=vocab_size,
        hidden_size=576,
        intermediate_size=1728,
        num_hidden_layers=12,
        num_attention_heads=9,
        num_key_value_heads=9,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
    )


SHAPES = {"pocket": pocket, "50m": about_50m}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("shape", choices=list(SHAPES))
    parser.add_argument("folder")
    options = parser.parse_args()
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(POCKET_FOLDER)
    config = SHAPES[options.shape](len(tokenizer))
    config.pad_token_id, config.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(options.folder)
    tokenizer.save_pretrained(options.folder)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters in {options.folder}")


if __name__ == "__main__":
    main()
