import { createServer, connect, type Server } from 'node:net'
import { describe, expect, it } from 'vitest'
import { bindSocket } from '../../src/supervisor/listening-socket.ts'

/** Accepts on the handle as a child does, and closes only its own copy. */
function accept(handle: unknown): Promise<Server> {
  const server = createServer((socket) => socket.end())
  return new Promise((resolve) => server.listen(handle as object, () => resolve(server)))
}

function reach(url: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname.replace(/^\[|\]$/g, ''), () => socket.destroy())
    socket.once('close', (failed) => resolve(failed ? 'failed' : 'reached'))
    socket.once('error', () => {})
  })
}

describe('The listening socket', () => {
  it.each(['127.0.0.1', '::1', 'localhost'])('is bound on %s, and its URL reaches it', async (host) => {
    const socket = await bindSocket('http', host, 0)
    const server = await accept(socket.handle)
    expect(await reach(socket.url)).toBe('reached')
    server.close()
    socket.close()
  })

  it('has a URL with localhost if it is bound to all addresses', async () => {
    const socket = await bindSocket('http', '0.0.0.0', 0)
    expect(socket.url).toMatch(/^http:\/\/localhost:\d+$/)
    socket.close()
  })

  it.each([
    ['no.such.host.invalid', 0, 'Cannot listen on no.such.host.invalid: the host is unknown'],
    ['192.0.2.1', 0, 'Cannot listen on 192.0.2.1: it is not an address of this machine'],
  ])('says why it cannot be bound on %s', async (host, port, line) => {
    await expect(bindSocket('http', host, port)).rejects.toThrow(line)
  })

  it('says that a port is taken', async () => {
    const socket = await bindSocket('http', '127.0.0.1', 0)
    const server = await accept(socket.handle)
    const { port } = new URL(socket.url)
    await expect(bindSocket('http', '127.0.0.1', Number(port))).rejects.toThrow(`Port ${port} of 127.0.0.1 is taken`)
    server.close()
    socket.close()
  })
})
