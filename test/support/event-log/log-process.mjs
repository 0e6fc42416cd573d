// An event log of the built program in a process that tests stop and kill. Commands arrive over IPC.

import { FoldedEventLog } from '../../../dist/events/folded-event-log.js'
import { fold } from '../../../dist/events/fold.js'
import { PartitionWriter } from '../../../dist/events/partition-writer.js'
import { PostgresRecordStore } from '../../../dist/events/postgres/postgres-record-store.js'

const config = JSON.parse(process.argv[2])
let armed

/** Signals this process when it passes the armed point. */
function pass(point) {
  if (armed?.point !== point) return
  const { signal } = armed
  armed = undefined
  process.kill(process.pid, signal)
}

class StoppingWriter extends PartitionWriter {
  async onLanded(at, batch) {
    await super.onLanded(at, batch)
    pass('after-fold')
  }
}

let halved = 0

/** Sends an append in two parts, which a log must never do. */
async function putInHalves(store, batch) {
  const half = batch.records.length >> 1
  if (half === 0) return store.put(batch)
  const first = await store.put({ ...batch, records: batch.records.slice(0, half) })
  if (first.kind !== 'landed') return first
  // This is the longest part of every append but the first, so a kill at a random time hits it.
  await new Promise((resolve) => setTimeout(resolve, halved++ === 0 ? 0 : 2000))
  let { offset, state } = batch.seen
  for (const { number, hash } of batch.records.slice(0, half)) {
    const { kind, epoch, writer, seen } = batch
    state = fold(state, { header: { kind, epoch, writer, number, seen }, hash }).state
    offset++
  }
  const second = await store.put({
    ...batch,
    seen: { offset, state },
    records: batch.records.slice(half),
    pages: [],
    newStreams: [],
  })
  return second.kind === 'landed' ? first : second
}

function stopping(store) {
  const put = async (batch) => {
    if (batch.kind === 'epoch') {
      const outcome = await store.put(batch)
      pass('claim-record')
      return outcome
    }
    pass('before-send')
    const sent = config.split ? putInHalves(store, batch) : store.put(batch)
    if (armed?.point === 'after-send') setTimeout(() => pass('after-send'), 1)
    const outcome = await sent
    pass('after-ack')
    return outcome
  }
  return new Proxy(store, {
    get(target, key) {
      if (key === 'put') return put
      const value = target[key]
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

async function createStore() {
  if (config.technology === 'postgres') return new PostgresRecordStore(config.connection)
  const { KafkaStoreBesidePostgres } = await import('../../../dist/events/kafka-beside-postgres.js')
  const pages = { ...config.kafka.pages, key: Buffer.from(config.kafka.pages.key.data) }
  return new KafkaStoreBesidePostgres({ ...config.kafka, pages })
}

const log = new FoldedEventLog(
  stopping(await createStore()),
  {},
  { createWriter: (parts, partition) => new StoppingWriter(parts, partition) },
)

async function run(command) {
  switch (command.do) {
    case 'arm':
      armed = command
      return ''
    case 'claim':
      return String(await log.claim({ address: 'http://process', version: '0' }))
    case 'append': {
      const pages = command.pages.map((page) => ({ token: page.token, bytes: Buffer.from(page.text) }))
      const { beside } = await log.keepPages(command.stream, pages)
      const { offset } = await log.append(command.stream, command.expected, command.events, beside)
      pass('before-answer')
      return String(offset)
    }
  }
}

process.on('message', (command) => {
  run(command).then(
    (value) => process.send({ id: command.id, answer: { ok: true, value } }),
    (error) => process.send({ id: command.id, answer: { ok: false, error: error.name } }),
  )
})
process.on('disconnect', () => process.exit())
await log.open()
process.send({ ready: true })
