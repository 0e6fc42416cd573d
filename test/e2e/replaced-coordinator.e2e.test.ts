import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { processesOf, waitUntil } from '../support/quipu-process.ts'
import { serverOfFile } from '../support/server-of-file.ts'

const server = serverOfFile('error', () => ({
  QUIPU_COORDINATOR_DEAD_MS: '3s',
  QUIPU_RESTART_BACKOFF_MAX_MS: '200ms',
}))

/** Starts clients that send one request after the other, each on a new connection, and counts how the requests end. */
function startClients(count: number) {
  const answers = { answered: 0, cut: 0, refused: [] as string[] }
  let stopping = false
  const running = Array.from({ length: count }, async () => {
    while (!stopping) {
      const end = await once()
      if (end === 'answered' || end === 'cut') answers[end]++
      else answers.refused.push(end)
    }
  })
  return {
    answers,
    stop: async () => {
      stopping = true
      await Promise.all(running)
    },
  }
}

/**
 * Sends one request on a new connection. `cut`: the killed process had accepted the connection. `ECONNREFUSED` must
 * never happen; a wait of minutes would be as bad.
 */
function once(): Promise<string> {
  return new Promise((resolve) => {
    const sent = request(`${server.url}/v1/info`, { agent: false, timeout: 240_000 }, (response) => {
      response.resume()
      response.once('end', () => resolve(response.statusCode === 200 ? 'answered' : `status ${response.statusCode}`))
      response.once('error', () => resolve('cut'))
    })
    sent.once('timeout', () => sent.destroy(new Error('no answer')))
    sent.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNRESET' ? 'cut' : error.message))
    sent.end()
  })
}

/** Processes of this supervisor that run the program of the coordinator. */
function coordinators(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
        const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        const program = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        return state !== 'Z' && Number(parent) === server.process.pid && program.includes('coordinator-process')
      } catch {
        return false
      }
    })
}

async function another(than: number): Promise<number> {
  await waitUntil('another coordinator is ready', async () => {
    const now = processesOf(server.data).children[0]
    if (now === undefined || now === than || coordinators()[0] !== now) return false
    const response = await fetch(`${server.url}/v1/info`).catch(() => undefined)
    return ((await response?.json()) as { starting: boolean } | undefined)?.starting === false
  })
  return processesOf(server.data).children[0]!
}

describe('A coordinator that is killed or hangs', () => {
  it('is replaced six times in a row, and no request is refused', { timeout: 240_000 }, async () => {
    const clients = startClients(4)
    let most = 0
    const watch = setInterval(() => (most = Math.max(most, coordinators().length)), 25)
    let coordinator = processesOf(server.data).children[0]!
    for (let kill = 0; kill < 6; kill++) {
      const before = clients.answers.answered
      process.kill(coordinator, 'SIGKILL')
      coordinator = await another(coordinator)
      await waitUntil('requests are answered again', () => clients.answers.answered > before + 4)
    }
    await clients.stop()
    clearInterval(watch)
    expect(clients.answers.refused).toEqual([])
    expect(clients.answers.answered).toBeGreaterThan(24)
    expect(most).toBe(1)
  })

  it('is replaced if it hangs, and its successor answers the waiting request', { timeout: 240_000 }, async () => {
    const coordinator = processesOf(server.data).children[0]!
    process.kill(coordinator, 'SIGSTOP')
    const waiting = once()
    const next = await another(coordinator)
    expect(await waiting).toBe('answered')
    expect(coordinators()).toEqual([next])
    await waitUntil('the metrics tell of it', async () => {
      const text = await (await fetch(`${server.url}/metrics`)).text()
      return /quipu_process_restarts_total\{process="coordinator",reason="hang"\} [1-9]/.test(text)
    })
    expect(server.process.stderr()).toContain('coordinator has been silent for 3000 ms: killing it')
  })

  it(
    'does not end the worker when it is killed, and a killed worker does not end the coordinator',
    { timeout: 240_000 },
    async () => {
      const [coordinator, worker] = processesOf(server.data).children as [number, number]
      process.kill(worker, 'SIGKILL')
      await waitUntil('another worker runs', () => {
        const { children } = processesOf(server.data)
        return children.length === 2 && children[1] !== worker
      })
      expect(processesOf(server.data).children[0]).toBe(coordinator)
      const after = processesOf(server.data).children[1]
      process.kill(coordinator, 'SIGKILL')
      await another(coordinator)
      expect(processesOf(server.data).children[1]).toBe(after)
    },
  )
})
