// Carries out an erasure in a process that may die. It lists each lasting effect before it happens: statements that write to the log or to
// the tables of erasures and archives, and changes of files. At a given effect it sends itself SIGKILL; of a file it has then written half.
// Argument: {database, root, secret, id, kill?: {effect, nth}}. Messages: {effects} and {result}.
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { basename, dirname } from 'node:path'
import pg from 'pg'

const { database, root, secret, id, kill } = JSON.parse(process.argv[2])
const effects = []
let isErasing = false

function before(effect) {
  if (!isErasing) return
  effects.push(effect)
  if (kill?.effect === effect && kill.nth === effects.filter((one) => one === effect).length) die()
}

function die() {
  process.kill(process.pid, 'SIGKILL')
  // The signal arrives a moment later.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

/** The effects of statements, by a text that they contain. */
const STATEMENTS = [
  ['insert into quipu_log.events', ({ values }) => `append ${/"type":"(\w+)"/.exec(values[7])?.[1] ?? 'claim'}`],
  ['update quipu_log.events', () => 'forget the rows'],
  ['delete from quipu_log.result_pages', () => 'forget the pages'],
  ['update quipu_log.erasures set working', () => 'store the queries at work'],
  ['update quipu_log.erasures set progress', () => 'store the progress'],
  ['update quipu_log.erasures set ended_at', () => 'store the result'],
  ['update quipu_log.query_periods', () => 'count the new folder of rows'],
  ['update quipu_log.queries_forgotten', () => 'store that rows are forgotten'],
]

const query = pg.Client.prototype.query
pg.Client.prototype.query = function (...given) {
  const text = typeof given[0] === 'string' ? given[0] : (given[0]?.text ?? '')
  const values = given[0]?.values ?? given[1] ?? []
  for (const [part, effect] of STATEMENTS) if (text.includes(part)) before(effect({ values }))
  const isArchive = this.connectionParameters.application_name === 'quipu query archive'
  if (isArchive && text === 'commit') before('commit the folders of rows')
  return query.apply(this, given)
}

/** The name of a file or folder without what differs from run to run. */
function kindOf(path) {
  const name = basename(path)
  if (basename(dirname(path)) === 'queries') return 'folder of rows'
  return name.replace(/^(\d+-\d+)(-[0-9a-f]{16})?\.jsonl\.gz$/, (_, at, digest) => (digest ? 'new segment' : 'segment'))
}

for (const name of ['rename', 'unlink', 'rm']) {
  const change = fs[name]
  fs[name] = async (...given) => {
    before(`${name} ${kindOf(given[0])}`)
    return change(...given)
  }
}
const open = fs.open
fs.open = async (path, flags, ...given) => {
  const file = await open(path, flags, ...given)
  if (flags !== 'w') return file
  const write = file.writeFile.bind(file)
  file.writeFile = async (bytes) => {
    if (kill?.effect === `write ${kindOf(path)}`)
      await file.write(Buffer.from(bytes).subarray(0, bytes.length >> 1), 0, undefined, 0)
    before(`write ${kindOf(path)}`)
    return write(bytes)
  }
  return file
}
syncBuiltinESMExports()

const dist = new URL('../../dist/', import.meta.url).href
const { loadConfig } = await import(`${dist}config/load-config.js`)
const { createSystemJournal } = await import(`${dist}coordinator/system/system-journal.js`)
const { carryOut } = await import(`${dist}erasure/erase.js`)
const { createPostgresEventLog } = await import(`${dist}events/postgres/postgres-event-log.js`)
const { createProjectionRunner } = await import(`${dist}events/projection-runner.js`)
const { archivesOf } = await import(`${dist}processes/event-log/archives-of.js`)
const { openErasing } = await import(`${dist}processes/event-log/erasing.js`)
const { createReadModelsProjection } = await import(`${dist}readmodels/projection.js`)
const { systemClock } = await import(`${dist}shared/clock.js`)

const config = loadConfig(['--data-dir', root, '--archive-folder', `${root}/archive`], {})
const connection = { connectionString: database }
const log = createPostgresEventLog(connection, { archiveOf: archivesOf(config) })
await log.open()
await log.claim({ address: 'http://127.0.0.1:8080', version: 'test' })
const projection = createReadModelsProjection()
const runner = createProjectionRunner({ log, projection, database: connection, clock: systemClock, lingerMs: 5 })
await runner.start()
const erasing = openErasing({ config, secret, connection, log })
const deps = erasing.deps({ journal: createSystemJournal(log, systemClock), projected: () => runner.barrier(60_000) })
const prove = (...given) => {
  before('prove')
  return deps.prove(...given)
}
isErasing = true
const result = await carryOut({ ...deps, prove, waitMs: 0 }, id)
process.send({ effects })
process.send({ result }, () => process.exit())
