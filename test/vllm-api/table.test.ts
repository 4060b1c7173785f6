import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NOT_APPLICABLE, numApplying, TABLE } from './table.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const page = read('docs/internal/http-api.md');

test('the page says how many of vLLM’s tests apply, and how many do not for which reason', () => {
  const told = page.slice(page.indexOf('`npm run test:vllm-api`'));
  expect(told).toContain(`the source of vLLM ${TABLE.version} `);
  expect(told).toContain(`${numApplying} tests apply and pass`);
  const rows = [...told.matchAll(/^\| (.+) \| (\d+) \|$/gm)].map(([, reason, count]) => [reason, Number(count)]);
  expect(rows).toEqual([...NOT_APPLICABLE]);
});

test('what is fetched is the version that the table is of, by one hash', () => {
  expect(read('test/vllm-api/source.lock')).toMatch(
    new RegExp(`^vllm==${TABLE.version.replaceAll('.', '\\.')} \\\\\\n {4}--hash=sha256:[0-9a-f]{64}\\n$`),
  );
});

test('the page names the versions of the clients that are installed', () => {
  const { dependencies } = JSON.parse(read('test/installation/project/package.json')) as {
    dependencies: Record<string, string>;
  };
  const python = read('test/installation/project/scripted/requirements.txt');
  const locked = (name: string) => new RegExp(`^${name}==(\\S+)`, 'm').exec(python)?.[1];
  for (const [client, version] of [
    ['OpenAI (JavaScript)', dependencies['openai']],
    ['OpenAI (Python)', locked('openai')],
    ['Anthropic (Python)', locked('anthropic')],
    ['Anthropic (JavaScript)', dependencies['@anthropic-ai/sdk']],
    ['AI SDK (`ai`)', dependencies['ai']],
    ['LangChain.js (`@langchain/openai`)', dependencies['@langchain/openai']],
  ])
    expect(page).toContain(`| ${client} | ${version} |`);
});
