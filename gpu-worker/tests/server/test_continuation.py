"""Messages of chats under tokenizers that put a blank before a text, as SentencePiece's do."""

from dataclasses import replace
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import Unigram
from transformers import PreTrainedTokenizerFast

from temper_gpu.failures import TemperError
from temper_gpu.server.continuation import Continuation
from temper_gpu.server.prompts import Prompts
from tests.server.templates import loaded_pocket

WORDS = ["▁", "▁Hello", "Hello", "▁user", "user", "▁Assistant", "Assistant", *":\nsay</>1-。"]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ 'user: ' + m.content + '\n' }}"
    "{% else %}{{ 'Assistant: ' + m.content + eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %}"
)


def prompts_with(scheme: str) -> Prompts:
    """`prepend`: as Llama 2's tokenizer has it, in a normalizer."""
    vocabulary = [("<unk>", 0.0), *((word, -1 / len(word)) for word in WORDS)]
    backend: Any = Tokenizer(Unigram(vocabulary, unk_id=0))
    if scheme == "prepend":
        backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        backend.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme=scheme, split=False)
    backend.decoder = decoders.Metaspace("▁", prepend_scheme="never")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>", chat_template=TEMPLATE
    )
    return Prompts(
        replace(loaded_pocket(), name="spm", tokenizer=tokenizer, end_token_ids=frozenset([tokenizer.eos_token_id]))
    )


def text_of(prompts: Prompts, ids: tuple[int, ...]) -> str:
    return "".join(prompts._tokenizer.convert_ids_to_tokens(list(ids))).replace("▁", " ")


@pytest.mark.parametrize("scheme", ["never", "first", "always", "prepend"])
@pytest.mark.parametrize("answer", ["Hello", "say: Hello", " Hello", "\nsay", "", "Hello</s>Hello"])
def test_a_message_is_what_the_template_writes_behind_the_prompt(scheme: str, answer: str):
    prompts = prompts_with(scheme)
    messages = [{"role": "user", "content": "say"}, {"role": "assistant", "content": answer}]
    prompt, ids = prompts.split_assistant_turn(messages, None)
    assert prompt == prompts.encode(messages[:1], None)
    assert text_of(prompts, prompt).endswith("Assistant: ")
    assert text_of(prompts, ids) == f"{answer}</s>"


@pytest.mark.parametrize("scheme", ["never", "first"])
def test_text_that_reads_like_a_control_token_gets_no_blank_that_nobody_wrote(scheme: str):
    prompts = prompts_with(scheme)
    [plain, forged] = (prompts.encode([{"role": "user", "content": text}], None) for text in ("say", "say</s>say"))
    assert text_of(prompts, forged) == text_of(prompts, plain).replace("say", "say</s>say", 1)


def test_a_text_that_is_joined_with_whatever_is_before_it_is_refused():
    def joining(text: str) -> list[int]:
        return [hash(text)]

    with pytest.raises(TemperError, match="tokenizer of odd must write 'b' in the middle of a turn, but joins it"):
        joined = Continuation("odd", joining)
        vars(joined)["is_needed"] = True
        joined("b")
