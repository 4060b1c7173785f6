/** The judge's prompts on a group, and its verdicts. */
import { formatNumber, plural } from '../../core/reports/format.ts';
import type { JudgeView } from '../../views/api/attempt-views.ts';
import { indentJson } from './json-text.ts';
import { PlainTable } from '../parts/plain-table.tsx';
import { LongText, Message } from './message.tsx';

export function Judge({ judge, titles }: { judge: JudgeView; titles: readonly string[] }) {
  return (
    <section class="card judge" aria-label="Judge">
      <p>
        Judged by{' '}
        <b>
          <bdi>{judge.judge}</bdi>
        </b>
        {judge.questions.length > 0 && `, ${plural(judge.questions.length, 'question')}`}
      </p>
      <Verdicts judge={judge} titles={titles} />
      {judge.questions.map(({ messages, answers }, index) => (
        <details key={index} class="folded" open={judge.questions.length === 1}>
          <summary>
            {judge.questions.length === 1 ? 'Exact prompt and verdict' : `Prompt and verdict ${index + 1}`}
          </summary>
          {messages === null ? (
            <p class="note">The store does not hold the prompt of this question.</p>
          ) : (
            messages.map((message, at) => <Message key={at} message={message} />)
          )}
          {answers.map(({ text, tokens, usd }, at) => (
            <div key={at} class="message answer">
              <span class="role">
                {answers.length === 1 ? 'verdict' : `verdict ${at + 1}`}
                <br />
                {plural(tokens, 'token')}
                {usd !== null && `, $${formatNumber(usd)}`}
              </span>
              <div class="said">
                <LongText text={indentJson(text) ?? text} />
              </div>
            </div>
          ))}
        </details>
      ))}
    </section>
  );
}

function Verdicts({ judge: { scores, explanations }, titles }: { judge: JudgeView; titles: readonly string[] }) {
  if (scores.every((score) => score === null) && explanations.every((text) => text === null)) return null;
  const hasWords = explanations.some((text) => text !== null);
  return (
    <PlainTable
      label="Scores by attempt"
      names="attempt"
      columns={[{ key: 'score' }, ...(hasWords ? [{ key: 'why', kind: 'words' } as const] : [])]}
      rows={scores.map((score, index) => ({
        key: String(index),
        name: titles[index] ?? `attempt ${index}`,
        cells: [formatNumber(score), <bdi key="why">{explanations[index] ?? '–'}</bdi>],
      }))}
    />
  );
}
