"""Count the instructions of small workloads and compare them with the stored ones.

    make bench-check                            fails where a count grew by more than 2%, and
                                                where a kernel is counted or stored, but not both
    make bench-check CHECK_OPTIONS=--store      keeps the new counts: commit them, and say why

No clock is read, so a busy machine changes nothing. What counts do depend on is the compiler, and,
for the Python around the kernels, Python and numpy: counts of another toolchain are not compared.
Instructions are not seconds: a change that waits less for memory may well need more of them.
"""

import argparse
import sys

from instructions import callgrind, stored_counts
from instructions.fixed_workloads import MARK
from instructions.unstripped_build import build, compiler

from torchgbdt import _native

NOT_COUNTED = {"version", "pool_size", MARK}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true", help="keep what is counted now in "
                        "instructions/counts.json; nothing fails")  # fmt: skip
    options = parser.parse_args()
    version = callgrind.valgrind_version()
    extension = build()
    chain = stored_counts.toolchain(compiler(), version)
    stored = stored_counts.load()
    if chain not in stored and not options.store:
        known = "\n  ".join(stored) or "nothing"
        sys.exit(
            f"There are no counts to compare with for this toolchain:\n  {chain}\nbut for:\n  "
            f"{known}\nStore those of the commit before your change: check it out, "
            f"`make bench-check CHECK_OPTIONS=--store`, come back, `make bench-check`."
        )
    kernels = {name for name in dir(_native) if not name.startswith("_")} - NOT_COUNTED
    print(f"{chain}\ncounting, a minute ...", flush=True)
    counts = callgrind.count(extension, frozenset(kernels))
    found = list(stored_counts.changes(stored.get(chain, {}), counts))
    print(stored_counts.table(found))
    if options.store:
        stored_counts.store(chain, counts)
        print(f"stored in {stored_counts.FILE}")
    elif failures := stored_counts.failures(found):
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
