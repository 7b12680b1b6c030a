"""Tasks: numbered prompts, and reward functions of responses."""

from rl_jax.tasks.arithmetic import Arithmetic
from rl_jax.tasks.backward_words import BackwardWords
from rl_jax.tasks.bandit import Bandit
from rl_jax.tasks.base import OUTCOME, Example, Task, TaskTraits, combine
from rl_jax.tasks.believed_chain import BelievedChain
from rl_jax.tasks.boxes import Boxes
from rl_jax.tasks.bracket_programs import BracketPrograms
from rl_jax.tasks.calculator import Calculator
from rl_jax.tasks.chain import Chain
from rl_jax.tasks.clues import Clues
from rl_jax.tasks.countdown import Countdown
from rl_jax.tasks.coverage import Coverage
from rl_jax.tasks.described import Described
from rl_jax.tasks.environments.advised_key_door import AdvisedKeyDoor
from rl_jax.tasks.environments.arms import Arms
from rl_jax.tasks.environments.aviary import Aviary
from rl_jax.tasks.environments.gymnasium_text import GymnasiumText
from rl_jax.tasks.environments.haggling import Haggling
from rl_jax.tasks.environments.hinted_keywords import HintedKeywords
from rl_jax.tasks.environments.key_door import KeyDoor
from rl_jax.tasks.environments.marked_calls import MarkedCalls
from rl_jax.tasks.environments.memory_window import MemoryWindow
from rl_jax.tasks.environments.mini_grid import MiniGrid
from rl_jax.tasks.environments.misleading_lookup import MisleadingLookup
from rl_jax.tasks.environments.open_spiel import OpenSpiel
from rl_jax.tasks.environments.planned_key_door import PlannedKeyDoor
from rl_jax.tasks.environments.priced_tools import PricedTools
from rl_jax.tasks.environments.program import Program
from rl_jax.tasks.environments.recorded_haggling import RecordedHaggling
from rl_jax.tasks.environments.recorded_walks import RecordedWalks
from rl_jax.tasks.environments.reflections import Reflections
from rl_jax.tasks.environments.renamed_walks import RenamedWalks
from rl_jax.tasks.environments.searched_facts import SearchedFacts
from rl_jax.tasks.environments.text_arena import TextArena
from rl_jax.tasks.environments.text_world import TextWorld
from rl_jax.tasks.environments.told_key_door import ToldKeyDoor
from rl_jax.tasks.environments.tool_calls import JsonCalls
from rl_jax.tasks.environments.triggered_labels import TriggeredLabels
from rl_jax.tasks.environments.two_step_sums import (
  Decompositions,
  TwoStepSums,
)
from rl_jax.tasks.environments.web_form import WebForm
from rl_jax.tasks.environments.with_tools import WithTools
from rl_jax.tasks.evaluation_set import EvaluationSet
from rl_jax.tasks.function_calls import FunctionCalls
from rl_jax.tasks.gap_split import GapSplit
from rl_jax.tasks.goal_prompts import GoalPrompts
from rl_jax.tasks.gym import ReasoningGym
from rl_jax.tasks.in_mode import InMode
from rl_jax.tasks.joined_pairs import JoinedPairs
from rl_jax.tasks.levels import Levels
from rl_jax.tasks.logged_episodes import LoggedEpisodes
from rl_jax.tasks.logged_moves import LoggedMoves
from rl_jax.tasks.mixture import Mixture, MixturePart
from rl_jax.tasks.motifs import Motifs
from rl_jax.tasks.multiple_choice import MultipleChoice
from rl_jax.tasks.partner_lessons import PartnerLessons
from rl_jax.tasks.preference_rows import PreferenceRows
from rl_jax.tasks.prompt_response import PromptResponse
from rl_jax.tasks.python_function import PythonFunction
from rl_jax.tasks.question_answer import QuestionAnswer
from rl_jax.tasks.referenced_pairs import ReferencedPairs
from rl_jax.tasks.refinements import Refinements
from rl_jax.tasks.relabelled import Relabelled
from rl_jax.tasks.reward_functions import RewardFunctions
from rl_jax.tasks.rule_pairs import RulePairs
from rl_jax.tasks.spoken_moves import SpokenMoves
from rl_jax.tasks.step_rows import StepRows
from rl_jax.tasks.templates import (
  ChatTemplate,
  PlainTemplate,
  encode_prompt,
  render_prompt,
)
from rl_jax.tasks.word_problems import WordProblems

__all__ = [
  'FunctionCalls',
  'AdvisedKeyDoor',
  'Arms',
  'OUTCOME',
  'Arithmetic',
  'Aviary',
  'BackwardWords',
  'Bandit',
  'BelievedChain',
  'Boxes',
  'BracketPrograms',
  'Calculator',
  'Chain',
  'ChatTemplate',
  'Clues',
  'Countdown',
  'Coverage',
  'Decompositions',
  'Described',
  'EvaluationSet',
  'Example',
  'Haggling',
  'HintedKeywords',
  'InMode',
  'GapSplit',
  'GoalPrompts',
  'GymnasiumText',
  'JoinedPairs',
  'JsonCalls',
  'KeyDoor',
  'Levels',
  'LoggedEpisodes',
  'LoggedMoves',
  'MarkedCalls',
  'MemoryWindow',
  'MiniGrid',
  'MisleadingLookup',
  'Mixture',
  'MixturePart',
  'Motifs',
  'MultipleChoice',
  'OpenSpiel',
  'PartnerLessons',
  'PlainTemplate',
  'PlannedKeyDoor',
  'ToldKeyDoor',
  'PreferenceRows',
  'PricedTools',
  'Program',
  'PromptResponse',
  'PythonFunction',
  'QuestionAnswer',
  'ReasoningGym',
  'RecordedHaggling',
  'RecordedWalks',
  'ReferencedPairs',
  'Reflections',
  'Refinements',
  'Relabelled',
  'RenamedWalks',
  'RewardFunctions',
  'RulePairs',
  'SearchedFacts',
  'SpokenMoves',
  'StepRows',
  'Task',
  'TaskTraits',
  'TextArena',
  'TextWorld',
  'TriggeredLabels',
  'TwoStepSums',
  'WebForm',
  'WithTools',
  'WordProblems',
  'combine',
  'encode_prompt',
  'render_prompt',
]
