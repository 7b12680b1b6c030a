"""Writes the committed results of preference methods from their checkpoints.

  python -m experiments.papers.preferences.excerpt --workdir=runs/preferences
    --out=experiments/papers/preferences/results.jsonl

A line a run that --out does not have yet: greedy accuracy on held-out prompts
from its last evaluation, and of its last checkpoint on held-out pairs:
log-probs of both responses, and how often the chosen one has the larger. The
same of the policy that all begin with.
"""

import tempfile
from typing import Any

import jax

from experiments.flags import configuration
from experiments.papers.preferences import sweep
from experiments.sweeps import excerpts
from rl_jax.config import ExperimentConfig
from rl_jax.runs import assembly
from rl_jax.runs import policy as policy_lib

# Its score is the log-prob of the policy only, so accuracy is, too.
METHOD = 'simpo'


class Judge:
  """Held-out pairs of the configuration, for any policy of its shape."""

  def __init__(self, config: ExperimentConfig):
    self.mesh = assembly.prepare(config)
    with jax.set_mesh(self.mesh), tempfile.TemporaryDirectory() as workdir:
      self._parts = assembly.assemble(config, workdir, self.mesh)

  def __call__(self, source: str) -> dict[str, float]:
    """Accuracy of pairs and mean log-probs, in nats, of a work directory."""
    parts = self._parts
    assert parts.held_out is not None  # the configuration evaluates pairs
    with jax.set_mesh(self.mesh):
      _, params, _ = policy_lib.load_checkpoint(source, self.mesh)
      found = parts.held_out.run(
        parts.policies.frozen(),
        parts.state.replace(params=params),
        parts.method,
        parts.key,
      )
    numbers = {
      'pairs': found['preference/accuracy'],
      'chosen': found['preference/logp_win'],
      'rejected': found['preference/logp_lose'],
    }
    return {name: round(float(x), 4) for name, x in numbers.items()}

  def close(self) -> None:
    """Ends the verifier."""
    self._parts.runner.close()


def judge_of_start() -> Judge:
  """The judge of the pairs and the warm start of sweep.py."""
  sets = [f'{path}={value}' for path, value in sweep.COMMON.items()]
  return Judge(configuration.build('preferences', METHOD, sets, []))


def line(
  row: dict[str, Any], rows: list[dict[str, Any]], judged: dict[str, float]
) -> dict[str, Any]:
  """A line of results.jsonl; rows are the metrics of its run."""
  evaluated = [r for r in rows if 'evaluation/pass_at_1' in r]
  last = {'greedy': round(evaluated[-1]['evaluation/pass_at_1'], 4)}
  before = {'greedy before': round(evaluated[0]['evaluation/pass_at_1'], 4)}
  return excerpts.kept(row) | {
    'seconds': round(row['seconds'], 1),
    'last': {**last, **before, **judged},
  }


def main(argv):
  """Reads and writes."""
  del argv
  judge = judge_of_start()
  before = judge(sweep.START)
  excerpts.write(
    lambda row, folder, rows: line(row, rows, judge(folder)) | {'start': before}
  )
  judge.close()


if __name__ == '__main__':
  excerpts.define_flags()
  configuration.run(main)
