/** Requests for the same answer at the same time: it is made once, so that ten clients cost about as much as one. */
export class SharedAnswers {
  readonly #making = new Map<string, Promise<object>>();

  /** `key` names all that the answer depends on: who asks after a change must not get an answer from before. */
  async ask(key: string, make: () => Promise<object>): Promise<object> {
    const shared = this.#making.get(key);
    if (shared !== undefined) return shared;
    const making = make();
    this.#making.set(key, making);
    try {
      return await making;
    } finally {
      this.#making.delete(key);
    }
  }
}
