"""What a user of scikit-learn types: estimators that fit into pipelines, searches and folds.

Reading order: inputs (what becomes of X and y), hold_out, class_weight, estimator, regressor,
classifier. An estimator decides what a ``tg.Trainer`` is given; the Trainer does the rest.
"""
