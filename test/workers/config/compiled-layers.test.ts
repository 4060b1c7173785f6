import { expect, it } from 'vitest';
import { checkEngineKind, defineConfig } from '../../../workers/config/config.ts';
import { chosenEngine } from '../../../workers/config/engine-choices.ts';
import { engineArguments } from '../../../workers/local-stack/children/children.ts';

it.each([
  [
    'a CPU',
    { device: 'cpu' },
    'a GPU (on a CPU nothing gets faster), got --device cpu (engine.device); pass --device cuda',
  ],
  [
    'packed weights',
    { loadIn4bit: true },
    'whole weights (those in 4 bits are not compiled), got --load-in-4bit (engine.loadIn4bit); leave that out',
  ],
  [
    'parts of the base model',
    { devices: 2, shardBaseModel: true },
    'a whole base model on each device (parts of it are not compiled), got --shard-base-model (engine.shardBaseModel); leave that out',
  ],
] as const)('a GPU worker compiles no layers on %s', (_, other, rule) => {
  const check = (engine: object) => checkEngineKind(chosenEngine(defineConfig({ engine }).engine, {}));
  expect(() => check({ ...other, compileLayers: true })).toThrow(
    `engine.compileLayers in temporal.config.ts must come with ${rule}, or remove it`,
  );
  expect(() => check(other)).not.toThrow();
  for (const device of ['auto', 'cuda', 'cuda:1']) expect(() => check({ device, compileLayers: true })).not.toThrow();
});

it.each([true, false])('a GPU worker is told whether to compile layers: %s', (compileLayers) => {
  const { queues, engine: configured } = defineConfig({ engine: { compileLayers } });
  const engine = chosenEngine(configured, {});
  const line = engineArguments({ storeUri: 'file:///s', queues, engine, vllmPython: null, models: '/models.json' });
  expect(line.includes('--compile-layers')).toBe(compileLayers);
});
