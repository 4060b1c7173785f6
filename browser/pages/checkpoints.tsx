/** Checkpoints of a run: where each is deployed, what one can do with it, and two of them compared. */
import { useEffect } from 'preact/hooks';
import { describeHeadline, formatBytes, formatNumber } from '../../core/reports/format.ts';
import type { CheckpointRow, RunView } from '../../views/api/run-views.ts';
import { markOld, useData, useServerInfo } from '../data.ts';
import { pathTo, useQuery, hrefTo, stepPath } from '../location.ts';
import { ActionButton, ActionGroup } from '../parts/action-group.tsx';
import { actionsOn } from '../parts/action-fields.ts';
import { Chip, CopyButton, Shown, Ago } from '../parts/small.tsx';
import { VirtualTable, type TableColumn } from '../parts/table.tsx';
import { CheckpointComparison } from './checkpoint-comparison.tsx';

const STAGES_EVERY_MS = 3000;

export function CheckpointsPage({ run }: { run: string }) {
  const path = `runs/${encodeURIComponent(run)}/checkpoints`;
  const loaded = useData<CheckpointRow[]>(path);
  const isDeploying = loaded.value?.some(({ deployments }) => deployments.some(({ state }) => state === 'running'));
  useEffect(() => {
    if (isDeploying !== true) return undefined;
    // Stages change nothing of the run, so no event tells of them.
    const timer = setInterval(() => markOld(path), STAGES_EVERY_MS);
    return () => clearInterval(timer);
  }, [isDeploying, path]);
  return (
    <Shown loaded={loaded} what="checkpoints">
      {(rows) => <Checkpoints run={run} rows={rows} />}
    </Shown>
  );
}

/** Whether its adapter is there. */
export function canSample(weights: CheckpointRow['weights']): boolean {
  return weights === 'kept' || weights === 'adapter';
}

/** `demo@12`, or of a branch that was left `1/12`. */
function keyOf({ name, branch, step }: CheckpointRow): string {
  return name ?? `${branch}/${step}`;
}

function Checkpoints({ run, rows }: { run: string; rows: readonly CheckpointRow[] }) {
  const [query, setQuery] = useQuery();
  const changes = useData<RunView>(`runs/${encodeURIComponent(run)}`).value?.changes ?? [];
  const chosen = query.get('compare')?.split(',') ?? [];
  const opened = rows.find((row) => keyOf(row) === query.get('at'));
  const compared = chosen.flatMap((key) => rows.find((row) => keyOf(row) === key) ?? []);
  const toggle = (key: string): void => {
    const next = chosen.includes(key) ? chosen.filter((other) => other !== key) : [...chosen, key].slice(-2);
    setQuery({ compare: next.length === 0 ? null : next.join(',') });
  };
  const linkOf = (row: CheckpointRow): string => {
    const next = new URLSearchParams(query);
    next.set('at', keyOf(row));
    return `${pathTo('runs', run, 'checkpoints')}?${next}`;
  };
  return (
    <>
      <header class="masthead">
        <h1>Checkpoints</h1>
        <span class="dim">Open one for its commands; mark two to compare them.</span>
      </header>
      {opened !== undefined && <Opened run={run} row={opened} onClose={() => setQuery({ at: null })} />}
      {compared.length === 2 && (
        <CheckpointComparison
          rows={[compared[0]!, compared[1]!]}
          names={chosen as [string, string]}
          changes={changes}
        />
      )}
      <VirtualTable
        label="Checkpoints"
        columns={columnsOf(chosen, toggle)}
        rows={rows}
        keyOf={keyOf}
        linkOf={linkOf}
        isSelected={(row) => row === opened}
        empty={<p class="padded dim">No step is committed yet.</p>}
      />
    </>
  );
}

function columnsOf(chosen: readonly string[], toggle: (key: string) => void): TableColumn<CheckpointRow>[] {
  const compare: TableColumn<CheckpointRow> = {
    key: 'compare',
    label: 'Compare',
    title: 'Choose two checkpoints to compare; on a row, press Space',
    width: '104px',
    render: (row) => (
      <input
        type="checkbox"
        tabIndex={-1}
        aria-label={`Compare ${keyOf(row)}`}
        checked={chosen.includes(keyOf(row))}
        onClick={(event) => event.stopPropagation()}
        onChange={() => toggle(keyOf(row))}
      />
    ),
  };
  return [NAME, compare, ...NUMBERS];
}

const NAME: TableColumn<CheckpointRow> = {
  key: 'name',
  label: 'Checkpoint',
  width: 'minmax(176px, 1.2fr)',
  value: ({ branch, step }) => branch * 1e7 + step,
  render: (row) => row.name ?? `step ${row.step} of branch ${row.branch}`,
};

