/** Begins a chat as an attempt began: with the recorded prompt of one of the run's scenarios. */
import { useMemo, useState } from 'preact/hooks';
import type { AttemptsView, AttemptView, MessageView } from '../../views/api/attempt-views.ts';
import { getJson, useData } from '../data.ts';

const MOST_SCENARIOS = 50;

interface ScenarioStartProps {
  readonly run: string;
  /** Messages of the prompt; none to begin with nothing. */
  readonly onStart: (messages: readonly MessageView[]) => void;
}

/** Nothing where the store has no attempts of the run. */
export function ScenarioStart({ run, onStart }: ScenarioStartProps) {
  const starts = useStarts(run);
  const [problem, setProblem] = useState<string | null>(null);
  const start = async (id: string): Promise<void> => {
    try {
      const attempt = id === '' ? null : await getJson<AttemptView>(`${pathOf(run)}/${id}`);
      onStart(attempt?.turns[0]?.messages ?? []);
      setProblem(null);
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  if (starts.length === 0) return null;
  return (
    <label class="scenario-start">
      <span class="note">Begin as a scenario of the agent</span>
      <select onChange={({ currentTarget }) => void start(currentTarget.value)}>
        <option value="">none</option>
        {starts.map(({ id, scenario }) => (
          <option key={id} value={id}>
            {scenario}
          </option>
        ))}
      </select>
      {problem !== null && <span class="wrong">{problem}</span>}
    </label>
  );
}

const pathOf = (run: string): string => `runs/${encodeURIComponent(run)}/attempts`;

/** An attempt of each scenario: held-out ones, or else those of training. */
function useStarts(run: string): AttemptsView['rows'] {
  const found = (kind: string): string => `${pathOf(run)}?kind=${kind}&offset=0&limit=200`;
  const held = useData<AttemptsView>(found('eval')).value;
  const trained = useData<AttemptsView>(held?.rows.length === 0 ? found('train') : null).value;
  return useMemo(() => {
    const rows = (held?.rows.length === 0 ? trained : held)?.rows ?? [];
    const first = new Map(rows.toReversed().map((row) => [row.scenario, row]));
    return [...first.values()].toReversed().slice(0, MOST_SCENARIOS);
  }, [held, trained]);
}
