import { connect } from 'node:net'

export interface RawExchange {
  /** All bytes of the server until it closed the connection, one character for each byte. */
  readonly text: string
  /** The status of each answer in the text. */
  readonly statuses: readonly number[]
}

const PATIENCE_MS = 90_000

/**
 * Writes bytes to a server unchanged and reads until it closes the connection. A request that expects an answer has
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
    // The server may reset the connection after its answer. Later bytes of the client are lost then.
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(patience)
      const text = Buffer.concat(parts).toString('latin1')
      resolve({ text, statuses: [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status)) })
    })
    socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  })
}

/** The text of a request: first line, headers, and the body unchanged. */
export function requestText(line: string, headers: readonly string[], body = ''): string {
  return [line, ...headers, '', body].join('\r\n')
}
