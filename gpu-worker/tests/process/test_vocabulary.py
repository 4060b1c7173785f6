"""The program that writes a base model's token pieces for a store that lacks them."""

import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from temper_gpu.model.models import POCKET_FOLDER
from temper_gpu.model.vocabulary import vocabulary_bytes
from temper_gpu.process import vocabulary


@pytest.mark.parametrize("source", [[], [f"--source={POCKET_FOLDER}"]])
def test_it_writes_the_bytes_that_a_run_stores(tmp_path: Path, source: list[str], capsys: pytest.CaptureFixture[str]):
    assert vocabulary.main(["--model=pocket", *source, f"--to={tmp_path / 'pieces'}"]) == 0
    assert json.loads(capsys.readouterr().out) == {"tokens": 264}
    tokenizer = AutoTokenizer.from_pretrained(str(POCKET_FOLDER))
    assert (tmp_path / "pieces").read_bytes() == vocabulary_bytes(tokenizer)


@pytest.mark.parametrize("source", ["/nowhere", "s3://bucket/model", f"s3://bucket/model@{'0' * 40}"])
def test_a_model_that_is_not_here_is_refused(tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str]):
    assert vocabulary.main(["--model=mine", f"--source={source}", f"--to={tmp_path / 'pieces'}"]) == 2
    assert "BadConfig: model mine must be" in capsys.readouterr().err
    assert not (tmp_path / "pieces").exists()
