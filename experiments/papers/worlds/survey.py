"""Methods of the worlds with many, and what their papers claim.

`brief` first, where all have one rate.

'none' is not a claim of the paper against GRPO.
"""

from experiments.papers.worlds import trials
from experiments.papers.worlds.trials import Claim

ITERATIONS = 12
RATE = 1.5e-4  # the best of three for all 18 methods that were tuned in stale

_NONE = Claim('none', sign=None)
CLAIMS = {
  'clip_higher': trials.KEEPS,
  'reinforce_plus_plus': Claim('not worse', sign=0),
  'gpg': trials.BETTER,
  'lite_ppo': trials.BETTER,
  'expert_iteration': _NONE,
  'reinforce_plus_plus_baseline': trials.BETTER,
  'opo': trials.BETTER,
  'filtered_bc': _NONE,
  # The paper's headline, or what it is known for where that is unverified.
  **dict.fromkeys(
    (
      *('dppo_kl', 'gmpo', 'luspo', 'minpro', 'sapo', 'vespo', 'lambda_grpo'),
      *('entropy_quantile', 'adora', 'seed_grpo', 'thr'),
    ),
    trials.BETTER,
  ),
  **dict.fromkeys(('riskpo',), trials.PASS),
  **dict.fromkeys(('dual_clip_grpo', 'rebel'), Claim('not worse', sign=0)),
  **dict.fromkeys(('dro', 'copg', 'spo', 'p3o_v1', 'p3o_v2'), _NONE),
}
# Named before their further seeds ran: rows of the first three seeds without
# correction (the first five), and of `stale`. Judged on these seeds only, with
# a correction for these rows.
FAMILY = (
  *('expert_iteration', 'clip_higher', 'lite_ppo', 'gspo', 'ppo'),
  *('reinforce', 'pass_at_k_grpo'),
)
FIRST_SEEDS, FURTHER_SEEDS = 3, 5
# With changes of their files; those without a claim here are judged in `stale`.
METHODS = {
  **dict.fromkeys(('grpo', *FAMILY, *CLAIMS), {}),
  'clip_higher': trials.NO_FILTER,
  'riskpo': {'method.credit.BundleRisk.bundle': 4},  # 5 does not divide 32
}
# Named before they ran: with their own seeds and GRPO beside them, as the
# start was made again. `grpo@` shows what averaging and the KL do.
LATER = {
  **dict.fromkeys(('grpo', 'grpo@token_mean', 'grpo@no_kl'), {}),
  **dict.fromkeys(('copo', 'egpo', 'gdc', 'nthr', 'pf_ppo', 'rep_exp'), {}),
  # A response is one turn; its steps are marked.
  'empg': {'method.credit.EntropyModulation.segments': 'extras'},
  'poad': {
    'method.credit.ActionGAE.segments': 'extras',
    'method.value_target.segments': 'extras',
  },
  # 1e-5 is for responses of thousands of tokens.
  'apo': {'method.credit.LongWrongScale.growth': 2e-3},
  # A penalty for what the limit cuts; all thoughts end within 33 tokens.
  'dapo': trials.NO_FILTER
  | {
    'method.shaping.OverlongPenalty.max_tokens': 34,
    'method.shaping.OverlongPenalty.buffer_tokens': 1,
  },
  'nlpo': {'method.logits.LaggedSupport.min_percent': 10},
  # Groups outside the band weigh nothing; no others are drawn for them.
  'balanced_filtering': {'rollout.max_rounds': 1},
}
FIRST_LATER, LATER_SEEDS = FIRST_SEEDS + FURTHER_SEEDS, 5
LATER_CLAIMS = {
  **dict.fromkeys(('apo', 'balanced_filtering', 'copo'), trials.BETTER),
  **dict.fromkeys(('dapo', 'egpo', 'empg', 'nthr'), trials.BETTER),
  **dict.fromkeys(('gdc', 'nlpo', 'pf_ppo', 'poad'), _NONE),
  **dict.fromkeys(('grpo@token_mean', 'grpo@no_kl'), _NONE),
  'rep_exp': trials.PASS,
}
# The last batch, named before it ran, again beside GRPO on a start made again.
LAST = {
  **dict.fromkeys(('grpo', 'ppo', 'direct_advantage', 'reg_grpo'), {}),
  **dict.fromkeys(('adaptive_kl', 'spo_chain'), {}),
  # Prompts with hints are longer.
  **dict.fromkeys(
    ('guide_grpo', 'reg_grpo@augmented'), {'rollout.max_prompt_tokens': 24}
  ),
  # PPO and its descendants have one critic here, a head that begins at 0.
  **dict.fromkeys(('ppo_max', 'rlvr'), {}),
  # Thoughts have 26 to 34 tokens; trees have as many leaves as groups rows.
  'spo_tree': {'method.rollout.segment_tokens': 9},
  # Four samples of each prompt and as many again where rewards are uncertain;
  # prompts with solved examples are longer than any that this start has read.
  'xrpo': {'rollout.group_size': 4, 'method.rollout.seeds': 'null'},
  # At 1e-3 it is below 0.1% of the gradient.
  'rlmt': {'method.losses.EntropyBonus.coef': 0.01},
}
FIRST_LAST = FIRST_LATER + LATER_SEEDS
LAST_CLAIMS = {
  **dict.fromkeys(
    ('direct_advantage', 'reg_grpo', 'guide_grpo'), trials.BETTER
  ),
  **dict.fromkeys(('reg_grpo@augmented', 'xrpo'), trials.BETTER),
  **dict.fromkeys(('spo_chain', 'spo_tree'), trials.BETTER),
  **dict.fromkeys(('adaptive_kl', 'ppo_max', 'rlvr'), _NONE),
  'rlmt': trials.KEEPS,
}
# What the batches before had left out.
REST = dict.fromkeys(('grpo', 'disco', 'disco_b', 'otb'), {})
FIRST_REST = FIRST_LAST + LATER_SEEDS
REST_CLAIMS = {
  **dict.fromkeys(('disco', 'otb'), trials.BETTER),
  'disco_b': _NONE,
}
# Of `explore`, named before they ran.
EXPLORE = {
  **dict.fromkeys(('grpo', 'reinforce', 'expert_iteration', 'rep_exp'), {}),
  **dict.fromkeys(('pass_at_k_grpo', 'dppo_kl'), {}),
  'clip_higher': trials.NO_FILTER,
  'clip_cov': trials.CLIP_COV,
  'kl_cov': trials.KL_COV,
}
EXPLORE_CLAIMS = {
  'reinforce': trials.LOWER,
  'expert_iteration': _NONE,
  **dict.fromkeys(('rep_exp', 'pass_at_k_grpo'), trials.PASS),
  'dppo_kl': trials.BETTER,
  **dict.fromkeys(('clip_higher', 'clip_cov', 'kl_cov'), trials.KEEPS),
}
