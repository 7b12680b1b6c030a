"""RewardAnything: a judge of lists that learns by RL, and policies under it.

A judge learns for 800 steps to score four texts at once by a principle, from
a teacher of whose scores a fifth is drawn, then for 40 iterations of GRPO from
the agreement of its scores with the true ones. A second judge (`thinks`) learns
to write a thought before its scores and a ranking after them, from a teacher
that errs in a fifth of its thoughts, for 350 steps, which have as many tokens,
and as many iterations; its reward has half a point for the form. Four policies
begin with drawn digits and learn 40 iterations from the scores of their groups:
by the judge before GRPO (`by_taught`), after it (`by_trained`), by the one that
thinks (`by_thinking`), and by the rule (`by_rule`).
Command: python -m experiments.pipeline --pipeline=reward_anything
  --workdir=runs/reward_anything
Cost: about ten minutes of a CPU core.
Claims: after GRPO the judge orders more lists without a fault than before,
  under principles that it has seen and under those that it has not; the texts
  of `by_trained` meet their principles more often than those of `by_taught`.
  With thoughts the judge orders more lists without a fault than without, under
  both kinds of principles, and GRPO raises the form of its samples; the texts
  of `by_thinking` meet their principles more often than those of `by_trained`.
Expected: see experiments/papers/worlds/README.md.
Source: "RewardAnything: Generalizable Principle-Following Reward Models", 2025
  (zhuohaoyu/RewardAnything, by a digest; its training loop is not released).
  There an 8B model thinks before it scores, and is rewarded for the form, too:
  how both rewards are weighted is not known.
"""

import dataclasses

from experiments.pipelines import starts
from experiments.pipelines.stages import Stage
from rl_jax.worlds import principle_lists

_CONFIG = (
  '--config=configs/worlds/principle_lists.py',
  '--workdir={out}',
)
# Texts are judged by the model of the stage, '' by the rule.
JUDGES = {
  'by_taught': 'warm',
  'by_trained': 'judge',
  'by_thinking': 'thinks',
  'by_rule': '',
}
# Tokens that a judge answers: scores, or a thought and all that follows.
_SCORES, _THOUGHT = 26, 102


def _judged(task: str) -> tuple[str, ...]:
  """Lists under principles of the train split, and under others."""
  return (
    '--set=evaluation.split=null',
    *(
      f"--add=evaluation.sets=EvaluationSet(name='{name}', split='{split}', "
      f'task={task}())'
      for name, split in (('seen', 'validation'), ('unseen', 'test'))
    ),
  )


def _judge(
  taught: str, trained: str, task: str, steps: int, *flags: str
) -> tuple[Stage, Stage]:
  """A judge that learns from its teacher, then by GRPO."""
  flags = (f'--set=task={task}()', *_judged(task), *flags)
  warm = starts.warm(_CONFIG, *flags, '--set=task.errors=0.2', steps=steps)
  return (
    dataclasses.replace(warm, name=taught),
    Stage(
      name=trained,
      flags=(
        *(*_CONFIG, '--method=grpo@no_kl', f'--set=model.path={{{taught}}}'),
        *flags,
      ),
    ),
  )


def _policy(name: str, judge: str) -> Stage:
  """judge: its stage; '': the rule."""
  question = principle_lists.QUESTION.replace('{', '{{').replace('}', '}}')
  question = question.replace('\n', '\\n')
  weight = 0.0 if judge else 1.0
  answer = _THOUGHT if judge == 'thinks' else _SCORES
  judged = (
    f"--add=judges=Judge(path='{{{judge}}}', reads='text', "
    f"template='{question}', score_range={principle_lists.SCORES}, "
    f'max_tokens=40, answer_tokens={answer + 2})',
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
  """Two judges in two stages, a start of policies, and four policies."""
  return (
    *_judge('warm', 'judge', 'PrincipleLists', 800),
    *_judge(
      'taught_thoughts',
      'thinks',
      'ThoughtLists',
      350,
      f'--set=rollout.max_response_tokens={_THOUGHT}',
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
