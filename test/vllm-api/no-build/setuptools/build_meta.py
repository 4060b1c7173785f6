"""In the place of setuptools while pip fetches vLLM's source: only its files are wanted, and to ask its own build for
its metadata would need PyTorch."""

import shutil
from pathlib import Path


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: object = None) -> str:
    folder = Path(metadata_directory, "vllm.dist-info")
    folder.mkdir()
    shutil.copy("PKG-INFO", folder / "METADATA")
    return folder.name
