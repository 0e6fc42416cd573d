import { z } from 'zod'
import type { ReplayBeginning, ReplayReport } from '../protocol/replay/replay-report.ts'
import type { VerdictCounts } from '../replay/replay-line.ts'
import { REPLAY_SOURCE } from '../replay/replay-source.ts'
import { askCalled, type CalledServer } from './called-server.ts'
import { reasonOf } from './statement-client.ts'

/** Reports the replay to the server with the record. */
export interface ReplayRecord {
  /** Reports the verdicts so far, unless that was done recently. Nothing waits for it. */
  progress(counts: VerdictCounts): void
  /** @throws Error with one line when the server does not accept it */
  end(counts: VerdictCounts, outcome: NonNullable<ReplayReport['outcome']>): Promise<void>
}

const beginningSchema = z.object({ replayId: z.string() })
const BETWEEN_MS = 10_000
const LONGEST_MS = 10_000

/** Records the replay before any statement runs. @throws Error with one line when the server does not record it */
export async function beginRecord(server: CalledServer, beginning: ReplayBeginning): Promise<ReplayRecord> {
  const { replayId } = beginningSchema.parse(JSON.parse(await sendReport(server, 'POST', '/v1/replay', beginning)))
  let reportedAt = performance.now()
  let sending: Promise<unknown> = Promise.resolve()
  const report = (body: ReplayReport) => sendReport(server, 'PUT', `/v1/replay/${replayId}`, body)
  return {
    progress(verdicts) {
      const now = performance.now()
      if (now - reportedAt < BETWEEN_MS) return
      reportedAt = now
      // Later reports, and the end, include all verdicts.
      sending = report({ verdicts: { ...verdicts } }).catch(() => {})
    },
    async end(verdicts, outcome) {
      await sending
      await report({ verdicts, outcome })
    },
  }
}

async function sendReport(
  server: CalledServer,
  method: 'POST' | 'PUT',
  target: string,
  body: unknown,
): Promise<string> {
  const { status, text } = await askCalled(server, REPLAY_SOURCE, target, {
    method,
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
    signal: AbortSignal.timeout(LONGEST_MS),
  })
  if (status === 200 || status === 204) return text
  throw new Error(`${new URL(server.url).origin} does not record the replay, answered ${status}: ${reasonOf(text)}`)
}
