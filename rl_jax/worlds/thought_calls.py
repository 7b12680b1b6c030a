"""Calls of functions after a thought that recalls their parameters."""

import dataclasses

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example
from rl_jax.worlds import function_calls
from rl_jax.worlds.function_calls import PARAMETERS, FunctionCalls

MARK = '#'


@dataclasses.dataclass(frozen=True)
@checked
class ThoughtCalls(FunctionCalls):
  """Prompt 'B21;A3=', response 'b:ux;a:w#b(u=2,x=1)a(w=3)'.

  What comes before MARK is a thought: what parameters the functions have. A
  share `decoys` of the prompts begins with a request in small letters, 'c0;',
  which is to be left out. The calls are compared as trees: the order of
  parameters is free, that of calls is not. Components: `outcome`, 1 for a
  thought of any text, MARK and the right calls; `format`, 1 for a thought, MARK
  and calls. `target` is what a teacher writes: of a share `slips` of the
  functions the thought has a wrong parameter, which the call then has, too.
  Marks of thoughts are those of TextSpans(think=('=', '#'), opened=True).
  Source: the binary reward of "Exploring Superior Function Calls via
  Reinforcement Learning" (EGPO); functions and thoughts are of this code.
  """

  decoys: float = ranged(0.3, 0.0, 1.0)
  slips: float = ranged(0.0, 0.0, 1.0)

  @property
  def alphabet(self) -> str:
    """The characters of prompts and responses."""
    return super().alphabet + ':' + MARK

  def example(self, split: str, index: int) -> Example:
    """The request of FunctionCalls, maybe after a decoy."""
    found = super().example(split, index)
    stream = draws.Draws('decoys', self.seed, found.prompt)
    if stream.uniform() >= self.decoys:
      return found
    name, parameters = stream.choice(tuple(self.signatures().items()))
    values = ''.join(stream.choice(function_calls.DIGITS) for _ in parameters)
    return dataclasses.replace(found, prompt=f'{name}{values};{found.prompt}')

  def target(self, example: Example) -> str:
    """The thought and the calls of the teacher."""
    stream = draws.Draws('thought calls', self.seed, example.prompt)
    thoughts, calls = [], []
    for call in function_calls.calls_of(example.answer) or ():
      names = list(call['parameters'])
      if stream.uniform() < self.slips:
        others = [x for x in PARAMETERS if x not in names]
        names[stream.below(len(names))] = stream.choice(others)
      values = call['parameters'].values()
      pairs = (f'{a}={b}' for a, b in zip(names, values, strict=True))
      thoughts.append(f'{call["name"]}:{"".join(names)}')
      calls.append(f'{call["name"]}({",".join(pairs)})')
    return f'{";".join(thoughts)}{MARK}{"".join(calls)}'

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The calls after the first MARK, as trees."""
    thought, mark, said = response.partition(MARK)
    found = function_calls.calls_of(said) if thought and mark else None
    right = function_calls.calls_of(example.answer)
    return {
      base.OUTCOME: float(found == right),
      'format': float(found is not None),
    }
