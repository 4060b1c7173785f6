/** One small task for every framework: look a word up in some notes, with the two tools that `pocket-tools` knows. */
import { unlinkSync } from 'node:fs';
import { defineAgent, seededRandom, type RolloutContext } from 'temper-rl';

export interface Notebook {
  readonly id: string;
  readonly subject: string;
  /** Notes by their ids; the last one that tells of a subject counts. */
  readonly notes: Readonly<Record<string, string>>;
  readonly answer: string;
}

export const MAX_TURNS = 4;
export const MAX_TOKENS = 64;

export const TOOLS = {
  search: { description: 'Ids of what has the word.', parameters: oneOf('query', 'string') },
  read: { description: 'The text of an id.', parameters: oneOf('id', 'number') },
};

export type ToolName = keyof typeof TOOLS;

/** Answers the question; null where its turns are over. */
type Play = (research: Research, context: RolloutContext<Notebook>) => Promise<string | null | undefined>;

/** `name` is the framework's: workers share the attempts of agents that have the same name. */
export function notesAgent(name: string, play: Play) {
  return defineAgent<Notebook>({
    name,
    scenarios,
    async rollout(context) {
      const research = new Research(context);
      return research.reward(await play(research, context));
    },
  });
}

/** The agent's work and its worth: a look at the notes is better than none, and the right word better still. */
class Research {
  readonly question: string;
  readonly #notebook: Notebook;
  readonly #model: string;
  readonly #read = new Set<string>();
  #searches = 0;

  constructor({ scenario, model }: RolloutContext<Notebook>) {
    this.#notebook = scenario;
    this.#model = model;
    this.question = `What is ${scenario.subject}?`;
  }

  search = ({ query }: { query: string }): string => {
    dieOnce(this.#model);
    this.#searches += 1;
    const found = Object.entries(this.#notebook.notes).filter(([, text]) => text.includes(String(query)));
    return `[${found.map(([id]) => id).join(', ')}]`;
  };

  read = ({ id }: { id: number }): string => {
    this.#read.add(String(id));
    return this.#notebook.notes[String(id)] ?? 'none';
  };

  reward(answer: string | null | undefined): number {
    const text = answer ?? '';
    const right = text.split(' ')[0] === this.#notebook.answer;
    const looked = Math.min(this.#searches, 1) + Math.min(this.#read.size, 3);
    // Any two answers differ a little: each step has something to learn.
    const shade = [...text].reduce((sum, letter) => (sum + letter.charCodeAt(0)) % 97, 0) / 1000;
    return (right ? 1 : 0) + 0.1 * looked + shade;
  }
}

/** A test writes the file of a policy: the process that plays it dies between an answer and the tool that it called. */
function dieOnce(model: string): void {
  try {
    unlinkSync(new URL(`../kills/${model}`, import.meta.url));
  } catch {
    return;
  }
  process.kill(process.pid, 'SIGKILL');
}

/** The one list of scenarios, so that every framework plays the same. */
export const scenarios: Notebook[] = Array.from({ length: 40 }, (_, index) => notebook(index));

function notebook(index: number): Notebook {
  const random = seededRandom('notebook', index);
  const letter = (letters: string): string => letters[Math.floor(random() * letters.length)]!;
  const word = (): string => `${letter('BDFGKMNP')}${letter('EOUY')}${letter('CHJLRSVZ')}`;
  const subjects = [word(), word()];
  const told = Array.from({ length: 6 }, (_, note) => ({ subject: subjects[note % 2]!, word: word() }));
  const notes = Object.fromEntries(told.map((note, at) => [String(at + 1), `${note.subject} is ${note.word}.`]));
  const subject = subjects[0]!;
  return { id: `notebook-${index}`, subject, notes, answer: told.findLast((note) => note.subject === subject)!.word };
}

/** A JSON schema, as the frameworks' types want it: mutable. */
function oneOf(name: string, type: 'string' | 'number') {
  return { type: 'object' as const, properties: { [name]: { type } }, required: [name] };
}
