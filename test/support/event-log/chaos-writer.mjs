// Claims the log when possible and appends until it is fenced, then follows and claims again. Reports each acknowledgement.
import { Fenced, SequenceConflict } from '../../../dist/events/event-log.js'
import { KafkaStoreBesidePostgres } from '../../../dist/events/kafka-beside-postgres.js'
import { FoldedEventLog } from '../../../dist/events/folded-event-log.js'
import { PostgresRecordStore } from '../../../dist/events/postgres/postgres-record-store.js'
import { connect } from 'node:net'

const config = JSON.parse(process.argv[2])
const through = ({ onConnect }) => connect({ host: '127.0.0.1', port: config.proxyPort }, onConnect)
const log = new FoldedEventLog(
  config.technology === 'postgres'
    ? new PostgresRecordStore(config.connection)
    : new KafkaStoreBesidePostgres({ ...config.kafka, socketFactory: through }),
)
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
let n = 0

async function writeTo(stream) {
  for (let expected = 0; ;) {
    const count = 1 + Math.floor(Math.random() * 3)
    const time = new Date().toISOString()
    const events = Array.from({ length: count }, () => ({
      type: 'ChaosHappened',
      v: 1,
      time,
      data: { by: process.pid, n: ++n },
    }))
    try {
      const appended = await log.append(stream, expected, events)
      expected += count
      process.send({
        acknowledged: appended.events.map(({ position, hash }) => ({
          partition: position.partition,
          offset: String(position.offset),
          hash,
        })),
      })
    } catch (error) {
      if (error instanceof SequenceConflict) expected = error.actual
      else if (error instanceof Fenced) return
      else throw error
    }
    if (Math.random() < 0.3) await sleep(Math.random() * 30)
  }
}

process.on('disconnect', () => process.exit())
for (;;) {
  try {
    await log.open()
    break
  } catch {
    await sleep(100)
  }
}
for (;;) {
  try {
    const epoch = await log.claim({ address: 'http://chaos', version: '0' })
    process.send({ claimed: epoch })
    await Promise.all(Array.from({ length: 12 }, (_, stream) => writeTo(`s${stream}`)))
    process.send({ fenced: epoch })
    await sleep(400 + Math.random() * 1500)
  } catch (error) {
    if (!(error instanceof Fenced)) throw error
    await sleep(Math.random() * 800)
  }
}
