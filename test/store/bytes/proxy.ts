/** Between a client and its server: counts what passes, so that a test can act in the middle of a transfer. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export type Direction = 'up' | 'down';

interface Trap {
  direction: Direction;
  bytesLeft: number;
  /** Whether what comes after waits in the proxy. */
  holds: boolean;
  spring(): void;
}

export class Proxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #trap: Trap | null = null;
  #held: Socket | null = null;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(targetPort: number): Promise<Proxy> {
    const server = createServer();
    const proxy = new Proxy(server);
    server.on('connection', (client) => proxy.#join(client, connect(targetPort, '127.0.0.1')));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resolves once so many bytes have gone that way. */
  passed(direction: Direction, bytes: number): Promise<void> {
    return new Promise((resolve) => {
      this.#trap = { direction, bytesLeft: bytes, holds: false, spring: resolve };
    });
  }

  /** Likewise, and what comes from that side afterwards is not read until `letGo`. */
  hold(direction: Direction, bytes: number): Promise<void> {
    return new Promise((resolve) => {
      this.#trap = { direction, bytesLeft: bytes, holds: true, spring: resolve };
    });
  }

  letGo(): void {
    this.#held?.resume();
    this.#held = null;
  }

  /** Breaks all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #join(client: Socket, upstream: Socket): void {
    this.#forward(client, upstream, 'up');
    this.#forward(upstream, client, 'down');
  }

  #forward(from: Socket, to: Socket, direction: Direction): void {
    this.#sockets.add(from);
    from.on('data', (chunk) => {
      const trap = this.#trap;
      if (trap?.direction === direction && (trap.bytesLeft -= chunk.length) <= 0) {
        this.#trap = null;
        if (trap.holds) this.#held = from.pause();
        trap.spring();
      }
      if (!to.write(chunk)) from.pause();
    });
    to.on('drain', () => this.#held === from || from.resume());
    // A broken side breaks the other.
    from.on('error', () => to.destroy());
    from.on('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
  }
}
