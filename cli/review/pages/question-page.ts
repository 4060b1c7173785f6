/** Pages of a reviewer: two attempts side by side, or one, and the next question once it is answered. */
import { commonLength, conversationOf, type Conversation } from '../../../store/records/judging/conversation.ts';
import { markup, type Html } from '../../pages/html.ts';
import { plural } from '../../../core/reports/format.ts';
import type { NextQuestion, PairQuestion, ScoreQuestion } from '../questions/questions.ts';
import { MAX_BY } from '../../../store/records/rewards/given-problems.ts';

import { attemptHtml, conversationHtml, toolsHtml } from './conversation.ts';
import type { Page } from './page.ts';
import { FIELDS, hiddenFields, rewardForm } from './reward-form.ts';

/** Fields of the forms beside those of one attempt's page. */
export const QUESTION_FIELDS = {
  ...FIELDS,
  left: 'left',
  right: 'right',
  attempt: 'attempt',
  answer: 'answer',
} as const;
/** Values of buttons that give no answer. */
export const SKIP = 'skip';
export const AGAIN = 'again';

const DEFAULT_CRITERION = 'Which one is better?';
const SCORE_CRITERION = 'How good is this?';

/** Asks for the reviewer's name, which is recorded with each answer. */
export function namePage(run: string): Page {
  return {
    title: `Review ${run}`,
    body: markup`<h1>Review ${run}</h1>
<form method="get">
<div class="fields"><label>Your name, recorded with your answers <input name="${FIELDS.by}" maxlength="${MAX_BY}" autocomplete="name" required autofocus></label></div>
<div class="buttons"><button class="good">Start</button></div>
</form>`,
  };
}

export interface ReviewerPage extends NextQuestion {
  readonly run: string;
  readonly by: string;
}

export function questionPage(view: ReviewerPage): Page {
  const { question, run } = view;
  if (question === null) return { title: `Review ${run}`, body: donePart(view) };
  const isPair = 'left' in question;
  return {
    title: `Review ${run}`,
    body: isPair ? pairPart(view, question) : scorePart(view, question),
    isWide: isPair,
    hasKeys: true,
  };
}

function header(
  { run, by, review, answered, needed, skipped }: ReviewerPage,
  fallback: string,
  scenario: string,
): Html {
  const putOff = skipped === 0 ? null : markup` · you skipped ${skipped}`;
  return markup`<header>
<h1 dir="auto">${review?.question ?? fallback}</h1>
<p class="dim">${answered} of ${plural(needed, 'answer')}${putOff} · ${run}, scenario <bdi>${scenario}</bdi> · you are <bdi>${by}</bdi></p>
<progress max="${Math.max(1, needed)}" value="${answered}"></progress>
</header>`;
}

/** Messages that both begin with stand once, above. */
function pairPart(view: ReviewerPage, question: PairQuestion): Html {
  const [left, right] = [question.left, question.right].map(({ record }) => conversationOf(record)) as [
    Conversation,
    Conversation,
  ];
  const common = commonLength([left.messages, right.messages]);
  return markup`${header(view, DEFAULT_CRITERION, question.scenarioId)}
${common === 0 ? null : conversationHtml(left.messages.slice(0, common))}
<div class="pair">
${side('Left', left, common)}
${side('Right', right, common)}
</div>
${toolsHtml([...new Map([...(left.tools ?? []), ...(right.tools ?? [])].map((tool) => [JSON.stringify(tool), tool])).values()])}
${answerForm(view.by, question)}`;
}

function side(name: string, { messages, additionalHistories = [] }: Conversation, common: number): Html {
  const rest = messages.slice(common);
  return markup`<section class="side"><h2>${name}</h2>
${rest.length === 0 ? markup`<p class="dim">Nothing more.</p>` : conversationHtml(rest)}
${additionalHistories.map((history) => markup`<h3>Another conversation of the same attempt</h3>\n${conversationHtml(history)}`)}
</section>`;
}

function answerForm(by: string, { left, right }: PairQuestion): Html {
  return markup`<form method="post" class="answers">
${hiddenFields({ by, left: left.id, right: right.id } satisfies Partial<Record<keyof typeof QUESTION_FIELDS, string>>)}
<div class="buttons">
<button class="primary" name="${QUESTION_FIELDS.answer}" value="left" data-keys="1 ArrowLeft">Left <kbd>1</kbd></button>
<button name="${QUESTION_FIELDS.answer}" value="equal" data-keys="0 ArrowDown">Equal <kbd>0</kbd></button>
<button class="primary" name="${QUESTION_FIELDS.answer}" value="right" data-keys="2 ArrowRight">Right <kbd>2</kbd></button>
<button class="quiet" name="${QUESTION_FIELDS.answer}" value="${SKIP}" data-keys="s">Skip <kbd>S</kbd></button>
</div>
</form>`;
}

function scorePart(view: ReviewerPage, question: ScoreQuestion): Html {
  const skip = markup`<button class="quiet" name="${FIELDS.reward}" value="${SKIP}" data-keys="s" formnovalidate>Skip <kbd>S</kbd></button>`;
  return markup`${header(view, SCORE_CRITERION, question.scenarioId)}
${attemptHtml(conversationOf(question.attempt.record))}
${rewardForm({
  hidden: { [QUESTION_FIELDS.attempt]: question.attempt.id },
  by: view.by,
  isBounded: view.review !== null,
  more: skip,
})}`;
}

/** Nothing is left for this reviewer: others may have to answer, or the run plays its next attempts. */
function donePart({ run, by, answered, needed, skipped }: ReviewerPage): Html {
  const state =
    needed === 0
      ? 'Nothing waits for a review now. The next questions come once the run has played further attempts.'
      : `${answered} of ${plural(needed, 'answer')} are given; the others are for other reviewers.`;
  return markup`<h1>${skipped === 0 ? 'Nothing left for you' : `You skipped ${plural(skipped, 'question')}`}</h1>
<p class="notice">${state}</p>
<form method="post" class="answers">
<input type="hidden" name="${QUESTION_FIELDS.by}" value="${by}">
<div class="buttons">
<button class="primary" name="${QUESTION_FIELDS.answer}" value="${AGAIN}">${skipped === 0 ? 'Look again' : 'Ask me again'}</button>
</div>
</form>
<p class="dim">${run} · you are <bdi>${by}</bdi></p>`;
}

/** An answer that came too late, with the way to the next question. */
export function refusedPage(message: string, next: string): Page {
  return {
    title: 'Not accepted',
    body: markup`<h1>Not accepted</h1>
<p class="notice" dir="auto">${message}</p>
<p><a href="${next}">Next question</a></p>`,
  };
}