const NUMBERS: readonly TableColumn<CheckpointRow>[] = [
  {
    key: 'reward',
    label: 'Reward',
    align: 'end',
    value: ({ reward }) => reward,
    render: ({ reward }) => formatNumber(reward),
  },
  {
    key: 'evaluation',
    label: 'Evaluation',
    width: 'minmax(130px, 1fr)',
    align: 'end',
    value: ({ evaluation }) => evaluation?.reward ?? null,
    render: ({ evaluation }) => (evaluation === null ? '–' : describeHeadline(evaluation)),
  },
  {
    key: 'bytes',
    label: 'Size',
    align: 'end',
    value: ({ bytes }) => bytes,
    render: ({ bytes }) => formatBytes(bytes),
  },
  {
    key: 'weights',
    label: 'Weights',
    width: '110px',
    value: ({ weights }) => weights,
    render: ({ weights }) => <Chip kind={weights === 'missing' ? 'bad' : ''}>{weights}</Chip>,
  },
  {
    key: 'deployed',
    label: 'Deployed',
    width: 'minmax(140px, 1.5fr)',
    render: (row) => <Deployed row={row} />,
  },
  {
    key: 'committed',
    label: 'Committed',
    width: '130px',
    value: ({ committedAt }) => committedAt,
    render: ({ committedAt }) => <Ago at={committedAt} />,
  },
];

function Deployed({ row: { deployments, isProduction } }: { row: CheckpointRow }) {
  if (deployments.length === 0 && !isProduction) return <span class="dim">–</span>;
  return (
    <>
      {isProduction && <Chip kind="good">production</Chip>}{' '}
      {deployments.map(({ target, state, stage, message }, index) => (
        <Chip key={index} kind={state === 'failed' ? 'bad' : 'accent'} {...(message !== null && { title: message })}>
          {target}: {stage === null ? state : `${state}, ${stage}`}
        </Chip>
      ))}
    </>
  );
}

function Opened({ run, row, onClose }: { run: string; row: CheckpointRow; onClose: () => void }) {
  const { name, step, adapterSha256, branch } = row;
  return (
    <section class="card padded opened" aria-label={`Checkpoint ${keyOf(row)}`}>
      <header class="masthead">
        <h2>{name ?? `Step ${step} of branch ${branch}`}</h2>
        <code title={adapterSha256}>{adapterSha256.slice(0, 16)}</code>
        <CopyButton text={adapterSha256} label="Copy hash" />
        <a href={`#${stepPath(run, step, branch)}`}>its step</a>
        <button type="button" class="quiet close" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </header>
      {name === null ? (
        <p class="note">This branch was left by a rollback; commands take checkpoints of the newest branch.</p>
      ) : canSample(row.weights) ? (
        <Uses run={run} name={name} row={row} />
      ) : (
        <p class="note">Its weights {row.weights === 'pruned' ? 'were deleted as the run went on' : 'are missing'}.</p>
      )}
    </section>
  );
}

function Uses({ run, name, row }: { run: string; name: string; row: CheckpointRow }) {
  const { step, weights, isProduction } = row;
  const info = useServerInfo();
  const values = { step: String(step) };
  const chat = `${hrefTo('runs', run, 'chat')}?left=${encodeURIComponent(name)}`;
  const commands = [`temper export ${name} --to ./${run}-${step}`, `temper serve ${name}`];
  return (
    <>
      <div class="choice">
        <a class="button" href={chat}>
          Chat
        </a>
        <a class="button" href={`${chat}&right=base:${encodeURIComponent(run)}`}>
          Chat beside the base model
        </a>
        <ActionButton start={{ action: 'evaluate', input: { run } }} values={values} label="Evaluate" />
        <ActionGroup
          label={`Actions on ${name}`}
          actions={actionsOn('checkpoint', info).filter(
            ({ action }) => !isProduction || action !== 'production promote',
          )}
          input={{ checkpoint: name }}
        />
        <ActionGroup label="Production" actions={isProduction ? actionsOn('production', info) : []} input={{ run }} />
        {weights === 'kept' && (
          <>
            <ActionButton start={{ action: 'fork', input: { run } }} values={values} label="Fork" />
            <ActionButton start={{ action: 'rollback', input: { run } }} values={values} label="Roll back to it" />
          </>
        )}
      </div>
      {weights === 'adapter' && (
        <p class="note">
          Its optimizer state was deleted as the run went on, so you cannot fork it or roll back to it. With --keep-all,
          a run keeps everything.
        </p>
      )}
      <div class="commands">
        {commands.map((command) => (
          <p key={command} class="command">
            <code>{command}</code> <CopyButton text={command} />
          </p>
        ))}
      </div>
    </>
  );
}
