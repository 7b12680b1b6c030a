"""Methods on the bandit, after equally many samples.

python -m experiments.sweep --paper=bandit_methods --jitted
  --workdir=runs/bandit_methods
python -m experiments.table --workdir=runs/bandit_methods --comparison
  --baseline=method=reinforce
  --excerpt=experiments/papers/bandit_methods/results.jsonl
python -m experiments.table --paper=bandit_methods
"""

from experiments.sweeps import runs as sweep_runs

BASELINE = 'method=reinforce'
SETTING = {
  'rollout.group_size': 16,
  'optimizer.learning_rate': 5e-3,
  'iterations': 100,
}
# These read clusters, formats or modes of a response: the described bandit.
DESCRIBED = (
  'a2fm',
  'ada_grpo',
  'aepo',
  'aspo',
  'constrained_rlhf@group_means',
  'copo',
  'empo',
  'gui_g1',
  'guide_grpo',
  'par',
  'policy_rollout',
  'seed_grpo',
)
CHANGES = {
  'a2fm': {'method.rollout': None},  # one mode
  'degrpo': {'method.shaping.ModeRewards': None},
  'egpo': {'method.credit.EntropyShaping.span': 'response'},  # no thoughts
  'guide_grpo': {'rollout.max_prompt_tokens': 2},  # a hint is one token
  'policy_rollout': {'rollout.max_prompt_tokens': 2},
  'spo_chain': {'method.rollout.max_cuts': 8},
  'xrpo': {'method.rollout': None},  # one chunk
  'riskpo': {'method.credit.BundleRisk.bundle': 4},  # of eight prompts
}


def get_sweep() -> list[sweep_runs.Setting]:
  """All methods that sample but these, five seeds each; REINFORCE first."""
  names = sweep_runs.sampling_methods()
  names.remove('subpo')  # a response is one action: no set function,
  names.remove('dr_po')  # no beginning
  names.remove('rlgf')  # for a guide, either
  names.remove('ghpo')  # and no share of it
  names.remove('constrained_rlhf')  # the variant without critics is described
  names.remove('rex_rag')  # repeats episodes
  names.remove('critique_grpo')  # no critiques
  names.remove('rusca_rl')  # no criteria
  names.remove('text2grad')  # no spans
  names.remove('rlp')  # no thoughts
  names.remove('duration_ppo')  # refused: rollouts are synchronous
  names.sort(key=lambda name: name != 'reinforce')
  plain = [name for name in names if name not in DESCRIBED]
  settings = sweep_runs.chain(
    sweep_runs.equal_conditions('bandit', plain, SETTING, seeds=5),
    sweep_runs.equal_conditions(
      'bandit_described', DESCRIBED, SETTING, seeds=5
    ),
  )
  return [
    {**setting, **CHANGES.get(setting['method'], {})} for setting in settings
  ]
