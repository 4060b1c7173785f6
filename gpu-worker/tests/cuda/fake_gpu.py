"""CUDA without a GPU: tensors that say they are on `cuda:0`, and raise where a GPU would.

An `OnGpu` stands before a tensor on the CPU, which has its numbers. Product code takes its branches for CUDA, because
it asks for `tensor.device`. PyTorch's C++ takes an `OnGpu` for a tensor of the meta device, whose backward pass needs
no driver. A dispatch mode computes behind each operation, and counts them. It raises if an operation mixes devices, has
no deterministic kernel, or gets shapes that its kernel does not take.

It cannot see: which kernels cuBLAS picks, so neither equal bits nor batch invariance; how real kernels round bfloat16;
which attention kernel PyTorch's C++ picks (attention.py has the rule); time, waits, streams, races; fragmentation and a
real lack of memory; NCCL; CUDA graphs; bitsandbytes' kernels for CUDA (those for CPUs stand for them); Triton's; vLLM.
Where PyTorch's C++ itself asks for the device, it finds the meta device. `npm run bench -- gpu` sees a real one.

It is made of PyTorch's internals; `test_fake_gpu.py` says whether it still refuses what it should.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from temper_gpu.model.models import BaseModel
from tests.cuda.attention import STAND_INS, attend_on_gpu

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
# What C++ has in the place of the GPU. Its number tells it from the meta device of models without weights.
INSIDE = torch.device("meta", 0)
# Kernels that take indices in main memory; they are copied first.
TAKE_INDICES = frozenset(["index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"])
# They make a tensor of the shape or type of another one, wherever that is.
LIKES = frozenset(
    ["zeros_like", "ones_like", "empty_like", "full_like", "new_zeros", "new_ones", "new_empty", "new_full"]
)
KNOWN = (Tensor, nn.Parameter)
# PyTorch's own list (torch.use_deterministic_algorithms), of what a language model may ask for.
NEVER_DETERMINISTIC = frozenset(["put_", "histc", "kthvalue", "nll_loss2d_forward"])
RUNNING_SUMS = frozenset(["cumsum", "cumsum_"])


@dataclass(frozen=True)
class Kernel:
    """An operation of PyTorch's."""

    func: Any
    name: str
    is_mutable: bool
    is_composite: bool


class OnGpu(Tensor):
    behind: Tensor

    def __new__(cls, behind: Tensor) -> "OnGpu":
        made = Tensor._make_wrapper_subclass(
            cls,
            behind.shape,
            strides=behind.stride(),
            storage_offset=behind.storage_offset(),
            dtype=behind.dtype,
            device=INSIDE,
        )
        made.behind = behind
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl
    device = property(lambda tensor: GPU)
    is_cuda = property(lambda tensor: True)
    is_meta = property(lambda tensor: False)

    def __repr__(self, *_: Any, **__: Any) -> str:
        return f"OnGpu({tuple(self.shape)}, {self.dtype})"

    def data_ptr(self) -> int:
        """Of another storage another number."""
        return (storage_of(self.behind) << 48) + int(self.storage_offset()) * self.itemsize

    def untyped_storage(self) -> torch.UntypedStorage:
        return self.behind.untyped_storage()

    def tolist(self) -> Any:
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func} is called outside of the fake GPU")


