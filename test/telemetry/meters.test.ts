import { describe, expect, it } from 'vitest'
import { createMeters, createPendingMeters } from '../../src/telemetry/meters.ts'
import { parseOpenMetrics } from '../support/openmetrics.ts'
import { metricNames } from '../../src/telemetry/metric-names.ts'

const meters = (on: 'coordinator' | 'worker' = 'coordinator') => createMeters({ on, processMetrics: false })

describe('meters', () => {
  it('write every metric of their process under its name, unit and type', async () => {
    const { contentType, body } = await (await meters()).text()
    expect(contentType).toContain('openmetrics')
    for (const definition of Object.values(metricNames)) {
      const family = definition.text.replace(/_total$/, '')
      const there = body.includes(`# TYPE ${family} ${definition.kind}`)
      expect(there, definition.text).toBe(definition.on !== 'worker')
    }
    expect(body.trimEnd().endsWith('# EOF')).toBe(true)
  })

  it('fold what a closed label does not list into other, and count that', async () => {
    const one = await meters()
    one.count('polls', { result: 'data' })
    one.count('polls', { result: 'made up' })
    const { body } = await one.text()
    expect(body).toContain('quipu_polls_total{result="data"} 1')
    expect(body).toContain('quipu_polls_total{result="other"} 1')
    expect(body).toContain('quipu_label_overflow_total{label="result"} 1')
    expect(body).not.toContain('made up')
  })

  it('keep an open label within its number of values', async () => {
    const one = await meters()
    for (let user = 0; user < 100; user++) one.count('userQueries', { user: `user${user}` })
    const { body } = await one.text()
    const series = body.split('\n').filter((line) => line.startsWith('quipu_user_queries_total{'))
    expect(series).toHaveLength(21)
    expect(series).toContain('quipu_user_queries_total{user="other"} 80')
  })

  it('begin a counter with closed labels at 0, so that its first increase shows', async () => {
    const { body } = await (await meters()).text()
    expect(body).toContain('quipu_audit_findings_total{kind="chain"} 0')
  })

  it('say nothing with a gauge that was not set: 0 would be a statement', async () => {
    const one = await meters()
    expect((await one.text()).body).not.toMatch(/^quipu_audit_verified_timestamp_seconds /m)
    one.set('writer', {}, 0)
    expect((await one.text()).body).toMatch(/^quipu_writer 0$/m)
  })

  it('write no number that a strict reader refuses, however fast scrapes follow each other', async () => {
    const one = await createMeters({ on: 'coordinator', processMetrics: true })
    one.set('recoveryDuration', {}, Number.NaN)
    await one.text()
    const { body } = await one.text()
    expect(() => parseOpenMetrics(body)).not.toThrow()
    expect(body).toMatch(/^quipu_recovery_duration_seconds NaN$/m)
  })

  it('answer a scrape although a collector fails', async () => {
    const one = await meters()
    one.onScrape(() => Promise.reject(new Error('Postgres is away')))
    one.onScrape(() => one.set('epoch', {}, 3))
    expect((await one.text()).body).toMatch(/^quipu_epoch 3$/m)
  })

  it('tell what was counted before they were loaded', async () => {
    const pending = createPendingMeters()
    pending.count('epochClaims', { result: 'won' }, 4)
    const one = await meters()
    pending.replay(one)
    pending.replay(one)
    expect((await one.text()).body).toContain('quipu_epoch_claims_total{result="won"} 4')
  })

  it('lead from a bucket to a trace', async () => {
    const one = await meters()
    one.observe('queryDuration', { state: 'FINISHED', route: 'local' }, 0.004, {
      traceId: 'a'.repeat(32),
      spanId: 'b'.repeat(16),
    })
    const { body } = await one.text()
    expect(body).toMatch(
      /quipu_query_duration_seconds_bucket\{le="0\.005",.*\} 1 # \{trace_id="a{32}",span_id="b{16}"\} 0\.004/,
    )
  })

  it('take gauges of a role away with it', async () => {
    const one = await meters()
    one.set('queriesOpen', { state: 'RUNNING' }, 3)
    expect((await one.text()).body).toContain('quipu_queries_open{state="RUNNING"} 3')
    one.unset('queriesOpen')
    expect((await one.text()).body).not.toContain('quipu_queries_open{')
  })
})
