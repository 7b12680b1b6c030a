"""Transforms of the sampling distribution, replayed when scoring."""

from rl_jax.pieces.logits.action_value_tilt import (
  ActionValueTilt as ActionValueTilt,
)
from rl_jax.pieces.logits.lagged_support import LaggedSupport as LaggedSupport
from rl_jax.pieces.logits.other_policy import OtherPolicy as OtherPolicy
from rl_jax.pieces.logits.policy_mixture import PolicyMixture as PolicyMixture
from rl_jax.pieces.logits.transforms import MinP as MinP
from rl_jax.pieces.logits.transforms import Temperature as Temperature
from rl_jax.pieces.logits.transforms import TopK as TopK
from rl_jax.pieces.logits.transforms import TopP as TopP
