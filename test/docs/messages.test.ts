/** Messages that docs/troubleshooting.md explains are what the product prints. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readPage, ROOT } from './markdown.ts';

const PRODUCT = 'core store play views workflows activities workers operations cli gpu-worker/temper_gpu'.split(' ');
const tracked = execFileSync('git', ['ls-files', ...PRODUCT], { cwd: ROOT, encoding: 'utf8' })
  .trim()
  .split('\n');
const sources = tracked
  .filter((file) => /(?<!\.test)\.(ts|py)$/.test(file))
  .map((file) => readFileSync(join(ROOT, file), 'utf8'))
  .join('\n');

/** ``- `message`, `another`: what to do``; a message may leave out what differs from time to time. */
const messages = [...readPage('docs/troubleshooting.md').matchAll(/^- ((?:`[^`]+`(?:, )?)+)/gm)].flatMap(
  ([, spans = '']) => [...spans.matchAll(/`([^`]+)`/g)].flatMap(([, span = '']) => span.split(' … ')),
);

test('the page explains messages of starting, learning, ends, waits and machines', () => {
  expect(messages.length).toBeGreaterThan(40);
  expect(messages).toEqual(expect.arrayContaining(['no worker polls queue', 'PolicyMismatch']));
});

test.each(messages)('the product prints: %s', (message) => {
  expect(sources.includes(message)).toBe(true);
});
