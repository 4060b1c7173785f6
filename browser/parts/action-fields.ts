/** Values of an action's form, and the actions that a run can take in its state. */
import type { ActionField, ActionForm, ActionRequest, ServerInfo } from '../../views/api/requests.ts';
import type { RunRow } from '../../views/api/run-views.ts';

/** Values of a form, as text; a switch that is on has `true`. */
export type FormValues = Readonly<Record<string, string>>;

/** Members of an input from a form's text; throws a sentence for the reader. */
export function readActionForm(fields: readonly ActionField[], values: FormValues): ActionRequest['input'] {
  const members = shownFields(fields, values).flatMap(({ name, label, isRequired, kind }) => {
    const text = (values[name] ?? '').trim();
    if (text !== '') return [[name, readValue(kind, text)] as const];
    if (isRequired) throw new Error(`${label} is missing; fill it in`);
    return [];
  });
  return Object.fromEntries(members);
}

/** Without those that have no effect on what is filled in. */
export function shownFields(fields: readonly ActionField[], values: FormValues): readonly ActionField[] {
  return fields.filter(({ needs }) => {
    return (
      needs.length === 0 || needs.some(({ name, value }) => (value === null ? values[name] : values[name] === value))
    );
  });
}

/** The server checks the values, with the rules of the command line. */
function readValue(kind: ActionField['kind'], text: string): string | boolean | readonly string[] {
  if (kind === 'switch') return true;
  if (kind !== 'lines' && kind !== 'settings') return text;
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '');
}

export function formOf(action: string, info: ServerInfo | null): ActionForm | null {
  return info?.actions.find((form) => form.action === action) ?? null;
}

/** Why an action cannot be taken here; null if it can. */
export function whyNot(action: string, info: ServerInfo | null): string | null {
  if (info === null) return 'Loading';
  if (info.isExport) return 'This is a static export; open the store with temper ui to act';
  if (info.isReadOnly) return 'temper ui runs with --read-only';
  if (!info.hasTemporal && formOf(action, info)?.needsServer === true)
    return 'No Temporal server answers; start the local stack with temper dev, or set TEMPORAL_ADDRESS';
  return null;
}

/** Those that make sense in the run's state. */
export function actionsFor({ state }: Pick<RunRow, 'state'>, info: ServerInfo): ActionForm[] {
  return actionsOn('run', info).filter(({ states }) => states === 'all' || states.includes(state));
}

/** The likeliest first, what removes something last. */
export function actionsOn(what: ActionForm['on'], info: ServerInfo | null): ActionForm[] {
  const shown = (info?.actions ?? []).filter(({ on }) => on === what);
  const rankOf = ({ isMain, isDangerous }: ActionForm) => (isMain ? 0 : isDangerous ? 2 : 1);
  return shown.toSorted((a, b) => rankOf(a) - rankOf(b));
}
