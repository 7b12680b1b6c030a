"""Prior prompts: five behaviours before the answer, learned and then trained.

Of each behaviour (thoughts, a plan, a program, knowledge, worked examples of
other digits) a policy learns 200 steps of a teacher who writes it and has slips
in the answer, then 25 iterations of GRPO with half of the reward for the answer
and half for the form. `none` has neither a behaviour nor a reward for the form.
Command: python -m experiments.pipeline --pipeline=prior_prompts
  --workdir=runs/prior_prompts
Cost: about four minutes of a CPU core.
Claims: with `examples` the share of right samples is the highest, and of the
  five their responses are the shortest; every behaviour is above `none`.
Expected: see experiments/papers/worlds/README.md.
Source: "Prior Prompt Engineering for Reinforcement Fine-Tuning", 2025, by a
  summary, which has a 7B model that follows instructions and so begins with
  reinforcement learning; models that are trained here first learn the tags.
"""

from experiments.pipelines.stages import Stage
from rl_jax.worlds import styled_chains

_CONFIG = ('--config=configs/worlds/styled_chains.py', '--workdir={out}')


def _style(name: str) -> tuple[Stage, Stage]:
  """The start of a behaviour, and its policy."""
  own = f'--set=task.style={name}'
  weights = "--set=task.reward_weights={{'outcome': 1.0}}"
  return (
    Stage(
      name=f'warm_{name}',
      flags=(
        *(*_CONFIG, '--method=sft', own, '--set=task.slips=0.2'),
        *('--set=rollout.recorded_prompts=64', '--set=rollout.num_prompts=64'),
        *('--set=rollout.group_size=1', '--set=optimizer.learning_rate=2e-3'),
        *('--set=iterations=200', '--set=evaluation.every=200'),
      ),
    ),
    Stage(
      name=name,
      flags=(
        *(*_CONFIG, '--method=grpo@no_kl', own),
        f'--set=model.path={{warm_{name}}}',
        *((weights,) if name == styled_chains.NONE else ()),
      ),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """Two stages of each behaviour, and of none."""
  return tuple(stage for name in styled_chains.STYLES for stage in _style(name))
