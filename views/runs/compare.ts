/** Two to six runs beside each other. */
import { RunConfig } from '../../core/contract/contract.ts';
import { configSettings } from '../../core/rules/config-differences.ts';
import { applyChanges } from '../../core/rules/settings.ts';
import { readAllChanges } from '../../store/records/runs/lineage.ts';
import type { CompareView } from '../api/run-views.ts';
import type { RunContext } from '../context/context.ts';
import { wrongParameter } from '../api/query.ts';
import { readCurveView } from './curve.ts';
import { requireHead, type RunHead } from './run-cache.ts';
import type { z } from 'zod';

const [LEAST, MOST] = [2, 6];

export async function viewComparison(context: Pick<RunContext, 'store'>, query: URLSearchParams): Promise<CompareView> {
  const names = [...new Set((query.get('runs') ?? '').split(',').filter((name) => name !== ''))];
  if (names.length < LEAST || names.length > MOST)
    throw wrongParameter('runs', `${LEAST} to ${MOST} names of runs with commas between`, names.join(','));
  const heads = await Promise.all(names.map((name) => requireHead(context, name)));
  const configs = await Promise.all(heads.map((head) => readConfig(context, head)));
  return {
    curves: await Promise.all(heads.map((head) => readCurveView(context.store, head))),
    settings: differingSettings(configs),
  };
}

/** With what was changed since the start. */
async function readConfig({ store }: Pick<RunContext, 'store'>, { run, file }: RunHead): Promise<RunConfig> {
  return applyChanges(file.config, (await readAllChanges(store, run)).changes);
}

/** Values that differ, in the order of their names; the names of the runs differ always. */
function differingSettings(configs: readonly RunConfig[]): CompareView['settings'] {
  const all = configs.map(configSettings);
  const paths = [...new Set(all.flatMap((settings) => [...settings.keys()]))].filter((path) => path !== 'run');
  const rows = paths.map((path) => ({
    setting: settingName(path),
    values: all.map((settings) => settings.get(path) ?? 'null'),
  }));
  return rows
    .filter(({ values }) => new Set(values).size > 1)
    .map(({ setting, values }) => ({ setting, values: values.map(showSetting) }))
    .toSorted((a, b) => a.setting.localeCompare(b.setting));
}

/** JSON as a person writes it; `none` where a run has no such setting. */
function showSetting(json: string): string {
  if (json === 'null') return 'none';
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}

/** A type that wraps others, or may be one of several. */
interface Definition {
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly innerType?: z.ZodType;
  readonly options?: readonly z.ZodType[];
}

let known: ReadonlyMap<string, string> | null = null;

/** The flag of a field; the path itself if none sets it. */
export function settingName(path: string): string {
  known ??= new Map(namesIn(RunConfig, ''));
  return known.get(path) ?? path;
}

function namesIn(schema: z.ZodType, path: string): [string, string][] {
  const { shape, innerType, options } = schema.def as Definition;
  const own = path === '' ? [] : nameOf(schema, path);
  const members = Object.entries(shape ?? {}).flatMap(([key, member]) =>
    namesIn(member, path === '' ? key : `${path}.${key}`),
  );
  const inner = [...(innerType === undefined ? [] : [innerType]), ...(options ?? [])];
  return [...members, ...inner.flatMap((each) => namesIn(each, path)), ...own];
}

function nameOf(schema: z.ZodType, path: string): [string, string][] {
  const option = schema.meta()?.option;
  if (option === undefined || option.section === 'warm-start') return [];
  const field = path.split('.').at(-1)!;
  return [[option.path ?? path, option.flag ?? field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)]];
}
