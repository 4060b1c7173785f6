/** Open connections of the gateway, and of `temper serve`: bounded for who has no key, and for each attempt. */
import type { Socket } from 'node:net';

/** The oldest of these gives way to the next: who has no key cannot keep out who has one. */
const MAX_WITHOUT_KEY = 256;
const MAX_OF_AN_ATTEMPT = 256;

export class Connections {
  /** And since when, the oldest first. */
  readonly #withoutKey = new Map<Socket, number>();
  readonly #graceMs: number;
  #trimming: NodeJS.Timeout | null = null;
  readonly #owners = new Map<Socket, object>();
  readonly #owned = new Map<object, Set<Socket>>();

  /** Connections younger than `graceMs` may be a burst of clients, which have yet to send their key. */
  constructor(graceMs = 0) {
    this.#graceMs = graceMs;
  }

  add(socket: Socket): void {
    this.#withoutKey.set(socket, performance.now());
    socket.on('close', () => this.#remove(socket));
    socket.on('error', () => socket.destroy());
    this.#makeRoom();
  }

  /** Its client has shown the one key of a server: it gives way to nobody. */
  keep(socket: Socket): void {
    this.#withoutKey.delete(socket);
  }

  #makeRoom(): void {
    for (const [oldest, since] of this.#withoutKey) {
      if (this.#withoutKey.size <= MAX_WITHOUT_KEY) return;
      const waitMs = since + this.#graceMs - performance.now();
      if (waitMs > 0) return this.#makeRoomLater(waitMs);
      this.#withoutKey.delete(oldest);
      oldest.destroy();
    }
  }

  /** Nobody may come until then: where all connections are taken, none is let in. */
  #makeRoomLater(waitMs: number): void {
    if (this.#trimming !== null) return;
    this.#trimming = setTimeout(() => {
      this.#trimming = null;
      this.#makeRoom();
    }, waitMs).unref();
  }

  /** A connection belongs to the attempt whose key came first; false if it is another's, or the attempt has too many. */
  claim(socket: Socket, owner: object): boolean {
    const known = this.#owners.get(socket);
    if (known !== undefined) return known === owner;
    const owned = this.#owned.get(owner) ?? new Set();
    if (owned.size >= MAX_OF_AN_ATTEMPT || socket.destroyed) return false;
    this.#withoutKey.delete(socket);
    this.#owners.set(socket, owner);
    this.#owned.set(owner, owned.add(socket));
    return true;
  }

  /** With all that is under way on them. */
  end(owner: object): void {
    for (const socket of this.#owned.get(owner) ?? []) socket.destroy();
    this.#owned.delete(owner);
  }

  get size(): number {
    return this.#withoutKey.size + this.#owners.size;
  }

  #remove(socket: Socket): void {
    this.#withoutKey.delete(socket);
    const owner = this.#owners.get(socket);
    this.#owners.delete(socket);
    if (owner !== undefined) this.#owned.get(owner)?.delete(socket);
  }
}
