/** Live view of a run: a pure function from its state to the text of the screen. */
import type pc from 'picocolors';
import { describeCosts } from '../../core/rules/costs.ts';
import { shortModelName } from '../../core/reports/describe-config.ts';
import type { RunState, StepSummary } from '../../core/contract/contract.ts';
import {
  describeHeadline,
  describeHeldOut,
  describeMetrics,
  formatDuration,
  formatNumber,
  formatRate,
} from '../../core/reports/format.ts';
import { describeHeldOutLoss, findHeldOutLoss } from '../../views/charts/held-out.ts';
import { largest, mean, smallest } from '../../core/numbers/statistics.ts';
import { warnOfTraining } from '../../core/reports/training-warnings.ts';
import { wrap } from '../command-line/help.ts';
import { clipLine } from '../terminal/output.ts';
import { drawCurve } from './curve.ts';
import { describePhases, describeSpread, describeTraining, fillRows } from './training-text.ts';

export interface LiveModel {
  readonly run: string;
  readonly state: RunState | null;
  readonly steps: readonly StepSummary[];
  /** Activity outside of the run's own work: an installation, a wait. */
  readonly status: string | null;
  /** Newest last. */
  readonly events: readonly string[];
  readonly hint: string;
}

type Colors = ReturnType<typeof pc.createColors>;

export interface Screen {
  readonly columns: number;
  readonly rows: number;
  readonly colors: Colors;
}

const PHASES = ['prepare', 'initialise', 'eval', 'rollout', 'judge', 'train'] as const;
/** Steps used to estimate speed and time left. */
const RECENT = 20;
const LABEL_WIDTH = 9;
const LOW_ROWS = 24;
const STATUS_ROWS = 4;
/** Columns of a label with its space. */
const LABELLED = 6;

export function renderLive(model: LiveModel, screen: Screen): string {
  const width = Math.max(40, Math.min(screen.columns - 1, 120));
  const sections = [
    header(model, width, screen.colors),
    curve(model.steps, width, screen),
    numbers(model, width, screen),
    tail(model, width, screen.colors),
  ];
  return sections
    .filter((section) => section.length > 0)
    .map((section) => section.join('\n'))
    .join('\n\n');
}

function header({ run, state, steps }: LiveModel, width: number, colors: Colors): string[] {
  if (state === null) return [`${colors.bold(run)}  ${colors.dim('starting')}`];
  const status = `● ${state.state}`;
  const about = clipLine(
    `${state.agent} on ${shortModelName(state.baseModel)}`,
    Math.max(0, width - run.length - status.length - 4),
  );
  const gap = ' '.repeat(Math.max(2, width - run.length - about.length - status.length - 2));
  const title = `${colors.bold(run)}  ${colors.dim(about)}${gap}${stateColor(state, colors)(status)}`;
  return [title, progressBar(state, steps, width, colors), phaseBar(state, width, colors)];
}

function stateColor({ state }: RunState, colors: Colors): (text: string) => string {
  if (state === 'failed' || state === 'cancelled') return colors.red;
  return state === 'completed' ? colors.green : colors.cyan;
}

function progressBar(state: RunState, steps: readonly StepSummary[], width: number, colors: Colors): string {
  const left = secondsLeft(state, steps);
  const text = `step ${state.step}/${state.steps}`;
  const spent = formatDuration(state.wallSeconds);
  const time = left === null ? spent : `${spent}, ${formatDuration(left)} left`;
  const room = width - text.length - time.length - 4;
  if (room < 8) return clipLine(`${text}  ${time}`, width);
  const filled = Math.round((state.step / state.steps) * room);
  return `${text}  ${colors.cyan('█'.repeat(filled))}${colors.dim('░'.repeat(room - filled))}  ${time}`;
}

function secondsLeft(state: RunState, steps: readonly StepSummary[]): number | null {
  if (steps.length === 0 || state.state !== 'running') return null;
  return (state.steps - state.step) * usualSeconds(steps, 'step');
}

function phaseBar(state: RunState, width: number, colors: Colors): string {
  const isWide = width >= PHASES.join('').length + PHASES.length * 3 + 6;
  const shown = isWide ? PHASES : PHASES.filter((phase) => phase === state.phase);
  const parts = shown.map((phase) => (phase === state.phase ? colors.inverse(` ${phase} `) : colors.dim(` ${phase} `)));
  return `phase ${parts.join(colors.dim('›'))}`;
}

