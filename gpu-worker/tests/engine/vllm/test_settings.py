"""How vLLM is started: flags of Temper's own, flags passed on, and where it computes."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from temper_gpu.contract import EngineSettings
from temper_gpu.engine.vllm.process import is_shared, last_words, own_flags, require_devices, server_environment
from temper_gpu.engine.vllm.settings import VllmSettings, context_window, flags_of, installed_version, recorded
from temper_gpu.failures import TemperError
from temper_gpu.model.models import BaseModel
from temper_gpu.process.needs import vllm_settings


def settings(**given) -> VllmSettings:
    return VllmSettings("python", "0.32.0", **given)


@pytest.mark.parametrize(
    ("arg", "told"),
    [
        ("--logprobs-mode=raw_logprobs", "must not hold --logprobs-mode, got --logprobs-mode=raw_logprobs; remove it"),
        ("--logprobs_mode", "must not hold --logprobs-mode"),
        ("--logprobs-m", "must not hold --logprobs-mode"),
        ("--max-num-seqs", "set engine.slots"),
        ("--api-key=x", "remove it"),
        ("--tensor-parallel-size=2", "set engine.vllm.devices"),
    ],
)
def test_flags_that_are_tempers_own_are_refused(arg, told):
    with pytest.raises(TemperError, match=told):
        settings(args=(arg,))


def test_what_a_person_passes_on_replaces_what_is_chosen_and_is_recorded_without_paths(pocket):
    plain = recorded(pocket, settings())
    assert plain["engine"] == "vllm 0.32.0"
    assert "--max-model-len=4096 --max-num-seqs=128" in plain["engineFlags"]
    mine = settings(args=("--max-model-len", "1024", "--max-lora-rank=128", "--download-dir=/home/me"))
    flags = recorded(pocket, mine)["engineFlags"].split()
    assert [flag for flag in flags if "max-model-len" in flag] == ["--max-model-len"]
    assert "--max-lora-rank=128" in flags and "--max-lora-rank=64" not in flags
    assert flags[-1] == "PATH"
    assert (context_window(pocket, mine), context_window(pocket, settings())) == (1024, 4096)


def test_a_model_on_the_trainers_gpu_sleeps_while_that_trains_and_one_on_its_own_does_not():
    gpu = torch.device("cuda", 1)
    assert is_shared(gpu, settings()) and is_shared(gpu, settings(devices=(0, 1)))
    assert not is_shared(gpu, settings(devices=(2, 3))) and not is_shared(torch.device("cpu"), settings())
    with pytest.raises(TemperError, match="engine.vllm.devices must be empty where the model is on the CPU"):
        require_devices(settings(devices=(0,)), torch.device("cpu"))


class OnGpu(BaseModel):
    """Says that it is on one."""

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", 1)


@pytest.fixture
def on_gpu(pocket: BaseModel) -> BaseModel:
    return OnGpu(pocket.name, pocket.config, pocket.tensors, pocket.tokenizer)


def test_it_takes_what_the_trainer_leaves_free_of_a_gpu_and_no_manifest_says_so(pocket, on_gpu):
    """Its check at start wants 92 % of the GPU by default, whatever the cache is set to."""
    flag = "--gpu-memory-utilization=0.05"
    assert flag in own_flags(on_gpu, "folder", "socket", settings())
    assert flag not in recorded(on_gpu, settings())["engineFlags"]
    assert flag not in own_flags(pocket, "folder", "socket", settings())


def test_a_request_is_at_most_as_long_as_the_cache_holds(pocket):
    """vLLM does not start with a longer one."""
    config = pocket.config
    head_size = config.hidden_size // config.num_attention_heads
    per_token = 2 * config.num_hidden_layers * config.num_key_value_heads * head_size * 4
    small = settings(kv_cache_bytes=1024 * per_token)
    assert context_window(pocket, small) == 1024 - 128
    assert "--max-model-len=896" in flags_of(pocket, small)
    # Its devices share the heads, and each has as many bytes.
    assert context_window(pocket, replace(small, devices=(0, 1))) == 2048 - 128
    mine = replace(small, args=("--max-model-len=2000",))
    assert (context_window(pocket, mine), context_window(pocket, settings())) == (2000, 4096)


def test_as_many_policies_stay_loaded_as_the_settings_say(pocket):
    assert "--max-loras=2" in flags_of(pocket, settings())
    engine = EngineSettings.model_validate({"kind": "vllm", "vllm": {"policies": 6}})
    assert "--max-loras=6" in flags_of(pocket, vllm_settings(engine, torch.device("cpu")))


def test_gpus_of_its_own_are_those_that_this_process_sees_under_these_numbers(on_gpu, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,GPU-5,6")
    assert server_environment(on_gpu, settings(devices=(1, 2)), "/tmp/x")["CUDA_VISIBLE_DEVICES"] == "GPU-5,6"
    assert server_environment(on_gpu, settings(), "/tmp/x")["CUDA_VISIBLE_DEVICES"] == "GPU-5"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert server_environment(on_gpu, settings(devices=(1, 2)), "/tmp/x")["CUDA_VISIBLE_DEVICES"] == "1,2"


def test_its_environment_has_its_key_and_nothing_that_leads_another_python_astray(pocket, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/of/this")
    monkeypatch.setenv("TEMPER_ENGINE_KEY", "ours")
    secrets = ("TEMPORAL_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "HF_TOKEN")
    others = ("OPENAI_API_KEY", "TEMPER_VLLM_KEY", "TEMPORAL_TLS_CLIENT_CERT_DATA", "GOOGLE_APPLICATION_CREDENTIALS")
    for name in (*secrets, *others):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("HF_HOME", "/kept")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    found = server_environment(pocket, settings(num_threads=3), "/tmp/x")
    assert not {"PYTHONPATH", "TEMPER_ENGINE_KEY", "VLLM_SERVER_DEV_MODE"} & found.keys()
    assert not {"secret", "ours"} & set(found.values())
    assert found["HF_HOME"] == "/kept"
    assert (found["OMP_NUM_THREADS"], found["VLLM_CPU_OMP_THREADS_BIND"]) == ("3", "nobind")
    assert found["OMP_WAIT_POLICY"] == "PASSIVE"
    assert "--tensor-parallel-size=2" in flags_of(pocket, settings(devices=(0, 1)))


def test_the_reason_of_an_end_is_the_last_line_that_names_an_error():
    lines = ["INFO starts", "ValueError: no room", "  at the end of a traceback", "vLLM ended with exit code 1"]
    assert last_words(lines) == "ValueError: no room"
    assert last_words([]) == "it said nothing"


def test_a_python_without_vllm_is_named_with_the_command_that_installs_it(tmp_path: Path):
    with pytest.raises(TemperError, match="must be a Python with vLLM .*; install it with: temper setup vllm"):
        installed_version(str(tmp_path / "python"))
