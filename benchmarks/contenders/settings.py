"""The settings of all contenders, once; each file beside this one translates them.

Libraries scale the Hessian of softmax differently, c p (1 - p) with a c of their own. A leaf value
is -rate G / (c H + lambda), so equal settings would be unequal steps, and after few rounds the one
with the longer steps would look better. So each contender names its c, and gets the learning rate
and the penalty times c: all of them then take the steps of c = 1, with the rate that is given here.
"""

from dataclasses import dataclass

from workloads import Workload


@dataclass(frozen=True)
class Settings:
    """What a contender trains with.

    Attributes
    ----------
    max_bins : codes of a feature, the one for missing values included, as in ``tg.Trainer``.
    min_samples_leaf : rows, where a library can count them.
    min_child_weight : Hessian, where a library has such a limit besides.
    """

    objective: str
    n_classes: int
    n_rounds: int
    max_depth: int
    n_threads: int
    learning_rate: float = 0.1
    reg_lambda: float = 1.0
    max_bins: int = 256
    min_samples_leaf: int = 20
    min_child_weight: float = 1e-3

    @classmethod
    def of(cls, workload: Workload, n_threads: int) -> "Settings":
        """Those of a workload."""
        return cls(
            workload.objective,
            workload.n_classes,
            workload.n_rounds,
            workload.max_depth,
            n_threads,
        )

    def step(self, softmax_factor: float) -> tuple[float, float]:
        """Learning rate and L2 penalty for a library whose softmax Hessian is c p (1 - p)."""
        factor = softmax_factor if self.objective == "softmax" else 1.0
        return self.learning_rate * factor, self.reg_lambda * factor
