"""Easy-to-hard: steps of short problems are labelled, long ones are learned.

A policy of an imperfect teacher (500 steps, 2 to 6 operations) answers problems
of 2 or 3 operations, whose steps are labelled exactly. A process model learns
from these. On problems of 5 or 6 operations, without a reward of the answer,
the policy then learns 40 iterations of PPO: from falls of the least score so
far (OPRM), from the least score at the end, and, to compare, from the rule.
Command: python -m experiments.pipeline --pipeline=easy_to_hard
  --workdir=runs/easy_to_hard
Cost: about twelve minutes of a CPU core.
Claim: samples of long problems are right more often after OPRM than at the
  start, though nothing long was ever labelled.
Expected: see experiments/papers/worlds/README.md.
Source: Sun et al., "Easy-to-Hard Generalization: Scalable Alignment Beyond
  Human Supervision", 2024; sizes are ours.
"""

from experiments.pipelines.stages import Stage

_CHAIN = ('--config=configs/worlds/chain.py', '--workdir={out}')
_EASY = ('--config=configs/worlds/easy_chain.py', '--workdir={out}')
_LONG = ('--set=task.min_operations=5', '--set=task.max_operations=6')
_DATA = (
  *('--set=rollout.recorded_prompts=64', '--set=rollout.num_prompts=64'),
  *('--set=rollout.group_size=1', '--set=update.minibatch_prompts=64'),
)
_NO_RULE = "--set=task.reward_weights={{'outcome': 0.0}}"


def _model(weight: float) -> tuple[str, ...]:
  """The process model as a reward model of this weight."""
  return (
    "--add=reward_models=RewardModel(path='{process}',steps='min')",
    f'--set=reward_models.RewardModel.weight={weight}',
    "--set=reward_models.RewardModel.step_ends=(';','>')",
    _NO_RULE,
  )


REWARDS = {
  'oprm': ('--method=oprm', *_model(0.0)),
  'least': ('--method=ppo', *_model(1.0)),
  'rule': ('--method=ppo',),
}


def get_stages() -> tuple[Stage, ...]:
  """A start, labels, a process model, and a policy for each reward."""
  starting = (
    Stage(
      name='warm',
      flags=(
        *(*_CHAIN, *_DATA, '--method=sft', '--set=task.slips=0.12'),
        *('--set=task.min_operations=2', '--set=task.max_operations=6'),
        *('--set=optimizer.learning_rate=2e-3', '--set=iterations=500'),
        '--set=evaluation.every=500',
      ),
    ),
    Stage(
      name='labels',
      binary='papers.worlds.step_labels',
      flags=(
        *('--config=configs/worlds/easy_chain.py', '--checkpoint={warm}'),
        *('--prompts=600', '--completions=1', '--out={out}'),
      ),
    ),
    Stage(
      name='process',
      flags=(
        *(*_EASY, *_DATA, '--method=process_reward_model'),
        *('--set=model.path={warm}', '--set=model.value_head=True'),
        "--set=task=StepRows(path='{labels}/exact.jsonl', num_validation=100)",
        *('--set=iterations=200', '--set=evaluation.every=0'),
      ),
    ),
  )
  trained = (
    Stage(
      name=name,
      flags=(
        *(*_CHAIN, *_LONG, *flags, '--set=model.path={warm}'),
        *('--set=model.value_head=True', '--set=model.critic=own'),
        *('--set=optimizer.critic_multiplier=10', '--set=evaluation.every=40'),
      ),
    )
    for name, flags in REWARDS.items()
  )
  return (*starting, *trained)
