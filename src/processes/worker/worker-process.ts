import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import { runChild } from '../child-life.ts'
import { schemeOf } from '../../config/load-config.ts'
import { createGatedServer } from '../gated-server.ts'

/** The worker's program. It listens on its own: its address is announced, not fixed. */
runChild(async (life) => {
  const { host, port } = life.config
  const gate = createGatedServer(life.config, () => false, life.identity)
  await gate.listen([{ host, port }]).catch((error: Error) => {
    throw new ExitError(exitCodes.dependency, `The worker cannot listen on ${host}:${port}: ${error.message}`)
  })
  const address = gate.server.address()
  const bound = typeof address === 'object' && address !== null ? address.port : port
  const url =
    life.config.advertisedUrl ?? `${schemeOf(life.config)}://${host.includes(':') ? `[${host}]` : host}:${bound}`

  const { wireWorker } = await import('./wire-worker.ts')
  const worker = await wireWorker(life, url, gate)
  gate.open(worker.listener)
  life.ready()
  return {
    stop: async () => {
      await worker.drain()
      await gate.close()
      await worker.stop()
    },
  }
})
