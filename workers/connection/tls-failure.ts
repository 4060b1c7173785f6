/** Why a TLS handshake fails: grpc-js does not say, so it is tried once more without gRPC. */
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import type { TLSConfig } from '@temporalio/client';

const ANSWER_WITHIN_MS = 2000;
const REFUSED_WITHIN_MS = 5000;
const NO_TLS = 'it takes TLS alone, and none is configured';

/** `config`: false if none is configured. Null if TLS is not the reason: nobody answers, or what answers is fine. */
export function tlsFailure(address: string, config: TLSConfig | boolean): Promise<string | null> {
  const [, host = '', port = '7233'] = /^\[?([^\]]*?)\]?(?::(\d+))?$/.exec(address) ?? [];
  const { serverNameOverride, serverRootCACertificate, clientCertPair } = typeof config === 'boolean' ? {} : config;
  const pem = (bytes: Uint8Array | null | undefined) => (bytes ? Buffer.from(bytes) : undefined);
  return new Promise<string | null>((resolve) => {
    const socket = connect({
      host,
      port: Number(port),
      servername: serverNameOverride ?? (isIP(host) === 0 ? host : ''),
      ca: pem(serverRootCACertificate),
      cert: pem(clientCertPair?.crt),
      key: pem(clientCertPair?.key),
      ALPNProtocols: ['h2'],
      rejectUnauthorized: config !== false,
      timeout: ANSWER_WITHIN_MS,
    });
    const end = (reason: string | null) => {
      resolve(reason);
      socket.destroy();
    };
    // With TLS 1.3 a server refuses a certificate after this.
    socket.on('secureConnect', () => (config === false ? end(NO_TLS) : socket.setTimeout(REFUSED_WITHIN_MS)));
    socket.on('error', (error: NodeJS.ErrnoException & { reason?: string }) => {
      if (config === false) end(error.code?.includes('ALERT') ? NO_TLS : null);
      else end(['connect', 'getaddrinfo'].includes(error.syscall ?? '') ? null : (error.reason ?? error.message));
    });
    for (const event of ['data', 'close', 'timeout']) socket.on(event, () => end(null));
  }).catch((error: unknown) => (error as Error).message);
}
