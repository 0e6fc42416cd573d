// A process that commits prepared writes one after another. At the given step it stops (SIGSTOP) or dies (SIGKILL).
// Messages in: {id, prepared, at?: {step, nth, signal}}; out: {id, said: 'stopping'} and {id, said: 'done', committed | error}.
import { createFileFactsCache } from '../../dist/connectors/lake/file-facts.js'
import { createLakeFolders } from '../../dist/connectors/lake/lake-folders.js'
import { createLakeWriter } from '../../dist/connectors/lake/lake-writer.js'

const location = process.argv[2]
const noDuckDb = () => Promise.reject(new Error('no plain files here'))
let order
const seen = new Map()

const writer = createLakeWriter({
  catalog: 'lake',
  location,
  folders: createLakeFolders(location),
  cache: createFileFactsCache(location, noDuckDb),
  duckdbType: (type) => type,
  async onStep(step) {
    const nth = (seen.get(step) ?? 0) + 1
    seen.set(step, nth)
    if (order?.at?.step !== step || order.at.nth !== nth) return
    await new Promise((resolve) => process.send({ id: order.id, said: 'stopping' }, resolve))
    process.kill(process.pid, order.at.signal)
    // The signal arrives a moment later.
    await new Promise((resolve) => setTimeout(resolve, 20))
  },
})

process.on('message', async (message) => {
  order = message
  seen.clear()
  try {
    process.send({ id: message.id, said: 'done', committed: await writer.commit(message.prepared) })
  } catch (error) {
    process.send({ id: message.id, said: 'done', error: String(error) })
  }
})
process.on('disconnect', () => process.exit())
process.send({ said: 'ready' })
