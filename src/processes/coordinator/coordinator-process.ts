import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import { runChild } from '../child-life.ts'
import { requestTarget } from '../../protocol/edge/request-target.ts'
import { createGatedServer } from '../gated-server.ts'
import { version } from '../../shared/version.ts'
import { hasCode } from '../../shared/node-error.ts'

/** The coordinator's program. It accepts connections before it loads its parts, because loading takes longest. */
runChild(async (life) => {
  const startedAt = performance.now()
  const info = () => ({
    nodeVersion: { version },
    environment: life.config.environment,
    coordinator: true,
    starting: true,
    uptime: `${((performance.now() - startedAt) / 1000).toFixed(2)}s`,
  })
  const gate = createGatedServer(
    life.config,
    (request, response) => {
      if (requestTarget(request).path !== '/v1/info' || request.method !== 'GET') return false
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify(info()))
      return true
    },
    life.identity,
  )
  await gate.listen(await life.sockets).catch((error: unknown) => {
    if (!hasCode(error, 'EADDRINUSE')) throw error
    throw new ExitError(exitCodes.dependency, `The address ${life.url} is taken: choose another port with --port`)
  })

  const { startCoordinator } = await import('./start-coordinator.ts')
  const coordinator = await startCoordinator(life, info, gate)
  life.ready()
  return {
    stop: async () => {
      await coordinator.drain()
      await gate.close()
      await coordinator.stop()
    },
  }
})
