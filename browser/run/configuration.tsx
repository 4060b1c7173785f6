/** Settings that a run was started with, their changes since, and the versions of what started it. */
import { formatReason } from '../../core/settings.ts';
import type { RunView } from '../../views/api/run-views.ts';
import { pathTo } from '../location.ts';
import { CopyButton } from '../parts/small.tsx';

export function Configuration({ view }: { view: RunView }) {
  const settings = flatten(view.config);
  return (
    <>
      <Changes view={view} />
      <h2>
        Configuration <CopyButton text={JSON.stringify(view.config, null, 2)} label="Copy JSON" />
      </h2>
      <div class="card scroll settings" tabIndex={0} role="region" aria-label="Configuration">
        <table>
          <thead>
            <tr>
              <th scope="col">setting</th>
              <th scope="col">value</th>
            </tr>
          </thead>
          <tbody>
            {settings.map(([name, value]) => (
              <tr key={name}>
                <td>{name}</td>
                <td>
                  <code>{value}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>Versions and scenarios</h2>
      <p class="note">
        {Object.entries(view.versions)
          .map(([name, version]) => `${name} ${version}`)
          .join(' · ')}
        {view.trainScenarios !== null && ` · ${view.trainScenarios} training scenarios`}
        {view.evalScenarios !== null && ` · ${view.evalScenarios} of ${view.evalScenariosOf} held-out scenarios`}
      </p>
    </>
  );
}

function Changes({ view: { changes, row } }: { view: RunView }) {
  if (changes.length === 0) return null;
  return (
    <>
      <h2>Changes</h2>
      <ul class="card change-list">
        {changes.map(({ setting, from, to, step, branch, reason }) => (
          <li key={`${branch}.${step}.${setting}`}>
            <code>{setting}</code> {from ?? 'none'} → <b>{to}</b>{' '}
            <span class="dim">
              from{' '}
              <a href={`#${pathTo('runs', row.run, 'steps', step)}?branch=${branch}`}>
                step {step} of branch {branch}
              </a>{' '}
              on
              {formatReason(reason)}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** Nested settings by their path, `rollout.temperature`. */
function flatten(value: unknown, path = ''): [string, string][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).length === 0) {
    return [[path, typeof value === 'string' ? value : JSON.stringify(value)]];
  }
  return Object.entries(value).flatMap(([name, inner]) => flatten(inner, path === '' ? name : `${path}.${name}`));
}
