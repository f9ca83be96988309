"""Signals are noted while a training runs, and handled as before after it."""

import os
import signal
import threading

from xlgrid.training.signals import signals


def test_signals_are_noted_only_while_the_block_runs() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR2, signal.SIGINT)}
    with signals() as noted:
        for number in before:
            os.kill(os.getpid(), number)
        assert noted == [signal.SIGTERM, signal.SIGUSR2, signal.SIGINT]
    assert {number: signal.getsignal(number) for number in before} == before


def test_another_thread_leaves_signals_alone() -> None:
    handlers = []

    def inside() -> None:
        with signals() as noted:
            handlers.append((signal.getsignal(signal.SIGTERM), noted))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert handlers == [(signal.getsignal(signal.SIGTERM), [])]
