/** The small edition's conversation, in few bytes: each answer of the model is a key, which calls a tool or says "no". */
import type { RoleContext } from 'temper-rl';
import type { Domain, Value } from './domain.ts';
import { grade } from './grade.ts';
import { drawTask, type Scenario, type Task } from './task.ts';

const LOOK = 'look';
const REFUSAL = 'no';
const ILLEGAL = 'illegal';
/** Shown before the first look. */
const NOTHING = '?';
/** A key is one token; what is longer ends all the same, and is illegal. */
const MAX_TOKENS = 4;
/** Something to learn from before the first right answer. */
const LOOKED = 0.2;

/**
 * Keys are the digits from 1 on: the domain's tools in their order, then the refusal. A turn is one message, which says all
 * there is to know: the wish, what was looked up, and the keys that are left.
 */
export async function playByKeys(
  domain: Domain,
  scenario: Scenario,
  { openai, model }: Pick<RoleContext, 'openai' | 'model'>,
) {
  const task = drawTask(domain, scenario);
  const meanings = [...Object.keys(domain.tools), REFUSAL];
  const pressed: string[] = [];
  let shown: string | null = NOTHING;
  while (shown !== null) {
    const menu = meanings.map((each, index) => (pressed.includes(each) ? '' : String(index + 1))).join('');
    const messages = [{ role: 'user' as const, content: `${task.says[0]} ${shown} ${menu}` }];
    const completion = await openai.chat.completions.create({ model, messages, max_tokens: MAX_TOKENS });
    const key: string = completion.choices[0]?.message.content ?? '';
    const meaning = key.length === 1 && menu.includes(key) ? meanings[Number(key) - 1]! : null;
    pressed.push(meaning ?? ILLEGAL);
    // Once the agent has done or said something, the customer hangs up.
    shown = meaning === null || meaning === REFUSAL ? null : press(domain, task, meaning);
  }
  return judge(task, pressed);
}

function judge(task: Task, pressed: readonly string[]) {
  const { state, statements } = grade(task, pressed.at(-1) === REFUSAL ? [REFUSAL] : []);
  const [looked, illegal] = [pressed[0] === LOOK, pressed.at(-1) === ILLEGAL];
  // An agent that acts blindly breaks the policy, even if it is lucky.
  const resolved = looked && state && statements;
  const partial = looked && !illegal ? LOOKED : 0;
  return { reward: resolved ? 1 : partial, metrics: { resolved, looked, illegal, turns: pressed.length } };
}

/** The text that the tool shows; null if it changes something. A key has no arguments: each is the row that the situation knows by its name. */
function press({ tools }: Domain, { desk, names }: Task, name: string): string | null {
  const args = Object.keys(tools[name]!.arguments).map((argument) => {
    const named = names[argument];
    if (typeof named !== 'object') throw new Error(`the situation must draw a row ${argument}`);
    return [argument, named.row['id']!] as const;
  });
  const shown = desk.call(name, Object.fromEntries<Value>(args));
  return typeof shown === 'string' ? null : Object.values(shown).join(' ');
}
