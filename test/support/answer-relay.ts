import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** Where a client loses an answer: none of it has come, or a part. */
export type Place = 'before an answer' | 'inside an answer'

/**
 * A TCP relay before a server that knows where HTTP answers begin and end: it can keep its client waiting, and knows what
 * of each answer its client was given.
 */
export interface AnswerRelay {
  readonly url: string
  /** Resolves when the client has had some large answers: the next one comes to it a byte at a time, for as long as need be. */
  readonly dripping: Promise<void>
  /** Gives the rest of that answer and keeps back what is asked next. Resolves once something is. */
  keepNextRequest(): Promise<void>
  /** Ends the connection of a client that has a part of an answer, as the end of its server does. */
  breakAnswer(): void
  /** Everything goes on where it still can, and nothing is kept back from now on. */
  release(): void
  /**
   * For each request that the server did not answer whole, or not before the client gave up: bytes of the answer that the
   * client was given.
   */
  readonly broken: readonly number[]
  /** Whole answers that said: not now. */
  readonly putOff: () => number
  close(): Promise<void>
}

/** Answers with so many bytes carry rows. */
const LARGE_BYTES = 8 * 1024
/** No client waits so long for a byte that it gives up. */
const DRIP_MS = 250

/** @param large large answers that the client gets whole before it is kept waiting */
export async function startAnswerRelay(server: string, large: number): Promise<AnswerRelay> {
  const { hostname: host, port } = new URL(server)
  const broken: number[] = []
  let putOff = 0
  const sockets = new Set<Socket>()
  const onRelease = new Set<() => void>()
  let phase: 'count' | 'drip' | 'keep' | 'pass' = 'count'
  let seen = 0
  const dripping = moment()
  const kept = moment()
  let dripped: { rest(): void; break(): void } | undefined

  function known(socket: Socket): Socket {
    sockets.add(socket.setNoDelay(true))
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    return socket
  }

  const listener = createServer((socket) => {
    const client = known(socket)
    let exchange: Socket | undefined
    client.on('data', (bytes) => {
      // A connection for each request: the server does not close one that rests while its client is kept waiting.
      exchange ??= exchangeOf(client, () => (exchange = undefined))
      const upstream = exchange
      const send = (): void => void (upstream.destroyed || upstream.write(bytes))
      if (phase !== 'keep') return send()
      onRelease.add(send)
      kept.resolve()
    })
    client.on('close', () => exchange?.destroy())
  })

  function exchangeOf(client: Socket, ended: () => void): Socket {
    const upstream = known(connect(Number(port), host))
    let answer = Buffer.alloc(0)
    let given = 0
    let open = true
    let timer: NodeJS.Timeout | undefined
    const give = (upTo: number): void => {
      const part = answer.subarray(given, upTo)
      given += part.length
      if (part.length > 0) client.write(part)
    }
    const finish = (): void => {
      open = false
      clearInterval(timer)
      ended()
      upstream.destroy()
    }
    const breakOff = (): void => {
      if (!open) return
      broken.push(given)
      finish()
      client.destroy()
    }
    upstream.on('data', (bytes: Buffer) => {
      answer = Buffer.concat([answer, bytes])
      // Whole answers alone are passed on: what a client is given in part, it is given on purpose.
      if (!isWhole(answer)) return
      if (saysNotNow(answer)) putOff++
      if (answer.length > LARGE_BYTES && phase === 'count' && ++seen > large) {
        phase = 'drip'
        give(LARGE_BYTES / 2)
        timer = setInterval(() => give(given + 1), DRIP_MS)
        client.once('close', () => clearInterval(timer))
        const rest = (): void => {
          give(answer.length)
          finish()
        }
        dripped = { rest, break: breakOff }
        dripping.resolve()
        return
      }
      give(answer.length)
      finish()
    })
    upstream.on('close', () => {
      // Of an answer that is here the client gets all that it is meant to.
      if (!timer) breakOff()
    })
    return upstream
  }

  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    dripping: dripping.promise,
    keepNextRequest() {
      phase = 'keep'
      dripped?.rest()
      return kept.promise
    },
    breakAnswer() {
      phase = 'pass'
      dripped?.break()
    },
    release() {
      phase = 'pass'
      for (const send of onRelease) send()
      onRelease.clear()
    },
    broken,
    putOff: () => putOff,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}

function moment(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {}
  const promise = new Promise<void>((done) => (resolve = done))
  return { promise, resolve }
}

/** Statuses at which clients ask again, and which they count as failures. */
function saysNotNow(answer: Buffer): boolean {
  return /^HTTP\/1\.1 (?:429|502|503|504) /.test(answer.toString('latin1', 0, 13))
}

/** Statement answers are JSON in chunks, which has no line ends of its own; others have a length, or no body. */
function isWhole(answer: Buffer): boolean {
  const end = answer.indexOf('\r\n\r\n')
  if (end < 0) return false
  const head = answer.toString('latin1', 0, end).toLowerCase()
  if (head.includes('\r\ntransfer-encoding: chunked')) return answer.subarray(-7).toString('latin1') === '\r\n0\r\n\r\n'
  const length = /\r\ncontent-length: (\d+)/.exec(head)
  return length ? answer.length === end + 4 + Number(length[1]) : true
}
