"""The parts of metal_cost_model.py: record -> fit -> plan -> predict -> tables."""
