/** Place of a page among the others, from its path. */
import { decodeEscapes } from '../../core/text/decode.ts';
import { pathTo } from '../location.ts';

interface Crumb {
  readonly label: string;
  readonly path: string;
}

export interface PagePlace {
  readonly run: string | null;
  /** Page of a run: `steps`, `attempts`. */
  readonly page: string | null;
  readonly crumbs: readonly Crumb[];
}

const PAGES: Readonly<Record<string, string>> = {
  attempts: 'Attempts',
  checkpoints: 'Checkpoints',
  chat: 'Chat',
};

const OTHER_PAGES: Readonly<Record<string, string>> = {
  compare: 'Compare',
  glossary: 'Glossary',
  schedules: 'Schedules',
};

export function placeOf(path: string): PagePlace {
  const [first, run, page, id] = path.split('/').slice(1).map(decodeEscapes);
  const home: Crumb = { label: 'Runs', path: '/' };
  if (first === 'evaluation') return { run: null, page: null, crumbs: [{ label: 'Evaluation', path }] };
  const label = first === undefined ? undefined : OTHER_PAGES[first];
  if (label !== undefined) return { run: null, page: null, crumbs: [home, { label, path }] };
  if (first !== 'runs' || run === undefined) return { run: null, page: null, crumbs: [home] };
  const crumbs = [home, { label: run, path: pathTo('runs', run) }];
  if (page === undefined) return { run, page: null, crumbs };
  return { run, page, crumbs: [...crumbs, ...crumbsOf(run, page, id, path)] };
}

function crumbsOf(run: string, page: string, id: string | undefined, path: string): Crumb[] {
  if (id === undefined) return [{ label: PAGES[page] ?? page, path }];
  if (page === 'steps') return [{ label: `Step ${id}`, path }];
  const parts = id.split('.');
  if (parts[0] === 'replay') return [{ label: `Replay ${parts.slice(1).join('.')}`, path }];
  if (parts[0] === 'eval') return evaluationCrumbs(run, parts, page, path);
  const [branch, step, group, attempt] = parts;
  return [
    stepCrumb(run, branch!, step!),
    { label: `Group ${group}`, path: pathTo('runs', run, 'groups', `${branch}.${step}.${group}`) },
    ...(page === 'attempts' ? [{ label: `Attempt ${attempt}`, path }] : []),
  ];
}

function evaluationCrumbs(run: string, parts: readonly string[], page: string, path: string): Crumb[] {
  const [, , step, attempt] = parts;
  return [
    { label: `Evaluation after step ${step}`, path: pathTo('runs', run, 'groups', parts.slice(0, 3).join('.')) },
    ...(page === 'attempts' ? [{ label: `Attempt ${attempt}`, path }] : []),
  ];
}

function stepCrumb(run: string, branch: string, step: string): Crumb {
  return { label: `Step ${step}`, path: `${pathTo('runs', run, 'steps', step)}?branch=${branch}` };
}
