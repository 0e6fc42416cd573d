import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { createClient, quantile } from '../../bench/quipu-server.mjs'
import { processesOf } from '../support/quipu-process.ts'
import { EVERYTHING, gatewayOfFile, trinoUrl, untilHealthy } from './gateway.ts'

const gateway = gatewayOfFile()
beforeAll(() => untilHealthy(gateway))

const rowsOf = (limit: number): string =>
  `SELECT orderkey, partkey, suppkey, extendedprice FROM tpch.sf1.lineitem LIMIT ${limit}`
/** Pairs of SELECT 1, and pairs of large results. */
const [SMALL_PAIRS, LARGE_PAIRS] = [300, 6]
/** How long the CPU time of an idle coordinator is measured, which is subtracted. */
const IDLE_MS = 15_000

const clientOf = (base: string) => createClient(base, { source: EVERYTHING })
const millisOf = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await work()
  return performance.now() - began
}
const median = (times: readonly number[]): number =>
  quantile(
    [...times].sort((a, b) => a - b),
    0.5,
  )

/** The coordinator of the gateway: its CPU time in milliseconds, and its memory in MB. */
function coordinator(): { readonly cpuMs: number; readonly residentMb: number; readonly peakMb: number } {
  const pid = processesOf(gateway.data).children[0]!
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ').slice(11, 13).map(Number)
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const megabytes = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)![1]) / 1024
  return { cpuMs: (user! + system!) * 10, residentMb: megabytes('VmRSS'), peakMb: megabytes('VmHWM') }
}

describe('Figures of delegated statements, beside those of Trino asked directly', () => {
  it('SELECT 1, one client', { timeout: 1_200_000 }, async () => {
    const [direct, through] = [clientOf(trinoUrl), clientOf(gateway.url)]
    // On a busy machine only the ratio to the same statement without a cluster says something.
    const local = createClient(gateway.url)
    const [times, timesThrough, timesHere]: [number[], number[], number[]] = [[], [], []]
    for (let pair = -30; pair < SMALL_PAIRS; pair++) {
      const [one, other] = [
        await millisOf(() => direct.bytes('SELECT 1')),
        await millisOf(() => through.bytes('SELECT 1')),
      ]
      const here = await millisOf(() => local.bytes('SELECT 1'))
      if (pair < 0) continue
      times.push(one)
      timesThrough.push(other)
      timesHere.push(here)
    }
    const requests = [(await direct.bytes('SELECT 1')).requests, (await through.bytes('SELECT 1')).requests]
    console.log(
      `SELECT 1: direct p50 ${median(times).toFixed(1)} ms (${requests[0]} requests), through Quipu ${median(timesThrough).toFixed(1)} ms ` +
        `(${requests[1]} requests), difference ${(median(timesThrough) - median(times)).toFixed(1)} ms, median of the pairs' differences ` +
        `${median(timesThrough.map((time, at) => time - times[at]!)).toFixed(1)} ms; SELECT 1 that runs at Quipu ${median(timesHere).toFixed(1)} ms`,
    )
    for (const client of [direct, through, local]) client.close()
  })

  it('1,000,000 rows of 4 columns', { timeout: 1_200_000 }, async () => {
    const [direct, through] = [clientOf(trinoUrl), clientOf(gateway.url)]
    const [times, timesThrough]: [number[], number[]] = [[], []]
    let [bytes, cpuMs] = [0, 0]
    const idleBefore = coordinator().cpuMs
    await sleep(IDLE_MS)
    const idlePerMs = (coordinator().cpuMs - idleBefore) / IDLE_MS
    for (let pair = -1; pair < LARGE_PAIRS; pair++) {
      const one = await millisOf(() => direct.bytes(rowsOf(1_000_000)))
      const before = coordinator().cpuMs
      const other = await millisOf(async () => (bytes = (await through.bytes(rowsOf(1_000_000))).bytes))
      if (pair < 0) continue
      cpuMs += coordinator().cpuMs - before - other * idlePerMs
      times.push(one)
      timesThrough.push(other)
    }
    const megabytes = bytes / 1e6
    console.log(
      `1,000,000 rows × 4 columns, ${megabytes.toFixed(1)} MB: direct ${median(times).toFixed(0)} ms, through Quipu ${median(timesThrough).toFixed(0)} ms, ` +
        `rate ${(median(times) / median(timesThrough)).toFixed(2)} of direct; CPU of the coordinator ${(cpuMs / LARGE_PAIRS / megabytes).toFixed(1)} ms a MB`,
    )
    expect(megabytes).toBeGreaterThan(20)
    direct.close()
    through.close()
  })

  it('6,000,000 rows of 4 columns', { timeout: 1_200_000 }, async () => {
    const through = clientOf(gateway.url)
    const before = coordinator().residentMb
    let most = before
    const timer = setInterval(() => (most = Math.max(most, coordinator().residentMb)), 50)
    const { bytes, requests } = await through.bytes(rowsOf(6_000_000))
    clearInterval(timer)
    console.log(
      `6,000,000 rows × 4 columns, ${(bytes / 1e6).toFixed(0)} MB in ${requests} answers: memory of the coordinator ${before.toFixed(0)} MB before, ` +
        `at most ${most.toFixed(0)} MB, +${(most - before).toFixed(0)} MB`,
    )
    through.close()
  })
})
