"""RewardAnything: a judge of lists that learns by RL, and policies under it.

A judge learns for 800 steps to score four texts at once by a principle, from
a teacher of whose scores a fifth is drawn, then for 40 iterations of GRPO from
the agreement of its scores with the true ones. Three policies begin with drawn
digits and learn 40 iterations from the scores of their groups: by the judge
before GRPO (`by_taught`), after it (`by_trained`), and by the rule (`by_rule`).
Command: python -m experiments.pipeline --pipeline=reward_anything
  --workdir=runs/reward_anything
Cost: about four minutes of a CPU core.
Claims: after GRPO the judge orders more lists without a fault than before,
  under principles that it has seen and under those that it has not; the texts
  of `by_trained` meet their principles more often than those of `by_taught`.
Expected: see experiments/papers/worlds/README.md.
Source: "RewardAnything: Generalizable Principle-Following Reward Models", 2025
  (zhuohaoyu/RewardAnything, by a digest; its training loop is not released).
  There an 8B model thinks before it scores, and is rewarded for the form, too:
  how both rewards are weighted is not known, and this judge does not think.
"""

from experiments.pipelines import starts
from experiments.pipelines.stages import Stage
from rl_jax.worlds import principle_lists

_CONFIG = (
  '--config=configs/worlds/principle_lists.py',
  '--workdir={out}',
)
# Lists under principles of the train split, and under others.
_JUDGED = (
  '--set=evaluation.split=null',
  *(
    f"--add=evaluation.sets=EvaluationSet(name='{name}', split='{split}', "
    'task=PrincipleLists())'
    for name, split in (('seen', 'validation'), ('unseen', 'test'))
  ),
)
JUDGES = {'by_taught': 'warm', 'by_trained': 'judge', 'by_rule': ''}


def _policy(name: str, judge: str) -> Stage:
  """judge: its stage; '': the rule."""
  question = principle_lists.QUESTION.replace('{', '{{').replace('}', '}}')
  question = question.replace('\n', '\\n')
  weight = 0.0 if judge else 1.0
  judged = (
    f"--add=judges=Judge(path='{{{judge}}}', reads='text', "
    f"template='{question}', score_range={principle_lists.SCORES}, "
    'max_tokens=40, answer_tokens=28)',
  )
  return Stage(
    name=name,
    flags=(
      *(*_CONFIG, '--method=grpo@no_kl', '--set=model.path={digits}'),
      f"--set=task=PrincipleTexts(reward_weights={{{{'outcome': {weight}}}}})",
      *('--set=rollout.group_size=4', '--set=rollout.num_prompts=64'),
      *('--set=rollout.max_prompt_tokens=4',),
      *('--set=rollout.max_response_tokens=3',),
      *('--set=evaluation.num_samples=4',),
      *(judged if judge else ()),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """A judge in two stages, a start of policies, and three policies."""
  return (
    starts.warm(_CONFIG, '--set=task.errors=0.2', *_JUDGED, steps=800),
    Stage(
      name='judge',
      flags=(
        *(*_CONFIG, '--method=grpo@no_kl', '--set=model.path={warm}'),
        *_JUDGED,
      ),
    ),
    Stage(
      name='digits',
      flags=(
        *(*_CONFIG, '--method=sft', '--set=task=PrincipleTexts()'),
        *('--set=rollout.recorded_prompts=64', '--set=rollout.num_prompts=64'),
        *('--set=rollout.group_size=1', '--set=optimizer.learning_rate=2e-3'),
        *('--set=iterations=60', '--set=evaluation.every=60'),
      ),
    ),
    *(_policy(name, judge) for name, judge in JUDGES.items()),
  )
