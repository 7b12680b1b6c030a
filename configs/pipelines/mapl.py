"""MAPL: a reward model also compares instructions for one response.

Reward models learn 200 iterations from 400 comparisons: of responses only, half
of them of instructions for one response, and these with the term that orders
pairs by their strength. Each is judged on 500 held-out pairs of either kind. A
policy that has learned the form of texts then learns 60 iterations of PPO under
each model, and its samples are judged by the rules themselves: with the score
as the reward (`policy`), and with -5 in its place for texts of another form
than the comparisons had (`formed`).
Command: python -m experiments.pipeline --pipeline=mapl --workdir=runs/mapl
Cost: about five minutes of a CPU core.
Claims: on held-out pairs of responses the model that has seen pairs of
  instructions is right more often than that of as many pairs of responses;
  samples follow more of their instructions under the models that have seen
  pairs of instructions than under that of responses (both rewards).
Expected: see experiments/papers/worlds/README.md.
Source: "Multi-Level Aware Preference Learning: Enhancing RLHF for Complex
  Multi-Instruction Tasks", 2025, reconstructed; rules and sizes are ours.
"""

from experiments.pipelines import starts
from experiments.pipelines.stages import Stage

_CONFIG = (
  '--config=configs/worlds/instruction_pairs.py',
  '--workdir={out}',
)
MODELS = {
  'responses': ('--method=reward_model',),
  'both': ('--method=reward_model', '--set=task.intra=0.5'),
  'strength': ('--method=reward_model@strength', '--set=task.intra=0.5'),
}
PAIRS = ('responses', 'prompts')
_FORM = starts.warm(
  _CONFIG,
  '--set=task=InstructedTexts()',
  '--set=rollout.max_prompt_tokens=5',
  '--set=rollout.max_response_tokens=7',
  steps=100,
)


_GATE = (
  "GatedSum(components=('learned',), weights=(1.0,), gate='formed', blocked=-5)"
)
REWARDS = {
  'policy': (),
  'formed': (f'--set=method.shaping=({_GATE}, KLInReward(coef=0.01))',),
}


def _policy(reward: str, name: str) -> Stage:
  """PPO under the model of that name."""
  return Stage(
    name=f'{reward}_{name}',
    flags=(
      *(*_CONFIG, '--method=ppo', '--set=model.path={warm}'),
      *('--set=model.value_head=True', '--set=model.critic=own'),
      f"--add=reward_models=RewardModel(path='{{model_{name}}}')",
      *REWARDS[reward],
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """Held-out pairs, and for each kind of data a model, its judgements, and two
  policies.
  """
  stages = [
    Stage(
      name=f'held_{pairs}',
      binary='papers.worlds.instruction_rows',
      flags=(f'--pairs={pairs}', '--out={out}.jsonl'),
    )
    for pairs in PAIRS
  ]
  for name, flags in MODELS.items():
    stages.append(Stage(name=f'model_{name}', flags=(*_CONFIG, *flags)))
    stages += [
      Stage(
        name=f'{name}_on_{pairs}',
        binary='evaluate_reward',
        flags=(
          f'--reward_model={{model_{name}}}',
          f'--data={{held_{pairs}}}.jsonl',
          '--scores_out={out}.jsonl',
        ),
      )
      for pairs in PAIRS
    ]
  policies = (_policy(reward, name) for reward in REWARDS for name in MODELS)
  return (*stages, _FORM, *policies)
