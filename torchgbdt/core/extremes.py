"""The extremes of a tree's gradients: what fixed-point scales are made of, and held against."""

from dataclasses import dataclass

import numpy as np

from torchgbdt.core.arrays import Float64Array, Int64Array
from torchgbdt.core.errors import BackendError
from torchgbdt.core.fixed_point import GRADIENT_BITS, HESSIAN_BITS


@dataclass(frozen=True)
class GradientExtremes:
    """What fixed-point scales need, over this rank's rows of the tree.

    Attributes
    ----------
    largest : float64, (tree_outputs, 2); max|g| and max h; 0 without rows, anything if not finite
        or if a Hessian is negative.
    smallest_hessian : min h; 0 without rows, anything if not finite.
    finite : no gradient or Hessian is NaN or infinite.
    """

    largest: Float64Array
    smallest_hessian: float
    finite: bool

    def check_scales(self, scales: Int64Array) -> None:
        """Raise BackendError unless every gradient fits its fixed-point word at these scales.

        Parameters
        ----------
        scales : int64, (tree_outputs, 2); powers of two. IN.
        """
        if not self.finite or self.smallest_hessian < 0:
            raise BackendError("gradients must be finite, and Hessians >= 0, to be rounded.")
        limits = (2.0**GRADIENT_BITS, 2.0**HESSIAN_BITS)
        fits = scales.shape == self.largest.shape
        if not fits or (np.ldexp(self.largest, scales) > limits).any():
            raise BackendError(
                f"gradients up to {self.largest.tolist()} do not fit the scales {scales.tolist()}."
            )
