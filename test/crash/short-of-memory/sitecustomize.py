"""On the GPU worker's PYTHONPATH: a step asks for more memory than there is, as long as a file exists."""

import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder

STEP = "temper_gpu.training.step"


class ShortOfMemory(MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname != STEP:
            return None
        spec = PathFinder.find_spec(fullname, path)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            train_step = module.train_step

            def scarce(*arguments):
                import torch

                if os.path.exists(os.environ["TEMPER_TEST_SHORT_OF_MEMORY"]):
                    torch.empty(1 << 60)
                return train_step(*arguments)

            module.train_step = scarce

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, ShortOfMemory())
