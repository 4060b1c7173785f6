/** Actions on a run: first the server says what will happen, then it is done. */
import { Fragment } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ActionRequest, ActionResult } from '../../views/api/requests.ts';
import type { RunRow, ServerInfo } from '../../views/api/run-views.ts';
import { markOld, postAction, useData } from '../data.ts';
import { pathTo } from '../location.ts';
import {
  ACTION_FORMS,
  actionsFor,
  readActionForm,
  whyNot,
  type ActionField,
  type ActionName,
  type FormValues,
} from './action-fields.ts';
import { ActionButtons, focusWhenShown, type ActionStage } from './action-buttons.tsx';
import { Dialog } from './dialog.tsx';
import { useRunRow } from './run-row.ts';
import { SettingChoice } from './setting-choice.tsx';
import { CopyButton, Notice, Tip } from './small.tsx';

/** The request without what the dialog itself asks for. */
type StartedAction = Pick<ActionRequest, 'action' | 'run'> & Partial<ActionRequest>;

interface DialogProps {
  readonly title?: string;
  readonly start: StartedAction;
  /** Values that the form begins with. */
  readonly values?: FormValues;
  readonly onClose: () => void;
}

export function ActionDialog({ title, start, values = {}, onClose }: DialogProps) {
  const form = ACTION_FORMS[start.action];
  const [filled, setFilled] = useState<FormValues>(values);
  const [stage, setStage] = useState<ActionStage>({ at: 'form', problem: null });
  // Names one confirmation: sent again after a lost answer, it does nothing twice.
  const requestId = useRef(crypto.randomUUID());
  const send = (isConfirmed: boolean): Promise<ActionResult> =>
    postAction({ ...start, ...readActionForm(start.action, filled), requestId: requestId.current, isConfirmed });
  const ask = async (): Promise<void> => {
    try {
      readActionForm(start.action, filled);
      setStage({ at: 'asking' });
      requestId.current = crypto.randomUUID();
      setStage({ at: 'confirm', plan: await send(false), problem: null });
    } catch (error) {
      setStage({ at: 'form', problem: (error as Error).message });
    }
  };
  const act = async (plan: ActionResult): Promise<void> => {
    setStage({ at: 'doing', plan });
    try {
      const result = await send(true);
      setStage({ at: 'done', result });
      markOld('runs');
    } catch (error) {
      setStage({ at: 'confirm', plan, problem: (error as Error).message });
    }
  };
  const row = useRunRow(start.run);
  const fields = form.fields.map((field) =>
    field.name === 'step' && row !== null ? { ...field, hint: `from 0 to ${row.step}` } : field,
  );
  const hasForm = form.fields.length > 0;
  useEffect(() => {
    if (!hasForm) void ask();
  }, []);
  return (
    <Dialog
      title={title ?? `${form.label}: ${start.run}`}
      onClose={onClose}
      actions={
        <ActionButtons
          {...{ stage, form, hasForm, onClose }}
          onAsk={ask}
          onAct={act}
          onBack={() => setStage({ at: 'form', problem: null })}
        />
      }
    >
      {(stage.at === 'form' || stage.at === 'asking') && (
        <Form run={start.run} fields={fields} values={filled} onChange={setFilled} onSubmit={() => void ask()} />
      )}
      <Says stage={stage} run={start.run} action={start.action} />
    </Dialog>
  );
}

interface FormProps {
  readonly run: string;
  readonly fields: readonly ActionField[];
  readonly values: FormValues;
  readonly onChange: (values: FormValues) => void;
  readonly onSubmit: () => void;
}

function Form({ run, fields, values, onChange, onSubmit }: FormProps) {
  return (
    <form
      class="action-form"
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      {fields.map(({ name, label, hint, isRequired = false, kind }, index) => {
        const attributes = {
          name,
          value: values[name] ?? '',
          required: isRequired,
          autoFocus: index === 0,
          ...(index === 0 && { ref: focusWhenShown }),
          onInput: (event: { currentTarget: { value: string } }) =>
            onChange({ ...values, [name]: event.currentTarget.value }),
        };
        const field = (
          <label key={name}>
            <span>
              {label} {hint !== undefined && <span class="note">{hint}</span>}
            </span>
            {kind === 'lines' ? (
              <textarea rows={3} {...attributes} />
            ) : (
              <input inputMode={kind === 'number' ? 'decimal' : 'text'} {...attributes} />
            )}
          </label>
        );
        if (kind !== 'lines') return field;
        return (
          <Fragment key={name}>
            <SettingChoice
              run={run}
              lines={values[name] ?? ''}
              onLines={(lines) => onChange({ ...values, [name]: lines })}
            />
            {field}
          </Fragment>
        );
      })}
      <button type="submit" hidden />
    </form>
  );
}