function curve(steps: readonly StepSummary[], width: number, { rows, colors }: Screen): string[] {
  const rewards = steps.flatMap(({ reward }) => (reward === null ? [] : [reward]));
  if (rewards.length < 2) return [];
  const height = Math.max(3, Math.min(8, rows - 18));
  const lines = drawCurve(rewards, { columns: width - LABEL_WIDTH, rows: height });
  const [top, bottom] = [largest(rewards), smallest(rewards)];
  return lines.map((line, row) => {
    const label =
      row === 0 ? formatNumber(top, 2) : row === height - 1 ? formatNumber(bottom, 2) : row === 1 ? 'reward' : '';
    return `${colors.dim(label.padStart(LABEL_WIDTH - 2))}${colors.dim('│')} ${colors.cyan(line)}`;
  });
}

function numbers({ state, steps }: LiveModel, width: number, { rows: height, colors }: Screen): string[] {
  const rows: [string, string][] = [];
  const last = steps.at(-1);
  if (last !== undefined) {
    const isSupervised = last.examples !== undefined;
    const latest = isSupervised
      ? `loss ${formatNumber(last.train['loss'] ?? null)}`
      : describeMetrics(last.reward, last.metrics, describeSpread(last.train));
    const room = width - LABELLED;
    const speed = describeSpeed(steps, room);
    rows.push(['last ', latest], ...trainingRows(last, room, height), ['speed', speed]);
  }
  const [before, latest] = [state?.evals[0], state?.evals.at(-1)];
  if (before !== undefined && latest !== undefined) {
    const shown = before === latest ? [before] : [before, latest];
    const texts = shown.map((evaluation) => `step ${evaluation.step}: ${describeHeadline(evaluation)}`);
    rows.push(['eval ', `${texts.join(' → ')} (${describeHeldOut(latest)})`]);
  }
  const loss = findHeldOutLoss(steps);
  if (loss !== null) rows.push(['loss ', describeHeldOutLoss(loss)]);
  rows.push(...costRows(state));
  return rows.map(([label, text]) => `${colors.dim(label)} ${clipLine(text, width - LABELLED)}`);
}

function costRows(state: RunState | null): [string, string][] {
  const cost = state?.costs === undefined ? null : describeCosts(state.costs);
  return cost === null ? [] : [['cost ', cost]];
}

/** Two rows, or one in a low terminal. */
function trainingRows(step: StepSummary, width: number, rows: number): [string, string][] {
  const lines = fillRows(describeTraining(step), width, rows < LOW_ROWS ? 1 : 2);
  return lines.map((line, index) => [index === 0 ? 'train' : '     ', line]);
}

/** Median step time: a step during an outage does not predict the next one. */
function usualSeconds(steps: readonly StepSummary[], name: string): number {
  const seconds = steps
    .slice(-RECENT)
    .map((step) => step.seconds[name] ?? 0)
    .toSorted((a, b) => a - b);
  return seconds[Math.floor(seconds.length / 2)] ?? 0;
}

function describeSpeed(steps: readonly StepSummary[], width: number): string {
  const seconds = usualSeconds(steps, 'step');
  const tokens = mean(steps.slice(-RECENT).map((step) => step.sampledTokens)) ?? 0;
  const items = [
    ...(tokens === 0 ? [] : [`${formatRate(tokens / Math.max(seconds, 1e-9))} tokens/s`]),
    `${formatDuration(seconds)} a step`,
    ...describePhases((name) => usualSeconds(steps, name)),
  ];
  return fillRows(items, width, 1).join('');
}

function tail({ status, events, hint, state, steps }: LiveModel, width: number, colors: Colors): string[] {
  const warnings = warnOfTraining(steps, state?.evals).map(({ text }) =>
    colors.yellow(clipLine(`warning: ${text}`, width)),
  );
  const notes = (state?.notes ?? []).slice(-2).map((note) => colors.dim(clipLine(`note: ${note}`, width)));
  const recent = events.slice(-4).map((event) => colors.yellow(clipLine(`· ${event}`, width)));
  const now =
    status === null ? [] : wrap(clipLine(status, width * STATUS_ROWS), width).map((line) => clipLine(line, width));
  return [...notes, ...warnings, ...recent, ...now, colors.dim(clipLine(hint, width))];
}
