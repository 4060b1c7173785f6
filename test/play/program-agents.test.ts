/** Claude Code and Codex, as their page has them: played through the gateway, where they are installed. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

import { loadAgent } from '../../cli/planning/load-agent.ts';
import { blocksOf, isTypeScript, ROOT } from '../docs/markdown.ts';
import { markOf, memoryJournal, playOne, type TestRollout } from './play.ts';
import { ROLLOUT } from './program-script.ts';
import { sharedEngine } from './shared-engine.ts';

const SCENARIO = { id: 'sum-3', task: 'Write the sum of 3 and 21 to the file answer.txt.', answer: '24' };

/** How its model writes the file, and where the page's script stands. */
const PROGRAMS = {
  claude: { tool: 'Bash', input: { command: 'echo 24 >answer.txt; echo written', description: 'Write' } },
  codex: { tool: 'exec_command', input: { cmd: 'echo 24 >answer.txt; echo written' } },
} as const;
type Program = keyof typeof PROGRAMS;

const engine = await sharedEngine({
  answer: ({ messages, tools }) => {
    if (messages.at(-1)?.role === 'tool') return 'It is written.';
    const { tool, input } = JSON.stringify(tools).includes('"exec_command"') ? PROGRAMS.codex : PROGRAMS.claude;
    const called = { name: tool, arguments: JSON.stringify(input) };
    return { content: 'I write it.', toolCalls: [{ id: 'call_1', type: 'function', function: called }] };
  },
});
mkdirSync(join(ROOT, '.temper'), { recursive: true });
const folder = mkdtempSync(join(ROOT, '.temper', 'program-agents-'));
afterAll(() => rmSync(folder, { recursive: true }));

function isInstalled(program: Program): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

async function agentOf(program: Program) {
  const blocks = blocksOf('docs/program-agents.md');
  const written =
    (line: string) =>
    ({ code }: { code: string }) =>
      code.includes(line);
  const script = blocks.find(written(`work="/tmp/${program}-`))!;
  const agent = blocks.filter(isTypeScript).find(written(`['sh', '${program}.sh']`))!;
  writeFileSync(join(folder, `${program}.sh`), script.code);
  writeFileSync(join(folder, `${program}.ts`), agent.code);
  return (await loadAgent(`${program}.ts`, folder)).agent;
}

test.for(Object.keys(PROGRAMS) as Program[])(
  '%s is answered by the policy, and from the journal again',
  async (program, { skip }) => {
    skip(!isInstalled(program), `${program} is not installed`);
    const agent = await agentOf(program);
    const journal = memoryJournal();
    const play = (callRetryBudgetMs: number) =>
      playOne(engine, agent.rollout as TestRollout, {
        journal,
        folder,
        scenario: SCENARIO,
        rollout: { ...ROLLOUT, maxTokens: 64, attemptTimeoutMs: 60_000, callRetryBudgetMs },
      });
    engine.failWhen(() => (engine.executed.length === 1 ? { status: 503 } : null));
    await markOf(play(100));
    engine.failWhen(() => null);
    const played = await play(1500);
    expect(played).toMatchObject({ status: 'ok', failure: null, reward: 1, unclaimedAnswers: 0 });
    expect(played.calls).toHaveLength(2);
    expect(await play(1500)).toMatchObject({ status: 'ok', reward: 1, unclaimedAnswers: 0, calls: played.calls });
    expect(engine.executed).toHaveLength(2);
  },
);
