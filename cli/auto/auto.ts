/** `temper auto`: stages in their order, each made once, unless it is asked for again. */
import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describeSpending } from '../../core/judge-spending.ts';
import { hashOf } from '../../core/hashes.ts';
import { HostedLedger } from '../../play/hosted/hosted-ledger.ts';
import { withFileLock } from '../../store/bytes/file-lock.ts';
import { CONFIG_FILE, makeProjectFolders } from '../../workers/project/folders.ts';
import { EXIT, UsageError } from '../command-line/errors.ts';
import { loadAgent } from '../planning/load-agent.ts';
import { makeAgent } from './agent-stage.ts';
import { hashFiles, isEdited, type AutoWork } from './auto-work.ts';
import type { AutoContext } from './command.ts';
import { evaluateRun } from './evaluation-stage.ts';
import { AGENT_FILE, HELD_OUT_FILE, OUTPUTS, TRAIN_FILE } from './file-names.ts';
import { lastScreen } from './last-screen.ts';
import { openAuto, type OpenAuto } from './open-auto.ts';
import { requireInstalled, writeProject } from './project-files.ts';
import { checkRubric } from './rubric-stage.ts';
import { playAutoRun } from './run-stage.ts';
import { makeScenarioFiles } from './scenarios-stage.ts';
import { isUpTo, STAGES, type Stage } from './stages.ts';

export async function auto(context: AutoContext): Promise<number> {
  const { output, signal } = context;
  const opened = await openAuto(context);
  const lock = join(makeProjectFolders(opened.folder).state, 'auto.lock');
  const tellWait = (): void => output.line('waiting: another temper auto works in this folder');
  return withFileLock(lock, () => play(opened, context), tellWait, signal);
}

async function play(opened: OpenAuto, { output, cwd, signal }: AutoContext): Promise<number> {
  const { folder, state, settings, train, mcp, until, redo } = opened;
  state.reload();
  const files = await writeProject(opened, train, mcp !== null);
  if (files.length > 0) output.line(`project: ${files.join(', ')} written to ${relative(cwd, folder) || '.'}`);
  requireInstalled(folder);
  await state.setSettings(settings);
  if (redo !== null) await state.beginRedo(redo);
  try {
    for (const stage of STAGES.filter((each) => isUpTo(each, until))) {
      const code = await new StageWork(opened, stage, cwd).play();
      if (code !== EXIT.ok) return code;
    }
  } catch (error) {
    if (signal.aborted) output.line('stopped; run the same command to continue');
    // An outage or a budget ends a command that is continued; wrong input ends it.
    if (error instanceof UsageError) await state.endRedo();
    throw error;
  }
  await state.endRedo();
  if (until !== 'report')
    output.line(`stopped after ${until}; edit the files, and run the command without --until to continue`);
  return EXIT.ok;
}

const TELL_EVERY_MS = 2000;

/** One stage: made, or kept as it was made before. */
class StageWork {
  readonly #opened: OpenAuto;
  readonly #stage: Stage;
  readonly #cwd: string;

  constructor(opened: OpenAuto, stage: Stage, cwd: string) {
    this.#opened = opened;
    this.#stage = stage;
    this.#cwd = cwd;
  }

  async play(): Promise<number> {
    const { state } = this.#opened;
    const stage = this.#stage;
    const inputs = await this.#inputs();
    const isCurrent = state.isCurrent(stage, inputs);
    // A check of another agent says nothing of this one.
    const isKept = state.isDone(stage) && this.#hasOutputs() && (isCurrent || stage !== 'rubric');
    const isTaken = !isKept && (await this.#hasOwnFiles());
    if (isTaken) await state.finish(stage, inputs);
    if (isKept || isTaken) {
      await this.#tellKept(isCurrent || isTaken);
      return EXIT.ok;
    }
    const code = await this.#withLedger((work) => this.#make(work));
    // The report is told each time. A sharper rubric is part of the agent's file by now.
    if (code === EXIT.ok && stage !== 'report')
      await state.finish(stage, stage === 'rubric' ? await this.#inputs() : inputs);
    return code;
  }

  /** A file that a person removed is made again. */
  #hasOutputs(): boolean {
    return OUTPUTS[this.#stage].every((name) => existsSync(join(this.#opened.folder, name)));
  }

  /** Scenarios or an agent that a person brought are used as edited ones are. */
  async #hasOwnFiles(): Promise<boolean> {
    if ((this.#stage !== 'scenarios' && this.#stage !== 'agent') || !this.#hasOutputs()) return false;
    const states = await Promise.all(OUTPUTS[this.#stage].map((name) => isEdited(this.#opened, name)));
    return states.includes(true);
  }

  async #make(work: AutoWork): Promise<number> {
    const { server, environment } = this.#opened;
    const stage = this.#stage;
    if (stage === 'scenarios') await makeScenarioFiles(work, server);
    else if (stage === 'agent') await makeAgent(work, server);
    else if (stage === 'rubric') await checkRubric(work, await loadAgent(AGENT_FILE, work.folder));
    else if (stage === 'run') return playAutoRun(work);
    else if (stage === 'evaluation') await evaluateRun(work);
    else for (const line of await lastScreen(work, this.#cwd)) environment.output.line(line);
    return EXIT.ok;
  }

  async #withLedger<T>(make: (work: AutoWork) => Promise<T>): Promise<T> {
    const { store, state, settings, environment } = this.#opened;
    let toldAt = performance.now();
    const round = state.round(this.#stage);
    const ledger = await HostedLedger.open({
      store,
      work: `auto-${state.id}`,
      maxUsd: settings.maxCostUsd,
      ...(round > 0 && { scope: String(round) }),
      onSpent: (spent) => {
        if (performance.now() - toldAt < TELL_EVERY_MS) return;
        toldAt = performance.now();
        environment.output.errorLine(`hosted models so far: ${describeSpending(spent)}`);
      },
    });
    try {
      return await make({ ...this.#opened, ledger });
    } finally {
      await ledger.close();
    }
  }

  /** Hash of what the stage is made of, beside the settings that `readAutoSettings` compares. */
  async #inputs(): Promise<string> {
    const { folder, state } = this.#opened;
    const filesOf: Readonly<Record<Stage, readonly string[]>> = {
      scenarios: [],
      agent: [TRAIN_FILE],
      rubric: [AGENT_FILE, TRAIN_FILE],
      run: [AGENT_FILE, TRAIN_FILE, HELD_OUT_FILE, CONFIG_FILE],
      evaluation: [AGENT_FILE, HELD_OUT_FILE],
      report: [],
    };
    const files = await hashFiles(folder, filesOf[this.#stage]);
    const run = this.#stage === 'evaluation' ? (state.run?.name ?? null) : null;
    return hashOf({ files, run });
  }

  async #tellKept(isCurrent: boolean): Promise<void> {
    const { environment } = this.#opened;
    const edited: string[] = [];
    for (const name of OUTPUTS[this.#stage]) if (await isEdited(this.#opened, name)) edited.push(name);
    const yours = edited.length === 0 ? '' : `, with your ${edited.join(' and ')}`;
    const stale = isCurrent
      ? ''
      : `; what it was made of has changed since: pass --redo ${this.#stage} to make it again`;
    environment.output.line(`${this.#stage}: kept${yours}${stale}`);
  }
}
