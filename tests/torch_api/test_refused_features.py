"""What may not be passed as X: the message names the argument, what it found and what to do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from support.second_device import elsewhere, start_second_device
from torch_api.small_data import read

from torchgbdt.core.errors import InvalidDataError
from torchgbdt.torch_api import features
from torchgbdt.torch_api.features import read_features


def quietly(make: Callable[[], Any]) -> Callable[[], Any]:
    """Torch warns that such tensors are prototypes."""

    def made() -> Any:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make()

    return made


def fake_tensor() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(3, 2)


def masked_tensor() -> Any:
    from torch.masked import masked_tensor

    return masked_tensor(torch.eye(2), torch.eye(2) > 0)


def resized_to_nothing() -> torch.Tensor:
    X = torch.ones(3, 2)
    X.untyped_storage().resize_(0)
    return X


class Frame:
    """Stands for a frame of pandas, polars and others: all of them have this method."""

    def to_numpy(self) -> np.ndarray:
        return np.ones((3, 2))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "0-D": (lambda: torch.tensor(1.0), r"X has shape \(\); \(n_rows, n_features\) is expected"),
    "1-D": (lambda: torch.ones(3), r"X has shape \(3,\).*X\[:, None\] for one feature"),
    "3-D": (lambda: np.ones((2, 3, 4)), r"X has shape \(2, 3, 4\).*Reshape X to two axes"),
    "empty list": (list, r"X has shape \(0,\)"),
    "no rows": (lambda: torch.ones(0, 3), r"X has shape \(0, 3\), so no rows"),
    "no columns": (lambda: torch.ones(3, 0), r"X has shape \(3, 0\), so no columns"),
    "number": (lambda: 3.5, r"X has shape \(\)"),
    "None": (
        lambda: None,
        "X is a builtins.NoneType; a dense torch tensor, numpy array or data frame",
    ),
    "text": (lambda: "abc", "X is a builtins.str"),
    "dict": (dict, "X is a builtins.dict"),
    "generator": (lambda: (i for i in range(3)), "X is a builtins.generator"),
    "ragged": (lambda: [[1, 2], [3]], "X is a list that numpy cannot turn into an array"),
    "list of text": (lambda: [["a", 1]], "X has dtype <U.*encode text as numbers"),
    "list with None": (lambda: [[None, 1]], r"X has dtype object \(first value: None\)"),
    "text array": (lambda: np.array([["a"]]), "X has dtype <U1.*encode text"),
    "bytes array": (lambda: np.array([[b"a"]]), r"X has dtype \|S1.*encode text"),
    "objects": (lambda: np.array([[1, "b"]], object), "dtype object.*astype"),
    "big integers": (lambda: [[2**70]], "dtype object"),
    "complex array": (lambda: np.ones((2, 2), complex), "complex128.*separate columns"),
    "complex tensor": (lambda: torch.ones(2, 2, dtype=torch.cfloat), "complex64.*separate columns"),
    "conjugated": (lambda: torch.ones(2, 2, dtype=torch.cfloat).conj(), "complex64"),
    "dates": (lambda: np.zeros((2, 2), "M8[ns]"), r"datetime64\[ns\].*astype\('datetime64\[s\]'"),
    "durations": (lambda: np.zeros((2, 2), "m8[s]"), "timedelta64.*convert it to numbers"),
    "records": (lambda: np.zeros((2, 2), [("a", "f4")]), "plain array of numbers"),
    "long doubles": (lambda: np.ones((2, 2), np.longdouble), "wider than float64.*astype"),
    "masked array": (lambda: np.ma.ones((2, 2)), r"masked array.*filled\(numpy.nan\)"),
    "float8": (lambda: torch.ones(2, 2).to(torch.float8_e4m3fn), "float8_e4m3fn.*convert it"),
    "meta": (lambda: torch.ones(2, 2, device="meta"), "on the meta device and holds no numbers"),
    "sparse COO": (lambda: torch.eye(2).to_sparse(), r"layout torch.sparse_coo.*X.to_dense\(\)"),
    "sparse CSR": (quietly(lambda: torch.eye(2).to_sparse_csr()), r"sparse_csr.*to_dense"),
    "mkldnn": (lambda: torch.eye(2).to_mkldnn(), "layout torch._mkldnn"),
    "quantized": (
        quietly(lambda: torch.quantize_per_tensor(torch.eye(2), 0.1, 0, torch.qint8)),
        r"quantized.*X.dequantize\(\)",
    ),
    "nested": (quietly(lambda: torch.nested.nested_tensor([torch.eye(2)])), "nested.*pad it"),
    "jagged": (
        quietly(lambda: torch.nested.nested_tensor([torch.eye(2)], layout=torch.jagged)),
        "nested.*pad it",
    ),
    "fake": (fake_tensor, "FakeTensor, a subclass of torch.Tensor"),
    "masked tensor": (quietly(masked_tensor), "MaskedTensor, a subclass of torch.Tensor"),
    "uninitialised": (torch.nn.UninitializedParameter, "UninitializedParameter, a subclass"),
    "freed": (resized_to_nothing, "X needs 24 bytes of memory, but its storage was resized to 0"),
    "scipy sparse": (lambda: scipy.sparse.eye_array(3).tocsr(), r"csr.*Please pass X.toarray\(\)"),
    "data loader": (
        lambda: torch.utils.data.DataLoader([1, 2]),
        r"DataLoader.*Please pass its tensors, such as \*dataset.tensors",
    ),
    "name": (lambda: "table.csv", "Please pass the values, not a name or a path"),
    "frame": (Frame, r"Frame.*pass X.to_numpy\(\)"),
    "int64 beyond 2^53": (lambda: torch.tensor([[0, 2**53 + 1]]), "9007199254740993 in row 0"),
    "uint64 beyond 2^53": (lambda: np.array([[2**64 - 1]], np.uint64), "18446744073709551615"),
    "foreign int64": (lambda: np.array([[-(2**53) - 1]], ">i8"), "-9007199254740993"),
}


REFUSED_ELSEWHERE = [
    "0-D",
    "1-D",
    "no rows",
    "no columns",
    "complex tensor",
    "conjugated",
    "float8",
    "int64 beyond 2^53",
]
"""Those that the second device can hold."""


@pytest.fixture(params=["host", "device"])
def read_as(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Tensors are read as those of the host, or as those of a device are: where they lie."""
    if request.param == "device":
        monkeypatch.setattr(features, "HOST", "the host")
    return str(request.param)


