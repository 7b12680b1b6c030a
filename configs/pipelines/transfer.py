"""SPIRAL in one game: what does it do to another one?

A decoder learns to draw legal moves of Kuhn poker and TicTacToe. Self-play in
one of them continues from there, and both results play both games against that
start: sample_reward/reward of drawn games. How exploitable they are in Kuhn
poker is exact: python -m experiments.tools.exploitability
  --checkpoint=runs/transfer/tic_tac_toe --config=configs/kuhn.py
Command: python -m experiments.pipeline --pipeline=transfer
  --workdir=runs/transfer
Cost: about 20 minutes of a CPU core, 10 of them the clone. Needs the extra
  'games'.
Expected: the start has -0.20 against itself in TicTacToe, where 22% of its
  games end by its own illegal move, and NashConv 0.90. Over three seeds
  from one start self-play has 0.09 [0.05, 0.14] in Kuhn poker and 0.20 [0.14,
  0.25] in TicTacToe; in the other game the policy of Kuhn poker has -0.36
  [-0.47, -0.25] (31% of its games end by its own illegal move), that of
  TicTacToe 0.00 [-0.04, 0.05] and NashConv 0.90 [0.82, 0.98]: nothing is
  carried over. Rewards above 0 and a smaller NashConv in the other game had
  been named before the runs. With half of configs/kuhn.py's bonus 9% to 18% of
  Kuhn poker's games end by its own illegal moves.
Source: "SPIRAL: Self-Play on Zero-Sum Games Incentivizes Reasoning via
  Multi-Agent Multi-Turn Reinforcement Learning", which measures transfer to
  mathematics; here to the other game.
"""

from experiments.pipelines.stages import Stage

GAMES = ('kuhn', 'tic_tac_toe')
STEPS = 6000  # of 128 moves: fewer leave illegal ones


def _config(game: str) -> str:
  return f'--config=configs/{game}.py'


def _moves(game: str, episodes: int) -> Stage:
  """Rows of random games."""
  return Stage(
    name=f'{game}_moves',
    binary='papers.episodes.walk_rows',
    flags=(
      *(_config(game), '--noise=1.0', f'--episodes={episodes}'),
      '--out={out}.jsonl',
    ),
  )


def _legal() -> Stage:
  """A clone of both kinds of rows, four of TicTacToe to one of Kuhn poker."""
  parts = ','.join(
    f"MixturePart(name='{game}',weight={weight},"
    f"task=PreferenceRows(path='{{{game}_moves}}.jsonl'))"
    for game, weight in zip(GAMES, (1.0, 4.0), strict=True)
  )
  return Stage(
    name='legal',
    flags=(
      *(_config('tic_tac_toe'), '--workdir={out}', '--method=sft'),
      f'--set=task=Mixture(parts=({parts}))',
      *('--set=model.path={untrained}', '--set=rollout.turns=null'),
      *('--set=rollout.recorded_prompts=128', '--set=rollout.num_prompts=128'),
      *('--set=rollout.group_size=1', '--set=rollout.max_prompt_tokens=24'),
      *('--set=rollout.max_response_tokens=3', f'--set=iterations={STEPS}'),
      *('--set=evaluation.every=0', '--set=update.minibatch_prompts=128'),
      '--set=optimizer.learning_rate=2e-3',
      '--set=optimizer.schedule=cosine',
    ),
  )


def _learned(game: str) -> Stage:
  """Self-play, as configs/kuhn.py says, with half of its bonus."""
  return Stage(
    name=game,
    flags=(
      *(_config(game), '--workdir={out}', '--method=spiral'),
      *('--set=model.path={legal}', '--set=iterations=100'),
      '--set=method.aggregation.length=5.0',
      '--add=method.losses=EntropyBonus(coef=0.1)',
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
  return (
    Stage(
      name='untrained',
      flags=(
        *(_config('tic_tac_toe'), '--workdir={out}', '--method=spiral'),
        *('--set=iterations=1', '--set=optimizer.learning_rate=0.0'),
      ),
    ),
    _moves('kuhn', 1000),
    _moves('tic_tac_toe', 20000),
    _legal(),
    *map(_learned, GAMES),
    *(_match(policy, game) for policy in GAMES for game in GAMES),
  )
