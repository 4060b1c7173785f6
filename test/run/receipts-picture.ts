/**
 * Draws docs/pictures/receipts.svg from finished runs of examples/receipts, one for each seed: the mean reward of
 * held-out receipts (1: the number alone), and what the model said to one of them before and after in the first run.
 * `node --import ./workers/typescript.js test/run/receipts-picture.ts --project FOLDER --run NAME --run NAME …`
 */
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { estimateMean, type Estimate } from '../../core/numbers/statistics.ts';
import type { RunState } from '../../core/contract/contract.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { readEvalRollouts, requireRun } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { projectFolders } from '../../workers/project/folders.ts';

interface Point extends Estimate {
  readonly step: number;
}

interface Curve {
  readonly run: string;
  readonly points: readonly Point[];
}

interface Said {
  readonly receipt: string;
  readonly before: string;
  readonly after: string;
}

const COLORS = ['#2b5ce0', '#d9480f', '#2b8a3e', '#862e9c'];
const SIZE = { width: 760, height: 470 };
/** The chart's place. */
const AREA = { left: 64, right: 730, top: 78, bottom: 330 };
const STYLE =
  'text{font-family:system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1c2430}.t{font-size:15px;font-weight:600}.n{font-size:13px}.s{font-size:11px;fill:#667085}.m{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px}';

const { values } = parseArgs({ options: { project: { type: 'string' }, run: { type: 'string', multiple: true } } });
const store = await openStore(projectFolders(resolve(values.project ?? '.')).store);
const names = values.run ?? ['receipts'];
const states = await Promise.all(names.map((run) => readEnded(store, run)));
const curves = await Promise.all(states.map(toCurve));
const file = join(import.meta.dirname, '../../docs/pictures/receipts.svg');
writeFileSync(file, draw(curves, await readSaid(store, states[0]!)));
for (const { run, points } of curves) {
  const shown = points.map(({ step, ...share }) => `${step}: ${describePoint(share)}`);
  console.log(`${run}  ${shown.join(', ')}`);
}

async function readEnded(from: Store, run: string): Promise<RunState> {
  const { state } = await requireRun(from, run);
  if (state === null || !['completed', 'stopped'].includes(state.state))
    throw new Error(`the run ${run} must be completed or stopped; train it first`);
  return state;
}

async function toCurve({ run, evals }: RunState): Promise<Curve> {
  const points = evals.map(async ({ step }): Promise<Point> => {
    const { attempts } = (await readEvalRollouts(store, { run, branch: 0, step }))!;
    return { step, ...estimateMean(attempts.flatMap(({ reward }) => reward ?? [])) };
  });
  return { run, points: await Promise.all(points) };
}

function describePoint({ mean, low, high }: Estimate): string {
  return `${mean.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
}

/** The first held-out receipt that the first run answered in words before training. */
async function readSaid(from: Store, { run, evals, step: last }: RunState): Promise<Said> {
  const [before, after] = await Promise.all(
    [evals[0]!.step, last].map((step) => readEvalRollouts(from, { run, branch: 0, step })),
  );
  const index = before!.attempts.findIndex(({ metrics, truncated }) => metrics['mentioned'] === true && !truncated);
  const { request, message } = before!.attempts[index]!.calls[0]!;
  return {
    receipt: oneLine(request.messages.at(-1)!.content).replace(/ How many euros .*/, ''),
    before: oneLine(message.content),
    after: oneLine(after!.attempts[index]!.calls[0]!.message.content),
  };
}

function oneLine(content: unknown): string {
  return typeof content === 'string' ? content.replaceAll(/\s+/g, ' ') : '';
}

function draw(all: readonly Curve[], said: Said): string {
  const last = Math.max(...all.flatMap(({ points }) => points.map(({ step }) => step)));
  const x = (step: number) => round(AREA.left + (step / last) * (AREA.right - AREA.left));
  const y = (reward: number) => round(AREA.bottom - Math.min(1, reward) * (AREA.bottom - AREA.top));
  const title = 'SmolLM2-135M-Instruct learns to answer with a number';
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SIZE.width} ${SIZE.height}" width="${SIZE.width}" height="${SIZE.height}" role="img" aria-label="${title}: mean reward of held-out receipts by step, for each seed">`,
    `<style>${STYLE}</style>`,
    `<rect width="${SIZE.width}" height="${SIZE.height}" rx="10" fill="#fff"/>`,
    text(24, 30, title, 't'),
    text(
      24,
      50,
      'mean reward of 100 held-out receipts (1: the number alone; 0.6: two words), by step; bands: 95 % intervals',
      's',
    ),
    ...all.map(({ run }, index) => legend(index, run)),
    ...axes(last, x, y),
    ...all.flatMap(({ points }, index) => lines(points, COLORS[index % COLORS.length]!, x, y)),
    ...answers(said),
    '</svg>\n',
  ].join('\n');
}

type Scale = (value: number) => number;

function axes(last: number, x: Scale, y: Scale): string[] {
  const shares = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
    `<line x1="${AREA.left}" x2="${AREA.right}" y1="${y(share)}" y2="${y(share)}" stroke="#e6e9ef"/>`,
    text(AREA.left - 8, y(share) + 4, `${share}`, 's', 'end'),
  ]);
  const steps = [0, 1, 2, 3, 4].map((quarter) => {
    const step = Math.round((last * quarter) / 4);
    return text(
      x(step),
      AREA.bottom + 18,
      quarter === 4 ? `step ${step}` : `${step}`,
      's',
      quarter === 4 ? 'end' : 'middle',
    );
  });
  return [...shares, ...steps];
}

function lines(points: readonly Point[], color: string, x: Scale, y: Scale): string[] {
  const upper = points.map(({ step, high }) => `${x(step)},${y(high)}`);
  const lower = points.map(({ step, low }) => `${x(step)},${y(low)}`).toReversed();
  const middle = points.map(({ step, mean }) => `${x(step)},${y(mean)}`);
  return [
    `<polygon points="${[...upper, ...lower].join(' ')}" fill="${color}" opacity=".12"/>`,
    `<polyline points="${middle.join(' ')}" fill="none" stroke="${color}" stroke-width="2"/>`,
    ...points.map(({ step, mean }) => `<circle cx="${x(step)}" cy="${y(mean)}" r="3" fill="${color}"/>`),
  ];
}

function legend(index: number, run: string): string {
  const left = 530 + index * 75;
  const color = COLORS[index % COLORS.length]!;
  const seed = /\d+$/.exec(run)?.[0];
  return `<circle cx="${left}" cy="26" r="5" fill="${color}"/>${text(left + 11, 30, seed === undefined ? run : `seed ${seed}`, 's')}`;
}

function answers({ receipt, before, after }: Said): string[] {
  const rows = [
    ['a held-out receipt', receipt],
    ['answer before', before],
    ['answer after', after],
  ] as const;
  return rows.flatMap(([label, line], index) => [
    text(24, 382 + index * 28, label, 's'),
    text(150, 382 + index * 28, line, 'm'),
  ]);
}

function text(x: number, y: number, content: string, style: string, anchor = 'start'): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" class="${style}">${escaped}</text>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
