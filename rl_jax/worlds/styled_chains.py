"""Rules on digits, answered after one of five behaviours between tags."""

import dataclasses

from rl_jax.checks import checked, chosen
from rl_jax.tasks import base, draws, prior_prompts
from rl_jax.tasks.base import Example
from rl_jax.worlds import families, family_chains
from rl_jax.worlds.family_chains import FamilyChains

NONE = 'none'
STYLES = (*prior_prompts.BEHAVIOURS, NONE)
_TAGS = (*prior_prompts.BEHAVIOURS, 'answer')
_FORMS = {
  'think': prior_prompts.think,
  'plan': prior_prompts.plan,
  'code': prior_prompts.code,
  'knowledge': prior_prompts.knowledge,
  'examples': prior_prompts.examples,
}
_KNOWN = '123'  # what `knowledge` shows every rule on


@dataclasses.dataclass(frozen=True)
@checked
class StyledChains(FamilyChains):
  """Prompt '<plan>ri 314=', response '<plan>r;i</plan><answer>524</answer>'.

  The prompt asks for the behaviour that the response begins with; between its
  tags a teacher writes, of the chain of FamilyChains,
    think      its steps, '413;524'
    plan       its rules, 'r;i'
    code       a nested call, 'i(r(314))'
    knowledge  what each rule makes of 123, 'r321;i234'
    examples   the steps of the same rules on other digits, '210:012;123'
  and then the last step as the answer, which may have a slip whatever the
  behaviour. Without one (style 'none') prompt and response have no such part.
  Components: `outcome`, 1 if the answer between the tags is right, and `form`,
  1 for one behaviour and one answer after it and nothing else (of 'none': for
  one answer only); both count a half.
  Source: "Prior Prompt Engineering for Reinforcement Fine-Tuning", by a
  summary; what small models write there is ours.
  """

  style: str = chosen('think', STYLES)
  reward_weights: dict[str, float] = base.weights_field(outcome=0.5, form=0.5)

  @property
  def alphabet(self) -> tuple[str, ...]:
    """Tags, of which each is one token, and letters."""
    tags = (f'<{end}{tag}>' for tag in _TAGS for end in ('', '/'))
    return *tags, *family_chains.LETTERS, '(', ')', ':'

  def example(self, split: str, index: int) -> Example:
    """The prompt of FamilyChains after the tag."""
    found = super().example(split, index)
    if self.style == NONE:
      return found
    return dataclasses.replace(found, prompt=f'<{self.style}>{found.prompt}')

  def target(self, example: Example) -> str:
    """Returns what the teacher writes, the same for the same prompt."""
    asked = example.prompt.removeprefix(f'<{self.style}>')
    chain = super().target(dataclasses.replace(example, prompt=asked))
    steps, _, answer = chain.partition('>')
    said = f'<answer>{answer}</answer>'
    if self.style == NONE:
      return said
    content = written(self.style, asked) or steps.partition('?')[0]
    return f'<{self.style}>{content}</{self.style}>{said}'

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The answer and the form."""
    answer = response.partition('<answer>')[2].partition('</answer>')[0]
    if self.style == NONE:
      form = float(response == f'<answer>{answer}</answer>')
    else:
      form = _FORMS[self.style](example, response)
    return {base.OUTCOME: float(answer == example.answer), 'form': form}


def written(style: str, prompt: str) -> str:
  """Returns what a behaviour writes between its tags: '' of 'think'."""
  rules, digits = prompt.removesuffix('=').split(' ')
  if style == 'plan':
    return ';'.join(rules)
  if style == 'code':
    return (
      ''.join(f'{rule}(' for rule in rules[::-1]) + digits + ')' * len(rules)
    )
  if style == 'knowledge':
    return ';'.join(rule + families.answer(rule, _KNOWN) for rule in rules)
  if style == 'examples':
    stream = draws.Draws('styled chains', prompt)
    other = ''.join(str(stream.below(10)) for _ in digits)
    steps = family_chains.solution(f'{rules} {other}=')
    return f'{other}:{";".join(steps)}'
  return ''
