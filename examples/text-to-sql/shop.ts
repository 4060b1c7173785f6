/** The full edition's databases: a shop with four tables, drawn by a seed. */
import { seededRandom } from 'temper-rl';
import { Database } from './database.ts';
import { between, pick, shuffle, type Random } from './random.ts';

export const SCHEMA = `CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, town TEXT, joined TEXT);
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, kind TEXT, price INTEGER);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers, day TEXT);
CREATE TABLE lines (order_id INTEGER REFERENCES orders, product_id INTEGER REFERENCES products, quantity INTEGER);`;

export const TOWNS = ['Bergen', 'Cork', 'Graz', 'Lima', 'Osaka', 'Porto', 'Quito', 'Tartu'];
export const KINDS = ['book', 'game', 'lamp', 'map', 'plant'];
export const MONTHS = [1, 2, 3, 4, 5, 6];

const [CUSTOMERS, PRODUCTS, ORDERS] = [24, 20, 48];
/** Some customers have ordered nothing, and some products were never ordered. */
const [BUYERS, SOLD] = [20, 14];
const FIRST = 'Ada Bela Carla Dario Edith Farid Greta Hakon Ines Jonas Kamala Luis'.split(' ');
const LAST = ['Abel', 'Berger', 'Costa', 'Dahl', 'Ekman', 'Fischer'];
const MAKES = ['Arc', 'Blue', 'Clay', 'Dune', 'East', 'Fern', 'Gold', 'Hill'];

export function openShop(seed: number): Database {
  const random = seededRandom('shop', seed);
  const names = shuffle(pairs(FIRST, LAST), random).slice(0, CUSTOMERS);
  const wares = shuffle(pairs(MAKES, KINDS), random).slice(0, PRODUCTS);
  return new Database(SCHEMA, {
    customers: names.map((name, index) => [1 + index, name, pick(TOWNS, random), drawDay(random, 2023, 12)]),
    products: wares.map((name, index) => [1 + index, name, name.split(' ')[1]!, between(random, 5, 65)]),
    orders: numbers(ORDERS).map((id) => [id, between(random, 1, BUYERS), drawDay(random, 2024, MONTHS.length)]),
    lines: numbers(ORDERS).flatMap((id) => drawLines(id, random)),
  });
}

/** No product twice in an order. */
function drawLines(order: number, random: Random) {
  const products = shuffle(numbers(SOLD), random).slice(0, between(random, 1, 3));
  return products.map((product) => [order, product, between(random, 1, 5)]);
}

function drawDay(random: Random, year: number, months: number): string {
  const [month, day] = [between(random, 1, months), between(random, 1, 28)];
  return [year, month, day].map((part) => String(part).padStart(2, '0')).join('-');
}

function pairs(firsts: readonly string[], seconds: readonly string[]): string[] {
  return firsts.flatMap((first) => seconds.map((second) => `${first} ${second}`));
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => 1 + index);
}
