/**
 * The rubric is checked before anything is trained: the hosted model writes a good, a mediocre and a bad answer to a few
 * scenarios, and the judge must rank them so. A rubric that fails is sharpened a few times.
 */
import { readFile } from 'node:fs/promises';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import type { Scenario, ScenarioSource } from '../../play/agent.ts';
import { readScenarios } from '../../play/scenarios.ts';
import { judgeByLedger } from '../../play/judge/judge-by-ledger.ts';
import { isRuler, type Ruler } from '../../play/judge/ruler.ts';
import type { HostedJudge } from '../../play/judge/judge-model.ts';
import { openAgentResources } from '../../play/resources/agent-resources.ts';
import type { Score } from '../../store/records/judging/verdicts.ts';
import type { AgentFile } from '../planning/load-agent.ts';
import { formatNumber } from '../../core/reports/format.ts';
import { stateOf } from '../scenarios/write-files.ts';
import { AGENT_FILE, templateLiteral } from './agent-file.ts';
import { playSample } from './play-sample.ts';
import type { TaskWork } from './plan-task.ts';
import { QUALITIES, rubricQuestion, samplesQuestion, type Samples } from './questions.ts';

/** Samples and their scores, by which the rubric was checked. */
const RUBRIC_FILE = 'rubric-check.json';
/** Rubrics that are tried: the agent's, and sharper ones. */
const MOST_RUBRICS = 3;

interface Sampled {
  readonly scenario: Scenario;
  readonly samples: Samples;
}

interface Checked extends Sampled {
  readonly scores: Readonly<Record<keyof Samples, Score>>;
  readonly isRanked: boolean;
}

export async function checkRubric(work: TaskWork, agentFile: AgentFile): Promise<void> {
  const ruler = agentFile.agent.reward;
  if (!isRuler(ruler) || ruler.judge.kind === 'engine') {
    const judged = isRuler(ruler) ? `judged by ${ruler.judge.name}, which is not hosted` : 'not judged';
    work.environment.output.line(`rubric: not checked, because the agent is ${judged}`);
    return;
  }
  const check = new RubricCheck(work, agentFile, ruler, ruler.judge);
  await check.run();
}

class RubricCheck {
  readonly #work: TaskWork;
  readonly #agentFile: AgentFile;
  readonly #ruler: Ruler;
  readonly #judge: HostedJudge;

  constructor(work: TaskWork, agentFile: AgentFile, ruler: Ruler, judge: HostedJudge) {
    this.#work = work;
    this.#agentFile = agentFile;
    this.#ruler = ruler;
    this.#judge = judge;
  }

