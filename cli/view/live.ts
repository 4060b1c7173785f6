/** The live view of a run: a pure function from what is known to the text of the screen. */
import type pc from 'picocolors';
import type { RunState, StepSummary } from '../../core/contract.ts';
import { describeMetrics, formatDuration, formatNumber, formatRate, headline } from '../format.ts';
import { drawCurve, mean } from './curve.ts';
import { stepSeconds } from './lines.ts';

export interface LiveModel {
  readonly run: string;
  readonly state: RunState | null;
  readonly steps: readonly StepSummary[];
  /** What the run waits for, where it waits. */
  readonly waitingFor: string | null;
  /** The newest last. */
  readonly events: readonly string[];
  readonly hint: string;
}

type Colors = ReturnType<typeof pc.createColors>;

export interface Screen {
  readonly columns: number;
  readonly rows: number;
  readonly colors: Colors;
}

const PHASES = ['prepare', 'initialise', 'eval', 'rollout', 'train'] as const;
/** Steps that speed and time left are averaged over. */
const RECENT = 20;
const LABEL_WIDTH = 9;

export function renderLive(model: LiveModel, screen: Screen): string {
  const width = Math.max(40, Math.min(screen.columns - 1, 100));
  const sections = [
    header(model, width, screen.colors),
    curve(model.steps, width, screen),
    numbers(model, screen.colors),
    tail(model, width, screen.colors),
  ];
  return sections
    .filter((section) => section.length > 0)
    .map((section) => section.join('\n'))
    .join('\n\n');
}

function header({ run, state, steps }: LiveModel, width: number, colors: Colors): string[] {
  if (state === null) return [`${colors.bold(run)}  ${colors.dim('starting')}`];
  const title = `${colors.bold(run)}  ${colors.dim(`${state.agent} on ${state.baseModel}`)}`;
  const bare = run.length + state.agent.length + state.baseModel.length + 6;
  const status = stateMark(state, colors);
  const gap = ' '.repeat(Math.max(2, width - bare - state.state.length - 2));
  return [`${title}${gap}${status}`, progressBar(state, steps, width, colors), phaseBar(state, colors)];
}

function stateMark({ state }: RunState, colors: Colors): string {
  const paint =
    state === 'failed' || state === 'cancelled' ? colors.red : state === 'completed' ? colors.green : colors.cyan;
  return paint(`● ${state}`);
}

function progressBar(state: RunState, steps: readonly StepSummary[], width: number, colors: Colors): string {
  const left = secondsLeft(state, steps);
  const text = `step ${state.step}/${state.steps}`;
  const time =
    left === null
      ? formatDuration(state.wallSeconds)
      : `${formatDuration(state.wallSeconds)}, ${formatDuration(left)} left`;
  const room = Math.max(10, width - text.length - time.length - 4);
  const filled = Math.round((state.step / state.steps) * room);
  return `${text}  ${colors.cyan('█'.repeat(filled))}${colors.dim('░'.repeat(room - filled))}  ${time}`;
}

function secondsLeft(state: RunState, steps: readonly StepSummary[]): number | null {
  if (steps.length === 0 || state.state !== 'running') return null;
  return (state.steps - state.step) * mean(steps.slice(-RECENT).map(stepSeconds));
}

function phaseBar(state: RunState, colors: Colors): string {
  const parts = PHASES.map((phase) =>
    phase === state.phase ? colors.inverse(` ${phase} `) : colors.dim(` ${phase} `),
  );
  return `phase ${parts.join(colors.dim('›'))}`;
}

function curve(steps: readonly StepSummary[], width: number, { rows, colors }: Screen): string[] {
  const rewards = steps.flatMap(({ reward }) => (reward === null ? [] : [reward]));
  if (rewards.length < 2) return [];
  const height = Math.max(3, Math.min(8, rows - 16));
  const lines = drawCurve(rewards, { columns: width - LABEL_WIDTH, rows: height });
  const [top, bottom] = [Math.max(...rewards), Math.min(...rewards)];
  return lines.map((line, row) => {
    const label =
      row === 0 ? formatNumber(top, 2) : row === height - 1 ? formatNumber(bottom, 2) : row === 1 ? 'reward' : '';
    return `${colors.dim(label.padStart(LABEL_WIDTH - 2))}${colors.dim('│')} ${colors.cyan(line)}`;
  });
}

function numbers({ state, steps }: LiveModel, colors: Colors): string[] {
  const lines: string[] = [];
  const last = steps.at(-1);
  if (last !== undefined) {
    const recent = steps.slice(-RECENT);
    const seconds = mean(recent.map(stepSeconds));
    const tokens = mean(recent.map((step) => step.sampledTokens));
    const speed = `${formatRate(tokens / Math.max(seconds, 1e-9))} tokens/s · ${formatDuration(seconds)} a step`;
    lines.push(
      `${colors.dim('last ')} ${describeMetrics(last.reward, last.metrics)}`,
      `${colors.dim('speed')} ${speed}`,
    );
  }
  const evals = state?.evals ?? [];
  const [before, latest] = [evals[0], evals.at(-1)];
  if (before !== undefined && latest !== undefined) {
    const shown = before === latest ? [before] : [before, latest];
    const texts = shown.map((evaluation) => {
      const { label, value } = headline(evaluation);
      return `step ${evaluation.step}: ${formatNumber(value)} ${label}`;
    });
    lines.push(`${colors.dim('eval ')} ${texts.join(' → ')} ${colors.dim(`(${latest.attempts} held-out scenarios)`)}`);
  }
  return lines;
}

function tail({ waitingFor, events, hint, state }: LiveModel, width: number, colors: Colors): string[] {
  const notes = (state?.notes ?? []).slice(-2).map((note) => colors.dim(clip(`note: ${note}`, width)));
  const recent = events.slice(-4).map((event) => colors.yellow(clip(`· ${event}`, width)));
  const waiting = waitingFor === null ? [] : [clip(`waiting for ${waitingFor}`, width)];
  return [...notes, ...recent, ...waiting, colors.dim(hint)];
}

function clip(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}
