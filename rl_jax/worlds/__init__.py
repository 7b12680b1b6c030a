"""Worlds: small built-in tasks, in each of which one mechanism can act."""

from rl_jax.worlds.advised_key_door import AdvisedKeyDoor as AdvisedKeyDoor
from rl_jax.worlds.arithmetic import Arithmetic as Arithmetic
from rl_jax.worlds.arms import Arms as Arms
from rl_jax.worlds.backward_words import BackwardWords as BackwardWords
from rl_jax.worlds.bandit import Bandit as Bandit
from rl_jax.worlds.believed_chain import BelievedChain as BelievedChain
from rl_jax.worlds.boxes import Boxes as Boxes
from rl_jax.worlds.bracket_programs import BracketPrograms as BracketPrograms
from rl_jax.worlds.calculator_sums import Calculator as Calculator
from rl_jax.worlds.chain import Chain as Chain
from rl_jax.worlds.circular_taste import CircularTaste as CircularTaste
from rl_jax.worlds.clues import Clues as Clues
from rl_jax.worlds.coverage import Coverage as Coverage
from rl_jax.worlds.criticised_families import (
  CriticisedFamilies as CriticisedFamilies,
)
from rl_jax.worlds.equivalent_chains import EquivalentChains as EquivalentChains
from rl_jax.worlds.families import Families as Families
from rl_jax.worlds.family_chains import FamilyChains as FamilyChains
from rl_jax.worlds.frozen_lake import FrozenLake as FrozenLake
from rl_jax.worlds.function_calls import FunctionCalls as FunctionCalls
from rl_jax.worlds.guessing_games import TwentyQuestions as TwentyQuestions
from rl_jax.worlds.guessing_games import Wordle as Wordle
from rl_jax.worlds.haggling import Haggling as Haggling
from rl_jax.worlds.hinted_keywords import HintedKeywords as HintedKeywords
from rl_jax.worlds.instructed_form import InstructedForm as InstructedForm
from rl_jax.worlds.instruction_pairs import InstructionPairs as InstructionPairs
from rl_jax.worlds.key_door import KeyDoor as KeyDoor
from rl_jax.worlds.kuhn_match import KuhnMatch as KuhnMatch
from rl_jax.worlds.loved_motifs import LovedMotifs as LovedMotifs
from rl_jax.worlds.many_boxes import ManyBoxes as ManyBoxes
from rl_jax.worlds.misleading_lookup import MisleadingLookup as MisleadingLookup
from rl_jax.worlds.motifs import Motifs as Motifs
from rl_jax.worlds.multiple_choice import MultipleChoice as MultipleChoice
from rl_jax.worlds.narrated_key_door import NarratedKeyDoor as NarratedKeyDoor
from rl_jax.worlds.partner_lessons import PartnerLessons as PartnerLessons
from rl_jax.worlds.planned_key_door import PlannedKeyDoor as PlannedKeyDoor
from rl_jax.worlds.priced_tools import PricedTools as PricedTools
from rl_jax.worlds.principle_pairs import PrinciplePairs as PrinciplePairs
from rl_jax.worlds.ranked_families import RankedFamilies as RankedFamilies
from rl_jax.worlds.recorded_episodes import RecordedEpisodes as RecordedEpisodes
from rl_jax.worlds.recorded_haggling import RecordedHaggling as RecordedHaggling
from rl_jax.worlds.recorded_moves import RecordedMoves as RecordedMoves
from rl_jax.worlds.refactorings import Refactorings as Refactorings
from rl_jax.worlds.reflections import Reflections as Reflections
from rl_jax.worlds.rubric_topics import RubricTopics as RubricTopics
from rl_jax.worlds.rule_texts import RuleTexts as RuleTexts
from rl_jax.worlds.searched_facts import SearchedFacts as SearchedFacts
from rl_jax.worlds.sokoban import Sokoban as Sokoban
from rl_jax.worlds.spoken_moves import SpokenMoves as SpokenMoves
from rl_jax.worlds.triggered_labels import TriggeredLabels as TriggeredLabels
from rl_jax.worlds.two_step_sums import Decompositions as Decompositions
from rl_jax.worlds.two_step_sums import TwoStepSums as TwoStepSums
from rl_jax.worlds.web_form import WebForm as WebForm
from rl_jax.worlds.word_problems import WordProblems as WordProblems
