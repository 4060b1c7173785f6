/** An online shop: its orders, drawn by a seed, and what the service desk can do. What the shop refuses changes nothing. */
import { between, pick, type Random } from './random.ts';

export interface Order {
  readonly id: string;
  readonly email: string;
  readonly product: string;
  readonly price: number;
  readonly age_in_days: number;
  readonly status: 'pending' | 'shipped' | 'delivered' | 'cancelled' | 'returned';
  readonly address: string;
}

const ORDERS = 18;
const CUSTOMERS = ['ada', 'bela', 'carla', 'dario', 'edith', 'farid'].map((name) => `${name}@example.org`);
const PRODUCTS = ['backpack', 'desk lamp', 'headphones', 'kettle'];
const ADDRESSES = ['3 Harbour Street', '14 Mill Lane', '27 Station Road', '8 Orchard Way'];
const STATUSES = ['pending', 'shipped', 'delivered', 'delivered'] as const;

export function drawOrders(random: Random): Order[] {
  const first = between(random, 1000, 9000);
  return Array.from({ length: ORDERS }, (_, index) => ({
    id: `O${first + 7 * index}`,
    email: pick(CUSTOMERS, random),
    product: pick(PRODUCTS, random),
    price: between(random, 12, 190),
    age_in_days: between(random, 1, 60),
    status: pick(STATUSES, random),
    address: pick(ADDRESSES, random),
  }));
}

export class Shop {
  readonly #orders: Map<string, Order>;
  #transferred = false;

  constructor(orders: readonly Order[]) {
    this.#orders = new Map(orders.map((order) => [order.id, order]));
  }

  ordersOf(email: string): Order[] {
    return [...this.#orders.values()].filter((order) => order.email === email.trim().toLowerCase());
  }

  order(id: string): Order {
    const order = this.#orders.get(id);
    if (order === undefined) throw new Error(`there is no order ${id}`);
    return order;
  }

  cancel(id: string): Order {
    return this.#change(id, 'pending', { status: 'cancelled' });
  }

  changeAddress(id: string, address: string): Order {
    return this.#change(id, 'pending', { address });
  }

  takeBack(id: string): Order {
    return this.#change(id, 'delivered', { status: 'returned' });
  }

  transfer(): string {
    this.#transferred = true;
    return 'done';
  }

  /** The same for the same orders: everything that an attempt may have changed. */
  state(): string {
    return JSON.stringify({ orders: [...this.#orders.values()], transferred: this.#transferred });
  }

  #change(id: string, status: Order['status'], change: Partial<Order>): Order {
    const order = this.order(id);
    if (order.status !== status) throw new Error(`order ${id} must be ${status}, it is ${order.status}`);
    const changed = { ...order, ...change };
    this.#orders.set(id, changed);
    return changed;
  }
}
