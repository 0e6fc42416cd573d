// What the encryption of a query's data costs: CPU of one event sealed and opened, with a key of its own and in the clear.
import { KeyTree } from '../dist/events/data-keys/key-tree.js'
import { keyNameInText, openData, sealEvent } from '../dist/events/envelope.js'
import { randomBytes } from 'node:crypto'

const tree = new KeyTree(20, new Map([['', randomBytes(32)]]))
const at = {
  stream: '20261121_192137_00003_00001',
  sequence: 1,
  epoch: 1,
  time: '2026-11-21T19:21:37.000Z',
  prevhash: '',
}
const key = { name: 'AbCdEfGh.17', secret: tree.key(17) }
const cipher = { keyFor: () => key, keyOf: () => key.secret }
const eventOf = (bytes) => ({ type: 'TaskFinished', v: 1, time: at.time, data: { text: 'x'.repeat(bytes) } })

/** Microseconds of CPU a call, the best of five runs. */
function cost(work, times = 20_000) {
  let best = Infinity
  for (let run = 0; run < 5; run++) {
    const before = process.cpuUsage()
    for (let time = 0; time < times; time++) work(time)
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / times)
  }
  return best
}

const show = (what, micros) => console.log(`${what.padEnd(44)} ${micros.toFixed(1).padStart(7)} µs`)
for (const bytes of [300, 1500, 20_000]) {
  const event = eventOf(bytes)
  const clear = sealEvent(event, at).envelope
  const encrypted = sealEvent(event, at, cipher).envelope
  const text = JSON.stringify(encrypted)
  console.log(`an event of ${bytes} bytes of data`)
  const sealed = [cost(() => sealEvent(event, at)), cost(() => sealEvent(event, at, cipher))]
  show('  sealed in the clear', sealed[0])
  show('  sealed with a key', sealed[1])
  show('  encryption', sealed[1] - sealed[0])
  show('  decryption', cost(() => openData(at.stream, encrypted, cipher)) - cost(() => openData(at.stream, clear)))
  show(
    '  name of the key found in its text',
    cost(() => keyNameInText(text)),
  )
}
show(
  'a key, in order',
  cost((time) => tree.key(time)),
)
show(
  'a key, anywhere',
  cost((time) => tree.key((time * 7919) % (1 << 20))),
)
