import { lookup } from 'node:dns/promises'
import * as net from 'node:net'
import { isIP } from 'node:net'
import { getSystemErrorName } from 'node:util'

/** A bound socket that this process holds and never accepts on. */
export interface ListeningSocket {
  /** The handle that `child.send` passes on and `server.listen` takes. */
  readonly handle: unknown
  readonly url: string
  close(): void
}

interface TcpHandle {
  getsockname(out: { address?: string; port?: number }): number
  close(): void
}

/** Node's way to bind without listening, as its cluster module does. It is undocumented, hence the cast. */
const { _createServerHandle: createServerHandle } = net as unknown as {
  _createServerHandle(address: string, port: number, addressType: number): TcpHandle | number
}

/**
 * Binds a TCP socket. It begins to listen when the first child does. From then on the kernel queues connections,
 * whatever happens to the children.
 * @param scheme scheme of the address that it reports
 * @throws Error with one line when the port is taken or the address does not belong to this machine
 */
export async function bindSocket(scheme: 'http' | 'https', host: string, port: number): Promise<ListeningSocket> {
  const { address, family } =
    isIP(host) === 0
      ? await lookup(host).catch(() => {
          throw new Error(`Cannot listen on ${host}: the host is unknown`)
        })
      : { address: host, family: isIP(host) }
  const handle = createServerHandle(address, port, family)
  if (typeof handle === 'number') throw cannotListen(host, port, handle)
  const bound: { address?: string; port?: number } = {}
  // libuv reports "address in use" only at the first use of the socket, so this asks for its name.
  const error = handle.getsockname(bound)
  if (error !== 0) {
    handle.close()
    throw cannotListen(host, port, error)
  }
  const shown = address === '0.0.0.0' || address === '::' ? 'localhost' : family === 6 ? `[${address}]` : address
  return { handle, url: `${scheme}://${shown}:${bound.port}`, close: () => handle.close() }
}

function cannotListen(host: string, port: number, error: number): Error {
  const name = getSystemErrorName(error)
  if (name === 'EADDRINUSE') return new Error(`Port ${port} of ${host} is taken: choose another port with --port`)
  if (name === 'EACCES')
    return new Error(`This user may not listen on port ${port} of ${host}: choose a port above 1023`)
  if (name === 'EADDRNOTAVAIL') return new Error(`Cannot listen on ${host}: it is not an address of this machine`)
  return new Error(`Cannot listen on ${host}:${port}: ${name}`)
}
