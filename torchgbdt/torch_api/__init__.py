"""What a user of PyTorch types: tensors in, models out.

Reading order: what may be passed (tensors, columns, frames, features, labels, feature_names),
dataset, settings, fit_arguments, trainer, model, callbacks. All arithmetic is in ``torchgbdt.core``
and the backends.
"""
