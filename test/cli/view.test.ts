import pc from 'picocolors';
import { describe, expect, test } from 'vitest';
import { resultLines } from '../../cli/watch/result.ts';
import { drawCurve, resample } from '../../cli/watch/curve.ts';
import { joinRun, linesSince, NOTHING_TOLD } from '../../cli/watch/lines.ts';
import { renderLive } from '../../cli/watch/live.ts';
import { createEventPrinter } from '../../cli/terminal/stack-events.ts';
import type { StackEvent } from '../../workers/events.ts';
import { evaluation, fixtureState, summary } from './fixture-store.ts';

const steps = Array.from({ length: 40 }, (_, index) => summary(index + 1, 100));
const before = evaluation(0, 0.51, 0.09);
const running = {
  ...fixtureState('demo', 100),
  state: 'running' as const,
  step: 40,
  phase: 'rollout' as const,
  evalAfter: null,
  evals: [before],
  wallSeconds: 41,
};
const screen = { columns: 80, rows: 30, colors: pc.createColors(false) };

describe('the live view', () => {
  test('of a run under way', () => {
    const events = ['12:00:00 gpu-worker died (SIGKILL), restarting in 0.5 s'];
    const model = {
      run: 'demo',
      state: running,
      steps,
      status: 'waiting for the GPU worker',
      events,
      hint: 'Ctrl-C detaches',
    };
    expect(renderLive(model, screen)).toMatchInlineSnapshot(`
      "demo  tic-tac-toe on pocket                                           ● running
      step 40/100  ████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  41 s, 48 s left
      phase  prepare › initialise › eval › rollout › judge › train 

         0.50│ ⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⢀⠔⠉⠉⠑⢄⠀⠀
       reward│ ⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⢀⠔⠒⠢⣀⠀⠀⠀⠀⠀⠀⠀⠀⠀⡠⠃⠀⠀⠀⠀⠀⠑⡄
             │ ⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⣀⠤⢄⡀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⡔⠁⠀⠀⠀⠀⠱⡀⠀⠀⠀⠀⠀⢀⠜⠀⠀⠀⠀⠀⠀⠀⠀⠈
             │ ⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⢀⣀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⢀⠔⠁⠀⠀⠈⠢⡀⠀⠀⠀⠀⠀⠀⢀⠎⠀⠀⠀⠀⠀⠀⠀⠈⠢⣀⠀⢀⠤⠊⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀
             │ ⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⢠⠒⠁⠀⠉⠢⡀⠀⠀⠀⠀⠀⠀⠀⡠⠃⠀⠀⠀⠀⠀⠀⠈⠢⡀⠀⠀⠀⡰⠁⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠉⠁⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀
             │ ⡠⠒⠉⠒⠢⡀⠀⠀⠀⠀⠀⠀⠀⠀⡰⠁⠀⠀⠀⠀⠀⠈⠢⡀⠀⠀⠀⢀⠔⠁⠀⠀⠀⠀⠀⠀⠀⠀⠀⠈⠑⠒⠉⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀
             │ ⠀⠀⠀⠀⠀⠈⢆⠀⠀⠀⠀⠀⢀⠜⠀⠀⠀⠀⠀⠀⠀⠀⠀⠉⠢⠤⠔⠁⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀
         0.28│ ⠀⠀⠀⠀⠀⠀⠀⠑⠤⣀⣀⠔⠁⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀

      last  reward 0.449 · win 0.649 · illegal 0.060 · draw 0.100 · moves 3.200
      train entropy 1.200 · gradNorm 0.133
      speed 1150 tokens/s · 0.8 s a step · rollout 0.5 s · train 0.3 s
      eval  step 0: 0.510 win (200 held-out scenarios)

      · 12:00:00 gpu-worker died (SIGKILL), restarting in 0.5 s
      waiting for the GPU worker
      Ctrl-C detaches"
    `);
  });

  test('before anything is known', () => {
    const model = {
      run: 'demo',
      state: null,
      steps: [],
      status: 'waiting for the Temporal server',
      events: [],
      hint: 'Ctrl-C detaches',
    };
    expect(renderLive(model, screen)).toBe('demo  starting\n\nwaiting for the Temporal server\nCtrl-C detaches');
  });

  test('a wait of many words goes on in the next line', () => {
    const status = `waiting for prepare, attempt 7: last failure: TypeError: ${'what to do '.repeat(9)}now`;
    const shown = renderLive(
      { run: 'demo', state: null, steps: [], status, events: [], hint: 'Ctrl-C detaches' },
      screen,
    );
    expect(shown.split('\n').slice(2, -1).join(' ')).toBe(status);
  });

  test('no line is wider than the terminal', () => {
    const model = {
      run: 'demo',
      state: running,
      steps,
      status: 'x'.repeat(500),
      events: ['y'.repeat(500)],
      hint: 'h',
    };
    for (const columns of [50, 80, 120]) {
      const widths = renderLive(model, { ...screen, columns })
        .split('\n')
        .map((line) => line.length);
      expect(Math.max(...widths)).toBeLessThan(columns);
    }
  });
});

