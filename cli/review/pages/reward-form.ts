/** The form that gives an attempt its reward: approve, reject, or a score. */
import { MAX_BY, MAX_NOTE } from '../../../store/records/rewards/given-problems.ts';
import { markup, type Html } from '../../pages/html.ts';

export const FIELDS = { reward: 'reward', score: 'score', by: 'by', note: 'note' } as const;
/** Value of the button that sends the score field. */
export const SCORE = 'score';

interface RewardForm {
  /** Fields that the page knows. */
  readonly hidden: Readonly<Record<string, string>>;
  /** Null: the reviewer may say who it is. */
  readonly by: string | null;
  /** The score is from 0 to 1. */
  readonly isBounded: boolean;
  /** More buttons, for a page of many questions; its buttons have keys. */
  readonly more: Html | null;
}

/** Enter in a field must not press a button: the first one, which it would press, is disabled. */
export function rewardForm({ hidden, by, isBounded, more }: RewardForm): Html {
  const isOne = more === null;
  const button = (kind: string, value: string, label: string) =>
    markup`<button class="${kind}" name="${FIELDS.reward}" value="${value}" data-keys="${value}">${label}${isOne ? null : markup` <kbd>${value}</kbd>`}</button>`;
  return markup`<form method="post"${isOne ? null : markup` class="answers"`}>
<button type="submit" disabled hidden></button>
${hiddenFields(by === null ? hidden : { ...hidden, [FIELDS.by]: by })}
<div class="fields">
${by === null ? markup`<label>Your name <input name="${FIELDS.by}" maxlength="${MAX_BY}" autocomplete="name"></label>` : null}
<label>Note <textarea name="${FIELDS.note}" rows="${isOne ? 3 : 1}" maxlength="${MAX_NOTE}"></textarea></label>
</div>
<div class="buttons">
${button('good', '1', 'Approve')}
${button('bad', '0', 'Reject')}
<span class="score"><label>or a score <input name="${FIELDS.score}" type="number" step="any"${isBounded ? markup` min="0" max="1"` : null} placeholder="0.5"></label>
<button name="${FIELDS.reward}" value="${SCORE}">Give the score</button></span>
${more}
</div>
<p class="dim">Approve gives the reward 1, reject 0.</p>
</form>`;
}

export function hiddenFields(fields: Readonly<Record<string, string>>): Html {
  return markup`${Object.entries(fields).map(([name, value]) => markup`<input type="hidden" name="${name}" value="${value}">\n`)}`;
}
