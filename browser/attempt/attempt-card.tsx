/** Attempts of one scenario side by side, as on a group's page. */
import { useState } from 'preact/hooks';
import { formatNumber } from '../../core/reports/format.ts';
import type { AttemptView, TurnView } from '../../views/api/attempt-views.ts';
import { Logs, metricFacts, Outcome, Reward } from './attempt-facts.tsx';
import { HostedCalls } from './hosted.tsx';
import { Turn } from './turn.tsx';

interface CardProps {
  readonly attempt: AttemptView;
  /** Number of first messages that all prompts share and that stand elsewhere. */
  readonly shared?: number;
  /** Address of its own page; null where it has none. */
  readonly href: string | null;
  /** Address of its scenario beside itself before training. */
  readonly beforeHref?: string | undefined;
}

/** Turns that a card shows at first: a card beside fifteen others is read from its top. */
const FIRST_TURNS = 30;

export function AttemptCard({ attempt, shared = 0, href, beforeHref }: CardProps) {
  const own = withoutShared(attempt.turns, shared);
  const [isWhole, setWhole] = useState(own.length <= FIRST_TURNS);
  const turns = isWhole ? own : own.slice(0, FIRST_TURNS);
  const facts = metricFacts(attempt);
  return (
    <article class={isLong(own) ? 'card attempt long' : 'card attempt'} aria-label={attempt.title}>
      <header>
        <span class="name">{href === null ? <bdi>{attempt.title}</bdi> : <a href={href}>{attempt.title}</a>}</span>
        <Reward reward={attempt.row.reward} advantage={attempt.row.advantage} />
      </header>
      <p class="facts">{facts.length === 0 ? '\u00a0' : facts.join(' · ')}</p>
      {attempt.before !== undefined && (
        <p class="facts">
          <a href={beforeHref}>
            before training {formatNumber(attempt.before.reward)}
            <span class="visually-hidden">, {attempt.title}</span>
          </a>
        </p>
      )}
      <Outcome attempt={attempt} />
      {turns.map((turn, index) => (
        <Turn key={turn.call} turn={turn} index={index} isCompact />
      ))}
      {!isWhole && (
        <button type="button" class="more" onClick={() => setWhole(true)}>
          Show {attempt.turns.length - FIRST_TURNS} more turns
        </button>
      )}
      {attempt.leftOut !== null && <p class="note">{attempt.leftOut} not shown</p>}
      <HostedCalls calls={attempt.hosted} />
      <Logs lines={attempt.logs} />
    </article>
  );
}

function withoutShared([first, ...others]: readonly TurnView[], shared: number): readonly TurnView[] {
  return first === undefined ? [] : [{ ...first, messages: first.messages.slice(shared) }, ...others];
}

function isLong(turns: readonly TurnView[]): boolean {
  return turns.some((turn) =>
    [...turn.messages, turn.answer].some((message) => message.text.length > 120 || message.toolCalls.length > 0),
  );
}

/** One bar for each attempt: the group's spread at a glance. */
export function RewardBars({ attempts }: { attempts: readonly Pick<AttemptView, 'row' | 'title'>[] }) {
  const rewards = attempts.map(({ row }) => row.reward);
  const known = rewards.filter((reward) => reward !== null);
  const most = Math.max(1e-9, ...known.map(Math.abs));
  const says = `Rewards: ${rewards.map((reward) => (reward === null ? 'none' : formatNumber(reward))).join(', ')}`;
  const [width, height] = [12, 32];
  // The line stands in the middle only if some rewards are negative.
  const zero = known.some((reward) => reward < 0) ? height / 2 : height - 1;
  return (
    <svg
      class="reward-bars"
      width={attempts.length * width}
      height={height}
      viewBox={`0 0 ${attempts.length * width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={says}
    >
      <line x1="0" x2={attempts.length * width} y1={zero} y2={zero} />
      {attempts.map(({ row: { reward }, title }, index) => {
        const size = reward === null ? 0 : Math.max(1.5, (Math.abs(reward) / most) * (zero - 1));
        return (
          <rect
            key={index}
            class={reward === null ? 'none' : reward < 0 ? 'bad' : reward > 0 ? 'good' : ''}
            x={index * width + 1}
            width={width - 3}
            y={reward === null ? zero - 4 : reward < 0 ? zero : zero - size}
            height={reward === null ? 4 : size}
          >
            <title>{`${title}: ${reward === null ? 'no reward' : `reward ${formatNumber(reward)}`}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}
