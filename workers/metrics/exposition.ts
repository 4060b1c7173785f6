/** Prometheus's text format, version 0.0.4: written from families, and joined from the texts of several processes. */

export const PROMETHEUS = 'text/plain; version=0.0.4; charset=utf-8';

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  /** Part of a histogram. */
  readonly suffix?: '_bucket' | '_sum' | '_count';
  readonly labels: Labels;
  readonly value: number;
}

/** All samples of one name. */
export interface Family {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly samples: readonly Sample[];
}

export function writeFamilies(families: readonly Family[]): string {
  const lines = families.flatMap(({ name, type, help, samples }) => [
    `# HELP ${name} ${escapeHelp(help)}`,
    `# TYPE ${name} ${type}`,
    ...samples.map(({ suffix = '', labels, value }) => `${name}${suffix}${writeLabels(labels)} ${writeNumber(value)}`),
  ]);
  return lines.map((line) => `${line}\n`).join('');
}

function writeLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function writeNumber(value: number): string {
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : String(value);
}

function escapeLabel(value: string): string {
  return value
    .replaceAll('\\', '\\\\')
    .replaceAll('"', String.raw`\"`)
    .replaceAll('\n', String.raw`\n`);
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', String.raw`\n`);
}

export interface Part {
  readonly text: string;
  /** Added to each sample. */
  readonly labels: Labels;
}

const HEAD = /^# (HELP|TYPE) (\S+) /;
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S.*)$/;

interface JoinedFamily {
  /** The first process's HELP and TYPE: a text may have one of each. */
  readonly heads: Map<string, string>;
  readonly samples: string[];
}

/** All samples of a name stand together, as the format asks for. `isLeftOut`: of a sample's line. */
export function joinTexts(parts: readonly Part[], isLeftOut: (line: string) => boolean = () => false): string {
  const families = new Map<string, JoinedFamily>();
  const familyOf = (name: string): JoinedFamily => {
    const family = families.get(name) ?? { heads: new Map<string, string>(), samples: [] };
    families.set(name, family);
    return family;
  };
  for (const { text, labels } of parts) {
    const added = Object.keys(labels).length === 0 ? '' : writeLabels(labels).slice(1, -1);
    let current = '';
    for (const line of text.split('\n')) {
      const [, kind, described] = HEAD.exec(line) ?? [];
      if (kind !== undefined && described !== undefined) {
        current = described;
        const { heads } = familyOf(current);
        if (!heads.has(kind)) heads.set(kind, line);
        continue;
      }
      const [, name, own, rest] = SAMPLE.exec(line) ?? [];
      if (name === undefined || isLeftOut(line)) continue;
      // Samples of a histogram have longer names than their family.
      const family = familyOf(current !== '' && name.startsWith(current) ? current : name);
      const pairs = [added, own].filter(Boolean).join(',');
      family.samples.push(`${name}${pairs === '' ? '' : `{${pairs}}`} ${rest}`);
    }
  }
  const lines = [...families.values()].flatMap(({ heads, samples }) => [...heads.values(), ...samples]);
  return lines.map((line) => `${line}\n`).join('');
}
