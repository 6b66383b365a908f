"""What a user of PyTorch types: tensors in, models out.

Reading order: tensors (what may be passed), dataset, settings, fit_arguments, trainer, model,
callbacks. All arithmetic is in ``torchgbdt.core`` and the backends.
"""