  async run(): Promise<void> {
    const sampled = await this.#sample();
    let { rubric } = this.#ruler;
    for (let tried = 1; ; tried++) {
      const checked = await this.#check(sampled, rubric);
      await this.#keep(rubric, checked);
      const wrong = checked.filter(({ isRanked }) => !isRanked);
      if (wrong.length === 0) return this.#accept(rubric, checked.length);
      if (tried === MOST_RUBRICS || (await this.#isEdited())) throw this.#refused(checked, wrong);
      this.#tell(`${wrong.length} of ${checked.length} samples were ranked wrongly; asking for a sharper rubric`);
      rubric = await this.#sharpen(rubric, wrong);
    }
  }

  async #isEdited(): Promise<boolean> {
    return (await stateOf(this.#work.store, this.#agentFile.path)) === 'own';
  }

  async #sample(): Promise<Sampled[]> {
    const { task } = this.#work;
    const { agent } = this.#agentFile;
    const hasTools = (agent.mcp ?? []).length > 0;
    const sampled: Sampled[] = [];
    for (const scenario of await readExamples(agent.scenarios)) {
      const facts = { task, input: textOf(scenario), hasTools };
      sampled.push({ scenario, samples: await this.#work.ask(samplesQuestion(facts)) });
    }
    return sampled;
  }

  /** Each scenario's samples as three attempts of a group. */
  async #check(sampled: readonly Sampled[], rubric: string): Promise<Checked[]> {
    const { agent } = this.#agentFile;
    const { store, ledger, environment } = this.#work;
    const { signal, env } = environment;
    const ruler = Object.freeze({ ...this.#ruler, rubric });
    const resources = openAgentResources(agent, store);
    const checked: Checked[] = [];
    try {
      for (const { scenario, samples } of sampled) {
        const conversations = [];
        for (const [attempt, quality] of QUALITIES.entries())
          conversations.push(await playSample(samples[quality], scenario, attempt, { agent, resources, signal }));
        const options = { ledger, store, label: 'rubric check', env, signal };
        const scores = await judgeByLedger(conversations, ruler, this.#judge, options);
        checked.push(rank(scenario, samples, scores));
      }
      return checked;
    } finally {
      await resources?.close();
    }
  }

  #sharpen(rubric: string, wrong: readonly Checked[]): Promise<string> {
    const { task, ask } = this.#work;
    return ask(rubricQuestion({ task, rubric, mistakes: wrong.map(shownCheck) }));
  }

  async #keep(rubric: string, checked: readonly Checked[]): Promise<void> {
    const file = { judge: this.#judge.name, rubric, samples: checked.map(shownCheck) };
    await this.#work.write(RUBRIC_FILE, `${JSON.stringify(file, null, 2)}\n`);
  }

  async #accept(rubric: string, count: number): Promise<void> {
    if (rubric !== this.#ruler.rubric) {
      const { path } = this.#agentFile;
      const text = await readFile(path, 'utf8');
      const written = templateLiteral(this.#ruler.rubric);
      const sharper = text.replace(written, () => templateLiteral(rubric));
      await this.#work.write(AGENT_FILE, sharper);
      this.#tell(`a sharper one is in ${AGENT_FILE}`);
    }
    this.#tell(`${this.#judge.name} ranks good above mediocre above bad for ${count} scenarios (${RUBRIC_FILE})`);
  }

  #refused(checked: readonly Checked[], wrong: readonly Checked[]): TemperError {
    const { scenario, scores } = wrong[0]!;
    const numbers = QUALITIES.map((quality) => `${quality} ${formatNumber(scores[quality].score)}`).join(', ');
    return badConfig(
      `the judge ${this.#judge.name} must score good above mediocre above bad, but for ${wrong.length} of ${checked.length} scenarios it did not (${scenario.id}: ${numbers}); read ${RUBRIC_FILE}, edit RUBRIC or the judge in ${AGENT_FILE}, and run the command again`,
    );
  }

  #tell(line: string): void {
    this.#work.environment.output.line(`rubric: ${line}`);
  }
}

function rank(scenario: Scenario, samples: Samples, scores: readonly Score[]): Checked {
  const [good, mediocre, bad] = scores as readonly [Score, Score, Score];
  const isRanked = good.score > mediocre.score && mediocre.score > bad.score;
  return { scenario, samples, scores: { good, mediocre, bad }, isRanked };
}

function shownCheck({ scenario, samples, scores, isRanked }: Checked): object {
  const shown = QUALITIES.map((quality) => {
    const { score, explanation } = scores[quality];
    return [quality, { answer: samples[quality], score, explanation }];
  });
  return { scenario: scenario.id, input: textOf(scenario), isRanked, ...Object.fromEntries(shown) };
}

const MOST_SCENARIOS = 3;
/** Scenarios that are looked at, the first ones of a file. */
const SCENARIOS_READ = 1000;

/** A few scenarios that stand for all: for the hosted model, and for this check. */
export async function readExamples(source: ScenarioSource<Scenario>): Promise<Scenario[]> {
  return spread(await readScenarios(source, SCENARIOS_READ));
}

/** The easiest, a middling and the hardest one; by their order where they have no difficulty. */
function spread(scenarios: readonly Scenario[]): Scenario[] {
  const sorted = scenarios.toSorted((left, right) => difficultyOf(left) - difficultyOf(right));
  const last = sorted.length - 1;
  const places = Array.from({ length: MOST_SCENARIOS }, (_, index) =>
    Math.round((index * last) / (MOST_SCENARIOS - 1)),
  );
  return [...new Set(places)].flatMap((place) => sorted[place] ?? []);
}

function difficultyOf(scenario: Scenario): number {
  const { difficulty } = scenario as Scenario & { difficulty?: unknown };
  return typeof difficulty === 'number' ? difficulty : 0;
}

/** The input as the model is told it; all of the scenario, if a person gave it other members. */
export function textOf(scenario: Scenario): string {
  const { task } = scenario as Scenario & { task?: unknown };
  return typeof task === 'string' ? task : JSON.stringify(scenario);
}
