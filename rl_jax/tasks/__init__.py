"""Tasks: numbered prompts, and reward functions of responses."""

from rl_jax.tasks.base import OUTCOME, Example, Task, TaskTraits, combine
from rl_jax.tasks.choice_rows import ChoiceRows
from rl_jax.tasks.countdown import Countdown
from rl_jax.tasks.described import Described
from rl_jax.tasks.environments.alf_world import AlfWorld
from rl_jax.tasks.environments.aviary import Aviary
from rl_jax.tasks.environments.fenced_calls import FencedCalls
from rl_jax.tasks.environments.gymnasium_text import GymnasiumText
from rl_jax.tasks.environments.marked_calls import MarkedCalls
from rl_jax.tasks.environments.memory_window import MemoryWindow
from rl_jax.tasks.environments.mini_grid import MiniGrid
from rl_jax.tasks.environments.open_env import OpenEnv
from rl_jax.tasks.environments.open_spiel import OpenSpiel
from rl_jax.tasks.environments.program import Program
from rl_jax.tasks.environments.recorded_walks import RecordedWalks
from rl_jax.tasks.environments.renamed_walks import RenamedWalks
from rl_jax.tasks.environments.reworded import Reworded
from rl_jax.tasks.environments.text_arena import TextArena
from rl_jax.tasks.environments.text_world import TextWorld
from rl_jax.tasks.environments.tool_calls import JsonCalls
from rl_jax.tasks.environments.tool_rules import ToolRules
from rl_jax.tasks.environments.verifiers_env import Verifiers
from rl_jax.tasks.environments.with_tools import WithTools
from rl_jax.tasks.evaluation_set import EvaluationSet, SetAverage
from rl_jax.tasks.gap_split import GapSplit
from rl_jax.tasks.goal_prompts import GoalPrompts
from rl_jax.tasks.gym import ReasoningGym
from rl_jax.tasks.in_mode import InMode
from rl_jax.tasks.instruction_rows import InstructionRows
from rl_jax.tasks.joined_pairs import JoinedPairs, ReferencedPairs
from rl_jax.tasks.kept_prompts import KeptPrompts
from rl_jax.tasks.levels import Levels
from rl_jax.tasks.mixture import Mixture, MixturePart
from rl_jax.tasks.opened_modes import OpenedModes
from rl_jax.tasks.preference_rows import PreferenceRows, StepRows
from rl_jax.tasks.prompt_response import PromptResponse
from rl_jax.tasks.python_function import PythonFunction
from rl_jax.tasks.question_answer import QuestionAnswer
from rl_jax.tasks.refinements import Refinements
from rl_jax.tasks.relabelled import Relabelled
from rl_jax.tasks.reward_functions import RewardFunctions
from rl_jax.tasks.reward_identifiers import RewardIdentifiers
from rl_jax.tasks.rule_pairs import RulePairs
from rl_jax.tasks.templates import (
  ChatTemplate,
  PlainTemplate,
  encode_prompt,
  render_prompt,
)
from rl_jax.tasks.text_spans import TextSpans

__all__ = [
  'OUTCOME',
  'AlfWorld',
  'Aviary',
  'ChatTemplate',
  'Countdown',
  'Described',
  'EvaluationSet',
  'Example',
  'FencedCalls',
  'InMode',
  'InstructionRows',
  'GapSplit',
  'GoalPrompts',
  'GymnasiumText',
  'JoinedPairs',
  'JsonCalls',
  'KeptPrompts',
  'Levels',
  'MarkedCalls',
  'MemoryWindow',
  'MiniGrid',
  'Mixture',
  'MixturePart',
  'ChoiceRows',
  'OpenEnv',
  'OpenSpiel',
  'OpenedModes',
  'PlainTemplate',
  'PreferenceRows',
  'Program',
  'PromptResponse',
  'PythonFunction',
  'QuestionAnswer',
  'ReasoningGym',
  'RecordedWalks',
  'ReferencedPairs',
  'Refinements',
  'Relabelled',
  'RenamedWalks',
  'RewardFunctions',
  'RewardIdentifiers',
  'Reworded',
  'RulePairs',
  'SetAverage',
  'StepRows',
  'Task',
  'TaskTraits',
  'TextArena',
  'TextSpans',
  'TextWorld',
  'ToolRules',
  'Verifiers',
  'WithTools',
  'combine',
  'encode_prompt',
  'render_prompt',
]
