"""Tasks: numbered prompts, and reward functions of responses."""

from rl_jax.tasks.arithmetic import Arithmetic
from rl_jax.tasks.bandit import Bandit
from rl_jax.tasks.base import OUTCOME, Example, Task, combine
from rl_jax.tasks.countdown import Countdown
from rl_jax.tasks.described import Described
from rl_jax.tasks.gym import ReasoningGym
from rl_jax.tasks.prompt_response import PromptResponse
from rl_jax.tasks.python_function import PythonFunction
from rl_jax.tasks.question_answer import QuestionAnswer
from rl_jax.tasks.templates import (
  ChatTemplate,
  PlainTemplate,
  encode_prompt,
  render_prompt,
)

__all__ = [
  'OUTCOME',
  'Arithmetic',
  'Bandit',
  'ChatTemplate',
  'Countdown',
  'Described',
  'Example',
  'PlainTemplate',
  'PromptResponse',
  'PythonFunction',
  'QuestionAnswer',
  'ReasoningGym',
  'Task',
  'combine',
  'encode_prompt',
  'render_prompt',
]
