/**
 * Cache of slow pure functions. A workflow that is replayed plans each step of its history again within ten seconds: an
 * order of 500,000 examples takes one of them.
 */
const KEPT = 4;

export class Remembered<Value> {
  readonly #values = new Map<string, Value>();

  /** `key` names everything that the value depends on. The newest few values are kept. */
  get(key: string, make: () => Value): Value {
    const value = this.#values.get(key) ?? make();
    this.#values.delete(key);
    this.#values.set(key, value);
    const [oldest = key] = this.#values.keys();
    if (this.#values.size > KEPT) this.#values.delete(oldest);
    return value;
  }
}
