/** Forms of the actions, and the actions that a run can take in its state. */
import type { ActionRequest } from '../../views/api/requests.ts';
import type { RunRow, ServerInfo } from '../../views/api/run-views.ts';

export type ActionName = ActionRequest['action'];

/** Values of a form, as text. */
export type FormValues = Readonly<Record<string, string>>;

export interface ActionField {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly isRequired?: boolean;
  readonly kind: 'text' | 'number' | 'lines';
}

interface ActionForm {
  readonly label: string;
  /** Button that does it. */
  readonly verb: string;
  readonly isDangerous?: boolean;
  readonly fields: readonly ActionField[];
}

const REASON: ActionField = { name: 'reason', label: 'Reason', hint: 'kept with the run', kind: 'text' };
const STEP: ActionField = { name: 'step', label: 'Step', isRequired: true, kind: 'number' };
const AGENT_FILE: ActionField = {
  name: 'agentFile',
  label: 'Agent file',
  hint: 'only if it cannot be found in the project',
  kind: 'text',
};

export const ACTION_FORMS: Readonly<Record<ActionName, ActionForm>> = {
  pause: { label: 'Pause', verb: 'Pause the run', fields: [REASON] },
  resume: { label: 'Resume', verb: 'Resume the run', fields: [] },
  stop: { label: 'Stop', verb: 'Stop the run', isDangerous: true, fields: [REASON] },
  set: {
    label: 'Change settings',
    verb: 'Change settings',
    fields: [
      { name: 'settings', label: 'Settings', hint: 'one a line: learningRate=1e-5', isRequired: true, kind: 'lines' },
      REASON,
    ],
  },
  rollback: { label: 'Roll back', verb: 'Roll back', isDangerous: true, fields: [STEP] },
  fork: {
    label: 'Fork',
    verb: 'Start the fork',
    fields: [STEP, { name: 'name', label: 'Name of the new run', isRequired: true, kind: 'text' }],
  },
  evaluate: { label: 'Evaluate', verb: 'Evaluate', fields: [STEP, AGENT_FILE] },
  replay: {
    label: 'Replay',
    verb: 'Replay',
    fields: [
      {
        name: 'model',
        label: 'Model that answers from this turn on',
        hint: 'a checkpoint such as demo@12, or a hosted model such as openai/gpt-5-mini',
        isRequired: true,
        kind: 'text',
      },
      AGENT_FILE,
    ],
  },
};

/** Members of a request from a form's text; throws a sentence for the reader. */
export function readActionForm(action: ActionName, values: FormValues): Partial<ActionRequest> {
  const members = ACTION_FORMS[action].fields.flatMap(({ name, label, isRequired = false, kind }) => {
    const text = (values[name] ?? '').trim();
    if (text === '') {
      if (isRequired) throw new Error(`${label} is missing; fill it in`);
      return [];
    }
    return [[name, readValue(kind, label, text)] as const];
  });
  return Object.fromEntries(members);
}

function readValue(kind: ActionField['kind'], label: string, text: string): string | number | Record<string, string> {
  if (kind === 'text') return text;
  if (kind === 'lines') return readSettings(text);
  const number = Number(text);
  if (!Number.isFinite(number)) throw new Error(`${label} must be a number, got ${text}`);
  return number;
}

function readSettings(text: string): Record<string, string> {
  const lines = text.split('\n').map((line) => line.trim());
  return Object.fromEntries(
    lines
      .filter((line) => line !== '')
      .map((line) => {
        const at = line.indexOf('=');
        if (at < 1) throw new Error(`a setting must be KEY=VALUE, got ${line}`);
        return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
      }),
  );
}

const OF_STORE: readonly ActionName[] = ['evaluate', 'replay'];

/** Why an action cannot be taken here; null if it can. */
export function whyNot(action: ActionName, info: ServerInfo | null): string | null {
  if (info === null) return 'Loading';
  if (info.isExport) return 'This is a static export; open the store with temper ui to act';
  if (info.isReadOnly) return 'temper ui runs with --read-only';
  if (!info.hasTemporal && !OF_STORE.includes(action))
    return 'No Temporal server answers; start the local stack with temper dev, or set TEMPORAL_ADDRESS';
  return null;
}

const ENDED: readonly RunRow['state'][] = ['completed', 'failed', 'cancelled', 'stopped'];

/** Those that make sense in the run's state, the likeliest first. */
export function actionsFor({ state }: Pick<RunRow, 'state'>): ActionName[] {
  const later: ActionName[] = ['fork', 'evaluate'];
  if (ENDED.includes(state)) return later;
  const first: ActionName[] = state === 'paused' || state === 'pausing' ? ['resume', 'stop'] : ['pause', 'stop'];
  return [...first, 'set', 'rollback', ...later];
}
