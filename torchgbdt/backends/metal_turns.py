"""Whether every dispatch ran, and in its turn: one word on the device says so for all of them.

torch does not report it when work of a GPU fails; what was in a buffer before is then read again,
as if it had just been computed. So dispatches are numbered, and every kernel moves a word from the
number before its own to its own (csrc/metal/turns.h): the word stops at the first dispatch that is
missing or late, whichever kernel it was. Whoever copies results to the host copies the word along,
in the same copy where a run is in progress, and ``check`` compares.
"""

import torch

from torchgbdt.backends.torch_transfers import Transfers
from torchgbdt.core.errors import BackendError

_WORD_VALUES = 2**32


class Turns:
    """The dispatches of one run, or of one call outside a run.

    Parameters
    ----------
    word : int32, (1,), on the device, holding 0; None to make one at the first dispatch.

    Attributes
    ----------
    count : dispatches so far.
    """

    def __init__(self, word: torch.Tensor | None = None) -> None:
        self.count = 0
        self._word = word
        self._unchecked: list[str] = []

    def word_on(self, device: torch.device) -> torch.Tensor:
        """What the next dispatch moves on; an argument of every kernel, as the next one."""
        if self._word is None:
            self._word = torch.zeros(1, dtype=torch.int32, device=device)
        return self._word

    def next_turn(self) -> int:
        """The number of the next dispatch, as a word."""
        return (self.count + 1) % _WORD_VALUES

    def add(self, kernel: str) -> None:
        """The next dispatch has been queued."""
        self.count += 1
        self._unchecked.append(kernel)

    def check(self, found: int) -> None:
        """Raise BackendError unless all dispatches so far had their turn.

        Parameters
        ----------
        found : the word, from a copy to the host that was asked for after them.
        """
        n_missing = (self.count - found) % _WORD_VALUES
        unchecked, self._unchecked = self._unchecked, []
        if n_missing == 0:
            return
        names = unchecked[-n_missing:] if n_missing <= len(unchecked) else unchecked
        which = f"kernel {names[0]!r}" if names else "a kernel"
        raise BackendError(
            f"{which} did not run in its turn: work of the GPU failed, which torch does not "
            f"report, so its results would be those of an earlier call. The device may have been "
            f"reset, or the work taken too long for it. Train or predict again; if it happens "
            f"again, use backend='torch' or 'cpu', and please report it."
        )

    def finish(self, transfers: Transfers) -> None:
        """Wait for all dispatches so far, and ``check``; one word comes to the host."""
        if self._word is not None:
            self.check(int(transfers.to_host(self._word)[0]))
