/** The smallest example learns what it was not trained on: the line in its README, on the problems of its exam. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { Checkout, WITHOUT_STANDBY } from './checkout.ts';

const README = fileURLToPath(new URL('../../examples/multiplication/README.md', import.meta.url));
const checkout = new Checkout({ config: WITHOUT_STANDBY });

afterAll(() => checkout.close());

test('held-out products are answered far better after training', async () => {
  const { code, stdout, stderr } = await checkout.run(...trainingLine());
  expect(code, stdout + stderr).toBe(0);
  const { stdout: json } = await checkout.run('npx', 'temper', 'show', 'multiplication', '--json');
  const { evalBefore, evalAfter } = JSON.parse(json);
  console.log(`exact answers ${evalBefore.reward} → ${evalAfter.reward}`);
  expect(evalBefore.failed + evalAfter.failed).toBe(0);
  expect(evalBefore.reward).toBeLessThanOrEqual(0.5);
  expect(evalAfter.reward).toBeGreaterThanOrEqual(evalBefore.reward + 0.3);
});

/** As the README has it, its continued lines joined. */
function trainingLine(): string[] {
  const text = /```\w*\n(npx temper train examples\/multiplication[^`]*)```/.exec(readFileSync(README, 'utf8'))?.[1];
  if (text === undefined) throw new Error('the README of the example names no line to train it');
  return text.replaceAll('\\\n', ' ').split(/\s+/).filter(Boolean);
}
