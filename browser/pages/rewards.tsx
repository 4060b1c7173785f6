/** Attempts that wait for a reward from outside: a queue, the conversation beside it, a reward for each. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { plural } from '../../core/format.ts';
import type { AttemptRow, AttemptView, AwaitedRewardsView } from '../../views/api/attempt-views.ts';
import type { ActionResult } from '../../views/api/requests.ts';
import type { ServerInfo } from '../../views/api/run-views.ts';
import { Logs, Outcome } from '../attempt/attempt-facts.tsx';
import { HostedCalls } from '../attempt/hosted.tsx';
import { Turn } from '../attempt/turn.tsx';
import { markOld, postAction, useData } from '../data.ts';
import { useQuery } from '../location.ts';
import { whyNot } from '../parts/action-fields.ts';
import { useKeys } from '../parts/keys.ts';
import { CopyButton, Empty, Notice, Shown } from '../parts/small.tsx';
import { hrefTo } from './addresses.ts';

export function RewardsPage({ run }: { run: string }) {
  const path = `runs/${encodeURIComponent(run)}/rewards`;
  const loaded = useData<AwaitedRewardsView>(path);
  return (
    <>
      <header class="masthead">
        <h1>Rewards awaited</h1>
        <span class="dim">
          {loaded.value !== null && `${plural(loaded.value.rows.length, 'attempt')} without a reward`}
          {loaded.value?.deadline != null && `, until ${loaded.value.deadline}`}
        </span>
      </header>
      <Shown loaded={loaded} what="awaited rewards">
        {({ rows }) =>
          rows.length === 0 ? (
            <Empty title="Nothing waits for a reward.">
              Attempts come here if the agent’s reward is given from outside: by people, or by another program.
            </Empty>
          ) : (
            <Queue run={run} rows={rows} />
          )
        }
      </Shown>
    </>
  );
}

function Queue({ run, rows }: { run: string; rows: readonly AttemptRow[] }) {
  const [query, setQuery] = useQuery();
  const at = Math.max(
    0,
    rows.findIndex(({ id }) => id === query.get('at')),
  );
  const row = rows[at]!;
  const go = (index: number): void => {
    const next = rows[Math.min(rows.length - 1, Math.max(0, index))];
    if (next !== undefined) setQuery({ at: next.id });
  };
  useKeys([
    { keys: 'n', label: 'Next attempt', run: () => go(at + 1) },
    { keys: 'p', label: 'Previous attempt', run: () => go(at - 1) },
  ]);
  return (
    <div class="reward-desk">
      <ol class="card queue" aria-label="Attempts that wait">
        {rows.map(({ id, scenario, turns }, index) => (
          <li key={id}>
            <button type="button" aria-current={index === at} onClick={() => go(index)}>
              <b>{id}</b>
              <span class="note">
                <bdi>{scenario}</bdi>, {plural(turns, 'turn')}
              </span>
            </button>
          </li>
        ))}
      </ol>
      <div>
        <GiveReward key={row.id} run={run} id={row.id} onGiven={() => go(at + 1)} />
        <Conversation run={run} id={row.id} />
      </div>
    </div>
  );
}

interface GiveProps {
  readonly run: string;
  readonly id: string;
  readonly onGiven: () => void;
}

const ASK_AFTER_MS = 250;

interface RewardPlan {
  /** The server's words on what will happen; null until it was asked. */
  readonly plan: ActionResult | null;
  readonly problem: string | null;
  readonly give: () => Promise<void>;
}

/** Asks the server while the reward is typed. */
function useRewardPlan({ run, id, onGiven }: GiveProps, reward: string, note: string, isOff: boolean): RewardPlan {
  const [plan, setPlan] = useState<ActionResult | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const requestId = useRef(crypto.randomUUID());
  const number = reward.trim() === '' ? Number.NaN : Number(reward);
  const request = { action: 'reward', run, attempt: id, reward: number, ...(note !== '' && { note }) } as const;
  useEffect(() => {
    setPlan(null);
    setProblem(null);
    if (!Number.isFinite(number) || isOff) return undefined;
    let isGone = false;
    const ask = async (): Promise<void> => {
      try {
        const next = await postAction({ ...request, isConfirmed: false });
        if (!isGone) setPlan(next);
      } catch (error) {
        if (!isGone) setProblem((error as Error).message);
      }
    };
    const timer = setTimeout(() => void ask(), ASK_AFTER_MS);
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [reward, note, isOff]);
  const give = async (): Promise<void> => {
    if (plan === null) return;
    try {
      await postAction({ ...request, requestId: requestId.current, isConfirmed: true });
      markOld(`runs/${encodeURIComponent(run)}`);
      onGiven();
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  return { plan, problem, give };
}

/** Enter gives the reward, once the page shows what will happen. */
function GiveReward(props: GiveProps) {
  const { id } = props;
  const [reward, setReward] = useState('');
  const [note, setNote] = useState('');
  const input = useRef<HTMLInputElement>(null);
  const reason = whyNot('reward', useData<ServerInfo>('info').value);
  const { plan, problem, give } = useRewardPlan(props, reward, note, reason !== null);
  useKeys([{ keys: 'r', label: 'Type a reward', run: () => input.current?.focus() }]);
  useEffect(() => input.current?.focus(), [reason]);
  return (
    <form
      class="card give"
      onSubmit={(event) => {
        event.preventDefault();
        void give();
      }}
    >
      <label>
        <span class="note">Reward of {id}</span>
        <input
          ref={input}
          inputMode="decimal"
          autoComplete="off"
          value={reward}
          disabled={reason !== null}
          onInput={(event) => setReward(event.currentTarget.value)}
        />
      </label>
      <label class="grow">
        <span class="note">Note</span>
        <input value={note} disabled={reason !== null} onInput={(event) => setNote(event.currentTarget.value)} />
      </label>
      <button type="submit" class="primary" disabled={plan === null}>
        Give and go on
      </button>
      <div class="give-plan" aria-live="polite">
        {reason !== null && <p class="note">{reason}</p>}
        {problem !== null && <Notice level="bad">{problem}</Notice>}
        {plan !== null && (
          <>
            <p>{plan.says}</p>
            <p class="command">
              <code>{plan.command}</code> <CopyButton text={plan.command} />
            </p>
          </>
        )}
      </div>
    </form>
  );
}

function Conversation({ run, id }: { run: string; id: string }) {
  const loaded = useData<AttemptView>(`runs/${encodeURIComponent(run)}/attempts/${encodeURIComponent(id)}`);
  return (
    <Shown loaded={loaded} what={`attempt ${id}`}>
      {(attempt) => (
        <section class="card conversation" aria-label={`Attempt ${id}`}>
          <p class="padded">
            <a href={hrefTo('runs', run, 'attempts', id)}>Attempt {id}</a>
          </p>
          <Outcome attempt={attempt} />
          {attempt.turns.map((turn, index) => (
            <Turn key={turn.call} turn={turn} index={index} />
          ))}
          <HostedCalls calls={attempt.hosted} />
          <Logs lines={attempt.logs} />
        </section>
      )}
    </Shown>
  );
}
