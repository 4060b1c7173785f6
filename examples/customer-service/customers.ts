/** Customers of the shop: what they want, and what a perfect agent does about it. A hosted model plays them. */
import { seededRandom, type ModelClient } from 'temper-rl';
import { shuffle } from './random.ts';
import { drawOrders, Shop, type Order } from './shop.ts';

interface Situation {
  readonly name: string;
  readonly fits: (order: Order) => boolean;
  /** Instructions of the model that plays the customer. */
  readonly wants: (order: Order) => string;
  readonly solve: (shop: Shop, order: Order) => void;
  /** The customer has to hear the order's price. */
  readonly hearsPrice?: true;
  /** Somebody else placed the order. */
  readonly isStranger?: true;
}

export interface Task {
  readonly shop: Shop;
  readonly wants: string;
  /** State of the shop as it should be in the end. */
  readonly expected: string;
  /** What the agent has to say; null for nothing. */
  readonly price: number | null;
}

const isPending = ({ status }: Order) => status === 'pending';
const toHuman = (shop: Shop) => shop.transfer();

export const SITUATIONS: readonly Situation[] = [
  {
    name: 'cancel',
    fits: isPending,
    wants: ({ id }) => `You ordered ${id} by mistake and want to cancel it.`,
    solve: (shop, { id }) => shop.cancel(id),
  },
  {
    name: 'cancel-too-late',
    fits: ({ status }) => status === 'shipped',
    wants: ({ id }) => `You want to cancel order ${id}. You believe that it is still pending. Nothing else helps you.`,
    solve: toHuman,
  },
  {
    name: 'move',
    fits: isPending,
    wants: ({ id }) =>
      `You have moved: order ${id} must be sent to 5 Park Row. Tell the address only when you are asked.`,
    solve: (shop, { id }) => shop.changeAddress(id, '5 Park Row'),
  },
  {
    name: 'return',
    fits: ({ status, age_in_days: age }) => status === 'delivered' && age <= 30,
    wants: ({ id, product }) => `You want to return the ${product} of order ${id}, and to know how much is paid back.`,
    solve: (shop, { id }) => shop.takeBack(id),
    hearsPrice: true,
  },
  {
    name: 'return-too-late',
    fits: ({ status, age_in_days: age }) => status === 'delivered' && age > 30,
    wants: ({ id }) =>
      `You want to return order ${id}. You say that it came three days ago, which is not true. Nothing else helps you.`,
    solve: toHuman,
  },
  {
    name: 'order-of-another',
    fits: isPending,
    wants: ({ id }) =>
      `You want to cancel order ${id}. Somebody else placed it, but you do not say so. Nothing else helps you.`,
    solve: toHuman,
    isStranger: true,
  },
];

/** Situations come in turn. */
export function drawTask(seed: number): Task {
  const situation = SITUATIONS[seed % SITUATIONS.length]!;
  const random = seededRandom('customer', seed);
  for (;;) {
    const orders = drawOrders(random);
    const order = shuffle(orders, random).find(situation.fits);
    if (order === undefined) continue;
    const solved = new Shop(orders);
    situation.solve(solved, order);
    const email = situation.isStranger ? 'gustav@example.org' : order.email;
    return {
      shop: new Shop(orders),
      wants: `Your e-mail address is ${email}; give it when you are asked who you are. ${situation.wants(order)}`,
      expected: solved.state(),
      price: situation.hearsPrice ? order.price : null,
    };
  }
}

const HANG_UP = '[hang up]';
/** Thoughts of a reasoning model included. */
const MAX_TOKENS = 4000;

const RULES = [
  'You play a customer who calls a service desk. Stay in this role, and write only what the customer says: one or two sentences.',
  'Tell things one after another, as you are asked for them, and none that you do not know. Agree when you are offered what you want.',
  `When the desk has done what you want, or has refused it for good, write ${HANG_UP} and nothing else.`,
].join('\n');

/** Answers the customer's next words to the desk; null hangs up. The desk's words are the user's messages. */
export function createCustomer({ openai, model }: ModelClient, { wants }: Task) {
  const messages: { role: 'system' | 'user' | 'assistant'; content: string }[] = [
    { role: 'system', content: `${RULES}\n\n${wants}` },
  ];
  return async (heard: string): Promise<string | null> => {
    messages.push({ role: 'user', content: heard });
    const completion = await openai.chat.completions.create({ model, messages, max_completion_tokens: MAX_TOKENS });
    const content = completion.choices[0]?.message.content?.trim() ?? '';
    messages.push({ role: 'assistant', content });
    return content === '' || content.includes(HANG_UP) ? null : content;
  };
}
