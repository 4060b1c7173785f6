/** List of the keys that do something on the shown page. */
import { useState } from 'preact/hooks';
import { Dialog } from './dialog.tsx';
import { activeBindings } from './keys.ts';

/** Keys of the tables and tabs, which act where the focus is. */
const EVERYWHERE: readonly (readonly [string, string])[] = [
  ['↑ ↓ PgUp PgDn Home End', 'Move in a table'],
  ['Space', 'Choose the run or the checkpoint to compare'],
  ['Enter', 'Open the row or the point of a chart'],
  ['← →', 'Move between tabs and points of a chart'],
];

export function KeyHelp({ onClose }: { onClose: () => void }) {
  const [bindings] = useState(activeBindings);
  const rows = [...bindings.map(({ keys, label }) => [keys, label] as const), ...EVERYWHERE];
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="key-list">
        {rows.map(([keys, label]) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
      </dl>
      <p>
        <a href="#/glossary" onClick={onClose}>
          What the terms mean
        </a>
      </p>
    </Dialog>
  );
}
