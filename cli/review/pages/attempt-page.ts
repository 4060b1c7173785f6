/** The page behind a link: one attempt's conversation, and the form that gives its reward. */
import type { Conversation } from '../../../store/records/judging/conversation.ts';
import { markup, type Html } from '../../pages/html.ts';
import { formatNumber } from '../../../core/reports/format.ts';
import { attemptHtml, textHtml } from './conversation.ts';
import type { Page } from './page.ts';
import { rewardForm } from './reward-form.ts';

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

export function attemptPage(view: ReviewedAttempt): Page {
  const { run, attempt, scenarioId, conversation, given, isReplacing, refusal } = view;
  return {
    title: `Attempt ${attempt} of ${run}`,
    body: markup`<header>
<h1>Attempt ${attempt} of ${run}</h1>
<p class="dim">scenario <bdi>${scenarioId}</bdi></p>
</header>
${attemptHtml(conversation)}
${given === null ? null : givenHtml(given)}
${isReplacing && refusal === null ? markup`<p class="notice">This attempt has a reward already. Yours would replace it.</p>` : null}
${refusal === null && given === null ? rewardForm({ hidden: {}, by: null, isBounded: false, more: null }) : null}
${refusal === null ? null : markup`<p class="notice" dir="auto">${refusal}</p>`}`,
  };
}

function givenHtml({ reward, by, note, at }: GivenView): Html {
  const who = by === null ? null : markup` by <bdi>${by}</bdi>`;
  return markup`<div class="notice"><p>The reward is ${formatNumber(reward)}, given${who} on ${at.slice(0, 16).replace('T', ' ')} UTC.</p>
${note === null ? null : textHtml(note)}</div>`;
}
