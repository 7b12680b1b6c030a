"""RSO: pairs of samples accepted as if from the optimal policy, offline.

A policy learns from 60 steps of likelihood of better texts, a reward model from
300 comparisons. The policy samples 64 texts of each of 320 prompts, of which
neighbours with the same letter are joined, so that 272 remain. `rso` accepts 8
of the different texts by rejection with temperature 0.5, `top` the 8 best (0),
`drawn` the first 8 (infinite), and pairs of these that the reward model orders
train the policy for 60 iterations of the logistic loss with gamma 0.05.
`direct` has the comparisons themselves, and `online` accepts 2 of 8 samples of
the policy as it moves (rso@online).

With a model of pairs, which learns the same comparisons, a score is the
log-odds that a text beats a drawn sample of its prompt, and a pair is ordered
by its own comparison: `rso_matched`, `drawn_matched`.
Command: python -m experiments.pipeline --pipeline=rso --workdir=runs/rso
Cost: about six minutes of a CPU core.
Claims: the gold score of samples is higher with `rso` than with `drawn` and
  with `direct`, and not lower than with `online` by more than 0.02; it is
  higher with `rso_matched` than with `drawn_matched` and with `direct`.
Expected: see experiments/papers/worlds/README.md.
Source: Liu et al., "Statistical Rejection Sampling Improves Preference
  Optimization", 2023 (by a digest): 64 samples, temperature 0.7, 8 accepted,
  beta 0.5 and gamma 0.05 are theirs. There samples are of the 40 likeliest
  tokens, more than there are here, and the only scores are those of a model of
  pairs, which reads one order, drawn; here it reads both.
"""

from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/proxy.py', '--workdir={out}')
_PAIRS = 'papers.preferences.rejection_pairs'
_MATCHES = 'papers.preferences.joined_matches'
BETAS = {'rso': '0.5', 'top': '0', 'drawn': 'inf'}
MATCHED = ('rso', 'drawn')  # with the model of pairs, too
ITERATIONS = 60


def _pairs(name: str, scored: str, beta: str, keep: int = 8) -> Stage:
  return Stage(
    name=name,
    binary=_PAIRS,
    flags=(
      *('--form=pairs', f'--scored={{{scored}}}.jsonl', f'--beta={beta}'),
      *(f'--keep={keep}', '--out={out}.jsonl'),
    ),
  )


def _scored(name: str, model: str, data: str) -> Stage:
  """Values of a reward model."""
  return Stage(
    name=name,
    binary='evaluate_reward',
    flags=(
      *(f'--reward_model={{{model}}}', f'--data={{{data}}}.jsonl'),
      *('--batch_size=256', '--scores_out={out}.jsonl'),
    ),
  )


def _matched(data: str) -> tuple[Stage, ...]:
  """The stage `rated_DATA`: scores against the first text of each row."""
  matches, values = f'matches_{data}', f'values_{data}'
  common = (f'--data={{{data}}}.jsonl', '--out={out}.jsonl')
  return (
    Stage(name=matches, binary=_MATCHES, flags=('--form=matches', *common)),
    _scored(values, 'pair_model', matches),
    Stage(
      name=f'rated_{data}',
      binary=_MATCHES,
      flags=('--form=scores', f'--values={{{values}}}.jsonl', *common),
    ),
  )


def _on_pairs(name: str) -> Stage:
  """DPO on the pairs `pairs_NAME`."""
  rows = f"PreferenceRows(path='{{pairs_{name}}}.jsonl')"
  return _trained(name, 'dpo', f'--set=task={rows}')


def _by_matches(name: str) -> tuple[Stage, ...]:
  """Pairs that are accepted by matches against a drawn sample, and ordered by
  their own.
  """
  accepted = f'accepted_{name}'
  return (
    _pairs(accepted, 'rated_candidates', BETAS[name]),
    *_matched(accepted),
    _pairs(f'pairs_{name}_matched', f'rated_{accepted}', '0.5', keep=2),
    _on_pairs(f'{name}_matched'),
  )


def _trained(name: str, method: str, *flags: str) -> Stage:
  return Stage(
    name=name,
    flags=(
      *(*_CONFIG, f'--method={method}', '--set=model.path={likely}', *flags),
      '--set=method.losses.PairLoss.score.beta=0.05',
      *('--set=optimizer.learning_rate=3e-4', *_judged(ITERATIONS)),
      f'--set=iterations={ITERATIONS}',
    ),
  )


def _judged(every: int) -> tuple[str, ...]:
  """The gold score of samples after so many iterations."""
  return (
    *(f'--set=evaluation.every={every}', '--set=evaluation.split=null'),
    *('--set=evaluation.num_prompts=100', '--set=evaluation.num_samples=4'),
    "--add=evaluation.sets=EvaluationSet(name='gold', split='validation', "
    'task=Motifs())',
  )


def get_stages() -> tuple[Stage, ...]:
  """A start, two reward models, candidates, and seven policies."""
  likely = Stage(
    name='likely',
    flags=(
      *(*_CONFIG, '--method=sft', '--set=rollout.group_size=1'),
      *_judged(ITERATIONS),
    ),
  )
  samples = Stage(
    name='samples',
    flags=(
      *(*_CONFIG, '--method=reinforce', '--set=model.path={likely}'),
      *('--set=optimizer.learning_rate=0.0', '--set=iterations=20'),
      *('--set=rollout.group_size=64', '--set=guards.log_rollouts=16'),
      '--set=rollout.temperature=0.7',
    ),
  )
  pair_model = Stage(
    name='pair_model',
    flags=(
      *(*_CONFIG, '--method=reward_model'),
      "--set=task=JoinedPairs(task=Motifs(), separator='|')",
      '--set=rollout.max_response_tokens=26',
    ),
  )
  candidates = Stage(
    name='candidates',
    binary=_PAIRS,
    flags=('--form=candidates', '--workdir={samples}', '--out={out}.jsonl'),
  )
  offline = (
    stage
    for name, beta in BETAS.items()
    for stage in (_pairs(f'pairs_{name}', 'scored', beta), _on_pairs(name))
  )
  model = "--add=reward_models=RewardModel(path='{model}')"
  return (
    likely,
    Stage(name='model', flags=(*_CONFIG, '--method=reward_model')),
    *(samples, candidates, _scored('scored', 'model', 'candidates')),
    *offline,
    _trained('direct', 'dpo'),
    _trained('online', 'rso@online', model),
    *(pair_model, *_matched('candidates')),
    *(stage for name in MATCHED for stage in _by_matches(name)),
  )
