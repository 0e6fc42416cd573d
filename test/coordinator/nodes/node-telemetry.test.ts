import { expect, it } from 'vitest'
import type { NodeEvent } from '../../../src/coordinator/nodes/events.ts'
import { createNodeEvents } from '../../../src/coordinator/nodes/node-telemetry.ts'
import { parseNodeId } from '../../../src/shared/ids.ts'
import { createPendingMeters } from '../../../src/telemetry/meters.ts'

it('node telemetry logs worker.joined for the first join, and again only after the worker was lost', () => {
  const lines: string[] = []
  const line = (level: string) => (name: string) => void lines.push(`${level} ${name}`)
  const logger = { info: line('info'), warn: line('warn'), error: line('error'), bind: () => {} }
  const report = createNodeEvents(createPendingMeters, logger)
  const happens = (type: NodeEvent['type'], reason = 'no_answer'): void =>
    report({ type, data: { nodeId: parseNodeId('w1'), url: 'http://w1', reason } } as NodeEvent)
  for (const type of ['NodeJoined', 'NodeJoined', 'NodeSuspected', 'NodeRecovered'] as const) happens(type)
  expect(lines).toEqual(['info worker.joined'])
  happens('NodeFailed')
  happens('NodeRecovered')
  happens('NodeLeft', 'left')
  happens('NodeJoined')
  expect(lines.slice(1)).toEqual(['warn worker.lost', 'info worker.joined', 'info worker.lost', 'info worker.joined'])
})
