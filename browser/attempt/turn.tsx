/** One call of an attempt: what was new in its conversation, the answer, and what is known of it. */
import type { ComponentChildren } from 'preact';
import { formatDuration, formatNumber, plural } from '../../core/reports/format.ts';
import type { TurnView } from '../../views/api/attempt-views.ts';
import { Message } from './message.tsx';

interface TurnProps {
  readonly turn: TurnView;
  readonly index: number;
  /** Links and buttons beside the turn's title. */
  readonly actions?: ComponentChildren;
  /** In place of the messages: its tokens. */
  readonly body?: ComponentChildren;
  readonly isCompact?: boolean;
}

export function Turn({ turn, index, actions, body, isCompact = false }: TurnProps) {
  const fork =
    turn.forkOf === null ? null : `↳ branches from turn ${turn.forkOf + 1}: it continues or rewrites that conversation`;
  return (
    <div class="turn" role="group" aria-label={`Turn ${index + 1}`} data-turn={index}>
      {!isCompact && (
        <header class="turn-head">
          <h2>Turn {index + 1}</h2>
          {turn.label !== null && <span class="chip quiet">{turn.label}</span>}
          <span class="note">{turnFacts(turn).join(' · ')}</span>
          <span class="turn-actions">{actions}</span>
        </header>
      )}
      {fork !== null && <p class="fork note">{fork}</p>}
      {body ?? <Messages turn={turn} />}
      {turn.reward !== null && <p class="note">this turn earned {formatNumber(turn.reward)}</p>}
    </div>
  );
}

function Messages({ turn }: { turn: TurnView }) {
  return (
    <>
      {turn.messages.map((message, at) => (
        <Message key={at} message={message} />
      ))}
      <Message message={turn.role === null ? turn.answer : { ...turn.answer, role: turn.role }} isAnswer />
    </>
  );
}

function turnFacts({ promptTokens, sampledTokens, finishReason, seconds, fresh }: TurnView): string[] {
  return [
    plural(promptTokens, 'prompt token'),
    `${sampledTokens} sampled`,
    finishReason === null ? null : `ended by ${finishReason}`,
    seconds === null ? null : formatDuration(seconds),
    fresh ? 'a conversation of its own' : null,
  ].filter((fact) => fact !== null);
}
