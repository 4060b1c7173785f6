/** Actions on a run: first the server says what will happen, then it is done. */
import { Fragment } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { applyChanges, rangeOf, settingOf, SETTINGS } from '../../core/rules/settings.ts';
import type {
  ActionField,
  ActionForm,
  ActionRequest,
  ActionResult,
  Made,
  ServerInfo,
} from '../../views/api/requests.ts';
import type { RunRow, RunView } from '../../views/api/run-views.ts';
import { markOld, postAction, useData, useRunRow } from '../data.ts';
import { pathTo } from '../location.ts';
import { formOf, readActionForm, shownFields, type FormValues } from './action-fields.ts';
import { ActionButtons, focusWhenShown, type ActionStage } from './action-buttons.tsx';
import { Dialog } from './dialog.tsx';
import { CopyButton, Notice } from './small.tsx';

/** The action, and the part of its input that is known. */
export interface StartedAction {
  readonly action: string;
  readonly input: ActionRequest['input'];
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
  const [subject] = Object.values(start.input);
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
      markOld('schedules');
    } catch (error) {
      setStage({ at: 'confirm', plan, problem: (error as Error).message });
    }
  };
  const row = useRunRow(typeof run === 'string' ? run : null);
  const fields = asked.map((field) => withRange(field, row));
  const hasForm = asked.length > 0;
  useEffect(() => {
    if (!hasForm) void ask();
  }, []);
  return (
    <Dialog
      title={title ?? `${form.label}: ${String(subject)}`}
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
        <Form run={row?.run ?? ''} fields={fields} values={filled} onChange={setFilled} onSubmit={() => void ask()} />
      )}
      <Says stage={stage} isLong={form.isLong} />
    </Dialog>
  );
}

function withRange(field: ActionField, row: RunRow | null): ActionField {
  return field.name === 'step' && field.kind === 'number' && row !== null
    ? { ...field, hint: `from 0 to ${row.step}` }
    : field;
}

interface FieldProps extends Pick<ActionField, 'kind' | 'choices'> {
  readonly attributes: {
    readonly name: string;
    readonly value: string;
    readonly required: boolean;
    readonly autoFocus: boolean;
    readonly onInput: (event: { currentTarget: { value: string } }) => void;
  };
}

function FieldInput({ kind, choices, attributes }: FieldProps) {
  if (kind === 'lines' || kind === 'settings') return <textarea rows={3} {...attributes} />;
  if (kind === 'number') return <input inputMode="decimal" {...attributes} />;
  if (kind === 'text') return <input {...attributes} />;
  if (kind === 'choice')
    return (
      <select {...attributes}>
        {['', ...choices].map((choice) => (
          <option key={choice}>{choice}</option>
        ))}
      </select>
    );
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
      {shownFields(fields, values).map(({ name, label, hint, isRequired, kind, choices }, index) => {
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
            <FieldInput kind={kind} choices={choices} attributes={attributes} />
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
  // A deployment has made something by stages, and nothing here.
  if (typeof made?.run !== 'string') return null;
  const { run, attempt } = made;
  const path = attempt === undefined ? pathTo('runs', run) : pathTo('runs', run, 'attempts', attempt);
  return (
    <p>
      <a href={`#${path}`}>{attempt === undefined ? `Open ${run}` : 'Open the replay'}</a>
    </p>
  );
}

interface SettingChoiceProps {
  readonly run: string;
  /** Lines of the form, `learningRate=1e-5`. */
  readonly lines: string;
  readonly onLines: (lines: string) => void;
}

/** The settings that a run takes while it is in progress, each with its range. A chosen one is a new line, with its value. */
function SettingChoice({ run, lines, onLines }: SettingChoiceProps) {
  const view = useData<RunView>(`runs/${encodeURIComponent(run)}`).value;
  if (view === null) return null;
  const now = applyChanges(view.config, view.changes);
  const add = (line: string): void => {
    const isThere = lines.split('\n').some((other) => other.startsWith(line.slice(0, line.indexOf('=') + 1)));
    if (!isThere) onLines([lines.trimEnd(), line].filter((part) => part !== '').join('\n'));
  };
  return (
    <label>
      <span>Add a setting</span>
      <select value="" onChange={({ currentTarget }) => add(currentTarget.value)}>
        <option value="">choose one</option>
        {SETTINGS.map((setting) => {
          const value = settingOf(now, setting);
          return (
            <option key={setting} value={`${setting}=${value ?? ''}`}>
              {setting}, now {value ?? 'none'}: {rangeOf(setting)}
            </option>
          );
        })}
      </select>
    </label>
  );
}
