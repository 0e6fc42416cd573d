import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

interface Link {
  readonly client: Socket
  readonly upstream: Socket
  keepUpstream: boolean
}

/** A TCP proxy whose connections can be held, cut, delayed and refused. */
export interface FaultProxy {
  readonly port: number
  /** Holds bytes of the client; `release` sends them on, even when the client is gone. */
  holdRequests(): void
  release(): void
  /** Sets the held bytes aside until the returned function is called. New bytes pass at once. */
  takeHeld(): () => void
  /** Discards bytes from the server until `deliverAnswers`. */
  dropAnswers(): void
  deliverAnswers(): void
  /** Ends all connections. With `keepUpstream` the side of the server stays, so that held bytes can still arrive. */
  cut(options?: { keepUpstream?: boolean }): void
  /** Cuts all connections, and each new connection at once, until `accept`. */
  refuse(): void
  accept(): void
  /** Delays bytes of both directions by this time. */
  delay(ms: number): void
  /** Limits the rate of bytes from each client. */
  throttle(bytesPerMs: number): void
  /** The number of connections so far. */
  readonly connections: number
  /** Whether client bytes wait. */
  readonly holding: number
  close(): Promise<void>
}

export async function startFaultProxy(target: { host: string; port: number }): Promise<FaultProxy> {
  const links = new Set<Link>()
  const held: (() => void)[] = []
  let holdingRequests = false
  let droppingAnswers = false
  let refusing = false
  let delayMs = 0
  let bytesPerMs = Infinity
  let connections = 0

  const later = (work: () => void): void => {
    if (delayMs > 0) setTimeout(work, delayMs)
    else work()
  }
  const server: Server = createServer((client) => {
    if (refusing) {
      client.destroy()
      return
    }
    connections++
    const upstream = connect(target)
    const link: Link = { client, upstream, keepUpstream: false }
    links.add(link)
    client.setNoDelay(true)
    upstream.setNoDelay(true)
    let passed = Promise.resolve()
    client.on('data', (bytes) => {
      const send = (): void => void (upstream.destroyed || upstream.write(bytes))
      if (holdingRequests) held.push(send)
      else if (bytesPerMs === Infinity) later(send)
      else {
        passed = passed.then(() => sleep(bytes.length / bytesPerMs)).then(send)
      }
    })
    upstream.on('data', (bytes) => {
      if (!droppingAnswers) later(() => void (client.destroyed || client.write(bytes)))
    })
    client.on('error', () => {})
    upstream.on('error', () => {})
    client.on('close', () => {
      if (link.keepUpstream) return
      links.delete(link)
      upstream.destroy()
    })
    upstream.on('close', () => {
      links.delete(link)
      client.destroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  const cut = (keepUpstream: boolean): void => {
    for (const link of links) {
      link.keepUpstream = keepUpstream
      link.client.destroy()
    }
  }
  return {
    port: (server.address() as AddressInfo).port,
    holdRequests: () => (holdingRequests = true),
    release() {
      holdingRequests = false
      for (const send of held.splice(0)) send()
    },
    takeHeld() {
      holdingRequests = false
      const taken = held.splice(0)
      return () => taken.forEach((send) => send())
    },
    dropAnswers: () => (droppingAnswers = true),
    deliverAnswers: () => (droppingAnswers = false),
    cut: (options) => cut(options?.keepUpstream ?? false),
    refuse() {
      refusing = true
      cut(false)
    },
    accept: () => (refusing = false),
    delay: (ms) => (delayMs = ms),
    throttle: (most) => (bytesPerMs = most),
    get connections() {
      return connections
    },
    get holding() {
      return held.length
    },
    async close() {
      for (const { client, upstream } of links) {
        client.destroy()
        upstream.destroy()
      }
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
