/** Forms of the actions for pages, from the tables of the operations. */
import type { Flag } from '../../../operations/flags.ts';
import { memberName } from '../../../operations/operation.ts';
import type { ActionField, ActionForm } from '../../../views/api/requests.ts';
import { UI_OPERATIONS, type UiOperation } from './operations.ts';

export const ACTION_FORMS: readonly ActionForm[] = UI_OPERATIONS.map(formOf);

function formOf({ name, button, effect, needsServer = false, arguments: args, flags }: UiOperation): ActionForm {
  const { label = titleOf(name), states, isDangerous = false, isMain = false } = button ?? {};
  const fields = [
    ...Object.entries(args).map(([member, { placeholder, optional, repeats }]) => ({
      name: member,
      label: titleOf(member),
      hint: null,
      isRequired: optional !== true,
      kind: repeats === true ? linesOf(placeholder) : 'text',
    })),
    ...Object.entries(flags).map(([flag, row]) => ({
      name: memberName(flag),
      label: titleOf(flag),
      hint: row.description,
      isRequired: row.kind !== 'boolean' && row.required !== undefined,
      kind: kindOf(row),
    })),
  ] satisfies ActionField[];
  const shown = button === undefined ? null : (states ?? 'all');
  return { action: name, label, states: shown, isDangerous, isMain, isLong: effect === 'pays', needsServer, fields };
}

function kindOf(flag: Flag): ActionField['kind'] {
  if (flag.kind === 'boolean') return 'switch';
  if (flag.kind === 'texts') return linesOf(flag.placeholder);
  return flag.kind === 'integer' || flag.kind === 'number' ? 'number' : 'text';
}

/** Settings of a run can be chosen from a list. */
function linesOf(placeholder: string): ActionField['kind'] {
  return placeholder === 'KEY=VALUE' ? 'settings' : 'lines';
}

/** `from-turn` → `From turn` */
function titleOf(name: string): string {
  const words = memberName(name).replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}
