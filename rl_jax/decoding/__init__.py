"""Sampling responses from a policy."""

from rl_jax.decoding.generate import generate as generate
from rl_jax.decoding.generate import prepare_weights as prepare_weights
from rl_jax.decoding.generate import start_trajectories as start_trajectories
from rl_jax.decoding.sampling import SamplingConfig as SamplingConfig
from rl_jax.decoding.sampling import sample_token as sample_token
from rl_jax.pieces.logits.transforms import MinP as MinP
from rl_jax.pieces.logits.transforms import Temperature as Temperature
from rl_jax.pieces.logits.transforms import TopK as TopK
from rl_jax.pieces.logits.transforms import TopP as TopP
