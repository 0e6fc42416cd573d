import { connect } from 'node:net'

export interface RawExchange {
  /** Everything the server sent until it closed the connection, a character a byte. */
  readonly text: string
  /** Status of each answer in it. */
  readonly statuses: readonly number[]
}

const PATIENCE_MS = 90_000

/**
 * Writes bytes to a server as they are and reads until it closes the connection; a request that is to be answered has
 * `Connection: close`.
 */
export function exchange(url: string, bytes: string | Buffer): Promise<RawExchange> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) })
    const parts: Buffer[] = []
    const patience = setTimeout(() => {
      socket.destroy()
      reject(new Error(`The server kept the connection open after ${Buffer.concat(parts).toString('latin1')}`))
    }, PATIENCE_MS)
    socket.on('data', (part: Buffer) => parts.push(part))
    // A reset after its answer: what was sent beyond is nobody's.
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(patience)
      const text = Buffer.concat(parts).toString('latin1')
      resolve({ text, statuses: [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status)) })
    })
    socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  })
}

/** A request's bytes: first line, headers, and a body as it is. */
export function requestText(line: string, headers: readonly string[], body = ''): string {
  return [line, ...headers, '', body].join('\r\n')
}
