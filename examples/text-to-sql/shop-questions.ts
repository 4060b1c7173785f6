/** The full edition's questions: what is asked of a shop, from one table up to joins of four, with a query that answers it. */
import { seededRandom } from 'temper-rl';
import type { Question } from './grade.ts';
import { KINDS, MONTHS, TOWNS } from './shop.ts';

export interface Scenario extends Question {
  readonly id: string;
}

const NUMBERS = [2, 3, 4, 5, 6];
const PRICES = [15, 25, 35, 45, 55, 65];
const month = (number: number) => `2024-0${number}`;
const plain = (text: string, sql: string) => ({ text, sql, isOrdered: false });
const sorted = (text: string, sql: string) => ({ text, sql, isOrdered: true });

const SOLD = 'lines JOIN products ON products.id = product_id JOIN orders ON orders.id = order_id';
const BOUGHT = `${SOLD} JOIN customers ON customers.id = customer_id`;

const ALL: readonly Question[] = [
  ...TOWNS.flatMap((town) => [
    plain(`How many customers live in ${town}?`, `SELECT count(*) FROM customers WHERE town = '${town}'`),
    sorted(
      `What are the names of the customers in ${town}, those who joined last first, and by name on one day?`,
      `SELECT name FROM customers WHERE town = '${town}' ORDER BY joined DESC, name`,
    ),
    plain(
      `How many orders did customers in ${town} place?`,
      `SELECT count(*) FROM orders JOIN customers ON customers.id = customer_id WHERE town = '${town}'`,
    ),
    plain(
      `Which customers in ${town} have never ordered anything? Give their names.`,
      `SELECT name FROM customers WHERE town = '${town}' AND id NOT IN (SELECT customer_id FROM orders)`,
    ),
    ...KINDS.map((kind) =>
      plain(
        `How many items of the kind ${kind} were bought by customers in ${town}? Answer 0 for none.`,
        `SELECT coalesce(sum(quantity), 0) FROM ${BOUGHT} WHERE town = '${town}' AND kind = '${kind}'`,
      ),
    ),
  ]),
  ...KINDS.flatMap((kind) => [
    plain(
      `What is the mean price of products of the kind ${kind}?`,
      `SELECT avg(price) FROM products WHERE kind = '${kind}'`,
    ),
    plain(
      `Which products of the kind ${kind} were never ordered? Give their names.`,
      `SELECT name FROM products WHERE kind = '${kind}' AND id NOT IN (SELECT product_id FROM lines)`,
    ),
    ...MONTHS.map((number) =>
      plain(
        `What was the revenue (price times quantity) of the kind ${kind} in ${month(number)}? Answer 0 for none.`,
        `SELECT coalesce(sum(price * quantity), 0) FROM ${SOLD} WHERE kind = '${kind}' AND day LIKE '${month(number)}%'`,
      ),
    ),
    ...PRICES.map((price) =>
      plain(
        `Which products of the kind ${kind} cost less than ${price}? Give their names.`,
        `SELECT name FROM products WHERE kind = '${kind}' AND price < ${price}`,
      ),
    ),
  ]),
  ...MONTHS.flatMap((number) => [
    plain(
      `How many orders were placed in ${month(number)}?`,
      `SELECT count(*) FROM orders WHERE day LIKE '${month(number)}%'`,
    ),
    plain(
      `How many customers placed an order in ${month(number)}? Count each of them once.`,
      `SELECT count(DISTINCT customer_id) FROM orders WHERE day LIKE '${month(number)}%'`,
    ),
    sorted(
      `How many items were sold of each kind in ${month(number)}? Give kind and number, by kind, without those that were not sold.`,
      `SELECT kind, sum(quantity) FROM ${SOLD} WHERE day LIKE '${month(number)}%' GROUP BY kind ORDER BY kind`,
    ),
  ]),
  ...NUMBERS.flatMap((number) => [
    plain(
      `Which customers placed at least ${number} orders? Give their names.`,
      `SELECT name FROM customers JOIN orders ON customers.id = customer_id GROUP BY customers.id HAVING count(*) >= ${number}`,
    ),
    plain(
      `Which orders have more than ${number} items in all? Give their ids.`,
      `SELECT order_id FROM lines GROUP BY order_id HAVING sum(quantity) > ${number}`,
    ),
  ]),
];

/** A fifth of these questions is held out. */
const EXAM_SHARE = 0.2;
const isHeldOut = ({ text }: Question): boolean => seededRandom('exam', text)() < EXAM_SHARE;
const named = (question: Question): Scenario => ({
  ...question,
  id: question.text.toLowerCase().replaceAll(/\W+/g, '-'),
});

export const trainingQuestions: readonly Scenario[] = ALL.filter((question) => !isHeldOut(question)).map(named);
export const examQuestions: readonly Scenario[] = ALL.filter(isHeldOut).map(named);
