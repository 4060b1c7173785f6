/** Overview of a run: its result, what is wrong with it, and its curves, steps, times, lineage and settings. */
import type { CurveView, RunView } from '../../views/api/run-views.ts';
import { useData, type Loaded } from '../data.ts';
import { pathTo, useQuery } from '../location.ts';
import { Empty, Shown } from '../parts/small.tsx';
import { Tabs } from '../parts/tabs.tsx';
import { Advisories } from '../run/advisories.tsx';
import { AttemptSets } from '../run/attempt-sets.tsx';
import { Configuration, RunFacts } from '../run/facts.tsx';
import { Curves } from '../run/curves.tsx';
import { HeldOut } from '../run/held-out.tsx';
import { Lanes } from '../run/lanes.tsx';
import { LineageTree } from '../run/lineage.tsx';
import { StepTable } from '../run/step-table.tsx';

const FIRST_TAB = 'curves';

export function RunPage({ run }: { run: string }) {
  const path = pathTo('runs', run).slice(1);
  const loaded = useData<RunView>(path);
  const curve = useData<CurveView>(`${path}/curve`);
  return (
    <Shown loaded={loaded} what={`run ${run}`}>
      {(view) => <Overview view={view} curve={curve} />}
    </Shown>
  );
}

function Overview({ view, curve }: { view: RunView; curve: Loaded<CurveView> }) {
  const [query, setQuery] = useQuery();
  const run = view.row.run;
  const tab = query.get('tab') ?? FIRST_TAB;
  const ofCurve = (render: (value: CurveView) => preact.ComponentChildren) => () => (
    <Shown loaded={curve} what="the curve">
      {render}
    </Shown>
  );
  const notes = view.state?.notes ?? [];
  return (
    <>
      {view.state?.failure != null && <p class="card failure">{view.state.failure}</p>}
      {tab === FIRST_TAB && (
        <div class="overview-top">
          <HeldOut state={view.state} curve={curve.value} />
          <RunFacts view={view} curve={curve.value} />
        </div>
      )}
      <Advisories run={run} advisories={view.advisories} isFolded={tab !== FIRST_TAB} />
      <Tabs
        label={`Parts of ${run}`}
        selected={tab}
        onSelect={(next) => setQuery({ tab: next === FIRST_TAB ? null : next })}
        tabs={[
          { key: FIRST_TAB, label: 'Curves', content: ofCurve((value) => <FirstTab curve={value} view={view} />) },
          { key: 'steps', label: 'Steps', content: ofCurve((value) => <StepTable run={run} steps={value.steps} />) },
          { key: 'timeline', label: 'Timeline', content: () => <Lanes view={view} /> },
          { key: 'lineage', label: 'Lineage', content: () => <LineageTree view={view} /> },
          {
            key: 'configuration',
            label: 'Configuration',
            ...(view.changes.length > 0 && { count: view.changes.length }),
            content: () => <Configuration view={view} />,
          },
          {
            key: 'notes',
            label: 'Notes',
            ...(notes.length > 0 && { count: notes.length }),
            content: () => <RunNotes notes={notes} />,
          },
        ]}
      />
    </>
  );
}

function FirstTab(props: { curve: CurveView; view: RunView }) {
  return (
    <>
      <Curves {...props} />
      <AttemptSets {...props} />
    </>
  );
}

/** Notes of a run about itself, newest first. */
function RunNotes({ notes }: { notes: readonly string[] }) {
  if (notes.length === 0)
    return <Empty title="No notes">A run notes skipped steps, recoveries and changes here.</Empty>;
  return (
    <ol class="card note-list" reversed>
      {notes.toReversed().map((note, at) => (
        <li key={notes.length - at}>{note}</li>
      ))}
    </ol>
  );
}
