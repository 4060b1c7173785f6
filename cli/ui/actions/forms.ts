/** Forms of the actions for pages, from the tables of the operations. */
import { fieldsOf, memberName, type Field } from '../../../operations/operation.ts';
import { capitalised } from '../../../operations/words.ts';
import type { ActionField, ActionForm } from '../../../views/api/requests.ts';
import { UI_OPERATIONS, type UiOperation } from './operations.ts';

export const ACTION_FORMS: readonly ActionForm[] = UI_OPERATIONS.map(formOf);

function formOf(operation: UiOperation): ActionForm {
  const { name, button, effect, needsServer = false } = operation;
  const {
    label,
    on = 'run',
    states = 'all',
    isDangerous = false,
    isMain = false,
  } = button ?? { label: titleOf(name), on: null };
  const fields = fieldsOf(operation).map((field) => ({
    name: field.name,
    label: titleOf(field.name),
    hint: field.flag === null ? null : hintOf(field),
    isRequired: field.isRequired,
    kind: kindOf(field),
    choices: field.kind === 'choice' ? field.choices : [],
    needs: (field.needs ?? []).map((need) => {
      const [flag = '', value = null] = need.split(' ');
      return { name: memberName(flag), value };
    }),
  }));
  return { action: name, label, on, states, isDangerous, isMain, isLong: effect === 'pays', needsServer, fields };
}

/** A choice shows what there is to choose. */
function hintOf(field: Field): string | null {
  if (field.kind === 'choice' && field.description === field.choices.join(', ')) return null;
  return field.description + (field.default === undefined ? '' : `; default: ${field.default}`);
}

function kindOf(field: Field): ActionField['kind'] {
  if (field.kind === 'choice') return 'choice';
  if (field.kind === 'boolean') return 'switch';
  // Settings of a run can be chosen from a list.
  if (field.kind === 'texts') return field.placeholder === 'KEY=VALUE' ? 'settings' : 'lines';
  return field.kind === 'integer' || field.kind === 'number' ? 'number' : 'text';
}

/** `fromTurn` → `From turn` */
function titleOf(name: string): string {
  return capitalised(name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`));
}
