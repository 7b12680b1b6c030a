"""Easy-to-hard: a model of steps that learned on easy prompts scores hard ones.

The start has seen one to three rules, on two digits, from a teacher with slips.
Labels, of the steps and of the answer, are there for samples on one or two
rules (easy) only; a value head learns them at every token. It then chooses
among samples on three rules (hard), and gives the process rewards of 40
iterations of PPO on both kinds, of which the easy ones only have the reward of
the outcome. `outcomes` is the same PPO with process rewards of weight 0.
Command: python -m experiments.pipeline --pipeline=easy_to_hard
  --workdir=runs/easy_to_hard
Cost: about three minutes of a CPU core.
Claims: of 8 samples on a hard prompt the one with the best score is right more
  often than a drawn one, by the least and by the product of its steps; more
  samples on hard prompts are right with process rewards than with `outcomes`.
Expected: see experiments/papers/worlds/README.md.
Source: Sun et al., "Easy-to-Hard Generalization: Scalable Alignment Beyond
  Human Supervision", 2024 (Edward-Sun/easy-to-hard, by a digest); sizes are
  ours. There the start has seen easy solutions only, and a pretrained model
  attempts hard prompts; here the teacher with slips stands for it.
"""

from experiments.pipelines import chain_stages, starts
from experiments.pipelines.stages import Stage

# On three digits no model of steps learned more than which places fail.
_EASY = 'FamilyChains(digits=2, min_rules=1, max_rules=2)'
_HARD = 'FamilyChains(digits=2, min_rules=3)'
_UNPAID = (
  "FamilyChains(digits=2, min_rules=3, reward_weights={{'outcome': 0.0}})"
)
_BOTH = (
  f"Mixture(parts=(MixturePart(name='easy', task={_EASY}), "
  f"MixturePart(name='hard', task={_UNPAID})))"
)
_ITERATIONS = 40


def _ppo(name: str, scale: float) -> Stage:
  """scale: of the process rewards."""
  return Stage(
    name=name,
    flags=(
      *(*chain_stages.CONFIG, '--method=oprm', '--set=model.path={warm}'),
      *('--set=model.value_head=True', '--set=model.critic=own'),
      *('--set=optimizer.critic_multiplier=10', f'--set=task={_BOTH}'),
      "--add=reward_models=RewardModel(path='{step_model}', steps='min', "
      "weight=0.0, step_ends=(';', '?', '>'))",
      f'--set=method.shaping.StepScores.scale={scale}',
      *(f'--set=iterations={_ITERATIONS}', '--set=evaluation.split=null'),
      f'--set=evaluation.every={_ITERATIONS}',
      "--add=evaluation.sets=EvaluationSet(name='hard', split='validation', "
      f'task={_HARD})',
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """A start, a model of steps, the best of 8, and two policies."""
  return (
    starts.warm(
      chain_stages.CONFIG,
      *chain_stages.FAULTS,
      '--set=task.digits=2',
      '--set=task.min_rules=1',
      steps=400,
    ),
    chain_stages.logged('easy', 'warm', 40, f'--set=task={_EASY}'),
    chain_stages.rows('labels', 'steps', 'easy'),
    Stage(
      name='step_model',
      flags=(
        *(*chain_stages.CONFIG, '--set=model.path={warm}'),
        *('--method=process_reward_model@every_token', '--set=iterations=800'),
        *('--set=model.value_head=True', '--set=optimizer.learning_rate=1e-3'),
        *chain_stages.recorded('{labels}.jsonl', rows=64, reader='StepRows'),
      ),
    ),
    chain_stages.logged('hard', 'warm', 4, f'--set=task={_HARD}'),
    chain_stages.rows('bench', 'bench', 'hard'),
    Stage(
      name='best_of',
      binary='evaluate_reward',
      flags=(
        *('--reward_model={step_model}', '--data={bench}.jsonl', '--steps'),
        *('--step_end=', '--batch_size=64', '--out={out}.jsonl'),
      ),
    ),
    _ppo('process', 1.0),
    _ppo('outcomes', 0.0),
  )
