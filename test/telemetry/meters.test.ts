import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createMeters, createPendingMeters } from '../../src/telemetry/meters.ts'
import { parseOpenMetrics } from '../support/openmetrics.ts'
import { metricNames } from '../../src/telemetry/metric-names.ts'
import { buckets } from '../../src/telemetry/metrics/metric-definition.ts'
import { SOURCE_NAMES } from '../../src/telemetry/metrics/process-metrics.ts'

const meters = (on: 'coordinator' | 'worker' = 'coordinator') => createMeters({ on, processMetrics: false })

describe('The meters', () => {
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

  it('count a value that a closed label does not list as "other", and count the overflow', async () => {
    const one = await meters()
    one.count('polls', { result: 'data' })
    one.count('polls', { result: 'made up' })
    const { body } = await one.text()
    expect(body).toContain('quipu_polls_total{result="data"} 1')
    expect(body).toContain('quipu_polls_total{result="other"} 1')
    expect(body).toContain('quipu_label_overflow_total{label="result"} 1')
    expect(body).not.toContain('made up')
  })

  it('begin at 0 where an increase from 1 would be missed: closed labels, and overflows of open labels', async () => {
    const { body } = await (await meters()).text()
    expect(body).toContain('quipu_act_queries_total{act="kill",outcome="done"} 0')
    expect(body).toContain('quipu_label_overflow_total{label="source"} 0')
    expect(body).not.toContain('quipu_label_overflow_total{label="state"}')
  })

  it('show each file that is read again under its own name', async () => {
    const one = await meters()
    for (const file of SOURCE_NAMES) one.set('filesBroken', { file }, 1)
    const { body } = await one.text()
    for (const file of SOURCE_NAMES) expect(body).toContain(`quipu_files_broken{file="${file}"} 1`)
    expect(body).not.toContain('file="other"')
  })

  it('add repeated counts, and count the overflow each time', async () => {
    const one = await meters()
    for (let time = 0; time < 3; time++) {
      one.count('polls', { result: 'data' }, 2)
      one.count('polls', { result: 'made up' })
      one.count('polls', { result: 'other' })
      one.count('groupRejections', { group: 'a', reason: 'queue_full' })
      one.count('groupRejections', { group: 'a\nqueue_full', reason: 'shed' })
      one.count('eventBytes', {}, 0.5)
    }
    const { body } = await one.text()
    expect(body).toContain('quipu_polls_total{result="data"} 6')
    expect(body).toContain('quipu_polls_total{result="other"} 6')
    expect(body).toContain('quipu_label_overflow_total{label="result"} 6')
    expect(body).toMatch(
      /^quipu_group_rejections_total\{(group="a",reason="queue_full"|reason="queue_full",group="a")\} 3$/m,
    )
    expect(body).toMatch(/^quipu_event\w*_bytes_total 1\.5$/m)
  })

  it('refuse a negative, infinite or NaN value', async () => {
    const one = await meters()
    expect(() => one.count('eventBytes', {}, -1)).toThrow(TypeError)
    expect(() => one.count('eventBytes', {}, Infinity)).toThrow(TypeError)
    expect(() => one.observe('queryDuration', { state: 'FINISHED', route: 'local' }, Number.NaN)).toThrow(TypeError)
  })

  it('sort observed values into buckets, with or without a trace, and add restored counts', async () => {
    const scale = buckets.query
    const value = fc.oneof(fc.constantFrom(...scale), fc.double({ min: 0, max: 100, noNaN: true }))
    const reported = fc.record({ value, trace: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(reported, { maxLength: 20 }), fc.nat(9), async (all, before) => {
        const one = await meters()
        const labels = { state: 'FINISHED', route: 'local' } as const
        one.restore('queryDuration', labels, { counts: [...scale, Infinity].map(() => before), sum: before })
        for (const { value: seconds, trace } of all)
          one.observe(
            'queryDuration',
            labels,
            seconds,
            trace ? { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) } : undefined,
          )
        const { body } = await one.text()
        const lines = body
          .split('\n')
          .filter((line) => /route="local".*state="FINISHED"|state="FINISHED".*route="local"/.test(line))
        const shown = (start: string): number => {
          const line = lines.find((each) => each.startsWith(`quipu_query_duration_seconds_${start}`))
          return Number(/\} ([^ ]+)/.exec(line ?? '')?.[1])
        }
        for (const [index, bound] of scale.entries())
          expect(shown(`bucket{le="${bound}"`)).toBe(
            all.filter((each) => each.value <= bound).length + before * (index + 1),
          )
        expect(shown('count{')).toBe(all.length + before * (scale.length + 1))
        expect(shown('sum{')).toBeCloseTo(
          all.reduce((sum, each) => sum + each.value, before),
          6,
        )
      }),
      { numRuns: 20 },
    )
  })

  it('limit the number of values of an open label', async () => {
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

  it('omit a gauge that was not set, because 0 would be a false value', async () => {
    const one = await meters()
    expect((await one.text()).body).not.toMatch(/^quipu_audit_verified_timestamp_seconds /m)
    one.set('writer', {}, 0)
    expect((await one.text()).body).toMatch(/^quipu_writer 0$/m)
  })

  it('write only numbers that a strict reader accepts, also if scrapes follow fast', async () => {
    const one = await createMeters({ on: 'coordinator', processMetrics: true })
    one.set('recoveryDuration', {}, Number.NaN)
    await one.text()
    const { body } = await one.text()
    expect(() => parseOpenMetrics(body)).not.toThrow()
    expect(body).toMatch(/^quipu_recovery_duration_seconds NaN$/m)
  })

  it('answer a scrape even if a collector fails', async () => {
    const one = await meters()
    one.onScrape(() => Promise.reject(new Error('Postgres is away')))
    one.onScrape(() => one.set('epoch', {}, 3))
    expect((await one.text()).body).toMatch(/^quipu_epoch 3$/m)
  })

  it('include counts from before they were loaded, once', async () => {
    const pending = createPendingMeters()
    pending.count('epochClaims', { result: 'won' }, 4)
    const one = await meters()
    pending.replay(one)
    pending.replay(one)
    expect((await one.text()).body).toContain('quipu_epoch_claims_total{result="won"} 4')
  })

  it('link a bucket to a trace by an exemplar', async () => {
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

  it('remove a gauge after `unset`', async () => {
    const one = await meters()
    one.set('queriesOpen', { state: 'RUNNING' }, 3)
    expect((await one.text()).body).toContain('quipu_queries_open{state="RUNNING"} 3')
    one.unset('queriesOpen')
    expect((await one.text()).body).not.toContain('quipu_queries_open{')
  })
})
