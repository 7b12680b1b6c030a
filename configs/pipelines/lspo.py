"""LSPO on Kuhn poker in words: clusters of texts, CFR over them, DPO; twice.

A warm start by SFT on texts of random moves; then each round draws texts from
the policy, clusters them to latent strategies, solves the game over these by
CFR, and teaches the policy the solution by DPO with beta 1, whose optimum it is
(experiments/pipelines/latents.py).
Command: python -m experiments.pipeline --pipeline=lspo --workdir=runs/lspo
Cost: two minutes of a CPU core. Needs the extra 'games'.
Expected: over --seed=0 to 4 nash_conv is 0.93 [0.88, 0.98] after the warm
  start, 0.18 [0.11, 0.24] after one round and 0.09 [0.03, 0.14] after two,
  lower in every round with every seed (uniform: 0.92, equilibrium: 0), where
  strategies over clusters have 0.007 or less. Texts that the game understands
  have 0.97, 0.62 and 0.61 of the probability: DPO lowers both texts of a pair,
  so further rounds need a likelihood term.
Source: "Learning Strategic Language Agents in the Werewolf Game with Iterative
  Latent Space Policy Optimization", reconstructed from the abstract. There
  texts are embedded by a language model, CFR is deep, and a better latent is
  always preferred; here counts of letter pairs are clustered, CFR is exact,
  and preferences are drawn, so that mixed strategies can be learned.
"""

from experiments.pipelines.stages import Stage

_CONFIG = '--config=configs/worlds/spoken_kuhn.py'
_TRAIN = (_CONFIG, '--workdir={out}')


def _round(number: int, start: str) -> tuple[Stage, Stage]:
  rows = f'latents_{number}'
  return (
    Stage(
      name=rows,
      binary='papers.episodes.latent_strategies',
      flags=(_CONFIG, f'--checkpoint={{{start}}}', '--out={out}.jsonl'),
    ),
    Stage(
      name=f'policy_{number}',
      flags=(
        *(*_TRAIN, '--method=dpo', f'--set=model.path={{{start}}}'),
        f"--set=task=PreferenceRows(path='{{{rows}}}.jsonl')",
        '--set=method.losses.PairLoss.score.beta=1.0',
        *('--set=evaluation.every=0', '--set=optimizer.learning_rate=5e-4'),
      ),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """The last stage is there for what it prints of the last policy."""
  warm = Stage(
    name='warm', flags=(*_TRAIN, '--method=sft', '--set=rollout.group_size=1')
  )
  first, second = _round(1, 'warm'), _round(2, 'policy_1')
  return (warm, *first, *second, _round(3, 'policy_2')[0])