/** Answer only when they are done. */
const LONG: readonly ActionName[] = ['evaluate', 'replay'];

function Says({ stage, run, action }: { stage: ActionStage; run: string; action: ActionName }) {
  if (stage.at === 'asking') return <p role="status">Asking what will happen …</p>;
  if (stage.at === 'form') return stage.problem === null ? null : <Notice level="bad">{stage.problem}</Notice>;
  if (stage.at === 'done')
    return (
      <Notice level="good">
        <p class={action === 'evaluate' ? 'says mono' : 'says'}>{stage.result.says}</p>
        {stage.result.made !== null && <Made made={stage.result.made} run={run} action={action} />}
      </Notice>
    );
  const { plan } = stage;
  return (
    <>
      <p class="says" tabIndex={-1} ref={focusWhenShown}>
        {plan.says}
      </p>
      {plan.command !== '' && (
        <>
          <p class="note">The same in a terminal:</p>
          <p class="command">
            <code>{plan.command}</code> <CopyButton text={plan.command} />
          </p>
        </>
      )}
      {stage.at === 'doing' && (
        <p role="status">{LONG.includes(action) ? 'Working; this takes a while …' : 'Working …'}</p>
      )}
      {stage.at === 'confirm' && stage.problem !== null && <Notice level="bad">{stage.problem}</Notice>}
    </>
  );
}

function Made({ made, run, action }: { made: string; run: string; action: ActionName }) {
  if (action === 'fork')
    return (
      <p>
        <a href={`#${pathTo('runs', made)}`}>Open {made}</a>
      </p>
    );
  if (action === 'replay')
    return (
      <p>
        <a href={`#${pathTo('runs', run, 'attempts', made)}`}>Open the replay</a>
      </p>
    );
  return <p class="note">{made}</p>;
}

interface ActionButtonProps {
  readonly start: StartedAction;
  readonly label?: string;
  readonly title?: string;
  readonly values?: FormValues;
  readonly className?: string;
}

/** Button that opens the dialog; says why it cannot. */
export function ActionButton({ start, label, title, values, className }: ActionButtonProps) {
  const [isOpen, setOpen] = useState(false);
  const reason = whyNot(start.action, useData<ServerInfo>('info').value);
  return (
    <>
      <button
        type="button"
        class={className}
        disabled={reason !== null}
        title={reason ?? undefined}
        onClick={() => setOpen(true)}
      >
        {label ?? ACTION_FORMS[start.action].label}
      </button>
      {isOpen && (
        <ActionDialog
          start={start}
          {...(title !== undefined && { title })}
          {...(values !== undefined && { values })}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}

/** A menu does not stay open behind the dialog, which gives the focus back to what had it. */
function foldMenu(button: HTMLElement): void {
  const menu = button.closest('details');
  menu?.querySelector('summary')?.focus();
  menu?.removeAttribute('open');
}

/** Actions that make sense in the run's state: two as buttons, the rest folded. */
export function ActionMenu({ run }: { run: RunRow }) {
  const info = useData<ServerInfo>('info').value;
  // The dialog is not of its button, which goes when the run gets another state.
  const [opened, setOpened] = useState<ActionName | null>(null);
  if (info?.isExport === true) return null;
  const actions = actionsFor(run);
  const [first, rest] = [actions.slice(0, 2), actions.slice(2)];
  const reason = whyNot(actions[0]!, info);
  const button = (action: ActionName) => (
    <button
      key={action}
      type="button"
      disabled={whyNot(action, info) !== null}
      title={whyNot(action, info) ?? undefined}
      onClick={({ currentTarget }) => {
        foldMenu(currentTarget);
        setOpened(action);
      }}
    >
      {ACTION_FORMS[action].label}
    </button>
  );
  return (
    <div class="action-menu" role="group" aria-label={`Actions on ${run.run}`}>
      {first.map(button)}
      {rest.length > 0 && (
        <details class="menu">
          <summary class="button">More</summary>
          <div class="menu-items">{rest.map(button)}</div>
        </details>
      )}
      {reason !== null && info !== null && <Tip label="Why some actions are off">{reason}</Tip>}
      {opened !== null && (
        <ActionDialog
          key={opened}
          start={{ action: opened, run: run.run }}
          values={opened === 'fork' || opened === 'evaluate' ? { step: String(run.step) } : {}}
          onClose={() => setOpened(null)}
        />
      )}
    </div>
  );
}
