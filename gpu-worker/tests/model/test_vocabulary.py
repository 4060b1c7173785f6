"""Pieces of vocabularies, joined, against what tokenizers decode: of the kinds that base models have."""

import base64
import gzip
import json
import re
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from temper_gpu.model.models import BUILT_IN
from temper_gpu.model.vocabulary import vocabulary_bytes

SHARED = Path(__file__).parents[3] / "test" / "store" / "records" / "vocabulary.json"
SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
WORDS = ["a", "the", "n't", "'s", ".", ",", "do", "not", "naïve", "日本", "🙂", "x  y", "##", "\n", "<0x", "\0"]
# Of the runs that decoders of several kinds replace by one or several characters.
INVALID = re.compile("\N{REPLACEMENT CHARACTER}+")


def fast(model: Any, decoder: Any, **special: Any) -> PreTrainedTokenizerFast:
    built = Tokenizer(model)
    if decoder is not None:
        built.decoder = decoder
    built.add_special_tokens([AddedToken("<|end|>", special=True), AddedToken("<s>", special=True)])
    built.add_tokens([AddedToken("<think>"), AddedToken("two words"), AddedToken("ééé")])
    return PreTrainedTokenizerFast(tokenizer_object=built, **special)


def numbered(tokens: list[str]) -> dict[str, int]:
    """With holes, beyond the ids of added tokens: these are numbered from the number of the others."""
    return {token: 1000 + 2 * place for place, token in enumerate(dict.fromkeys(tokens))}


def byte_tokens() -> list[str]:
    return [f"<0x{byte:02X}>" for byte in range(256)]


def marked() -> list[str]:
    return [*WORDS, *(f"{SPACE}{word}" for word in WORDS), SPACE, SPACE * 3, f"a{SPACE}b"]


def llama(*steps: Any) -> PreTrainedTokenizerFast:
    pieces = [*byte_tokens(), *marked()]
    model = models.BPE(numbered(pieces), [], unk_token="a", byte_fallback=True, fuse_unk=True)
    return fast(model, decoders.Sequence([decoders.Replace(SPACE, " "), *steps]))


def byte_level() -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [*alphabet, *(a + b for a in "Ġa" for b in alphabet), "日 is no byte"]
    return fast(models.BPE(numbered(pieces), []), decoders.ByteLevel())


@cache
def tokenizers() -> dict[str, Any]:
    word_level = models.WordLevel(numbered(WORDS), "a")
    built_in = {name: AutoTokenizer.from_pretrained(str(folder)) for name, folder in BUILT_IN.items()}
    return {
        **built_in,
        "byte level": byte_level(),
        "llama": llama(decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)),
        "gemma": llama(decoders.ByteFallback(), decoders.Fuse()),
        "words": fast(word_level, None),
        "fused": fast(word_level, decoders.Fuse()),
    }


@cache
def read(name: str) -> dict[str, Any]:
    return json.loads(gzip.decompress(vocabulary_bytes(tokenizers()[name])))


@cache
def ids_of(name: str) -> list[int]:
    return sorted(tokenizers()[name].get_vocab().values())


def text_of(name: str, token_ids: list[int]) -> str:
    return b"".join(read(name)["pieces"][i].encode("latin-1") for i in token_ids).decode(errors="replace")


def same(text: str) -> str:
    return INVALID.sub("\N{REPLACEMENT CHARACTER}", text)


def decoded(name: str, token_ids: list[int]) -> str:
    return tokenizers()[name].backend_tokenizer.decode(token_ids, skip_special_tokens=False)


def sequences(name: str) -> st.SearchStrategy[list[int]]:
    """Any tokens; byte tokens as they write texts, because a decoder replaces a whole run of them otherwise."""
    vocabulary = tokenizers()[name].get_vocab()
    if "<0x00>" not in vocabulary:
        return st.lists(st.sampled_from(ids_of(name)), max_size=20)
    written = st.text(max_size=3).map(lambda text: [vocabulary[f"<0x{byte:02X}>"] for byte in text.encode()])
    others = st.sampled_from([token_id for token, token_id in vocabulary.items() if not token.startswith("<0x")])
    return st.lists(st.one_of(written, others.map(lambda token_id: [token_id]))).map(lambda parts: [*chain(*parts)])


