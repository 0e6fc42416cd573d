/** Program of a thread that delivers messages to the destination of the settings. */
import { parentPort, workerData } from 'node:worker_threads'
import { destinationOf, type DestinationSettings } from './destination.ts'
import type { ThreadTask } from './threaded-destination.ts'

const port = parentPort
if (!port) throw new Error('this is the program of a thread')
const destination = await destinationOf(workerData as DestinationSettings)

port.on('message', (task: ThreadTask) => {
  if (task === 'close') return void destination.close().then(() => port.close())
  void destination.deliver(task).then((delivery) => port.postMessage(delivery))
})
