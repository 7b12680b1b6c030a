"""LMRL-Gym's games in small: cloning of a weak player, then PPO.

In Wordle, twenty questions and an endgame of chess a policy is cloned from
2,000 episodes of a player that says anything in half of its turns (200 steps),
and then learns by PPO with rewards and values of turns for 60 iterations of 128
episodes. The
critic has its own layers and ten times the rate: on those of the policy the
loss of values, which are -1 a turn, undoes the policy (Wordle -5.4 to -6.0).
Command: python -m experiments.pipeline --pipeline=lmrl --workdir=runs/lmrl
Cost: about ten minutes of a CPU core. Chess needs the extra 'chess'.
Claim: the return of sampled episodes is higher after PPO than after cloning,
  in each game.
Expected: see experiments/papers/worlds/README.md.
Source: Abdulhai et al., "LMRL Gym: Benchmarks for Multi-Turn Reinforcement
  Learning with Language Models", 2023; words, objects and sizes are ours. In
  its chess the other side is an engine, here a script; its other games need a
  large language model as the other side, which is not here.
"""

from experiments.pipelines.stages import Stage

GAMES = {
  'wordle': 'wordle',
  'questions': 'twenty_questions',
  'chess': 'rook_endgame',
}


def _stages(name: str, world: str) -> tuple[Stage, ...]:
  config = f'--config=configs/worlds/{world}.py'
  return (
    Stage(
      name=f'{name}_bc',
      flags=(
        *(f'{config}@recorded', '--method=sft', '--workdir={out}'),
        *('--set=iterations=200', '--set=optimizer.learning_rate=2e-3'),
        '--set=evaluation.every=200',
      ),
    ),
    Stage(
      name=f'{name}_ppo',
      flags=(
        *(config, '--method=turn_ppo', '--workdir={out}'),
        *('--set=model.value_head=True', f'--set=model.path={{{name}_bc}}'),
        *('--set=model.critic=own', '--set=optimizer.critic_multiplier=10'),
        '--set=evaluation.every=60',
      ),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """A clone and a policy for each game."""
  return tuple(
    stage for name, world in GAMES.items() for stage in _stages(name, world)
  )
