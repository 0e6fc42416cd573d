import { connect } from 'node:net'

/**
 * How a Postgres answered: `starting` while it recovers or shuts down, `silent` if no server listens or no answer came.
 */
export type PostgresAnswer = 'answers' | 'starting' | 'silent'

/**
 * Sends `SELECT 1` over a Unix socket by the Postgres protocol, version 3, without authentication. The supervisor uses
 * only Node's core modules, so it has no driver.
 * @param timeoutMs how long the whole exchange may take
 */
export function probePostgres(
  socketPath: string,
  user: string,
  database: string,
  timeoutMs: number,
): Promise<PostgresAnswer> {
  return new Promise((resolve) => {
    const socket = connect(socketPath)
    let received = Buffer.alloc(0)
    let asked = false
    const end = (answer: PostgresAnswer) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(answer)
    }
    const timer = setTimeout(() => end('silent'), timeoutMs)
    socket.on('error', () => end('silent'))
    socket.on('close', () => end('silent'))
    socket.on('connect', () => socket.write(startupMessage(user, database)))
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      while (received.length >= 5 && received.length >= 1 + received.readUInt32BE(1)) {
        const type = String.fromCharCode(received[0]!)
        const length = 1 + received.readUInt32BE(1)
        const body = received.subarray(5, length)
        received = received.subarray(length)
        // 57P03: the server is starting up, shutting down or recovering.
        if (type === 'E') return end(body.includes('C57P03\0') ? 'starting' : 'silent')
        if (type === 'Z' && !asked) {
          asked = true
          socket.write(message('Q', Buffer.from('SELECT 1\0')))
        } else if (type === 'Z') {
          socket.write(message('X', Buffer.alloc(0)))
          return end('answers')
        }
      }
    })
  })
}

function startupMessage(user: string, database: string): Buffer {
  const body = Buffer.from(`user\0${user}\0database\0${database}\0\0`)
  const head = Buffer.alloc(8)
  head.writeUInt32BE(8 + body.length, 0)
  head.writeUInt32BE(196_608, 4)
  return Buffer.concat([head, body])
}

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.write(type, 0, 'latin1')
  head.writeUInt32BE(4 + body.length, 1)
  return Buffer.concat([head, body])
}
