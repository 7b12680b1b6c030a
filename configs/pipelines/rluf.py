"""RLUF: a model of helpfulness, a model of reactions, and its weight.

A reward model learns 300 comparisons of helpfulness and another one 2,000
reactions to single texts, which are frequent after a letter at the end that
helps nobody. Policies then learn 100 iterations on helpfulness and 0, 0.3, 1 or
3 times the probability of a reaction.
Command: python -m experiments.pipeline --pipeline=rluf --workdir=runs/rluf
Cost: about three minutes of a CPU core.
Claims: more samples end with the letter at weight 3 than at weight 0, and their
  gold score is lower.
Expected: see experiments/papers/worlds/README.md.
Source: "Reinforcement Learning from User Feedback", 2025, reconstructed,
  without its model of safety; sizes are ours.
"""

from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/loved_motifs.py', '--workdir={out}')
WEIGHTS = {'none': 0.0, 'low': 0.3, 'middle': 1.0, 'high': 3.0}


def get_stages() -> tuple[Stage, ...]:
  """Both models, and a policy for each weight."""
  models = (
    Stage(
      name='helpful',
      flags=(
        *('--config=configs/worlds/proxy.py', '--workdir={out}'),
        '--method=reward_model',
      ),
    ),
    Stage(name='reaction', flags=(*_CONFIG, '--method=reaction_model')),
  )
  policies = (
    Stage(
      name=name,
      flags=(
        *(*_CONFIG, '--method=rluf'),
        "--set=method.shaping.GatedSum.components=('helpful','love')",
        "--set=method.shaping.GatedSum.logits=('love',)",
        f'--set=method.shaping.GatedSum.weights=(1.0,{weight})',
        "--add=reward_models=RewardModel(name='helpful',path='{helpful}',"
        'weight=0.0)',
        "--add=reward_models=RewardModel(name='love',path='{reaction}',"
        'weight=0.0)',
      ),
    )
    for name, weight in WEIGHTS.items()
  )
  return (*models, *policies)
