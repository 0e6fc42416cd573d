import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { connectToParent, listenForEngine, type EngineChannel } from '../../../src/execution/engine/engine-channel.ts'
import { waitUntil } from '../../support/quipu-process.ts'

let folder: string
let channel: EngineChannel
let open: Set<Socket>
let said: { replies: string; beats: string }
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'quipu-channel-'))
  open = new Set()
  said = { replies: '', beats: '' }
  channel = listenForEngine(folder, {
    onReplies: (bytes) => (said.replies += bytes.toString()),
    onBeats: (bytes) => (said.beats += bytes.toString()),
  })
})
afterEach(() => {
  channel.close()
  for (const socket of open) socket.destroy()
  rmSync(folder, { recursive: true, force: true })
})

function hold(socket: Socket): Socket {
  open.add(socket)
  socket.on('error', () => undefined).on('close', () => open.delete(socket))
  return socket.resume()
}

it('The engine channel keeps its two connections and closes a third one', async () => {
  const engine = [connectToParent(folder, 'requests'), connectToParent(folder, 'beats')].map(hold)
  engine[0]!.write('reply')
  engine[1]!.write('beat')
  await waitUntil('both are heard', () => said.replies === 'reply' && said.beats === 'beat')
  const late = hold(connect(join(folder, 'channel')))
  await waitUntil('it is turned away', () => !open.has(late))
  channel.send(Buffer.from('request'))
  const [heard] = (await once(engine[0]!, 'data')) as [Buffer]
  expect(heard.toString()).toBe('request')
  expect(open.size).toBe(2)
})

it('The engine channel keeps at most 4 connections that do not identify themselves', async () => {
  for (let number = 0; number < 40; number++) hold(connect(join(folder, 'channel')))
  await waitUntil('the rest is turned away', () => open.size <= 4)
  channel.close()
  for (const socket of open) socket.destroy()
})
