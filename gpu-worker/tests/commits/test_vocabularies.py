"""The vocabulary of a run's base model in its store."""

import gzip
import json
import logging
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from temper_gpu.commits.vocabularies import publish_vocabulary
from temper_gpu.model.models import POCKET_FOLDER, BaseModel
from temper_gpu.store import FileStore
from temper_gpu.training.trainer import Trainer
from tests.training.samples import initialise_input, open_folder, tiny_base

TOKENIZER = AutoTokenizer.from_pretrained(str(POCKET_FOLDER))
BASE = replace(tiny_base(), tokenizer=TOKENIZER)
KEY = "runs/demo/vocabulary.json"


class Library:
    """Stands for ModelLibrary."""

    def __init__(self, base: BaseModel) -> None:
        self._base = base

    def get(self, name: str) -> BaseModel:
        return self._base


def begin(store: FileStore, run: str = "demo", base: BaseModel = BASE) -> str:
    trainer = Trainer(Library(base), store, threading.Lock())
    return trainer.initialise(initialise_input(run)).commit.sha256


def named(store: FileStore, key: str = KEY) -> dict[str, Any]:
    return json.loads(store.read(key) or b"null")


def test_a_run_names_the_pieces_of_its_base_model_and_runs_share_them(store: FileStore):
    begin(store)
    begin(store, "other")
    assert named(store) == named(store, "runs/other/vocabulary.json")
    pieces = json.loads(gzip.decompress(store.read(named(store)["pieces"]["key"]) or b""))["pieces"]
    assert len(pieces) == len(TOKENIZER)


def test_the_first_checkpoint_is_the_same_with_a_vocabulary_and_without(tmp_path: Path, store: FileStore):
    without = open_folder(tmp_path / "without")
    assert begin(without, base=tiny_base()) == begin(store)
    assert without.read(KEY) is None


def test_what_a_run_names_is_not_written_again(store: FileStore):
    store.publish(KEY, b"{}")
    publish_vocabulary(store, "demo", BASE)
    assert store.read(KEY) == b"{}"


class Odd:
    """A tokenizer that fails."""

    def get_vocab(self) -> dict[str, int]:
        raise ValueError("no vocabulary")


def test_a_tokenizer_that_fails_ends_no_run(store: FileStore, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        publish_vocabulary(store, "demo", replace(BASE, tokenizer=Odd()))
    assert store.read(KEY) is None
    assert "vocabulary is not stored" in caplog.text
