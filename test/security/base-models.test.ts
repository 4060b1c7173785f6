/** The hub is asked only for what a person named on this host: by flag, in the configuration, or in a script. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { registeredOnly, resolveBaseModel } from '../../workers/base-model.ts';
import { absoluteModels } from '../../workers/local-stack/specify.ts';

const project = mkdtempSync(join(tmpdir(), 'temper-models-'));
afterEach(() => rmSync(project, { recursive: true, force: true }));

const QWEN = 'Qwen/Qwen3-0.6B';
const resolveName = (text: string, configured = {}) => resolveBaseModel(text, project, project, configured);

test('a name of the hub that a person passes is registered, and reaches the GPU worker as such', () => {
  const { models } = resolveName(QWEN);
  expect(models).toEqual({ [QWEN]: `hub:${QWEN}` });
  expect(absoluteModels(project, { ...models, mine: 'models/mine' })).toEqual({
    [QWEN]: `hub:${QWEN}`,
    mine: join(project, 'models/mine'),
  });
});

test('a name of the hub that is read from a store registers nothing; one of the configuration stays', () => {
  expect(registeredOnly(resolveName(QWEN), {}).models).toEqual({});
  const configured = { [QWEN]: `hub:${QWEN}` };
  expect(registeredOnly(resolveName(QWEN, configured), configured).models).toEqual(configured);
});

test.each(['hub:', 'hub:../x', 'hub:a', 'hub:a/b/c', 'hub:a/.b'])(
  '%s in the configuration is no model of the hub',
  (source) => {
    expect(() => resolveName('mine', { mine: source })).toThrow(/must be hub:OWNER\/NAME/);
  },
);