describe('the curve', () => {
  test('rises where the values rise', () => {
    expect(drawCurve([0, 1, 2, 3], { columns: 4, rows: 2 })).toEqual(['⠀⠀⡠⠊', '⡠⠊⠀⠀']);
  });

  test('of one value, and of equal ones, is flat and finite', () => {
    expect(drawCurve([1, 1, 1], { columns: 3, rows: 2 }).join('')).not.toContain('NaN');
    expect(drawCurve([1], { columns: 3, rows: 1 })).toHaveLength(1);
  });

  test('more values than columns are averaged', () => {
    expect(resample([0, 2, 4, 6], 2)).toEqual([1, 5]);
  });
});

describe('plain lines', () => {
  const progress = { state: { ...running, evals: [before, evaluation(2, 0.6, 0.05)] }, steps: steps.slice(0, 3) };

  test('each step and each evaluation is told once, in order', () => {
    const { lines, told } = linesSince(NOTHING_TOLD, progress);
    const begins = ['eval after step 0 ', 'step   1/100 ', 'step   2/100 ', 'eval after step 2 ', 'step   3/100 '];
    expect(lines).toEqual(begins.map((begin) => expect.stringContaining(begin)));
    expect(lines[0]).toContain(
      'reward 0.100 · win 0.510 · illegal 0.090 · draw 0.100 · moves 3.600  200 held-out scenarios',
    );
    expect(lines[1]).toMatch(/reward 0.337 .* draw 0.100 {2}entropy 1.590 {2}0.8 s$/);
    expect(linesSince(told, progress).lines).toEqual([]);
  });

  test('an evaluation after steps that trained nothing is said to be of the same policy', () => {
    const skipped = [1, 2, 3].map((step) => ({ ...summary(step, 100), ...(step > 1 ? { groups: 0 } : {}) }));
    const evals = [before, evaluation(1, 0.6, 0.05), evaluation(3, 0.7, 0.05)];
    const { lines } = linesSince(NOTHING_TOLD, { state: { ...running, evals }, steps: skipped });
    const told = lines.filter((line) => line.startsWith('eval')).map((line) => line.includes('the same policy as'));
    expect(told).toEqual([false, false, true]);
    expect(lines.at(-1)).toMatch(/200 held-out scenarios, the same policy as after step 1$/);
  });

  test('a run that ended early says why', () => {
    const note = 'ended early: 10 steps in a row were skipped';
    const ended = { ...running, state: 'stopped' as const, notes: [note, 'resumed'] };
    expect(resultLines({ state: ended, steps })).toContain(note);
    expect(resultLines({ state: { ...ended, state: 'completed' }, steps })).not.toContain(note);
  });

  test('held-out scenarios of competing roles are counted once, whatever was played of each', () => {
    const both = { ...before, scenarios: 100 };
    const { lines } = linesSince(NOTHING_TOLD, { state: { ...running, evals: [both] }, steps: [] });
    expect(lines[0]).toMatch(/ {2}100 held-out scenarios, 200 attempts$/);
  });

  test('a step that trained nothing says why, two in a row are a warning, told once', () => {
    const skipped = [3, 4, 5].map((step) => ({ ...steps[step - 1]!, groups: 0, unused: { 'no-variance': 8 } }));
    const { lines } = linesSince(NOTHING_TOLD, { state: running, steps: [...steps.slice(0, 2), ...skipped] });
    expect(lines.slice(3)).toEqual([
      expect.stringMatching(/^step +3.*skipped: every group had identical rewards \(no learning signal\)/),
      expect.stringMatching(/^step +4.*skipped/),
      expect.stringMatching(/^warning: 2 steps in a row were skipped, so the policy is not learning; try /),
      expect.stringMatching(/^step +5.*skipped/),
    ]);
    const model = { run: 'demo', state: running, steps: skipped, status: null, events: [], hint: '' };
    expect(renderLive(model, { ...screen, columns: 120 })).toContain('warning: 3 steps in a row were skipped');
  });

  test('groups that truncation left one-sided, or rewards useless, are counted in the line of their step', () => {
    const train = { ...steps[0]!.train, oneSidedGroups: 2, unusableGroups: 1 };
    const { lines } = linesSince(NOTHING_TOLD, { state: running, steps: [{ ...steps[0]!, train }] });
    expect(lines.at(-1)).toContain('2 groups one-sided (truncated attempts left out)');
    expect(lines.at(-1)).toContain('1 group left out (rewards too far apart)');
  });

  test('a run whose reward stood still ends with what to try; one that moved or failed does not', () => {
    const still = [1, 2].map((step) => ({ ...steps[step]!, reward: 0, groups: 0 }));
    const none = { ...before, reward: 0 };
    const state = { ...running, state: 'completed' as const, evalBefore: none, evalAfter: none };
    expect(resultLines({ state, steps: still }).at(-1)).toBe(
      'hint: reward 0.000 → 0.000: no attempt ever earned anything; try easier scenarios, supervised steps first (--warm-start), credit for steps towards the goal, or a stronger base model',
    );
    expect(resultLines({ state: { ...state, state: 'failed' }, steps: still }).at(-1)).toMatch(/^before: /);
    const moved = { ...state, evalAfter: { ...none, reward: 0.5 } };
    expect(resultLines({ state: moved, steps: still }).at(-1)).toMatch(/^before: /);
  });

  test('a recovered run that tells its early steps again prints no step twice', () => {
    const { told } = linesSince(NOTHING_TOLD, progress);
    const recovered = { state: { ...progress.state, step: 1, evals: [before] }, steps: steps.slice(0, 1) };
    expect(linesSince(told, recovered)).toEqual({ lines: [], told });
    expect(linesSince(told, { ...progress, steps: steps.slice(0, 4) }).lines).toHaveLength(1);
  });

  test('after a rollback the steps that follow are told again, under a line that says so', () => {
    const { told } = linesSince(NOTHING_TOLD, { ...progress, steps: steps.slice(0, 5) });
    const lineage = [{ branch: 1, fromBranch: 0, fromStep: 2 }];
    const back = { ...progress.state, branch: 1, lineage, step: 2 };
    const { lines, told: after } = linesSince(told, { state: back, steps: steps.slice(0, 2) });
    expect(lines).toEqual(['demo went back to step 2: branch 1, from step 2 of branch 0']);
    const next = linesSince(after, { state: { ...back, step: 3 }, steps: steps.slice(0, 3) });
    expect(next.lines).toHaveLength(1);
    expect(next.lines[0]).toContain('step   3/100');
    expect(linesSince(NOTHING_TOLD, { state: back, steps: steps.slice(0, 3) }).lines).toHaveLength(5);
    expect(joinRun({ state: back, steps: steps.slice(0, 3) }).told).toEqual({ branch: 1, at: 3 });
  });

  test('who joins later is told how far the run is, and only new steps', () => {
    const { line, told } = joinRun(progress);
    expect(line).toContain('demo continues after step 3/100, reward 0.880');
    expect(linesSince(told, progress).lines).toEqual([]);
  });
});

