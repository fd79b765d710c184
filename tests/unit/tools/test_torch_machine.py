"""The GPU through PyTorch: when it is refused, and that host time stays out of the samples."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.unit.tools.fake_torch import CYCLE, FakeTorch
from tools.bench import torch_machine
from tools.bench.errors import BenchError
from tools.bench.torch_machine import TorchMachine


def machine_with(fake: FakeTorch, monkeypatch: pytest.MonkeyPatch) -> TorchMachine:
    monkeypatch.setattr(torch_machine, "find_spec", lambda _: object())
    monkeypatch.setattr(torch_machine, "import_module", lambda _: fake)
    clock = SimpleNamespace(perf_counter=fake.perf_counter)
    monkeypatch.setattr(torch_machine, "time", clock)
    return TorchMachine()


def test_the_gpu_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = machine_with(FakeTorch(), monkeypatch)
    assert (machine.name, machine.multiprocessors, machine.l2_bytes) == ("Fake GPU", 4, 1 << 20)
    assert machine.free_bytes() == 800


def test_without_a_gpu_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BenchError, match="need an NVIDIA GPU, and PyTorch finds none here"):
        machine_with(FakeTorch(has_gpu=False), monkeypatch)


def test_a_sample_is_the_time_on_the_gpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTorch()
    machine = machine_with(fake, monkeypatch)
    sample = machine.time([lambda: fake.launch(2e-5, 1e-5)] * 4)
    assert sample.gpu == pytest.approx(1e-5)
    assert sample.host == pytest.approx(2e-5)
    assert len(fake.sleeps) == 1


def test_a_sample_that_waited_for_the_host_is_taken_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = FakeTorch()
    machine = machine_with(fake, monkeypatch)
    sample = machine.time([lambda: fake.launch(1e-3, 1e-5)])
    assert sample.gpu == pytest.approx(1e-5)
    first, *_, last = fake.sleeps
    assert first * CYCLE < 1e-3 < last * CYCLE
    assert fake.sleeps == [first << n for n in range(len(fake.sleeps))]
    machine.time([lambda: fake.launch(1e-3, 1e-5)])
    assert fake.sleeps[-1] == last, "the longer wait is kept"


def test_the_wait_becomes_short_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTorch()
    machine = machine_with(fake, monkeypatch)
    machine.time([lambda: fake.launch(1e-2, 1e-5)])
    for _ in range(200):
        assert machine.time([lambda: fake.launch(1e-5, 1e-5)]).gpu == pytest.approx(1e-5)
    assert fake.sleeps[-1] == fake.sleeps[0]


def test_a_longer_wait_is_no_help_for_what_waits_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTorch()
    machine = machine_with(fake, monkeypatch)

    def wait_and_launch() -> None:
        fake.now = max(fake.now, fake.gpu_is_free_at)
        fake.launch(1e-5, 2e-5)

    for _ in range(3):
        assert machine.time([wait_and_launch]).gpu == pytest.approx(3e-5)
    assert max(fake.sleeps) * CYCLE < 2e-3


def test_a_contender_that_never_queues_in_time_still_gets_a_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = FakeTorch()
    machine = machine_with(fake, monkeypatch)
    assert 1e-5 < machine.time([lambda: fake.launch(5.0, 1e-5)]).gpu < 5.1
    assert sum(fake.sleeps) * CYCLE < 1


def test_a_lost_context_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTorch()
    machine = machine_with(fake, monkeypatch)
    assert machine.is_alive()
    fake.lost = True
    assert not machine.is_alive()


def test_a_type_that_pytorch_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = machine_with(FakeTorch(), monkeypatch)
    with pytest.raises(BenchError, match="PyTorch has no arrays of u32"):
        machine.random((4,), "u32", 0)
