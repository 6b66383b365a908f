"""Ctrl-C, for real: no half model, and a process that can train again."""

import signal
import subprocess
import sys

SCRIPT = """
import torch
import torchgbdt as tg

class Announce(tg.callbacks.Callback):
    def on_round_end(self, context):
        if context.round == 2:
            print("training", flush=True)

X = torch.randn(20_000, 10, generator=torch.Generator().manual_seed(0))
y = X[:, 0] * X[:, 1]
first = tg.train(X, y, n_estimators=3)
trainer = tg.Trainer(n_estimators=10**6, callbacks=[Announce()], backend="BACKEND")
try:
    trainer.fit(X, y)
except KeyboardInterrupt:
    print(trainer.state, trainer.model)
    print(tg.train(X, y, n_estimators=3).digest() == first.digest())
"""


def interrupted(backend: str) -> list[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.replace("BACKEND", backend)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "training\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out.splitlines()


def test_interrupt_leaves_no_model_and_a_process_that_trains_again() -> None:
    assert interrupted("cpu") == ["TrainerState.FAILED None", "True"]
