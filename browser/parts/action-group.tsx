/** Buttons of actions, alone and in groups: each opens the dialog, or says why it cannot. */
import { useState } from 'preact/hooks';
import type { ActionForm, ActionRequest, ServerInfo } from '../../views/api/requests.ts';
import type { RunRow } from '../../views/api/run-views.ts';
import { useData } from '../data.ts';
import { ActionDialog, type StartedAction } from './action-dialog.tsx';
import { actionsFor, whyNot, type FormValues } from './action-fields.ts';
import { Tip } from './small.tsx';

interface ActionButtonProps {
  readonly start: StartedAction;
  readonly label: string;
  readonly values: FormValues;
}

/** Button that opens the dialog; says why it cannot. */
export function ActionButton({ start, label, values }: ActionButtonProps) {
  const [isOpen, setOpen] = useState(false);
  const reason = whyNot(start.action, useData<ServerInfo>('info').value);
  return (
    <>
      <button type="button" disabled={reason !== null} title={reason ?? undefined} onClick={() => setOpen(true)}>
        {label}
      </button>
      {isOpen && <ActionDialog start={start} values={values} onClose={() => setOpen(false)} />}
    </>
  );
}

/** A menu does not stay open behind the dialog, which gives the focus back to what had it. */
function foldMenu(button: HTMLElement): void {
  const menu = button.closest('details');
  menu?.querySelector('summary')?.focus();
  menu?.removeAttribute('open');
}

interface GroupProps {
  readonly label: string;
  readonly actions: readonly ActionForm[];
  /** What they are done to. */
  readonly input: ActionRequest['input'];
  readonly valuesOf?: (form: ActionForm) => FormValues;
  /** How many are buttons; the rest is folded. */
  readonly first?: number;
}

/** Buttons of actions. Their dialog is not of its button, which goes when what it acts on gets another state. */
export function ActionGroup({ label, actions, input, valuesOf, first = actions.length }: GroupProps) {
  const info = useData<ServerInfo>('info').value;
  const [opened, setOpened] = useState<ActionForm | null>(null);
  if (actions.length === 0 && opened === null) return null;
  const [shown, rest] = [actions.slice(0, first), actions.slice(first)];
  const reason = actions[0] === undefined ? null : whyNot(actions[0].action, info);
  const button = (form: ActionForm) => (
    <button
      key={form.action}
      type="button"
      disabled={whyNot(form.action, info) !== null}
      title={whyNot(form.action, info) ?? undefined}
      onClick={({ currentTarget }) => {
        foldMenu(currentTarget);
        setOpened(form);
      }}
    >
      {form.label}
    </button>
  );
  return (
    <div class="action-menu" role="group" aria-label={label}>
      {shown.map(button)}
      {rest.length > 0 && (
        <details class="menu">
          <summary class="button">More</summary>
          <div class="menu-items">{rest.map(button)}</div>
        </details>
      )}
      {reason !== null && <Tip label="Why some actions are off">{reason}</Tip>}
      {opened !== null && (
        <ActionDialog
          key={opened.action}
          start={{ action: opened.action, input }}
          {...(valuesOf && { values: valuesOf(opened) })}
          onClose={() => setOpened(null)}
        />
      )}
    </div>
  );
}

/** Actions that make sense in the run's state. */
export function ActionMenu({ run }: { run: RunRow }) {
  const info = useData<ServerInfo>('info').value;
  if (info === null || info.isExport) return null;
  return (
    <ActionGroup
      label={`Actions on ${run.run}`}
      actions={actionsFor(run, info)}
      input={{ run: run.run }}
      valuesOf={({ isDangerous }) => (isDangerous ? {} : { step: String(run.step) })}
      first={2}
    />
  );
}