class Redirected(TorchFunctionMode):
    """Says the device's inner name to C++, which would look for a driver."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*map(inner, args), **{name: inner(value) for name, value in (kwargs or {}).items()})


def inner(value: Any) -> Any:
    return INSIDE if isinstance(value, torch.device) and value.type == GPU.type else value


class FakeGpu(TorchDispatchMode):
    """Within it, what is moved to `cuda` is on the fake GPU."""

    def __init__(self) -> None:
        super().__init__()
        # By the name of the operation; views are counted, too.
        self.launched: Counter[str] = Counter()

    def __enter__(self) -> "FakeGpu":
        """torch.cuda knows no GPU, but waits for this one."""
        self._stack = ExitStack()
        self._stack.enter_context(patch.object(torch.cuda, "synchronize", lambda device=None: None))
        lifts = torch._C._only_lift_cpu_tensors()
        set_lifts: Any = torch._C._set_only_lift_cpu_tensors
        # `torch.tensor` copies to a device by an operation.
        set_lifts(True)
        self._stack.callback(set_lifts, lifts)
        self._stack.enter_context(patch.object(F, "scaled_dot_product_attention", attend_on_gpu))
        self._stack.enter_context(Redirected())
        super().__enter__()
        return self

    def __exit__(self, *given: Any) -> None:
        super().__exit__(*given)
        self._stack.close()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        kernel = kernel_of(func)
        given = [each for each in leaves((*args, *kwargs.values())) if isinstance(each, Tensor)]
        is_asked = any(isinstance(each, OnGpu) for each in given) or INSIDE in devices(args, kwargs)
        if any(isinstance(each, FakeTensor) for each in given):
            # By which FSDP finds shapes.
            return func(*args, **kwargs)
        if any(type(each) not in KNOWN and not isinstance(each, OnGpu) for each in given):
            # Made of other tensors (FSDP's), for which it asks within this mode.
            return NotImplemented
        if not is_asked:
            return func(*args, **kwargs)
        if kernel.is_composite:
            # Within inference mode these come undivided.
            with self._again():
                return func.decompose(*args, **kwargs)
        with torch.inference_mode(False), torch.no_grad():
            return self._answer(kernel, args, kwargs, given)

    def _answer(self, kernel: Kernel, args: Sequence[Any], kwargs: dict[str, Any], given: list[Tensor]) -> Any:
        device = kwargs.get("device")
        if kernel.name in ("copy_", "_to_copy") and self._crosses(kernel.name, given, device):
            return self._cross(kernel, args, kwargs)
        require_one_device(kernel, given)
        refuse(kernel.name, kwargs, given)
        compute = STAND_INS.get(kernel.name) or kernel.func
        found = compute(*self._behind(args), **self._behind(kwargs))
        self.launched[kernel.name] += 1
        return self._before(found, given)

    def _behind(self, value: Any) -> Any:
        def one(each: Any) -> Any:
            if isinstance(each, Tensor):
                return behind(each)
            return CPU if isinstance(each, torch.device) and each == INSIDE else each

        return tree_map(one, value)

    def _before(self, found: Any, given: list[Tensor]) -> Any:
        known = {id(each.behind): each for each in given if isinstance(each, OnGpu)}

        def one(each: Any) -> Any:
            if not isinstance(each, Tensor):
                return each
            same = known.get(id(each))
            if same is not None and same.shape != each.shape:
                raise NotImplementedError("the fake GPU cannot change the shape of a tensor in place")
            return OnGpu(each) if same is None else same

        return tree_map(one, found)

    def _crosses(self, name: str, given: list[Tensor], device: torch.device | None) -> bool:
        if name == "copy_":
            return isinstance(given[0], OnGpu) != isinstance(given[1], OnGpu)
        return device is not None and (device == INSIDE) != isinstance(given[0], OnGpu)

    def _cross(self, kernel: Kernel, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        source: Tensor = args[1] if kernel.name == "copy_" else args[0]
        if kernel.name == "copy_":
            behind(args[0]).copy_(behind(source))
            return args[0]
        found = behind(source).to(kwargs.get("dtype") or source.dtype, copy=True)
        return found if isinstance(source, OnGpu) else OnGpu(found)

    @contextmanager
    def _again(self) -> Iterator[None]:
        TorchDispatchMode.__enter__(self)
        try:
            yield
        finally:
            TorchDispatchMode.__exit__(self, None, None, None)


@cache
def kernel_of(func: Any) -> Kernel:
    has: Callable[[str, str], bool] = torch._C._dispatch_has_kernel_for_dispatch_key
    name = func.name()
    is_composite = has(name, "CompositeImplicitAutograd") and not has(name, "CompositeExplicitAutograd")
    return Kernel(func, func._schema.name.split("::")[1], func._schema.is_mutable, is_composite)


def leaves(values: Any) -> Iterator[Any]:
    """Faster than PyTorch's: arguments of operators are values and lists of them."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from leaves(value)
        else:
            yield value


def devices(args: Sequence[Any], kwargs: dict[str, Any]) -> list[torch.device]:
    return [each for each in (*args, kwargs.get("device")) if isinstance(each, torch.device)]


def behind(tensor: Tensor) -> Tensor:
    return tensor.behind if isinstance(tensor, OnGpu) else tensor


def storage_of(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


def require_one_device(kernel: Kernel, given: list[Tensor]) -> None:
    """Beside the GPU's, kernels take single numbers of main memory."""
    others = [each for each in given if not isinstance(each, OnGpu)]
    if kernel.name in LIKES:
        return
    is_written = kernel.is_mutable and others and others[0] is given[0]
    if is_written or (kernel.name not in TAKE_INDICES and any(each.dim() for each in others)):
        found = ", ".join(f"{tuple(each.shape)} on {each.device}" for each in given)
        raise RuntimeError(f"{kernel.name} must find all tensors on the same device, but got {found}")


def refuse(name: str, kwargs: dict[str, Any], given: Sequence[Tensor]) -> None:
    """As CUDA's kernels do."""
    if not torch.are_deterministic_algorithms_enabled():
        return
    dtype = kwargs.get("dtype") or given[0].dtype if given else torch.long
    if name in NEVER_DETERMINISTIC or (name in RUNNING_SUMS and dtype.is_floating_point):
        raise RuntimeError(f"{name} does not have a deterministic implementation on CUDA")


def on_gpu(base: BaseModel) -> BaseModel:
    packed = {
        name: replace(weight, codes=weight.codes.to(GPU), magnitudes_N=weight.magnitudes_N.to(GPU))
        for name, weight in base.packed.items()
    }
    tensors, buffers = (
        {name: tensor.to(GPU) for name, tensor in each.items()} for each in (base.tensors, base.buffers)
    )
    return replace(base, tensors=tensors, buffers=buffers, packed=packed)
