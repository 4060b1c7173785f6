/** Calls of hosted models, which are never trained. */
import { formatNumber, plural } from '../../core/reports/format.ts';
import type { HostedCallView } from '../../views/api/attempt-views.ts';
import { Message } from './message.tsx';

export function HostedCalls({ calls }: { calls: readonly HostedCallView[] }) {
  if (calls.length === 0) return null;
  return (
    <details class="folded">
      <summary>{plural(calls.length, 'call')} of hosted models</summary>
      {calls.map((call, index) => (
        <section key={index} class="turn">
          <p class="note">
            <bdi>{call.role === null ? call.model : `${call.role}, ${call.model}`}</bdi> ·{' '}
            {hostedFacts(call).join(' · ')}
          </p>
          {call.messages.map((message, at) => (
            <Message key={at} message={message} />
          ))}
          {call.refusal !== null && <p class="wrong">refused: {call.refusal}</p>}
          {call.answers.map((message, at) => (
            <Message key={at} message={message} isAnswer />
          ))}
        </section>
      ))}
    </details>
  );
}

function hostedFacts({ promptTokens, completionTokens, usd }: HostedCallView): string[] {
  const tokens =
    promptTokens === null || completionTokens === null
      ? 'tokens unknown'
      : `${promptTokens} + ${completionTokens} tokens`;
  return usd === null ? [tokens] : [tokens, `$${formatNumber(usd)}`];
}
