/** Attempts of some steps and evaluations on a run's overview: a button for each, its groups side by side. */
import { useState } from 'preact/hooks';
import { formatGroupId } from '../../core/names/attempt-id.ts';
import { plural } from '../../core/reports/format.ts';
import type { GroupView, StepView } from '../../views/api/attempt-views.ts';
import type { CurveView, RunView } from '../../views/api/run-views.ts';
import { GROUPS_OF_STEP, planAttemptSets, type AttemptSet } from '../../views/charts/attempt-sets.ts';
import { GroupCard } from '../attempt/group-card.tsx';
import { useData } from '../data.ts';
import { isExport } from '../exported.ts';
import { hrefTo, pathTo, stepPath } from '../location.ts';
import { Shown } from '../parts/small.tsx';

/** Of a run that a server shows it is folded: nothing is asked for until somebody looks. */
export function AttemptSets({ view, curve }: { view: RunView; curve: CurveView }) {
  const sets = planAttemptSets(curve, view.state);
  const [isOpen, setOpen] = useState(isExport);
  const [chosen, setChosen] = useState<AttemptSet | null>(null);
  const shown = chosen ?? sets.find(({ kind }) => kind === 'step') ?? sets[0];
  if (shown === undefined) return null;
  const isShown = ({ kind, step }: AttemptSet): boolean => kind === shown.kind && step === shown.step;
  return (
    <details class="attempt-sets" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h2>Attempts side by side</h2>
      </summary>
      {isOpen && (
        <>
          <div class="choice" role="group" aria-label="Attempts of">
            {sets.map((set) => (
              <button
                key={`${set.kind} ${set.step}`}
                type="button"
                aria-pressed={isShown(set)}
                onClick={() => setChosen(set)}
              >
                {set.kind === 'eval' ? `eval after ${set.step}` : `step ${set.step}`}
              </button>
            ))}
          </div>
          {shown.kind === 'eval' ? (
            <OneGroup key={shown.step} run={curve.run} id={formatGroupId({ ...shown, group: null })} />
          ) : (
            <GroupsOfStep run={curve.run} {...shown} />
          )}
        </>
      )}
    </details>
  );
}

function GroupsOfStep({ run, branch, step }: AttemptSet & { readonly run: string }) {
  const loaded = useData<StepView>(stepPath(run, step, branch).slice(1));
  return (
    <Shown loaded={loaded} what={`step ${step}`}>
      {({ groups, leftOut }) => (
        <>
          {groups.slice(0, GROUPS_OF_STEP).map((group) => (
            <OneGroup key={formatGroupId(group)} run={run} id={formatGroupId(group)} />
          ))}
          {groups.length > GROUPS_OF_STEP && (
            <p class="note">
              {GROUPS_OF_STEP} of {plural(groups.length + leftOut, 'group')} are shown;{' '}
              <a href={`#${stepPath(run, step, branch)}`}>step {step}</a> lists all of them.
            </p>
          )}
        </>
      )}
    </Shown>
  );
}

function OneGroup({ run, id }: { run: string; id: string }) {
  const loaded = useData<GroupView>(pathTo('runs', run, 'groups', id).slice(1));
  return (
    <Shown loaded={loaded} what={`group ${id}`}>
      {(group) => (
        <GroupCard
          group={group}
          href={hrefTo('runs', run, 'groups', id)}
          hrefOf={({ row }) => hrefTo('runs', run, 'attempts', row.id)}
        />
      )}
    </Shown>
  );
}
