/** The full edition's mailboxes: a hundred mails of one office, drawn by a seed, and the questions that they answer. */
import { seededRandom } from 'temper-rl';
import {
  between,
  CHATTER,
  FACT_KINDS,
  fill,
  INJECTIONS,
  pick,
  REACH_LEAD,
  shuffle,
  twoDigits,
  type FactKind,
  type Random,
} from './facts.ts';
import type { Mail, Mailbox, Question } from './mail.ts';

/** From here on a seed's mailbox is of held-out projects and people: no question of the exam is one of the training. */
export const FIRST_EXAM_SEED = 1_000_000;
export const QUESTIONS_EACH = 38;

const EXAM_SHARE = 0.2;
const PEOPLE = 8;
const PROJECTS = 5;
const CHATTER_MAILS = 40;
const INJECTED_MAILS = 3;

const COLOURS = 'Amber Blue Copper Crimson Golden Green Grey Indigo Ivory Orange Purple Red Silver Violet White Yellow';
const ANIMALS = 'Badger Beaver Cobra Condor Falcon Fox Gecko Heron Ibis Jaguar Lynx Marten Otter Panda Raven Tiger';
const FIRST = 'Ada Bela Carla Dario Edith Farid Greta Hakon Ines Jonas Kamala Luis Mira Nuri Olga Pavel';
const LAST = 'Abel Berger Costa Dahl Ekman Fischer Gomez Hansen Ito Jansen Kovac Lindt Moreau Novak Okoro Petrov';

interface Draft extends Omit<Mail, 'id' | 'date'> {
  /** From 0 to 1: when in the half year it was sent. */
  readonly when: number;
  /** The fact that it tells, if it is the mail that counts. */
  readonly tells: string | null;
}

interface Fact {
  readonly kind: keyof typeof FACT_KINDS;
  readonly it: string;
  readonly value: string;
}

interface Office {
  readonly random: Random;
  readonly people: readonly string[];
  readonly projects: readonly string[];
}

export function makeMailbox(seed: number): Mailbox {
  const random = seededRandom('mailbox', seed);
  const isExam = seed >= FIRST_EXAM_SEED;
  const people = shuffle(names(FIRST, LAST, isExam), random).slice(0, PEOPLE);
  const projects = shuffle(names(COLOURS, ANIMALS, isExam), random).slice(0, PROJECTS);
  const office: Office = { random, people, projects };
  const told = drawFacts(office).map(({ fact, old }) => ({ fact, mails: tellFact(office, fact, old) }));
  const drafts = [...told.flatMap(({ mails }) => mails), ...drawChatter(office)];
  const mails = send(drafts, random);
  return {
    mails: mails.map(({ mail }) => mail),
    questions: ask(
      told.map(({ fact }) => fact),
      mails,
    ),
  };
}

/** Each name is on one side for good. */
function names(firsts: string, seconds: string, isExam: boolean): string[] {
  const all = firsts.split(' ').flatMap((first) => seconds.split(' ').map((second) => `${first} ${second}`));
  return all.filter((name) => seededRandom('exam', name)() < EXAM_SHARE === isExam);
}

function drawFacts({ random, people, projects }: Office): { fact: Fact; old: string }[] {
  const kinds = Object.entries(FACT_KINDS) as [Fact['kind'], FactKind][];
  return kinds.flatMap(([kind, { about, draw }]) =>
    (about === 'project' ? projects : people).map((it) => {
      const old = draw(random, people);
      let value = old;
      while (value === old) value = draw(random, people);
      return { fact: { kind, it, value }, old };
    }),
  );
}

/** In the first half of the time as it was planned, in the second as it is. */
function tellFact({ random, people }: Office, { kind, it, value }: Fact, old: string): Draft[] {
  const { show = (text) => text, before, now }: FactKind = FACT_KINDS[kind];
  const shown = { it, value: show(value), old: show(old) };
  const planned = write(pick(before, random), { ...shown, value: show(old) }, { random, people });
  const counts = write(pick(now, random), shown, { random, people });
  return [
    { ...planned, when: 0.5 * random(), tells: null },
    { ...counts, when: 0.5 + 0.45 * random(), tells: keyOf(kind, it) },
  ];
}

/** Injections claim to be the newest of all: to go by the date alone does not help against them. */
function drawChatter({ random, people, projects }: Office): Draft[] {
  const draw = (texts: typeof CHATTER, when: number): Draft => {
    const number = String(between(random, 2, 31));
    const values = { it: pick(projects, random), person: pick(people, random), number };
    return { ...write(pick(texts, random), values, { random, people }), when, tells: null };
  };
  const chatter = Array.from({ length: CHATTER_MAILS }, () => draw(CHATTER, 0.95 * random()));
  return [...chatter, ...Array.from({ length: INJECTED_MAILS }, () => draw(INJECTIONS, 0.95 + 0.05 * random()))];
}

function write(
  [subject, body]: readonly [string, string],
  values: Readonly<Record<string, string>>,
  { random, people }: Pick<Office, 'random' | 'people'>,
): Omit<Draft, 'when' | 'tells'> {
  const [from, to] = shuffle(people, random);
  return { from: from!, to: to!, subject: fill(subject, values), body: fill(body, values) };
}

interface Sent {
  readonly mail: Mail;
  readonly tells: string | null;
}

function send(drafts: readonly Draft[], random: Random): Sent[] {
  const ids = shuffle(
    Array.from({ length: 9000 }, (_, index) => 1000 + index),
    random,
  );
  const inOrder = drafts.toSorted((a, b) => a.when - b.when);
  return inOrder.map(({ when, tells, ...draft }, index) => ({
    mail: { id: ids[index]!, date: dateOf(when, index), ...draft },
    tells,
  }));
}

/** The first half of 2024, at working hours. */
function dateOf(when: number, index: number): string {
  const day = new Date(Date.UTC(2024, 0, 2 + Math.floor(when * 180))).toISOString().slice(0, 10);
  // Two mails of one day keep their order.
  return `${day} ${twoDigits(8 + Math.floor(index / 15))}:${twoDigits((index % 15) * 4)}`;
}

function ask(facts: readonly Fact[], mails: readonly Sent[]): Question[] {
  const source = (kind: Fact['kind'], it: string) => mails.find(({ tells }) => tells === keyOf(kind, it))!.mail.id;
  const direct = facts.map(({ kind, it, value }): Question => {
    const text = fill(FACT_KINDS[kind].question, { it });
    return { text, answer: value, sources: [source(kind, it)] };
  });
  const twoSteps = facts.flatMap(({ kind, it, value: lead }): Question[] => {
    if (kind !== 'lead') return [];
    const extension = facts.find((fact) => fact.kind === 'extension' && fact.it === lead)!.value;
    const sources = [source('lead', it), source('extension', lead)];
    return [{ text: fill(REACH_LEAD, { it }), answer: extension, sources }];
  });
  return [...direct, ...twoSteps];
}

function keyOf(kind: Fact['kind'], it: string): string {
  return `${kind} ${it}`;
}