describe('events of the local stack', () => {
  const tell = (...events: StackEvent[]) => {
    const lines: string[] = [];
    const print = createEventPrinter((line) => lines.push(line));
    for (const event of events) print(event);
    return lines;
  };
  const progress = { kind: 'progress', task: 'model', total: 30 * 2 ** 20, finished: false } as const;

  test('an installation says how far it is, now and then, and that it is done', () => {
    expect(
      tell(
        { ...progress, message: 'downloading the model', done: 3 * 2 ** 20, elapsedSeconds: 4 },
        { ...progress, message: 'downloading the model', done: 4 * 2 ** 20, elapsedSeconds: 5 },
        { ...progress, message: 'the model is on this machine', done: null, elapsedSeconds: 61, finished: true },
      ),
    ).toEqual(['downloading the model 3 MB of 30 MB … 4.0 s', 'the model is on this machine (1 min 1 s)']);
  });

  test('what is being started is named after a second, and again now and then', () => {
    const wait = { kind: 'waiting', for: 'the GPU worker', limitSeconds: 300 } as const;
    expect(tell({ ...wait, seconds: 0.4 }, { ...wait, seconds: 1 }, { ...wait, seconds: 2 })).toEqual([
      'starting the GPU worker (1.0 s of at most 5 min 0 s)',
    ]);
  });

  test('a child that died is told with its last words, its return too', () => {
    const child = { name: 'gpu-worker', agentFile: null, state: 'ready', pid: 7, deaths: 1 } as const;
    expect(
      tell(
        {
          kind: 'died',
          name: 'gpu-worker',
          exit: 'SIGKILL',
          lastLines: ['out of memory'],
          deaths: 1,
          restartInMs: 500,
        },
        { kind: 'child', child },
        { kind: 'child', child: { ...child, deaths: 0 } },
      ),
    ).toEqual(['gpu-worker died (SIGKILL), restarting in 0.5 s; last output: out of memory', 'gpu-worker restarted']);
  });
});
