"""Methods on 2-digit arithmetic, each with the best of three rates.

python -m experiments.sft --config=configs/arithmetic_tiny.py
  --stop_accuracy=0.5 --evaluate_every=50 --learning_rate=2e-3
  --max_prompt_tokens=6 --max_response_tokens=5 --out=runs/tiny_warm
export JAX_COMPILATION_CACHE_DIR=runs/compiled
python -m experiments.sweep --paper=policy_loss_leaderboard --jitted
  --by_stages --workdir=runs/leaderboard
python -m experiments.sweeps.reference_rows --paper=policy_loss_leaderboard
  --workdir=runs/leaderboard
python -m experiments.table --workdir=runs/leaderboard --leaderboard=20000
  --baseline=grpo
  --excerpt=experiments/papers/policy_loss_leaderboard/results.jsonl
python -m experiments.table --paper=policy_loss_leaderboard

A method's learning rate is one of three, chosen on other seeds: see
experiments/tables/leaderboard.py.
"""

from experiments.sweeps import runs as sweep_runs

CONFIG = 'arithmetic_tiny'
BASELINE = 'grpo'
TOKENS = 20_000  # all are compared after this many
RATES = (3e-5, 1e-4, 3e-4)
SEEDS = 5
SETTING = {'model.path': 'runs/tiny_warm', 'evaluation.every': 10}
# Defaults that do not fit 16 prompts without thoughts, or a group of this size.
CHANGES = {
  'egpo': {'method.credit.EntropyShaping.span': 'response'},
  'xrpo': {'method.rollout': None},
  'riskpo': {'method.credit.BundleRisk.bundle': 4},
}
# Without the critics of the paper.
VARIANTS = {'constrained_rlhf': 'constrained_rlhf@group_means'}
_NO_CLIP = 'no limit is reached at the rates of the grid'
_AGREE = 'sampler and trainer agree'
_ONE = 'a response is one segment, step or action'
_MODE = 'responses have one mode, and no candidates'
# What their pieces read does not exist here, or never differs: a row of each
# stood beside GRPO's as if it tested them. See experiments/papers/worlds.
NOT_RUN = {
  **dict.fromkeys(('cispo', 'dppo_kl', 'dppo_tv', 'dual_clip_grpo'), _NO_CLIP),
  **dict.fromkeys(('icepop', 'seq_mask_tis', 'tis', 'tis_sequence'), _AGREE),
  **dict.fromkeys(('empg', 'poad', 'spo_chain', 'spo_tree', 't_ppo'), _ONE),
  **dict.fromkeys(('a2fm', 'ada_grpo', 'aepo', 'degrpo'), _MODE),
  'aspo': 'no response calls a tool',
  'dapo': 'no response is overlong; the rest is clip_higher',
  'hapo': 'no prompt returns, and right answers have one length',
  'nlpo': 'the support keeps 100 tokens, and the alphabet has 15',
  'par': 'its sigmoid is affine on rewards of 0 and 1',
  'guide_grpo': 'arithmetic writes no hints',
  'subpo': 'arithmetic has no set function of the tokens',
}


def get_sweep() -> list[sweep_runs.Setting]:
  """Methods that sample but NOT_RUN, with all rates; GRPO first."""
  names = sweep_runs.sampling_methods()
  names = [VARIANTS.get(name, name) for name in names if name not in NOT_RUN]
  names.sort(key=lambda name: name != 'grpo')
  settings = sweep_runs.equal_conditions(CONFIG, names, SETTING, SEEDS)
  settings = sweep_runs.crossed(
    settings, sweep_runs.product({'optimizer.learning_rate': RATES})
  )
  return [
    {**setting, **CHANGES.get(setting['method'], {})} for setting in settings
  ]
