"""MetaRM: a reward model that keeps separating a policy's samples.

A reward model learns from 1,000 comparisons of random texts, a policy
maximises it for 60 iterations, and two rounds follow: the reward model learns
from the same comparisons again, beside four samples of the last policy each,
and a policy maximises it. `meta` takes the gradient of the comparisons at
parameters moved to a larger spread of the samples, `plain` at the parameters
themselves. Both are judged on pairs of samples of the last policies, by the
rule, and on random texts.
Command: python -m experiments.pipeline --pipeline=meta_rm
  --workdir=runs/meta_rm
Cost: about five minutes of a CPU core.
Claim: the reward model is right on more pairs of the policy's samples with the
  shift than without, in both rounds.
Expected: see experiments/papers/worlds/README.md.
Source: Wang et al., "Secrets of RLHF Part II: Reward Modeling", 2024,
  reconstructed; sizes are ours.
"""

from experiments.pipelines.rounds import unrolled
from experiments.pipelines.stages import Stage

ROUNDS = 2
_CONFIG = ('--config=configs/worlds/proxy.py', '--workdir={out}')
_TASK = '--set=task.num_train=1000'
KINDS = {'plain': '0.0', 'meta': '0.1'}  # steps of the shift


def _policy(name: str, judge: str) -> Stage:
  return Stage(
    name=name,
    flags=(
      *(*_CONFIG, '--method=grpo', '--set=iterations=60'),
      '--set=guards.log_rollouts=16',
      f"--add=reward_models=RewardModel(path='{{{judge}}}')",
    ),
  )


def _rows(name: str, form: str, *flags: str) -> Stage:
  return Stage(
    name=name,
    binary='papers.proxy.policy_rows',
    flags=(
      *('--config=configs/worlds/proxy.py', _TASK, f'--form={form}'),
      *(*flags, '--out={out}.jsonl'),
    ),
  )


def _judged(name: str, model: str, rows: str) -> Stage:
  return Stage(
    name=name,
    binary='evaluate_reward',
    flags=(
      *(f'--reward_model={{{model}}}', f'--data={{{rows}}}.jsonl'),
      '--scores_out={out}.jsonl',
    ),
  )


def _round(kind: str) -> tuple[Stage, ...]:
  """A reward model that learns beside samples, a policy, and judgements."""
  policy, model = f'policy_{kind}', f'model_{kind}'
  rows, pairs = f'rows_{kind}', f'pairs_{kind}'
  return (
    _rows(rows, 'beside', f'--workdir={{{policy}}}', '--last=20'),
    Stage(
      name=model,
      flags=(
        *(*_CONFIG, '--method=reward_model@meta', '--set=iterations=100'),
        f'--set=model.path={{{model}}}',
        f"--set=task=PreferenceRows(path='{{{rows}}}.jsonl')",
        # A sample that the limit has cut is closed by an end token.
        *('--set=rollout.group_size=6', '--set=rollout.max_response_tokens=14'),
        f'--set=method.losses.SampleSpread.step={KINDS[kind]}',
      ),
    ),
    _policy(policy, model),
    _rows(pairs, 'pair', f'--workdir={{{policy}}}', '--last=20'),
    _judged(f'on_samples_{kind}', model, pairs),
    _judged(f'on_random_{kind}', model, 'random'),
  )


def get_stages() -> tuple[Stage, ...]:
  """A reward model and a policy, and ROUNDS of both kinds."""
  start = (
    Stage(
      name='model',
      flags=(
        *(*_CONFIG, '--method=reward_model', _TASK),
        '--set=iterations=100',
      ),
    ),
    _policy('policy', 'model'),
    _rows('random', 'random'),
  )
  body = tuple(stage for kind in KINDS for stage in _round(kind))
  first = {
    f'{name}_{kind}': name for kind in KINDS for name in ('policy', 'model')
  }
  return unrolled(start, body, ROUNDS, first)
