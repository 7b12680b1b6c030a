"""The meaning of each key of `row_inputs.read`."""

KEYS = {
  'annotator_B': (
    'number, from 0, of who compared the response; filled by rows from data '
    'that say it'
  ),
  'aspect_label_BA': (
    'labels of A aspects of the response, or NO_LABEL; filled by rows from '
    'data with aspects'
  ),
  'beats_BG': (
    'probability that the row beats row j of its group, 1/2 where nobody has '
    'compared them; filled by reward models and judges of pairs with a weight'
  ),
  'candidate_B': '1 on the rows whose step is its own candidate, else 0',
  'candidate_ends_B': '1 if the response ends with its candidate step, else 0',
  'candidate_value_B': 'mean reward of completions after the step of the row',
  'chosen_B': (
    'label of the data: 1 for a chosen or desirable response, 0 for a rejected '
    'one, below 0 for rows without a label; filled by rows from data'
  ),
  'cluster_id_B': (
    'a number for the final answer, equal for equivalent answers of one '
    'prompt; below 0: the response has no answer; QuestionAnswer and '
    'WordProblems have it with clusters=True'
  ),
  'cut_BC': 'rising token positions after which values are known, or NO_CUT',
  'cut_value_BC': 'mean reward of continuations after each cut',
  'difficulty_B': 'weight of the prompt in the loss, larger is harder, >= 0',
  'first_call_B': (
    'token position of the first tool call, or of the turn that makes it; '
    'below 0: no call; filled by episodes'
  ),
  'forced_B': '1 if the mode was forced on the row by a prefix, else 0',
  'format_id_B': 'a number for the reasoning format of the response',
  'group_probs': (
    'probabilities of all response tokens of the group, [B, T, G * T]; filled '
    'by score'
  ),
  'hidden': 'final hidden states [B, T, D]; filled by score',
  'hit_rank_B': 'rank, from 1, of the first right candidate; 0: none is right',
  'logged_B': '1 on rows from data, 0 on sampled ones; filled by the source',
  'marginal_gain_BT': 'F(prefix and token) - F(prefix) of a set function F',
  'mismatched_B': (
    '1 on rows that hold the response to another prompt of the batch, else 0; '
    'filled by rows from data where a piece reads it'
  ),
  'mixture_B': (
    '1 on rows whose logp_behaviour_BT is that of a mixture with the policy'
  ),
  'mode_B': 'mode of the response: 0 is the cheapest (instant) mode',
  'num_answers_B': 'candidates in the response; below 0: it is malformed',
  'opponent_B': '1 on rows that an opponent has sampled, else 0 (Against)',
  'reference_reward_NM': 'rewards of M reference responses to each prompt',
  'segment_start_BT': '1 on the first token of a segment (step, action)',
  'self_certainty': 'self-certainty of every token [B, T]; filled by score',
  'step_label_BT': (
    'label of a step at its last token, from 0 (wrong) to 1 (right), below 0 '
    'elsewhere; filled by rows from data with labels of steps'
  ),
  'step_score_BT': (
    'probability from 0 to 1 that a step is right at its last token, below 0 '
    'elsewhere; filled by reward models with steps'
  ),
  'think_mask_BT': '1 on the tokens of the chain of thought',
  'value_heads_after': (
    'all value heads after every token [B, T, H]; filled by score'
  ),
  'values_after': 'value head after every token [B, T]; filled by score',
  'version_BT': (
    'optimizer step of the weights that wrote each token; filled where a '
    'response is written in several iterations'
  ),
  'waits_B': '1 on rows that continue in the next iteration, else 0',
  'window_start_B': 'tokens that earlier iterations wrote',
}
