/** Actions on a run: first the server says what will happen, then it is done. */
import { Fragment } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type {
  ActionField,
  ActionForm,
  ActionRequest,
  ActionResult,
  Made,
  ServerInfo,
} from '../../views/api/requests.ts';
import type { RunRow } from '../../views/api/run-views.ts';
import { markOld, postAction, useData, useRunRow } from '../data.ts';
import { pathTo } from '../location.ts';
import { actionsFor, formOf, readActionForm, whyNot, type FormValues } from './action-fields.ts';
import { ActionButtons, focusWhenShown, type ActionStage } from './action-buttons.tsx';
import { Dialog } from './dialog.tsx';
import { SettingChoice } from './setting-choice.tsx';
import { CopyButton, Notice, Tip } from './small.tsx';

/** The action, and the part of its input that is known. */
interface StartedAction {
  readonly action: string;
  readonly input: ActionRequest['input'] & { readonly run: string };
}

interface DialogProps {
  readonly title?: string;
  readonly start: StartedAction;
  /** Values that the form begins with. */
  readonly values?: FormValues;
  readonly onClose: () => void;
}

export function ActionDialog(props: DialogProps) {
  const form = formOf(props.start.action, useData<ServerInfo>('info').value);
  return form === null ? null : <FormDialog {...props} form={form} />;
}

function FormDialog({ title, start, values = {}, onClose, form }: DialogProps & { readonly form: ActionForm }) {
  const { run } = start.input;
  const asked = form.fields.filter(({ name }) => !Object.hasOwn(start.input, name));
  const [filled, setFilled] = useState<FormValues>(values);
  const [stage, setStage] = useState<ActionStage>({ at: 'form', problem: null });
  // Names one confirmation: sent again after a lost answer, it does nothing twice.
  const requestId = useRef(crypto.randomUUID());
  const send = (isConfirmed: boolean): Promise<ActionResult> => {
    const input = { ...start.input, ...readActionForm(asked, filled) };
    return postAction({ action: start.action, input, requestId: requestId.current, isConfirmed });
  };
  const ask = async (): Promise<void> => {
    try {
      readActionForm(asked, filled);
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
  const row = useRunRow(run);
  const fields = asked.map((field) =>
    field.name === 'step' && row !== null ? { ...field, hint: `from 0 to ${row.step}` } : field,
  );
  const hasForm = asked.length > 0;
  useEffect(() => {
    if (!hasForm) void ask();
  }, []);
  return (
    <Dialog
      title={title ?? `${form.label}: ${run}`}
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
        <Form run={run} fields={fields} values={filled} onChange={setFilled} onSubmit={() => void ask()} />
      )}
      <Says stage={stage} isLong={form.isLong} />
    </Dialog>
  );
}

interface FieldProps {
  readonly kind: ActionField['kind'];
  readonly attributes: {
    readonly name: string;
    readonly value: string;
    readonly required: boolean;
    readonly autoFocus: boolean;
    readonly onInput: (event: { currentTarget: { value: string } }) => void;
  };
}

function FieldInput({ kind, attributes }: FieldProps) {
  if (kind === 'lines' || kind === 'settings') return <textarea rows={3} {...attributes} />;
  if (kind === 'number') return <input inputMode="decimal" {...attributes} />;
  if (kind === 'text') return <input {...attributes} />;
  const { value, onInput, ...others } = attributes;
  return (
    <input
      type="checkbox"
      {...others}
      checked={value !== ''}
      onChange={({ currentTarget }) => onInput({ currentTarget: { value: currentTarget.checked ? 'true' : '' } })}
    />
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
      {fields.map(({ name, label, hint, isRequired, kind }, index) => {
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
              {label} {hint !== null && <span class="note">{hint}</span>}
            </span>
            <FieldInput kind={kind} attributes={attributes} />
          </label>
        );
        if (kind !== 'settings') return field;
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

function Says({ stage, isLong }: { stage: ActionStage; isLong: boolean }) {
  if (stage.at === 'asking') return <p role="status">Asking what will happen …</p>;
  if (stage.at === 'form') return stage.problem === null ? null : <Notice level="bad">{stage.problem}</Notice>;
  if (stage.at === 'done')
    return (
      <Notice level="good">
        <p class={stage.result.says.includes('\n') ? 'says mono' : 'says'}>{stage.result.says}</p>
        <MadeLink made={stage.result.result?.made} />
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
      {stage.at === 'doing' && <p role="status">{isLong ? 'Working; this takes a while …' : 'Working …'}</p>}
      {stage.at === 'confirm' && stage.problem !== null && <Notice level="bad">{stage.problem}</Notice>}
    </>
  );
}

/** Leads to what the action has made. */
function MadeLink({ made }: { made: Made | undefined }) {
  if (made === undefined) return null;
  const { run, attempt } = made;
  const path = attempt === undefined ? pathTo('runs', run) : pathTo('runs', run, 'attempts', attempt);
  return (
    <p>
      <a href={`#${path}`}>{attempt === undefined ? `Open ${run}` : 'Open the replay'}</a>
    </p>
  );
}

interface ActionButtonProps {
  readonly start: StartedAction;
  readonly label: string;
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
        {label}
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
  const [opened, setOpened] = useState<string | null>(null);
  if (info === null || info.isExport) return null;
  const actions = actionsFor(run, info);
  const [first, rest] = [actions.slice(0, 2), actions.slice(2)];
  const reason = actions[0] === undefined ? null : whyNot(actions[0].action, info);
  const button = ({ action, label }: ActionForm) => (
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
      {label}
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
      {reason !== null && <Tip label="Why some actions are off">{reason}</Tip>}
      {opened !== null && (
        <ActionDialog
          key={opened}
          start={{ action: opened, input: { run: run.run } }}
          values={opened === 'rollback' ? {} : { step: String(run.step) }}
          onClose={() => setOpened(null)}
        />
      )}
    </div>
  );
}
