import { chmodSync } from 'node:fs'
import type { Tally } from '../replay/tally.ts'
import { writePrivate, type ShadowRest } from './replay-reports.ts'

/** Writes the figures of a shadow for the textfile collector of Prometheus' node exporter. */
export function writeShadowMetrics(path: string, tally: Tally, rest: ShadowRest): void {
  writePrivate(path, metricsText(tally, rest))
  // The node exporter runs as another user. The figures name no user and no statement.
  chmodSync(path, 0o644)
}

function metricsText(tally: Tally, rest: ShadowRest): string {
  const { left, ...counts } = rest
  const verdicts = Object.entries(tally.counts).map(([name, count]) => ({ labels: `verdict="${name}"`, value: count }))
  const outcomes = Object.entries(counts).map(([name, value]) => ({ labels: `outcome="${outcomeLabel(name)}"`, value }))
  const { latency } = tally.breakdown().total
  const seconds = latency
    ? (['here', 'there'] as const).flatMap((side) => [
        { labels: `side="${side}",quantile="0.5"`, value: latency[side].p50 / 1000 },
        { labels: `side="${side}",quantile="0.95"`, value: latency[side].p95 / 1000 },
      ])
    : []
  return [
    family('quipu_shadow_statements_total', 'counter', 'Statements of the shadow, by verdict', verdicts),
    family('quipu_shadow_queries_total', 'counter', 'Finished queries of the first server, by outcome', outcomes),
    family('quipu_shadow_open_queries', 'gauge', 'Queries that wait or run', [{ labels: '', value: left }]),
    family('quipu_shadow_latency_seconds', 'gauge', 'Time of a statement on each side', seconds),
  ].join('')
}

interface Sample {
  readonly labels: string
  readonly value: number
}

function family(name: string, type: 'counter' | 'gauge', help: string, samples: readonly Sample[]): string {
  if (samples.length === 0) return ''
  const lines = samples.map(({ labels, value }) => `${name}${labels === '' ? '' : `{${labels}}`} ${value}\n`)
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

function outcomeLabel(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
