"""RSO: pairs of samples accepted as if from the optimal policy, offline.

A policy learns from 60 steps of likelihood of better texts, a reward model from
300 comparisons. The policy samples 64 texts of each of 320 prompts; `rso`
accepts 8 of the different ones by rejection with temperature 0.5, `top` the 8
best (0), `drawn` the first 8 (infinite), and pairs of these that the reward
model orders train the policy for 60 iterations of the logistic loss with gamma
0.05. `direct` has the comparisons themselves, and `online` accepts 2 of 8
samples of the policy as it moves (rso@online).
Command: python -m experiments.pipeline --pipeline=rso --workdir=runs/rso
Cost: about four minutes of a CPU core.
Claims: the gold score of samples is higher with `rso` than with `drawn` and
  with `direct`, and not lower than with `online` by more than 0.02.
Expected: see experiments/papers/worlds/README.md.
Source: Liu et al., "Statistical Rejection Sampling Improves Preference
  Optimization", 2023 (by a digest): 64 samples, temperature 0.7, 8 accepted,
  beta 0.5 and gamma 0.05 are theirs. There samples are of the 40 likeliest
  tokens, more than there are here, and the score is of a model of pairs against
  one drawn sample; here of a model of single texts.
"""

from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/proxy.py', '--workdir={out}')
_PAIRS = 'papers.preferences.rejection_pairs'
BETAS = {'rso': '0.5', 'top': '0', 'drawn': 'inf'}
ITERATIONS = 60


def _pairs(name: str, beta: str) -> Stage:
  return Stage(
    name=f'pairs_{name}',
    binary=_PAIRS,
    flags=(
      *('--form=pairs', '--scored={scored}.jsonl', f'--beta={beta}'),
      *('--keep=8', '--out={out}.jsonl'),
    ),
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
  """A start, a reward model, candidates, and five policies."""
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
  offline = (
    stage
    for name, beta in BETAS.items()
    for stage in (
      _pairs(name, beta),
      _trained(
        name, 'dpo', f"--set=task=PreferenceRows(path='{{pairs_{name}}}.jsonl')"
      ),
    )
  )
  model = "--add=reward_models=RewardModel(path='{model}')"
  return (
    likely,
    Stage(name='model', flags=(*_CONFIG, '--method=reward_model')),
    samples,
    Stage(
      name='candidates',
      binary=_PAIRS,
      flags=('--form=candidates', '--workdir={samples}', '--out={out}.jsonl'),
    ),
    Stage(
      name='scored',
      binary='evaluate_reward',
      flags=(
        *('--reward_model={model}', '--data={candidates}.jsonl'),
        *('--batch_size=256', '--scores_out={out}.jsonl'),
      ),
    ),
    *offline,
    _trained('direct', 'dpo'),
    _trained('online', 'rso@online', model),
  )
