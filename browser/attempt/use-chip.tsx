/** Use of a group: trained, or why not. */
import type { AttemptRow } from '../../views/api/attempt-views.ts';

type Use = AttemptRow['use'];

export const USE_LABELS: Readonly<Record<Use, string>> = {
  trained: 'trained',
  eval: 'evaluation',
  replay: 'replay',
  'no-variance': 'no variance',
  'too-few-attempts': 'too few attempts',
  'no-sampled-tokens': 'no sampled tokens',
  'all-truncated': 'all truncated',
  stale: 'stale',
  unjudged: 'not judged',
};

export const USE_REASONS: Readonly<Record<Use, string>> = {
  trained: 'The group was trained.',
  eval: 'Attempts of an evaluation are never trained.',
  replay: 'A replay is never trained, and no metric counts it.',
  'no-variance': 'Not trained: all of its rewards are equal, so no attempt was better than another.',
  'too-few-attempts': 'Not trained: too many of its attempts failed.',
  'no-sampled-tokens': 'Not trained: no attempt sampled a token.',
  'all-truncated': 'Not trained: every attempt was cut off.',
  stale: 'Not trained: its rewards came too many steps after it was played.',
  unjudged: 'Not trained: it has no verdict.',
};

export function UseChip({ use }: { use: Use }) {
  const kind =
    use === 'trained' ? 'good' : use === 'eval' || use === 'replay' ? 'accent' : use === 'no-variance' ? 'warn' : 'bad';
  return (
    <span class={`chip ${kind}`} title={USE_REASONS[use]}>
      {USE_LABELS[use]}
    </span>
  );
}
