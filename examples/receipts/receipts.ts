/** Receipts in prose: who paid how much, where and for what. A receipt follows from its number alone. */
export interface Receipt {
  readonly id: string;
  readonly text: string;
  readonly euros: number;
}

interface Purchase {
  readonly name: string;
  readonly shop: string;
  readonly thing: string;
  readonly month: string;
  readonly day: number;
  readonly euros: number;
}

const NAMES = ['Maria', 'John', 'Aisha', 'Peter', 'Yuki', 'Carlos', 'Nina', 'Omar', 'Lena', 'Tom'];
const SHOPS = ['the bakery', 'the bookshop', 'the garage', 'the market', 'the florist', 'the pharmacy'];
const THINGS = ['bread', 'three books', 'a new tire', 'apples', 'roses', 'cough syrup', 'a bag of rice', 'two tickets'];
const MONTHS = ['March', 'June', 'July', 'October', 'December'];
const PHRASINGS: readonly ((of: Purchase) => string)[] = [
  ({ name, shop, thing, month, day, euros }) =>
    `On ${day} ${month}, ${name} paid ${euros} euros at ${shop} for ${thing}.`,
  ({ name, shop, thing, month, day, euros }) =>
    `${name} went to ${shop} on ${month} ${day} and bought ${thing} for ${euros} euros.`,
  ({ name, shop, thing, month, day, euros }) =>
    `For ${thing} at ${shop}, ${name} was charged ${euros} euros (${day} ${month}).`,
];

const TRAINING_RECEIPTS = 400;
const EXAM_RECEIPTS = 100;
/** Numbers from here on are those of the exam. */
const FIRST_EXAM_RECEIPT = 10_000;

export const trainingReceipts: readonly Receipt[] = Array.from({ length: TRAINING_RECEIPTS }, (_, index) =>
  makeReceipt(index),
);

/** Other purchases than those that are trained on. */
export const examReceipts: readonly Receipt[] = Array.from({ length: EXAM_RECEIPTS }, (_, index) =>
  makeReceipt(FIRST_EXAM_RECEIPT + index),
);

export function makeReceipt(number: number): Receipt {
  const draw = createDraw(number);
  const name = pick(NAMES, draw);
  const shop = pick(SHOPS, draw);
  const thing = pick(THINGS, draw);
  const month = pick(MONTHS, draw);
  const day = 1 + draw(28);
  const euros = 3 + draw(240);
  const phrase = pick(PHRASINGS, draw);
  return { id: `receipt-${number}`, text: phrase({ name, shop, thing, month, day, euros }), euros };
}

export function question({ text }: Receipt): string {
  return `${text}\nHow many euros were paid? Answer with the number only.`;
}

/** Whole numbers below a limit, from a linear congruential generator (Numerical Recipes' constants). */
function createDraw(seed: number): (limit: number) => number {
  let state = Math.imul(seed + 1, 2654435761) >>> 0;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

function pick<Item>(items: readonly Item[], draw: (limit: number) => number): Item {
  return items[draw(items.length)]!;
}
