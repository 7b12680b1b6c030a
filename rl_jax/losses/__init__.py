"""Policy and value losses: (stats, traj, key) -> (loss, metrics)."""

from rl_jax.losses.cispo import CISPO
from rl_jax.losses.consistency_clip import ConsistencyClip
from rl_jax.losses.copg import CoPG
from rl_jax.losses.disco import DisCO
from rl_jax.losses.dppo import DPPO
from rl_jax.losses.dro import DRO
from rl_jax.losses.finished_value import FinishedValue
from rl_jax.losses.gdc import GDC
from rl_jax.losses.gmpo import GMPO
from rl_jax.losses.group_regression import GroupRegression
from rl_jax.losses.gspo import GSPO
from rl_jax.losses.kl_cov import KLCov
from rl_jax.losses.minpro import MinPRO
from rl_jax.losses.negative_log_likelihood import NegativeLogLikelihood
from rl_jax.losses.nft import NFT
from rl_jax.losses.p3o import P3O
from rl_jax.losses.ppo_clip import PPOClip
from rl_jax.losses.reinforce import Reinforce
from rl_jax.losses.sapo import SAPO
from rl_jax.losses.step_regression import StepRegression
from rl_jax.losses.topr import TOPR
from rl_jax.losses.value_clip import ValueClip
from rl_jax.losses.vespo import VESPO

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
