"""What ``torchgbdt`` exports, and that its lazy table says the truth."""

import subprocess
import sys

import pytest

import torchgbdt


@pytest.mark.parametrize("name", torchgbdt.__all__)
def test_exported_name_exists_and_is_listed(name: str) -> None:
    assert getattr(torchgbdt, name) is not None
    assert name in dir(torchgbdt)


def test_lazy_table_and_all_agree() -> None:
    assert {*torchgbdt._EXPORTS, "__version__"} == set(torchgbdt.__all__)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = torchgbdt.trian


def test_native_module_was_compiled_from_this_version() -> None:
    from torchgbdt import _native

    assert _native.version() == torchgbdt.__version__


def test_training_without_estimators_does_not_import_scikit_learn() -> None:
    code = "import sys, torchgbdt; torchgbdt.train; assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
