import { Agent, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { createGatedServer, type GatedServer } from '../../src/cli/gated-server.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { waitUntil } from '../support/quipu-process.ts'

async function listening(gate: GatedServer): Promise<number> {
  await new Promise<void>((resolve) => gate.server.listen(0, '127.0.0.1', resolve))
  return (gate.server.address() as AddressInfo).port
}

function get(port: number, path: string, agent?: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', path, ...(agent && { agent }) }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => (text += part))
      response.once('end', () => resolve(text))
    })
    sent.once('error', reject)
    sent.end()
  })
}

it('answers what waited before it was open, and what may be answered early at once', async () => {
  const gate = createGatedServer(loadConfig([], {}), (request, response) => {
    if (request.url !== '/early') return false
    response.end('early')
    return true
  })
  const port = await listening(gate)
  const waiting = get(port, '/late')
  expect(await get(port, '/early')).toBe('early')
  gate.open((request, response) => response.end(`open ${request.url}`))
  expect(await waiting).toBe('open /late')
  expect(await get(port, '/early')).toBe('open /early')
  await gate.close()
})

it('closes when the answers under way are out, although their clients keep connections', async () => {
  const gate = createGatedServer(loadConfig([], {}), () => false)
  const port = await listening(gate)
  let answer = () => {}
  gate.open((_request, response) => (answer = () => response.end('at last')))
  const agent = new Agent({ keepAlive: true })
  const waiting = get(port, '/', agent)
  await new Promise((resolve) => gate.server.once('request', resolve))
  const closed = gate.close()
  answer()
  expect(await waiting).toBe('at last')
  await closed
  await expect(get(port, '/')).rejects.toThrow('ECONNREFUSED')
  agent.destroy()
})

it('closes although a client goes on asking on the same connection', async () => {
  const gate = createGatedServer(loadConfig([], {}), () => false)
  const port = await listening(gate)
  gate.open((_request, response) => void setTimeout(() => response.end('again'), 5))
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let answers = 0
  const polling = (async () => {
    for (;;) {
      await get(port, '/', agent)
      answers++
    }
  })()
  await waitUntil('the client polls', () => answers > 3)
  await gate.close()
  // Reset: the request crossed the end of its idle connection.
  await expect(polling).rejects.toThrow(/ECONNREFUSED|ECONNRESET|socket hang up/)
  agent.destroy()
})
