"""The training core: what gradient boosting means here, in numpy, with no device in sight.

It imports no torch, opens no file and reads no environment. Reading order: settings, random,
fixed_point, binning, dataset, objectives, metrics, splits, tree, model, backend, growth, trainer.
"""
