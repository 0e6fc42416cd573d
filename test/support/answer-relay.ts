import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** The point at which a client loses an answer: before the answer, or after a part of it. */
export type CutPosition = 'before an answer' | 'inside an answer'

/**
 * A TCP relay in front of a server that knows where HTTP answers begin and end. It can delay its client, and knows which
 * part of each answer the client has received.
 */
export interface AnswerRelay {
  readonly url: string
  /** Resolves when the client has received some large answers. The next answer is then sent slowly, byte by byte. */
  readonly dripping: Promise<void>
  /** Sends the rest of that answer and holds the next request. Resolves once there is a next request. */
  keepNextRequest(): Promise<void>
  /** Ends the connection of a client that has a part of an answer, as a dying server does. */
  breakAnswer(): void
  /** Resumes all connections that can continue, and holds nothing from now on. */
  release(): void
  /**
   * For each request that the server did not answer completely, or not before the client gave up: the bytes of the answer
   * that the client has received.
   */
  readonly broken: readonly number[]
  /** The number of complete answers that asked the client to retry. */
  readonly putOff: () => number
  close(): Promise<void>
}

/** Answers with at least this many bytes have rows. */
const LARGE_BYTES = 8 * 1024
/** The pause between bytes, so short that no client gives up. */
const DRIP_MS = 250

/** @param large the number of large answers that the client gets completely before the delay */
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
      // There is a connection for each request, so that the server does not close an idle connection of a delayed client.
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
      // Only complete answers are sent on: a client gets a partial answer only on purpose.
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
      // The client gets as much of a complete answer as the test intends.
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

/** Whether an answer has a status at which clients retry, and which they count as a failure. */
function saysNotNow(answer: Buffer): boolean {
  return /^HTTP\/1\.1 (?:429|502|503|504) /.test(answer.toString('latin1', 0, 13))
}

/** Answers to statements are JSON in chunks, without line ends in the JSON. Other answers have a length or no body. */
function isWhole(answer: Buffer): boolean {
  const end = answer.indexOf('\r\n\r\n')
  if (end < 0) return false
  const head = answer.toString('latin1', 0, end).toLowerCase()
  if (head.includes('\r\ntransfer-encoding: chunked')) return answer.subarray(-7).toString('latin1') === '\r\n0\r\n\r\n'
  const length = /\r\ncontent-length: (\d+)/.exec(head)
  return length ? answer.length === end + 4 + Number(length[1]) : true
}
