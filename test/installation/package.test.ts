/** What is in the package, and that it works where TypeScript, JavaScript, modules and CommonJS are the user's choice. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { ProjectFolder } from '../e2e/project-folder.ts';
import { SMALL, TEMPER } from './installation.ts';

const installation = inject('installation');
const { folder, env } = installation;
const project = new ProjectFolder(folder, { env });

test('the package holds what runs, and nothing that serves its development', () => {
  const { packed, packedBytes } = installation;
  expect(packed).toEqual(
    expect.arrayContaining(['cli/temper.js', 'sdk/index.d.ts', 'workflows/bundle.js', 'README.md']),
  );
  expect(packed).toEqual(expect.arrayContaining(['gpu-worker/requirements.lock', 'gpu-worker/temper_gpu/__main__.py']));
  // What `temper init` copies is TypeScript.
  const ours = packed.filter((path) => !path.startsWith('cli/init/templates/'));
  expect(ours.filter((path) => /^(test|bench|docs|examples)\/|\/tests\/|__pycache__|(?<!\.d)\.ts$/.test(path))).toEqual(
    [],
  );
  expect(packedBytes).toBeLessThanOrEqual(3e6);
});

const compilers = ['typescript', 'typescript-7'];
const resolutions = [
  { module: 'nodenext', moduleResolution: 'nodenext' },
  { module: 'esnext', moduleResolution: 'bundler' },
];
const checks = compilers.flatMap((compiler) => resolutions.map((modules) => ({ compiler, modules })));
test.each(checks)('$compiler finds no mistake under $modules.moduleResolution', async ({ compiler, modules }) => {
  const strict = { strict: true, skipLibCheck: false, noEmit: true, target: 'es2023', types: ['node'] };
  const compilerOptions = { ...strict, ...modules };
  const include = ['agent.ts', 'pages'];
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }));
  const { code, stdout } = await project.run('node', `node_modules/${compiler}/bin/tsc`, '--project', '.');
  expect(code, stdout).toBe(0);
});

test.each(['mts', 'js', 'mjs', 'cjs'])('an agent.%s trains', async (ending) => {
  const place = join(folder, 'agents', ending);
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, `agent.${ending}`), agentIn(ending));
  // A TypeScript loader likes to read it in place of the JavaScript that is named.
  if (ending === 'js') writeFileSync(join(place, 'agent.ts'), 'export default null;\n');
  const named = ending === 'js' ? `agents/js/agent.js` : `agents/${ending}`;
  const line = ['train', named, '--base-model', 'pocket', '--steps', '2', ...SMALL];
  const { code, stdout, stderr } = await project.run(TEMPER, ...line);
  expect(code, stdout + stderr).toBe(0);
  expect(stdout).toMatch(/^step +2\/2 /m);
});

/** The same agent for every kind of module. */
function agentIn(ending: string): string {
  const [opening, exported] =
    ending === 'cjs'
      ? ["const { defineAgent } = require('temper-rl');", 'module.exports =']
      : ["import { defineAgent } from 'temper-rl';", 'export default'];
  return `${opening}
const scenarios = Array.from({ length: 20 }, (_, index) => ({ id: \`digit-\${index}\`, digit: index % 10 }));
async function rollout({ scenario, openai, model, random }) {
  const messages = [{ role: 'user', content: \`\${scenario.digit}+1=\` }];
  const { choices } = await openai.chat.completions.create({ model, messages, max_tokens: 2 });
  return (choices[0]?.message.content ?? '').length + random() * 1e-3;
}
${exported} defineAgent({ name: 'agent-${ending}', scenarios, rollout });
`;
}
