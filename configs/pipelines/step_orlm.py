"""StepORLM: a policy and a judge of its steps that learn from each other.

A policy begins with supervised training and 10 iterations of W-DPO on outcomes;
a judge, which writes a verdict for each part of a response and how many are
right, with 150 steps on critiques of 300 responses of the teacher, of whose
verdicts a tenth is wrong. In each of two rounds of `evolving` the judge writes
two critiques of each logged response of the last policy, learns for 100 steps
from those that agree with the outcome of the response, and gives the process
scores of 30 iterations of W-DPO. The judge of `frozen` stays as it began, and
`outcomes` has no process scores. An exam of both judges is the greedy critique
of what the next policies write, as a whole right or wrong.
Command: python -m experiments.pipeline --pipeline=step_orlm
  --workdir=runs/step_orlm
Cost: about eight minutes of a CPU core.
Claims: the share of right samples on held-out prompts is higher with `evolving`
  than with `frozen`, and with that than with `outcomes`; the judge that learns
  is right on more of the exams than the frozen one.
Expected: see experiments/papers/worlds/README.md.
Source: "StepORLM: A Self-Evolving Framework with Generative Process Supervision
  for Operations Research Language Models", 2025, by its project page and
  secondary sources: reconstructed. There a solver of programs decides the
  outcome.
"""

from experiments.pipelines import chain_stages
from experiments.pipelines.rounds import unrolled
from experiments.pipelines.stages import Stage
from rl_jax.worlds import family_chains

ROUNDS = 2
_ASKED = '--set=rollout.max_prompt_tokens=35'
# A critique of at most 24 parts is longer: it is cut, and counts 0.
_CRITIQUE = '--set=rollout.max_response_tokens=20'
_RATE = '--set=optimizer.learning_rate=2e-3'


def _policy(name: str, start: str, iterations: int, process: str) -> Stage:
  """process: the component that is the process score, or a judge's stage."""
  judged = ()
  if process != 'outcome':
    template = family_chains.QUESTION.replace('{', '{{').replace('}', '}}')
    judged = (
      f"--add=judges=Judge(path='{{{process}}}', weight=0.0, reads='text', "
      f"template='{template}', score_range=(0.0, 1.0), max_tokens=40, "
      'answer_tokens=20)',
    )
    process = 'judge'
  return Stage(
    name=name,
    flags=(
      *(*chain_stages.CONFIG, '--method=w_dpo', *judged),
      f'--set=method.pairs.process={process}',
      *(f'--set=model.path={{{start}}}', f'--set=iterations={iterations}'),
      *(f'--set=evaluation.every={iterations}', '--set=guards.log_rollouts=32'),
    ),
  )


def _judge(name: str, start: str, rows: str, steps: int) -> Stage:
  return Stage(
    name=name,
    flags=(
      *(*chain_stages.CONFIG, '--method=sft', _RATE, _ASKED, _CRITIQUE),
      *(f'--set=model.path={{{start}}}', f'--set=iterations={steps}'),
      *chain_stages.recorded(f'{{{rows}}}.jsonl', rows=64),
    ),
  )


def _exam(name: str, judge: str, rows: str) -> Stage:
  return Stage(
    name=name,
    binary='evaluate',
    flags=(
      *(f'--checkpoint={{{judge}}}', f'--data={{{rows}}}.jsonl'),
      *('--split=train', '--limit=1000', '--question={{prompt}}'),
      *('--answer={{completion}}', '--verifier=text', '--extract=whole'),
      *('--max_new_tokens=20', '--out={out}.jsonl'),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """Both models, and ROUNDS rounds of the three kinds."""
  start = (
    chain_stages.WARM,
    _policy('policy', 'warm', 10, 'outcome'),
    chain_stages.taught(
      'lessons',
      'critiques',
      ('--errors=0.1', '--set=task.num_train=300', *chain_stages.FAULTS),
    ),
    _judge('judge', 'warm', 'lessons', 150),
  )
  body = (
    chain_stages.rows('questions', 'critiques', 'policy_evolving', '--last=10'),
    chain_stages.logged(
      'critiques',
      'judge',
      20,
      _ASKED,
      _CRITIQUE,
      '--set=rollout.group_size=2',
      '--set=rollout.num_prompts=64',
      "--set=task=PreferenceRows(path='{questions}.jsonl')",
    ),
    chain_stages.rows('agreed', 'agreed', 'critiques'),
    _judge('judge', 'judge', 'agreed', 100),
    _policy('policy_evolving', 'policy_evolving', 30, 'judge'),
    _policy('policy_frozen', 'policy_frozen', 30, 'judge_frozen'),
    _policy('policy_outcomes', 'policy_outcomes', 30, 'outcome'),
    chain_stages.rows('exam', 'critiques', 'policy_evolving', '--last=5'),
    _exam('exam_evolving', 'judge', 'exam'),
    _exam('exam_frozen', 'judge_frozen', 'exam'),
  )
  first = {'judge_frozen': 'judge'}
  first |= {
    f'policy_{kind}': 'policy' for kind in ('evolving', 'frozen', 'outcomes')
  }
  return unrolled(start, body, ROUNDS, first)