@pytest.mark.usefixtures("read_as")
@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    make, message = REFUSED[what]
    with pytest.raises(InvalidDataError, match=message):
        read(make())


@pytest.mark.parametrize("what", REFUSED_ELSEWHERE)
def test_refused_on_another_device(what: str) -> None:
    make, message = REFUSED[what]
    start_second_device()
    with pytest.raises(InvalidDataError, match=message):
        read(make().to("lazy"))


@pytest.mark.parametrize(
    ("bits", "number"),
    [(2**53 + 1, 2**53 + 1), (-(2**53) - 1, -(2**53) - 1), (-1, 2**64 - 1), (2**62, 2**62)],
)
def test_first_integer_without_a_float64_is_named_on_every_device(bits: int, number: int) -> None:
    X = torch.zeros(5, 3, dtype=torch.int64)
    X[3, 1], X[4, 0] = bits, bits
    if number >= 2**62:
        X = X.view(torch.uint64)
    messages = []
    for there in (X, elsewhere(X)):
        with pytest.raises(InvalidDataError, match=f"{number} in row 3, column 1") as caught:
            read(there)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.usefixtures("read_as")
@pytest.mark.parametrize("transform", ["vmap", "grad"])
def test_tensor_inside_a_functional_transform_is_refused(transform: str) -> None:
    def inside(X: torch.Tensor) -> torch.Tensor:
        with pytest.raises(InvalidDataError, match=r"outside torch\.func"):
            read(X)
        return X.sum()

    if transform == "vmap":
        torch.vmap(inside)(torch.ones(2, 3, 4))
    else:
        torch.func.grad(inside)(torch.ones(3, 4))


def test_message_uses_the_name_of_the_argument() -> None:
    with pytest.raises(InvalidDataError, match=r"^eval_set\[2\] X has shape"):
        read_features(torch.ones(3), "eval_set[2] X", {}, may_be_empty=False)


@pytest.mark.usefixtures("read_as")
def test_tensor_with_a_storage_that_is_too_short_is_refused() -> None:
    X = torch.ones(100, 2)
    X.untyped_storage().resize_(796)  # 200 float32 need 800 bytes
    with pytest.raises(InvalidDataError, match=r"needs 800 bytes.*resized to 796"):
        read(X)


@pytest.mark.usefixtures("read_as")
def test_storage_of_a_strided_view_is_measured_to_its_last_number() -> None:
    X = torch.ones(10, 10)[3:7, ::3]  # the last number is element 6 * 10 + 9
    X.untyped_storage().resize_(4 * (6 * 10 + 9 + 1))
    assert read(X).matrix.n_rows == 4


@pytest.mark.parametrize("error", [AttributeError, ImportError, ZeroDivisionError])
def test_an_object_whose_array_method_fails_is_refused(error: type[Exception]) -> None:
    class Broken:
        def __array__(self, *arguments: Any, **options: Any) -> Any:
            raise error("boom")

    with pytest.raises(InvalidDataError, match=r"X is a Broken .*boom"):
        read(Broken())
