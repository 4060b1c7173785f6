/** The page behind a link: one attempt's conversation, and the form that gives its reward. */
import type { Conversation } from '../../../store/records/judging/conversation.ts';
import { markup, type Html } from '../../pages/html.ts';
import { formatNumber } from '../../../core/reports/format.ts';
import { MAX_BY, MAX_NOTE } from '../../../store/records/rewards/given-problems.ts';
import { attemptHtml, textHtml } from './conversation.ts';
import { page } from './page.ts';

export interface ReviewedAttempt {
  readonly run: string;
  readonly attempt: string;
  readonly scenarioId: string;
  readonly conversation: Conversation;
  /** The reward that this link gave; null if it gave none. */
  readonly given: GivenView | null;
  /** Somebody else has given one, which another would replace. */
  readonly isReplacing: boolean;
  /** Why the page takes no reward; null if it does. */
  readonly refusal: string | null;
}

export interface GivenView {
  readonly reward: number;
  readonly by: string | null;
  readonly note: string | null;
  readonly at: string;
}

export const FIELDS = { reward: 'reward', score: 'score', by: 'by', note: 'note' } as const;
/** Value of the button that sends the score field. */
export const SCORE = 'score';

export function attemptPage(view: ReviewedAttempt): Html {
  const { run, attempt, scenarioId, conversation, given, isReplacing, refusal } = view;
  return page({
    title: `Attempt ${attempt} of ${run}`,
    body: markup`<header>
<h1>Attempt ${attempt} of ${run}</h1>
<p class="dim">scenario <bdi>${scenarioId}</bdi></p>
</header>
${attemptHtml(conversation)}
${given === null ? null : givenHtml(given)}
${isReplacing && refusal === null ? markup`<p class="notice">This attempt has a reward already. Yours would replace it.</p>` : null}
${refusal === null && given === null ? rewardForm() : null}
${refusal === null ? null : markup`<p class="notice" dir="auto">${refusal}</p>`}`,
  });
}

function givenHtml({ reward, by, note, at }: GivenView): Html {
  const who = by === null ? null : markup` by <bdi>${by}</bdi>`;
  return markup`<div class="notice"><p>The reward is ${formatNumber(reward)}, given${who} on ${at.slice(0, 16).replace('T', ' ')} UTC.</p>
${note === null ? null : textHtml(note)}</div>`;
}

/** Enter in a field must not press a button: the first one, which it would press, is disabled. */
function rewardForm(): Html {
  return markup`<form method="post">
<button type="submit" disabled hidden></button>
<h2>Your decision</h2>
<div class="fields">
<label>Your name <input name="${FIELDS.by}" maxlength="${MAX_BY}" autocomplete="name"></label>
<label>Note <textarea name="${FIELDS.note}" rows="3" maxlength="${MAX_NOTE}"></textarea></label>
</div>
<div class="buttons">
<button class="good" name="${FIELDS.reward}" value="1">Approve</button>
<button class="bad" name="${FIELDS.reward}" value="0">Reject</button>
<span class="score"><label>or a score <input name="${FIELDS.score}" type="number" step="any" placeholder="0.5"></label>
<button name="${FIELDS.reward}" value="${SCORE}">Give the score</button></span>
</div>
<p class="dim">Approve gives the reward 1, reject 0.</p>
</form>`;
}
