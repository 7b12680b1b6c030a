"""Policy and value losses: (stats, traj, key) -> (loss, metrics)."""

from rl_jax.pieces.losses.cispo import CISPO
from rl_jax.pieces.losses.consistency_clip import ConsistencyClip
from rl_jax.pieces.losses.copg import CoPG
from rl_jax.pieces.losses.disco import DisCO
from rl_jax.pieces.losses.dppo import DPPO
from rl_jax.pieces.losses.dro import DRO
from rl_jax.pieces.losses.finished_value import FinishedValue
from rl_jax.pieces.losses.gdc import GDC
from rl_jax.pieces.losses.gmpo import GMPO
from rl_jax.pieces.losses.group_regression import GroupRegression
from rl_jax.pieces.losses.gspo import GSPO
from rl_jax.pieces.losses.kl_cov import KLCov
from rl_jax.pieces.losses.minpro import MinPRO
from rl_jax.pieces.losses.negative_log_likelihood import NegativeLogLikelihood
from rl_jax.pieces.losses.nft import NFT
from rl_jax.pieces.losses.p3o import P3O
from rl_jax.pieces.losses.ppo_clip import PPOClip
from rl_jax.pieces.losses.reinforce import Reinforce
from rl_jax.pieces.losses.sapo import SAPO
from rl_jax.pieces.losses.step_regression import StepRegression
from rl_jax.pieces.losses.topr import TOPR
from rl_jax.pieces.losses.value_clip import ValueClip
from rl_jax.pieces.losses.vespo import VESPO

__all__ = [
  'CISPO',
  'CoPG',
  'ConsistencyClip',
  'DPPO',
  'DRO',
  'DisCO',
  'FinishedValue',
  'GDC',
  'GMPO',
  'GSPO',
  'GroupRegression',
  'KLCov',
  'MinPRO',
  'NFT',
  'NegativeLogLikelihood',
  'P3O',
  'PPOClip',
  'Reinforce',
  'SAPO',
  'StepRegression',
  'TOPR',
  'VESPO',
  'ValueClip',
]
