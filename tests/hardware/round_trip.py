"""Whether this machine has an Apple GPU that torch compiles and runs a kernel on. A script."""

import platform

import torch

SOURCE = """
kernel void twice(device float* numbers [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    numbers[i] = 2.0f * numbers[i];
}
"""


def main() -> None:
    """Fails where anything is missing."""
    print(f"{platform.platform()}, torch {torch.__version__}")
    if platform.machine() != "arm64" or not torch.backends.mps.is_available():
        raise SystemExit(f"no Apple GPU: {platform.machine()}, {torch.backends.mps.is_built()=}")
    numbers = torch.arange(1000, dtype=torch.float32, device="mps")
    torch.mps.compile_shader(SOURCE).twice(numbers)
    if not torch.equal(numbers.cpu(), 2 * torch.arange(1000, dtype=torch.float32)):
        raise SystemExit("the kernel ran, and its results are wrong")
    print("a kernel ran, and its results are right")


if __name__ == "__main__":
    main()
