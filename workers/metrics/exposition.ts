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
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S.*)/s;

/** All samples of a name stand together, as the format asks for. `isLeftOut`: of a sample's line. */
export function joinTexts(parts: readonly Part[], isLeftOut: (line: string) => boolean = () => false): string {
  const joined = new JoinedText();
  for (const { text, labels } of parts) {
    const added = Object.keys(labels).length === 0 ? '' : writeLabels(labels).slice(1, -1);
    let current = '';
    for (const line of text.split('\n')) {
      const [, kind, described] = HEAD.exec(line) ?? [];
      if (kind !== undefined && described !== undefined) joined.addHead((current = described), kind, line);
      else if (!isLeftOut(line)) joined.addSample(current, line, added);
    }
  }
  return joined.write();
}

class JoinedText {
  /** HELP and TYPE of the first process by name, since a text may have one of each, and all samples. */
  readonly #families = new Map<string, { readonly heads: Map<string, string>; readonly samples: string[] }>();

  addHead(name: string, kind: string, line: string): void {
    const { heads } = this.#family(name);
    if (!heads.has(kind)) heads.set(kind, line);
  }

  /** Samples of a histogram have longer names than their family. Other lines are left out. */
  addSample(current: string, line: string, added: string): void {
    const [, name, own, rest] = SAMPLE.exec(line) ?? [];
    if (name === undefined) return;
    const { samples } = this.#family(current !== '' && name.startsWith(current) ? current : name);
    const pairs = [added, own].filter(Boolean).join(',');
    samples.push(`${name}${pairs === '' ? '' : `{${pairs}}`} ${rest}`);
  }

  write(): string {
    const lines = [...this.#families.values()].flatMap(({ heads, samples }) => [...heads.values(), ...samples]);
    return lines.map((line) => `${line}\n`).join('');
  }

  #family(name: string): { readonly heads: Map<string, string>; readonly samples: string[] } {
    const known = this.#families.get(name);
    if (known !== undefined) return known;
    const family = { heads: new Map<string, string>(), samples: [] };
    this.#families.set(name, family);
    return family;
  }
}
