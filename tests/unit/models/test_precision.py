from collections.abc import Callable

import pytest
import torch

from xlgrid.models.precision import arithmetic, autocast, uses_bf16

CPU, GPU = torch.device("cpu"), torch.device("cuda")
HAS_AMX = bool(torch.cpu.get_capabilities().get("amx_bf16"))


@pytest.fixture
def cpu_with(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets torch report a CPU that has these capabilities."""
    return lambda *names: monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: dict.fromkeys(names, True))


@pytest.mark.parametrize(("capabilities", "bf16"), [((), False), (("amx_bf16",), True), (("avx512_bf16",), True)])
def test_bf16_is_used_where_the_hardware_has_it(
    cpu_with: Callable[..., None], capabilities: tuple[str, ...], bf16: bool
) -> None:
    cpu_with(*capabilities)
    assert uses_bf16(CPU, "bf16") is bf16
    assert uses_bf16(GPU, "bf16")
    assert not uses_bf16(CPU, "fp32") and not uses_bf16(GPU, "fp32")


def test_a_cpu_with_amx_holds_results_in_fp32_and_others_in_bf16(cpu_with: Callable[..., None]) -> None:
    layer, inputs = torch.nn.Linear(8, 8), torch.ones(8, 8)
    for capabilities, dtype in ((("avx512_bf16", "amx_bf16"), torch.float32), (("avx512_bf16",), torch.bfloat16)):
        cpu_with(*capabilities)
        with arithmetic(CPU, True), autocast(CPU, True):
            assert layer(inputs).dtype is dtype, capabilities


@pytest.mark.skipif(not HAS_AMX, reason="this CPU has no AMX")
def test_products_on_a_cpu_are_those_of_rounded_factors_in_both_passes() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs, weights = (torch.randn(256, 256, generator=generator, requires_grad=True) for _ in range(2))
    rounded, factors = inputs.detach().bfloat16().double(), weights.detach().bfloat16().double()
    with arithmetic(CPU, True):
        product = inputs @ weights
        product.backward(torch.ones_like(product))
    torch.testing.assert_close(product.double(), rounded @ factors, rtol=0, atol=1e-4)
    assert inputs.grad is not None
    gradient = torch.ones_like(factors) @ factors.T
    torch.testing.assert_close(inputs.grad.double(), gradient, rtol=0, atol=1e-4)


def test_the_process_computes_as_before_after_an_error(cpu_with: Callable[..., None]) -> None:
    cpu_with("amx_bf16")
    before = torch.get_float32_matmul_precision(), torch.backends.cuda.flash_sdp_enabled()
    with pytest.raises(RuntimeError, match="no memory"), arithmetic(CPU, True):
        raise RuntimeError("no memory")
    assert (torch.get_float32_matmul_precision(), torch.backends.cuda.flash_sdp_enabled()) == before


def test_fp32_changes_nothing() -> None:
    before = torch.get_float32_matmul_precision()
    with arithmetic(CPU, False), autocast(CPU, False):
        assert torch.get_float32_matmul_precision() == before
        assert not torch.is_autocast_enabled("cpu")
