"""CUDA without a GPU: tensors that say they are on `cuda:0`, and what a GPU would be asked to do for them.

An `OnGpu` stands before a tensor on the CPU, which has its numbers, or before one of PyTorch's meta device, which has
its shape alone. Product code takes its branches for CUDA, because it asks for `tensor.device`. PyTorch's C++ takes an
`OnGpu` for a tensor of the meta device, whose backward pass needs no driver. A dispatch mode computes behind each
operation, and counts launches, bytes, waits and copies. It raises where a GPU would: if an operation mixes devices, has
no deterministic kernel, or gets shapes that its kernel does not take.

It cannot see: which kernels cuBLAS picks, so neither equal bits nor batch invariance; how real kernels round bfloat16;
which attention kernel PyTorch's C++ picks (attention.py has the rule); time, streams, races; fragmentation and a real
lack of memory; NCCL; CUDA graphs; bitsandbytes' kernels for CUDA (those for CPUs stand for them); Triton's (a stand-in
takes the place of FlexAttention's); vLLM. Where PyTorch's C++ itself asks for the device, it finds the meta device.

It is made of PyTorch's internals, and `test_fake_gpu.py` says for each of them whether it still does what is needed.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils import _foreach_utils
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from temper_gpu.model.models import BaseModel
from tests.cuda.attention import STAND_INS, attend_on_gpu
from tests.cuda.kernels import Kernel, Launched, refuse

CPU, META, GPU = torch.device("cpu"), torch.device("meta"), torch.device("cuda", 0)
# What C++ has in the place of the GPU. Its number tells it from the meta device of models without weights.
INSIDE = torch.device("meta", 0)
# They ask for numbers, so the processor waits until the GPU has them.
WAITS = frozenset(
    ["_local_scalar_dense", "equal", "allclose", "nonzero", "bincount", "masked_select", "_unique2", "is_nonzero"]
)
# Kernels that take indices in main memory; they are copied first.
TAKE_INDICES = frozenset(["index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"])
# They make a tensor of the shape or type of another one, wherever that is.
LIKES = frozenset(
    ["zeros_like", "ones_like", "empty_like", "full_like", "new_zeros", "new_ones", "new_empty", "new_full"]
)
KNOWN = (Tensor, nn.Parameter)


class OnGpu(Tensor):
    behind: Tensor

    def __new__(cls, behind: Tensor) -> "OnGpu":
        made = Tensor._make_wrapper_subclass(  # pyright: ignore[reportAttributeAccessIssue]
            cls,
            behind.shape,
            strides=behind.stride(),
            storage_offset=behind.storage_offset(),
            dtype=behind.dtype,
            device=INSIDE,
        )
        made.behind = behind
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl  # pyright: ignore[reportAssignmentType]
    device = property(lambda tensor: GPU)  # pyright: ignore[reportAssignmentType]
    is_cuda = property(lambda tensor: True)  # pyright: ignore[reportAssignmentType]
    is_meta = property(lambda tensor: False)  # pyright: ignore[reportAssignmentType]

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

    def __init__(self, has_numbers: bool) -> None:
        """`has_numbers`: everything is computed. Without, tensors have shapes alone: what is asked for is 0 or true."""
        super().__init__()
        self.has_numbers = has_numbers
        self.launched = Launched()
        # By the line of the product.
        self.waits: Counter[str] = Counter()
        # From main memory that is not pinned, so each one is waited for.
        self.copies: Counter[str] = Counter()
        self.copied_bytes = 0

    def __enter__(self) -> "FakeGpu":
        """torch.cuda knows no GPU, but waits for this one."""
        self._stack = ExitStack()
        self._stack.enter_context(patch.object(torch.cuda, "synchronize", self._synchronize))
        lifts = torch._C._only_lift_cpu_tensors()  # pyright: ignore[reportAttributeAccessIssue]
        set_lifts: Any = torch._C._set_only_lift_cpu_tensors  # pyright: ignore[reportAttributeAccessIssue]
        # `torch.tensor` copies to a device by an operation.
        set_lifts(True)
        self._stack.callback(set_lifts, lifts)
        self._stack.enter_context(patch.object(F, "scaled_dot_product_attention", attend_on_gpu(self)))
        # A GPU takes lists of tensors at once.
        kinds = [*_foreach_utils._foreach_supported_types, OnGpu]
        self._stack.enter_context(patch.object(_foreach_utils, "_foreach_supported_types", kinds))
        on = [*_foreach_utils._get_foreach_kernels_supported_devices(), INSIDE.type]
        self._stack.enter_context(patch.object(_foreach_utils, "_get_foreach_kernels_supported_devices", lambda: on))
        self._stack.enter_context(Redirected())
        super().__enter__()
        return self

    def __exit__(self, *given: Any) -> None:
        super().__exit__(*given)
        self._stack.close()

    def forget(self) -> None:
        """Counts from here on."""
        watched = self.launched.watched
        self.launched = Launched(watched=watched)
        self.waits, self.copies, self.copied_bytes = Counter(), Counter(), 0

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
        refuse(kernel.name, args, kwargs, given)
        if kernel.name in WAITS:
            self.waits[f"{kernel.name} {place()}"] += 1
            if not self.has_numbers:
                return answer_without_numbers(kernel, args[0])
        for each in given:
            if kernel.name in TAKE_INDICES and not isinstance(each, OnGpu):
                self._count_copy(each)
            if kernel.name in TAKE_INDICES and each.dtype == torch.bool:
                self.waits[f"{kernel.name} of a mask {place()}"] += 1
        compute = STAND_INS.get(kernel.name) if self.has_numbers else None
        if kernel.overload == "dtype" and kernel.name == "mm":
            compute = product_of_halves
        found = (compute or kernel.func)(*self._behind(args), **self._behind(kwargs))
        self.launched.count(kernel, [behind(each) for each in given], found, args)
        return self._before(found, given)

    def _behind(self, value: Any) -> Any:
        here = CPU if self.has_numbers else META

        def one(each: Any) -> Any:
            if isinstance(each, Tensor):
                # A number of main memory, or indices.
                return each.behind if isinstance(each, OnGpu) else each.to(here)
            return here if isinstance(each, torch.device) and each == INSIDE else each

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
        if isinstance(source, OnGpu):
            self.waits[f"copy to main memory {place()}"] += 1
            if not self.has_numbers:
                source = torch.zeros(source.shape, dtype=source.dtype)
        else:
            self._count_copy(source)
        if kernel.name == "copy_":
            behind(args[0]).copy_(behind(source).to(behind(args[0]).device))
            return args[0]
        found = behind(source).to(kwargs.get("dtype") or source.dtype, copy=True)
        if isinstance(args[0], OnGpu):
            return found
        return OnGpu(found if self.has_numbers else found.to(META))

    def _synchronize(self, _: Any = None) -> None:
        self.waits[f"synchronize {place()}"] += 1

    def _count_copy(self, source: Tensor) -> None:
        self.copies[place()] += 1
        self.copied_bytes += source.numel() * source.itemsize

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
    return Kernel(func, func._schema.name.split("::")[1], func._overloadname, func._schema.is_mutable, is_composite)


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


def answer_without_numbers(kernel: Kernel, asked: Tensor) -> Any:
    if kernel.name == "_local_scalar_dense":
        return True if asked.dtype == torch.bool else 0.0 if asked.is_floating_point() else 0
    if kernel.name in ("equal", "allclose"):
        return True
    raise NotImplementedError(f"{kernel.name} depends on numbers, which tensors without them do not have")


def product_of_halves(left: Tensor, right: Tensor, out_dtype: torch.dtype) -> Tensor:
    """A kernel that GPUs have alone."""
    if left.dtype not in (torch.bfloat16, torch.float16) or out_dtype != torch.float32:
        raise RuntimeError(f"mm with out_dtype must make float32 of halves, but got {left.dtype} and {out_dtype}")
    return left.to(out_dtype) @ right.to(out_dtype)


def place() -> str:
    """The line of the product that is at work."""
    frame = sys._getframe(1)
    while frame is not None:
        _, found, file = frame.f_code.co_filename.partition("/temper_gpu/")
        if found:
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return "elsewhere"


def on_gpu(base: BaseModel) -> BaseModel:
    packed = {
        name: replace(weight, codes=weight.codes.to(GPU), magnitudes_N=weight.magnitudes_N.to(GPU))
        for name, weight in base.packed.items()
    }
    tensors, buffers = (
        {name: tensor.to(GPU) for name, tensor in each.items()} for each in (base.tensors, base.buffers)
    )
    return replace(base, tensors=tensors, buffers=buffers, packed=packed)
