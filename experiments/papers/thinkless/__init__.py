"""Thinkless: DeGRPO on a model with two modes, 1.5B."""
