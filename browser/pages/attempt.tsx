/** One attempt: its conversation or its tokens, times, numbers, and the record as it is stored. */
import { useCallback, useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import { formatGroupId, parseAttemptId } from '../../core/names/attempt-id.ts';
import { formatDuration, formatNumber, plural } from '../../core/reports/format.ts';
import type { AttemptView, BeforeView, TokensView } from '../../views/api/attempt-views.ts';
import { HostedCalls } from '../attempt/hosted.tsx';
import { formatMetric, Logs, Outcome, Reward } from '../attempt/attempt-facts.tsx';
import { LongText } from '../attempt/message.tsx';
import { OVERLAYS, type Overlay } from '../attempt/overlays.ts';
import { Timings } from '../attempt/timings.tsx';
import { TokenView } from '../attempt/token-view.tsx';
import { Turn } from '../attempt/turn.tsx';
import { UseChip } from '../attempt/use-chip.tsx';
import { useData } from '../data.ts';
import { pathTo, useQuery, hrefTo, stepPath } from '../location.ts';
import { useKeys } from '../parts/keys.ts';
import { Chip, CopyButton, Facts, Notice, Shown } from '../parts/small.tsx';
import { Tabs } from '../parts/tabs.tsx';
import { Neighbours } from './neighbours.tsx';
import { ReplayDialog, TurnActions } from './turn-actions.tsx';

export function AttemptPage({ run, id }: { run: string; id: string }) {
  const loaded = useData<AttemptView>(attemptPath(run, id));
  return (
    <Shown loaded={loaded} what={`attempt ${id}`}>
      {(attempt) => <Attempt run={run} id={id} attempt={attempt} />}
    </Shown>
  );
}

function attemptPath(run: string, id: string): string {
  return `runs/${encodeURIComponent(run)}/attempts/${encodeURIComponent(id)}`;
}

interface AttemptProps {
  readonly run: string;
  readonly id: string;
  readonly attempt: AttemptView;
}

function Attempt({ run, id, attempt }: AttemptProps) {
  const [replayFrom, setReplayFrom] = useState<number | null>(null);
  const renderTurn = useCallback(
    (index: number, body?: ComponentChildren) => {
      const turn = attempt.turns[index];
      if (turn === undefined) return body;
      const actions = (
        <TurnActions
          path={attemptPath(run, id)}
          attempt={attempt}
          index={index}
          onReplay={() => setReplayFrom(index)}
        />
      );
      return <Turn key={turn.call} turn={turn} index={index} actions={actions} body={body} />;
    },
    [run, id, attempt],
  );
  return (
    <>
      <Head run={run} id={id} attempt={attempt} />
      <Outcome attempt={attempt} />
      <Replays run={run} attempt={attempt} />
      <Views run={run} id={id} attempt={attempt} renderTurn={renderTurn} />
      {replayFrom !== null && (
        <ReplayDialog run={run} attempt={attempt} fromTurn={replayFrom} onClose={() => setReplayFrom(null)} />
      )}
    </>
  );
}

function Views({ run, id, attempt, renderTurn }: BodyProps & { run: string; id: string }) {
  const [query, setQuery] = useQuery();
  const select = (tab: string): void => setQuery({ tab: tab === 'messages' ? null : tab });
  useKeys([
    { keys: 'm', label: 'Messages', run: () => select('messages') },
    { keys: 't', label: 'Tokens', run: () => select('tokens') },
  ]);
  return (
    <Tabs
      label="Attempt"
      selected={query.get('tab') ?? 'messages'}
      onSelect={select}
      tabs={[
        {
          key: 'messages',
          label: 'Messages',
          count: attempt.turns.length,
          content: () => <Messages attempt={attempt} renderTurn={renderTurn} />,
        },
        {
          key: 'tokens',
          label: 'Tokens',
          content: () => <Tokens run={run} id={id} attempt={attempt} renderTurn={renderTurn} />,
        },
        {
          key: 'times',
          label: 'Times',
          content: () => (
            <div class="card padded">
              <Timings attempt={attempt} />
            </div>
          ),
        },
        { key: 'raw', label: 'Raw', content: () => <Raw run={run} id={id} /> },
      ]}
    />
  );
}

function Head({ run, id, attempt }: AttemptProps) {
  const { row, neighbours } = attempt;
  const to = (other: string | null): string | null => (other === null ? null : pathTo('runs', run, 'attempts', other));
  const place = parseAttemptId(id);
  const group = place && formatGroupId(place);
  return (
    <>
      <header class="masthead">
        <h1>Attempt {id}</h1>
        <Reward reward={row.reward} advantage={row.advantage} />
        <UseChip use={row.use} />
        {row.failure !== null && <Chip kind="bad">{row.failure}</Chip>}
        {row.truncated && <Chip kind="warn">truncated</Chip>}
        <CopyLink />
        <Neighbours what="attempt" previous={to(neighbours.previous)} next={to(neighbours.next)} />
      </header>
      <div class="card facts-card">
        <Facts
          of={[
            ['scenario', <bdi>{row.scenario}</bdi>],
            ...(group === null ? [] : [['group', <a href={hrefTo('runs', run, 'groups', group)}>{group}</a>] as const]),
            ...(row.use === 'eval'
              ? []
              : [['step', <a href={`#${stepPath(run, row.step, row.branch)}`}>{row.step}</a>] as const]),
            ['policy', attempt.policy ?? '–'],
            ['adapter', attempt.adapterSha256 === null ? '–' : <Hash value={attempt.adapterSha256} />],
            ['advantage', formatNumber(row.advantage)],
            ...(attempt.before === undefined
              ? []
              : [['before training', <Before run={run} before={attempt.before} />] as const]),
            ['sampled tokens', `${row.sampledTokens} in ${plural(row.turns, 'turn')}`],
            ['time', attempt.seconds === null ? '–' : formatDuration(attempt.seconds)],
            ...Object.entries({ ...attempt.scores, ...attempt.metrics }).map(
              ([name, value]) => [name, formatMetric(value)] as const,
            ),
          ]}
        />
      </div>
    </>
  );
}

/** The same scenario, as the policy before training played it. */
function Before({ run, before }: { run: string; before: BeforeView }) {
  return <a href={hrefTo('runs', run, 'attempts', before.id)}>reward {formatNumber(before.reward)}</a>;
}

function Hash({ value }: { value: string }) {
  return (
    <>
      <code title={value}>{value.slice(0, 12)}</code> <CopyButton text={value} />
    </>
  );
}

/** Origin of a replay, or replays of an attempt. */
function Replays({ run, attempt }: { run: string; attempt: AttemptView }) {
  const { replayOf, replays = [] } = attempt;
  const link = (id: string) => <a href={hrefTo('runs', run, 'attempts', id)}>{id}</a>;
  return (
    <>
      {replayOf !== undefined && (
        <Notice>
          A replay of {link(replayOf.attempt)}: from turn {replayOf.fromTurn + 1} on, <bdi>{replayOf.model}</bdi>{' '}
          answers. It is never trained.
        </Notice>
      )}
      {replays.length > 0 && (
        <ul class="replays">
          {replays.map(({ id, fromTurn, model, reward, failure }) => (
            <li key={id}>
              <a href={hrefTo('runs', run, 'attempts', id)}>Replay from turn {fromTurn + 1}</a> with <bdi>{model}</bdi>:{' '}
              {failure === null ? <Reward reward={reward} /> : <Chip kind="bad">{failure}</Chip>}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function CopyLink() {
  return <CopyButton text={location.href} label="Copy link" />;
}

interface BodyProps {
  readonly attempt: AttemptView;
  readonly renderTurn: (index: number, body?: ComponentChildren) => ComponentChildren;
}

function Messages({ attempt, renderTurn }: BodyProps) {
  return (
    <div class="card conversation">
      {attempt.turns.length === 0 && <p class="dim padded">This attempt called no model.</p>}
      {attempt.turns.map((_, index) => renderTurn(index))}
      <HostedCalls calls={attempt.hosted} />
      <Logs lines={attempt.logs} />
    </div>
  );
}

function Tokens({ run, id, attempt, renderTurn }: BodyProps & { run: string; id: string }) {
  const loaded = useData<TokensView>(`${attemptPath(run, id)}/tokens`);
  const [query, setQuery] = useQuery();
  const asked = query.get('color');
  const overlay: Overlay = OVERLAYS.find((name) => name === asked) ?? 'logprob';
  return (
    <Shown loaded={loaded} what="tokens">
      {(tokens) => (
        <div class="card conversation">
          <TokenView
            tokens={tokens}
            advantage={attempt.row.advantage}
            overlay={overlay}
            onOverlay={(color) => setQuery({ color })}
            renderTurn={renderTurn}
          />
        </div>
      )}
    </Shown>
  );
}

function Raw({ run, id }: { run: string; id: string }) {
  const loaded = useData<object>(`${attemptPath(run, id)}/raw`);
  return (
    <Shown loaded={loaded} what="the record">
      {(raw) => {
        const text = JSON.stringify(raw, null, 2);
        return (
          <div class="card padded">
            <p>
              <CopyButton text={text} label="Copy JSON" />
            </p>
            <LongText text={text} />
          </div>
        );
      }}
    </Shown>
  );
}
