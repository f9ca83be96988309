"""A device that every CPU has and that behaves as a GPU does: a tensor on the wrong device is an error, and the waits are counted.

A tensor of the device holds a tensor of the CPU, and computes with it. As on a GPU, an operation with tensors of both devices raises,
but for copies, for indexes, and for tensors without dimensions. An operation that would make the CPU wait for a GPU is counted, by
the line of xlgrid that asks for it. What cannot be seen here: kernels, memory, random numbers, and what waits within an operation.

Import this module where tests are collected: the device has to be known before the first backward pass of the process.
"""

import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

import xlgrid
from xlgrid.base.device import default_device

aten = torch.ops.aten
# Operations whose results the CPU reads, or whose sizes it has to know.
READS = {
    aten._local_scalar_dense.default: "read",
    aten.nonzero.default: "indices",
    aten.masked_select.default: "indices",
    aten.equal.default: "read",
    aten.is_nonzero.default: "read",
    aten.unique_dim.default: "indices",
    aten._unique2.default: "indices",
}
# Operations that take tensors of two devices.
COPIES = {aten.copy_.default, aten._to_copy.default, aten._copy_from.default}
INDEXES = {aten.index.Tensor, aten.index_put_.default, aten.index_put.default, aten._index_put_impl_.default}
SOURCES = str(Path(xlgrid.__file__).parent)


class _Module:
    """What torch asks the module of a device for."""

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def device_count(self) -> int:
        return 1

    # The device draws no numbers of its own, and `torch.random.fork_rng` asks each device for its state.
    def get_rng_state(self, device: object = None) -> torch.Tensor:
        return torch.empty(0, dtype=torch.uint8)

    def set_rng_state(self, state: torch.Tensor, device: object = None) -> None:
        pass

    def current_device(self) -> int:
        return 0

    def manual_seed_all(self, seed: int) -> None:
        return

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


_setup_privateuseone_for_python_backend("standin", backend_module=_Module())
DEVICE = torch.device("standin", 0)


class Held(torch.Tensor):
    """A tensor of the device."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> "Held":
        return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined, no-any-return]
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
        )

    def __init__(self, held: torch.Tensor) -> None:
        self.held = held

    def __repr__(self, **_: Any) -> str:
        return f"standin({self.held})"

    # Torch then replaces the contents of a parameter and not the parameter, which other modules may share.
    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["held"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, torch.Tensor], *_: Any) -> "Held":
        return Held(inner["held"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _compute(func, args, kwargs or {})

    # A file has the memory of a tensor, and no device.
    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.held.__reduce_ex__(protocol)

    # Copies for numpy and for Python, which the CPU makes from memory that it cannot read.
    def tolist(self) -> Any:
        return self.cpu().tolist()


def _compute(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [each for each in tree_iter((args, kwargs)) if isinstance(each, torch.Tensor)]
    held = [each for each in tensors if isinstance(each, Held)]
    asked = kwargs.get("device")
    is_here = asked.type == DEVICE.type if isinstance(asked, torch.device) else bool(held)
    if not held and not is_here:
        return func(*args, **kwargs)
    others = [each for each in tensors if not isinstance(each, Held) and each.dim()]
    if others and held and func not in COPIES:
        known = args[0] if func in INDEXES else None
        if known is None or not isinstance(known, Held) or any(each.is_floating_point() for each in others):
            raise RuntimeError(f"Expected all tensors to be on the same device, but {func} got standin:0 and cpu")
        _count("copy")
    if func in READS:
        _count(READS[func])
    elif func in INDEXES and any(
        each.dtype in (torch.bool, torch.uint8) for each in tree_iter(args[1]) if each is not None
    ):
        _count("indices")
    elif (
        func in COPIES and held and (not is_here or (func is aten.copy_.default and not isinstance(args[0], Held)))
    ) or (func in COPIES and others and not kwargs.get("non_blocking") and not (len(args) > 2 and args[2])):
        _count("copy")
    plain = tree_map(lambda each: each.held if isinstance(each, Held) else each, (args, kwargs))
    if is_here and "device" in plain[1]:
        plain[1]["device"] = torch.device("cpu")
    if func is aten._to_copy.default and bool(held) != is_here:
        # A copy from one device to the other is new memory, whatever its type.
        out = func(*plain[0], **plain[1])
        return Held(out) if is_here else out
    results = func(*plain[0], **plain[1])
    if not is_here:
        return results
    # What an operation changes in place is the tensor that it was given.
    known = {id(each.held): each for each in held}
    return tree_map(lambda each: _wrapped(each, known), results)


def _wrapped(result: Any, known: dict[int, Held]) -> Any:
    if not isinstance(result, torch.Tensor):
        return result
    return known[id(result)] if id(result) in known else Held(result)


class _Dispatch(TorchDispatchMode):
    """Tensors that are made on the device, of no tensor of it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _compute(func, args, kwargs or {})


class _Made(TorchFunctionMode):
    """Tensors that are made of numbers: torch makes them on the CPU first."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        made = func in (torch.tensor, torch.as_tensor, torch.asarray) and kwargs.get("device") is not None
        if made and torch.device(kwargs["device"]).type == DEVICE.type:
            return func(*args, **{name: value for name, value in kwargs.items() if name != "device"}).to(DEVICE)
        return func(*args, **kwargs)


_of_torch = torch.load


def _load(*args: Any, map_location: Any = None, **kwargs: Any) -> Any:
    loaded = _of_torch(*args, map_location="cpu" if map_location == DEVICE else map_location, **kwargs)
    return tree_map(lambda each: _placed(each, map_location), loaded)


def _placed(value: Any, place: Any) -> Any:
    return value.to(DEVICE) if place == DEVICE and isinstance(value, torch.Tensor) else value


_waits: Counter[str] | None = None


def _count(kind: str) -> None:
    if _waits is None:
        return
    frames = [each for each in traceback.extract_stack() if each.filename.startswith(SOURCES)]
    where = f"{Path(frames[-1].filename).relative_to(SOURCES)}:{frames[-1].name}" if frames else "elsewhere"
    _waits[f"{kind} in {where}"] += 1


@contextmanager
def waits() -> Iterator[Counter[str]]:
    """The waits of the CPU for the device, by what waits and the function of xlgrid that asks."""
    global _waits
    before, _waits = _waits, Counter()
    try:
        yield _waits
    finally:
        _waits = before


@contextmanager
def stand_in() -> Iterator[torch.device]:
    """Everything of xlgrid computes on the device."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("xlgrid.") and getattr(module, "default_device", None) is default_device:
                patch.setattr(module, "default_device", lambda: DEVICE)
        # Tensors of inference mode cannot be wrapped.
        patch.setattr(torch, "inference_mode", torch.no_grad)
        patch.setattr(torch, "load", _load)
        with _Dispatch(), _Made():
            yield DEVICE
