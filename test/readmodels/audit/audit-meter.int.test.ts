import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { observeAudits } from '../../../src/readmodels/audit/audit-meter.ts'
import type { Finding } from '../../../src/events/audit/finding.ts'
import { recordAuditRun } from '../../../src/readmodels/audit/audit-runs.ts'
import { createMeters } from '../../../src/telemetry/meters.ts'
import { openReadModelBed, type ReadModelBed } from '../../support/read-models.ts'

let bed: ReadModelBed
beforeEach(async () => {
  bed = await openReadModelBed()
})
afterEach(() => bed.close())

const found = (...kinds: Finding['kind'][]): Finding[] => kinds.map((kind) => ({ kind, what: 'something' }))

async function scraped(): Promise<() => Promise<string>> {
  const meters = await createMeters({ on: 'coordinator', processMetrics: false })
  observeAudits((text, values) => bed.query(text, [...values]), meters, new Map())
  return async () => (await meters.text()).body
}

describe('The metrics of audits', () => {
  it('show the time of the last audit without findings, and nothing before the first one', async () => {
    const page = await scraped()
    expect(await page()).not.toMatch(/^quipu_audit_verified_timestamp_seconds /m)
    await recordAuditRun(bed.config, found('data'))
    expect(await page()).not.toMatch(/^quipu_audit_verified_timestamp_seconds /m)
    await recordAuditRun(bed.config, [])
    const [, at] = /^quipu_audit_verified_timestamp_seconds (\S+)$/m.exec(await page())!
    expect(Math.abs(Number(at) - Date.now() / 1000)).toBeLessThan(3600)
  })

  it('count each finding once by its kind, also after a restart', async () => {
    const page = await scraped()
    await recordAuditRun(bed.config, found('data', 'chain', 'query-with-two-ends'))
    await page()
    await recordAuditRun(bed.config, found('data'))
    for (const text of [await page(), await (await scraped())()]) {
      expect(text).toContain('quipu_audit_findings_total{kind="data"} 2')
      expect(text).toContain('quipu_audit_findings_total{kind="query-with-two-ends"} 1')
      expect(text).toContain('quipu_audit_findings_total{kind="unknown-key"} 0')
    }
  })
})
