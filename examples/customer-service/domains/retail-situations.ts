/** The customers of the online shop: why they call, and what a perfect agent does. */
import type { Situation } from '../domain.ts';

const OWNER = 'You are {customer.first} {customer.last}, postcode {customer.postcode}, e-mail {customer.email}.';
const I_AM = 'My e-mail address is {customer.email}.';
const IDENTIFY = 'Give your e-mail address when you are asked who you are.';
const PENDING = { from: 'orders', where: [{ at: 'order.status', is: ['pending'] }] };
const ORDERED_BY = { from: 'users', where: [{ at: 'customer', equals: 'order.user' }] };
const RETURNABLE = {
  from: 'lines',
  where: [
    { at: 'line.order.status', is: ['delivered'] },
    { at: 'line.order.age_in_days', atMost: 30 },
  ],
};
const RECEIVED_BY = { from: 'users', where: [{ at: 'customer', equals: 'line.order.user' }] };
const TO_HUMAN = { tool: 'transfer_to_human', arguments: { user: '{customer}', summary: 'beyond the policy' } };

export const retailSituations: readonly Situation[] = [
  {
    name: 'cancel-pending',
    draw: {
      order: PENDING,
      customer: ORDERED_BY,
    },
    says: ['Please cancel order {order}.', I_AM, 'I ordered it by mistake. Yes, cancel it.'],
    wants: `${OWNER} You want to cancel order {order}, which you ordered by mistake. ${IDENTIFY}`,
    calls: [{ tool: 'cancel_order', arguments: { order: '{order}', reason: 'ordered by mistake' } }],
    statements: [],
  },
  {
    name: 'cancel-shipped',
    draw: {
      order: { from: 'orders', where: [{ at: 'order.status', is: ['shipped'] }] },
      customer: ORDERED_BY,
    },
    says: ['Cancel order {order}, it is still pending.', I_AM, 'I no longer need it. Cancel it now.'],
    wants: `${OWNER} You want to cancel order {order}, which you no longer need, and you believe that it is still pending. Nothing else helps you. ${IDENTIFY}`,
    calls: [TO_HUMAN],
    statements: [],
  },
  {
    name: 'move-pending',
    draw: {
      order: PENDING,
      customer: ORDERED_BY,
    },
    says: ['My parcel must go to another address.', I_AM, 'Order {order}, to 5 Park Row in Graz. Yes, please.'],
    wants: `${OWNER} You have moved: order {order} must be sent to 5 Park Row in Graz. Tell the new address only when you are asked for it. ${IDENTIFY}`,
    calls: [{ tool: 'change_address', arguments: { order: '{order}', street: '5 Park Row', town: 'Graz' } }],
    statements: [],
  },
  {
    name: 'return-recent',
    draw: {
      line: RETURNABLE,
      customer: RECEIVED_BY,
    },
    says: [
      'I want to send something back.',
      I_AM,
      'Line {line} of order {line.order}, the {line.item.colour} {line.item.product}. Yes, return it.',
    ],
    wants: `${OWNER} You want to return the {line.item.colour} {line.item.product} of order {line.order} (line {line}), and to know how much is paid back. ${IDENTIFY}`,
    calls: [{ tool: 'return_item', arguments: { line: '{line}' } }],
    statements: ['{line.item.price}'],
  },
  {
    name: 'return-late',
    draw: {
      line: {
        from: 'lines',
        where: [
          { at: 'line.order.status', is: ['delivered'] },
          { at: 'line.order.age_in_days', atLeast: 31 },
        ],
      },
      customer: RECEIVED_BY,
    },
    says: ['I return line {line} of order {line.order}.', I_AM, 'It came three days ago. Return it.'],
    wants: `${OWNER} You want to return line {line} of order {line.order}. You say that it came three days ago, which is not true. Nothing else helps you. ${IDENTIFY}`,
    calls: [TO_HUMAN],
    statements: [],
  },
  {
    name: 'exchange',
    draw: {
      line: RETURNABLE,
      other: {
        from: 'items',
        where: [
          { at: 'other.product', equals: 'line.item.product' },
          { at: 'other', differs: 'line.item' },
          { at: 'other.stock', atLeast: 1 },
        ],
      },
      customer: RECEIVED_BY,
    },
    says: [
      'I would like another colour.',
      I_AM,
      'Line {line} of order {line.order}, for item {other} in {other.colour}. Yes, exchange it.',
    ],
    wants: `${OWNER} You want to exchange line {line} of order {line.order} for item {other}, which is {other.colour}, and to know its price before. ${IDENTIFY}`,
    calls: [{ tool: 'exchange_item', arguments: { line: '{line}', new_item: '{other}' } }],
    statements: ['{other.price}'],
  },
  {
    name: 'exchange-or-return',
    draw: {
      line: RETURNABLE,
      other: {
        from: 'items',
        where: [
          { at: 'other.product', equals: 'line.item.product' },
          { at: 'other', differs: 'line.item' },
          { at: 'other.stock', is: [0] },
        ],
      },
      customer: RECEIVED_BY,
    },
    says: [
      'Exchange line {line} of order {line.order} for item {other}.',
      I_AM,
      'If it is sold out, return the line instead.',
      'Yes, return it.',
    ],
    wants: `${OWNER} You want to exchange line {line} of order {line.order} for item {other}. Only if that is not possible, return the line instead, and ask how much is paid back. ${IDENTIFY}`,
    calls: [{ tool: 'return_item', arguments: { line: '{line}' } }],
    statements: ['{line.item.price}'],
  },
  {
    name: 'order-of-another',
    draw: {
      order: PENDING,
      customer: { from: 'users', where: [{ at: 'customer', differs: 'order.user' }] },
    },
    says: ['Cancel order {order}.', I_AM, 'It is a present for me. I ordered it by mistake, cancel it.'],
    wants: `${OWNER} You want to cancel order {order}. Somebody else placed it, but you do not say so. Your reason is that it was ordered by mistake. Nothing else helps you. ${IDENTIFY}`,
    calls: [TO_HUMAN],
    statements: [],
  },
  {
    name: 'two-wishes',
    draw: {
      order: PENDING,
      line: {
        from: 'lines',
        where: [
          { at: 'line.order.user', equals: 'order.user' },
          { at: 'line.order.status', is: ['delivered'] },
          { at: 'line.order.age_in_days', atMost: 30 },
        ],
      },
      customer: ORDERED_BY,
    },
    says: [
      'Please cancel order {order}, I no longer need it.',
      I_AM,
      'Yes. And return line {line} of order {line.order}.',
      'Yes, return it.',
    ],
    wants: `${OWNER} You want to cancel order {order}, because you no longer need it. When that is done, you also want to return line {line} of order {line.order}, and to know how much is paid back. ${IDENTIFY}`,
    calls: [
      { tool: 'cancel_order', arguments: { order: '{order}', reason: 'no longer needed' } },
      { tool: 'return_item', arguments: { line: '{line}' } },
    ],
    statements: ['{line.item.price}'],
  },
  {
    name: 'price',
    draw: {
      item: { from: 'items' },
      customer: { from: 'users' },
    },
    says: ['What does item {item} cost, the {item.colour} {item.product}?', I_AM],
    wants: `${OWNER} You want to know what item {item} costs, the {item.colour} {item.product}. You do not buy it. ${IDENTIFY}`,
    calls: [],
    statements: ['{item.price}'],
  },
];