@pytest.mark.parametrize("name", list(tokenizers()))
def test_joined_pieces_are_what_the_tokenizer_decodes(name: str):
    whole = tokenizers()[name].get_vocab()["<|user|>" if "pocket" in name else "<|end|>"]

    @given(sequences(name))
    def agree(token_ids: list[int]) -> None:
        # The same token around them: decoders treat the first one and the last one otherwise.
        around = [whole, *token_ids, whole]
        assert same(text_of(name, around)).strip(" ") == same(decoded(name, around)).strip(" ")

    agree()


@pytest.mark.parametrize("name", list(tokenizers()))
def test_the_first_space_is_dropped_where_it_is_said_to_be(name: str):
    first = next((i for i in ids_of(name) if read(name)["pieces"][i] in (" a", " the")), None)
    if first is not None:
        assert decoded(name, [first]) == read(name)["pieces"][first].removeprefix(" " * read(name)["dropsFirstSpace"])


@given(st.text())
def test_a_text_comes_back_whatever_it_is(text: str):
    ids = tokenizers()["pocket"].encode(text, add_special_tokens=False)
    assert text_of("pocket", ids) == text


def test_control_tokens_are_special_ones_and_those_that_structure_answers():
    vocabulary, ids = read("byte level"), tokenizers()["byte level"].get_vocab()
    assert vocabulary["control"] == sorted(ids[token] for token in ("<|end|>", "<s>", "<think>"))
    assert read("pocket")["control"] == list(range(256, 264))


def test_an_id_without_a_token_has_no_piece():
    assert read("llama")["pieces"][1::2].count(None) > 200


def test_a_decoder_that_is_not_known_decodes_token_by_token():
    model = models.WordLevel({"a": 0, f"{SPACE}b": 1, "<0x0A>": 2, "cc": 3}, "a")
    tokenizer = fast(model, decoders.Sequence([decoders.Replace(Regex("c+"), "C"), decoders.Fuse()]))
    assert json.loads(gzip.decompress(vocabulary_bytes(tokenizer)))["pieces"][:4] == ["a", " b", "\n", "C"]


class Slow:
    """A tokenizer without one of the Rust library beneath."""

    def get_vocab(self) -> dict[str, int]:
        return {"é": 1, f"{SPACE}a": 2, "<0xFF>": 0}

    def decode(self, token_ids: list[int], skip_special_tokens: bool) -> str:
        assert token_ids == [1]
        assert not skip_special_tokens
        return "é"


def test_a_slow_tokenizer_decodes_token_by_token():
    described = json.loads(gzip.decompress(vocabulary_bytes(Slow())))
    assert described == {"schema": 1, "dropsFirstSpace": False, "control": [], "pieces": ["ÿ", "Ã©", " a"]}


def small() -> PreTrainedTokenizerFast:
    tokens = {"a": 0, f"{SPACE}b": 1, "<0xC3>": 2, "<0xA9>": 3, f"{SPACE}日本": 20}
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    return fast(models.BPE(tokens, [], byte_fallback=True), decoders.Sequence(steps))


def test_the_file_is_the_one_that_typescript_reads():
    """`test/store/records/runs/vocabulary.test.ts` reads it; other versions of zlib pack it otherwise."""
    known = base64.b64decode(json.loads(SHARED.read_text())["base64"])
    assert gzip.decompress(vocabulary_bytes(small())) == gzip.decompress(known)


def test_the_same_tokenizer_gives_the_same_bytes():
    assert vocabulary_bytes(byte_level()) == vocabulary_bytes(byte_level())
