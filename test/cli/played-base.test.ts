/** The base model of checkpoints that are played: which stack is started for them, and which one is refused. */
import { expect, test } from 'vitest';
import { checkPlayedBase, engineFor } from '../../cli/players/with-engine.ts';
import { defineConfig } from '../../workers/config/config.ts';

const packed = { checkpoint: 'packed@1', dtype: 'bfloat16', loadIn4bit: true } as const;
const plain = { checkpoint: 'demo@2', dtype: 'float32', loadIn4bit: false } as const;

test('the stack is started as the checkpoint was trained, whatever the configuration says of new runs', () => {
  const { engine } = defineConfig({ engine: { dtype: 'bfloat16', loadIn4bit: true, slots: 32 } });
  expect(engineFor(plain, engine)).toEqual({ ...engine, dtype: 'float32', loadIn4bit: false });
  const sharded = defineConfig({ engine: { devices: 2, shardBaseModel: true } }).engine;
  expect(engineFor(plain, sharded)).toMatchObject({ devices: 2, shardBaseModel: true });
  expect(engineFor(packed, sharded)).toMatchObject({ dtype: 'bfloat16', loadIn4bit: true, shardBaseModel: false });
  expect(() => engineFor(packed, defineConfig({ engine: { kind: 'vllm' } }).engine)).toThrow(
    'packed@1 must be played by the embedded engine, because vLLM cannot load its base model in 4 bits as Temper does, got vllm; set engine.kind in temporal.config.ts to embedded',
  );
});

test('a stack that runs already and loads base models in another way is refused', () => {
  expect(() => checkPlayedBase(plain, { dtype: 'float32', loadIn4bit: false })).not.toThrow();
  expect(() => checkPlayedBase(plain, { dtype: 'bfloat16', loadIn4bit: false })).toThrow(
    'demo@2 must be played with its base model as it was trained, in float32, but the local stack of this project runs already and loads base models in bfloat16; stop that stack first',
  );
  expect(() => checkPlayedBase(packed, { dtype: 'bfloat16', loadIn4bit: false })).toThrow(
    'in bfloat16 with 4 bits per weight, but the local stack of this project runs already and loads base models in bfloat16;',
  );
});
