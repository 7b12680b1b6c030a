"""Policy and value losses: LossContext -> LossOut."""

from rl_jax.pieces.losses.action_regression import (
  ActionRegression as ActionRegression,
)
from rl_jax.pieces.losses.aspect_regression import (
  AspectRegression as AspectRegression,
)
from rl_jax.pieces.losses.candidate_value import (
  CandidateValue as CandidateValue,
)
from rl_jax.pieces.losses.cispo import CISPO as CISPO
from rl_jax.pieces.losses.consistency_clip import (
  ConsistencyClip as ConsistencyClip,
)
from rl_jax.pieces.losses.copg import CoPG as CoPG
from rl_jax.pieces.losses.disco import DisCO as DisCO
from rl_jax.pieces.losses.dppo import DPPO as DPPO
from rl_jax.pieces.losses.dro import DRO as DRO
from rl_jax.pieces.losses.dueling_q import DuelingQ as DuelingQ
from rl_jax.pieces.losses.finished_value import FinishedValue as FinishedValue
from rl_jax.pieces.losses.gdc import GDC as GDC
from rl_jax.pieces.losses.gmpo import GMPO as GMPO
from rl_jax.pieces.losses.group_regression import (
  GroupRegression as GroupRegression,
)
from rl_jax.pieces.losses.gspo import GSPO as GSPO
from rl_jax.pieces.losses.hierarchical_value import (
  HierarchicalValue as HierarchicalValue,
)
from rl_jax.pieces.losses.implicit_q import ImplicitQ as ImplicitQ
from rl_jax.pieces.losses.kl_cov import KLCov as KLCov
from rl_jax.pieces.losses.length_preference import (
  LengthPreference as LengthPreference,
)
from rl_jax.pieces.losses.minpro import MinPRO as MinPRO
from rl_jax.pieces.losses.negative_log_likelihood import (
  NegativeLogLikelihood as NegativeLogLikelihood,
)
from rl_jax.pieces.losses.nft import NFT as NFT
from rl_jax.pieces.losses.p3o import P3O as P3O
from rl_jax.pieces.losses.path_consistency import (
  PathConsistency as PathConsistency,
)
from rl_jax.pieces.losses.ppo_clip import PPOClip as PPOClip
from rl_jax.pieces.losses.reaction_loss import ReactionLoss as ReactionLoss
from rl_jax.pieces.losses.reinforce import Reinforce as Reinforce
from rl_jax.pieces.losses.sapo import SAPO as SAPO
from rl_jax.pieces.losses.shaped_probability import (
  ShapedProbability as ShapedProbability,
)
from rl_jax.pieces.losses.step_labels import StepLabels as StepLabels
from rl_jax.pieces.losses.step_regression import (
  StepRegression as StepRegression,
)
from rl_jax.pieces.losses.topr import TOPR as TOPR
from rl_jax.pieces.losses.twin_critics import TwinCritics as TwinCritics
from rl_jax.pieces.losses.value_clip import ValueClip as ValueClip
from rl_jax.pieces.losses.value_regression import (
  ValueRegression as ValueRegression,
)
from rl_jax.pieces.losses.vespo import VESPO as VESPO
