/** The settings that a run takes while it is in progress, each with its value and its range. */
import { applyChanges, rangeOf, settingOf, SETTINGS } from '../../core/rules/settings.ts';
import type { RunView } from '../../views/api/run-views.ts';
import { useData } from '../data.ts';

interface SettingChoiceProps {
  readonly run: string;
  /** Lines of the form, `learningRate=1e-5`. */
  readonly lines: string;
  readonly onLines: (lines: string) => void;
}

/** A chosen one is a new line, with the value to be changed. */
export function SettingChoice({ run, lines, onLines }: SettingChoiceProps) {
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
