"""SPIRAL in one game: what does it do to another one?

A decoder learns to draw legal moves of Kuhn poker and TicTacToe. Self-play in
one of them goes on from there, and both results play both games against that
start: sample_reward/reward of drawn games, 0 of the start itself. How
exploitable they are in Kuhn poker is exact: python -m
experiments.exploitability --checkpoint=runs/transfer/tic_tac_toe
  --config=configs/kuhn.py
Command: python -m experiments.pipeline --pipeline=transfer
  --workdir=runs/transfer
Source: "SPIRAL: Self-Play on Zero-Sum Games Incentivizes Reasoning via
  Multi-Agent Multi-Turn Reinforcement Learning", which measures transfer to
  mathematics; here to the other game.
"""

from experiments.pipelines.clones import clone_flags
from experiments.pipelines.stages import Stage

GAMES = ('kuhn', 'tic_tac_toe')


def _config(game: str) -> str:
  return f'--config=configs/{game}.py'


def _learned(game: str) -> Stage:
  """Self-play, as configs/kuhn.py says."""
  return Stage(
    name=game,
    flags=(
      *(_config(game), '--workdir={out}', '--method=spiral'),
      *('--set=model.path={legal}', '--set=iterations=100'),
      '--set=method.aggregation.length=5.0',
      '--add=method.losses=EntropyBonus(coef=0.2)',
    ),
  )


def _match(policy: str, game: str) -> Stage:
  """Drawn games of a policy against the start, within the larger limits."""
  return Stage(
    name=f'{policy}_plays_{game}',
    binary='evaluate',
    flags=(
      *(f'--checkpoint={{{policy}}}', '--opponent={legal}'),
      *(f'--data=configs/{game}.py', '--num_samples=16', '--limit=100'),
      *('--set=rollout.turns.max_turns=5', '--out={out}.jsonl'),
      '--set=rollout.max_response_tokens=20',
      '--set=rollout.turns.max_observation_tokens=3',
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """The start, self-play in each game, and matches."""
  both = ','.join(f'configs/{game}.py' for game in GAMES)
  return (
    Stage(
      name='untrained',
      flags=(
        *(_config('tic_tac_toe'), '--workdir={out}', '--method=spiral'),
        *('--set=iterations=1', '--set=optimizer.learning_rate=0.0'),
      ),
    ),
    Stage(
      name='moves',
      binary='walk_rows',
      flags=(
        *(f'--config={both}', '--noise=1.0', '--episodes=1000'),
        '--out={out}.jsonl',
      ),
    ),
    Stage(
      name='legal',
      flags=clone_flags('untrained', 'moves', 24, 400, 'tic_tac_toe'),
    ),
    *map(_learned, GAMES),
    *(_match(policy, game) for policy in GAMES for game in GAMES),
  )
