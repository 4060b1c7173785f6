"""A chat template in the place of a model's own, from the first check to the first step."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from temper_gpu.commits.templates import StoredTemplates
from temper_gpu.contract import LoraConfig
from temper_gpu.engine.embedded.settings import EngineSettings
from temper_gpu.failures import TemperError
from temper_gpu.model.models import POCKET_FOLDER, ModelLibrary
from temper_gpu.process import check_template, plan
from temper_gpu.process.compose import check_run
from temper_gpu.process.needs import Machine
from temper_gpu.server.chat_turns import ChatTurns
from temper_gpu.store import FileStore
from tests.server.templates import QWEN, WITHOUT_TOOLS
from tests.training.samples import initialise_input

MACHINE = Machine(torch.device("cpu"), torch.float32, EngineSettings())


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """The pocket model without a chat template."""
    return shutil.copytree(POCKET_FOLDER, tmp_path / "bare", ignore=shutil.ignore_patterns("*.jinja"))


def written(folder: Path, template: str) -> str:
    (folder / "chat.jinja").write_text(template)
    return f"--chat-template={folder / 'chat.jinja'}"


def test_the_program_tells_what_a_template_leaves_out(tmp_path: Path, bare: Path, capsys: pytest.CaptureFixture[str]):
    model = ["--model=bare", f"--source={bare}"]
    assert check_template.main([*model, written(tmp_path, QWEN)]) == 0
    assert json.loads(capsys.readouterr().out) == {"gaps": ["it leaves out names of messages"]}
    assert check_template.main([*model, written(tmp_path, WITHOUT_TOOLS)]) == 0
    assert "leaves tools out" in json.loads(capsys.readouterr().out)["gaps"][-1]
    assert check_template.main([*model, written(tmp_path, "\n{% for %}")]) == 2
    assert "BadConfig: the chat template that was given for model bare must" in (told := capsys.readouterr().err)
    assert "it fails in line 2 (" in told


def test_without_a_template_the_program_tries_the_models_own(bare: Path, capsys: pytest.CaptureFixture[str]):
    assert check_template.main(["--model=pocket"]) == 0
    assert "names of messages" in json.loads(capsys.readouterr().out)["gaps"][0]
    assert check_template.main(["--model=bare", f"--source={bare}"]) == 2
    assert "BadConfig: model bare must have a chat template" in capsys.readouterr().err


def test_the_plan_of_a_model_is_that_with_the_template(tmp_path: Path, bare: Path, capsys: pytest.CaptureFixture[str]):
    flags = ["--model=bare", f"--source={bare}", "--lora-rank=16", "--micro-batch-tokens=512", "--context=64"]
    assert plan.main(flags) == 0
    assert "pass one with --chat-template FILE" in json.loads(capsys.readouterr().out)["refusal"]
    assert plan.main([*flags, written(tmp_path, QWEN)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["refusal"], told["templateGaps"]) == (None, ["it leaves out names of messages"])


def test_a_run_does_not_begin_without_a_template_that_works(tmp_path: Path, bare: Path):
    store = FileStore(tmp_path / "store")
    models = ModelLibrary(lambda: {"bare": str(bare)}, torch.float32, torch.device("cpu"))
    templates = StoredTemplates(store)

    def check(template: str | None) -> None:
        sha256 = template and store.put_blob(template.encode()).sha256
        work = initialise_input(base_model="bare", chat_template_sha256=sha256)
        check_run(models, store, templates, ChatTurns(templates.text), MACHINE, work)

    check(QWEN)
    for broken, reason in [(None, "model bare must have a chat template"), ("x\n{{ y.z }}", "fails in line 2")]:
        with pytest.raises(TemperError, match=reason) as caught:
            check(broken)
        assert caught.value.type == "BadConfig"


@pytest.mark.parametrize(
    ("load_in_4bit", "machine", "reason"),
    [
        (False, replace(MACHINE, num_ranks=2, shards=True), "only frozen weights are sharded; start the GPU worker"),
        (True, replace(MACHINE, load_in_4bit=True), "pocket is loaded in 4 bits; start the GPU worker without"),
    ],
)
def test_a_run_that_trains_all_weights_does_not_begin_where_the_base_model_is_not_whole(
    load_in_4bit: bool, machine: Machine, reason: str, tmp_path: Path
):
    store = FileStore(tmp_path / "store")
    models = ModelLibrary(dict, torch.float32, torch.device("cpu"), load_in_4bit=load_in_4bit)
    templates = StoredTemplates(store)
    work = initialise_input(lora=None, base_model="pocket")
    with pytest.raises(TemperError, match=reason):
        check_run(models, store, templates, ChatTurns(templates.text), machine, work)


def test_a_run_does_not_begin_with_an_optimizer_that_has_nothing_to_pack(tmp_path: Path):
    store = FileStore(tmp_path / "store")
    models = ModelLibrary(dict, torch.float32, torch.device("cpu"))
    templates = StoredTemplates(store)

    def check(lora: LoraConfig | None) -> None:
        work = initialise_input(lora=lora, base_model="pocket", optimizer_kind="adamw_8bit")
        check_run(models, store, templates, ChatTurns(templates.text), MACHINE, work)

    check(None)
    check(LoraConfig(rank=64, alpha=64, target_modules=None))
    with pytest.raises(TemperError, match=r"--optimizer adamw_8bit needs .* the largest of 28 has 384; leave it out"):
        check(LoraConfig(rank=2, alpha=2, target_modules=None))
