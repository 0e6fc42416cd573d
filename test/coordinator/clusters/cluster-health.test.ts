import { describe, expect, it } from 'vitest'
import {
  afterSighting,
  limitsOf,
  newCondition,
  type HealthChange,
  type ClusterSighting,
} from '../../../src/coordinator/clusters/cluster-health.ts'
import type { ClusterHealth } from '../../../src/coordinator/clusters/state.ts'

const BEAT_MS = 1000
const limits = limitsOf(BEAT_MS)
const sightings: Readonly<Record<string, ClusterSighting>> = {
  r: { kind: 'ready' },
  s: { kind: 'starting' },
  f: { kind: 'failed', error: new Error('connection refused') },
}

/** The changes by a row of sightings, one letter each: `r`eady, `s`tarting, `f`ailed. */
function changesBy(row: string, from: ClusterHealth = 'PENDING', everyMs = BEAT_MS): HealthChange[] {
  let condition = newCondition(from, 0)
  return [...row].flatMap((letter, index) => {
    const after = afterSighting(condition, sightings[letter]!, limits, index * everyMs)
    ;({ condition } = after)
    return after.change ?? []
  })
}

const reached = (row: string, from?: ClusterHealth, everyMs?: number): string[] =>
  changesBy(row, from, everyMs).map(({ after, reason }) => `${after} ${reason}`)

describe('The health of a cluster', () => {
  it('is HEALTHY after two answers in a row', () => {
    expect(reached('r')).toEqual([])
    expect(reached('rr')).toEqual(['HEALTHY ready'])
    expect(reached('rfrfrf')).toEqual([])
    expect(reached('rfrr')).toEqual(['HEALTHY ready'])
  })

  it('is UNHEALTHY after three failures in a row, and not after one or two', () => {
    expect(reached('f', 'HEALTHY')).toEqual([])
    expect(reached('ffrff', 'HEALTHY')).toEqual([])
    expect(changesBy('fff', 'HEALTHY')).toEqual([
      { before: 'HEALTHY', after: 'UNHEALTHY', reason: 'no_answer', detail: 'connection refused' },
    ])
  })

  it('stays HEALTHY while one of three checks fails', () => {
    expect(reached('rrf'.repeat(200), 'HEALTHY')).toEqual([])
  })

  it('is UNHEALTHY when most requests fail, although some are answered', () => {
    expect(reached('ffr'.repeat(20), 'HEALTHY')[0]).toBe('UNHEALTHY failure_ratio')
  })

  it('counts failures at about the same time once: a broken connection takes many requests with it', () => {
    expect(reached('f'.repeat(90), 'HEALTHY', 1)).toEqual([])
    expect(reached('ffffff', 'HEALTHY', 40)).toEqual([])
    expect(reached('fffffff', 'HEALTHY', 40)).toEqual(['UNHEALTHY no_answer'])
  })

  it('is PENDING when a cluster answers again, and is not judged by the failures before', () => {
    expect(reached('fffrr', 'HEALTHY')).toEqual(['UNHEALTHY no_answer', 'PENDING answers_again', 'HEALTHY ready'])
    expect(reached(`${'f'.repeat(50)}rrr${'rf'.repeat(10)}`, 'HEALTHY')).toEqual([
      'UNHEALTHY no_answer',
      'PENDING answers_again',
      'HEALTHY ready',
    ])
  })

  it('is PENDING at once when a cluster says that it is starting', () => {
    expect(reached('ss', 'HEALTHY')).toEqual(['PENDING starting'])
    expect(reached('rsrsr')).toEqual([])
    expect(reached('srr', 'UNHEALTHY')).toEqual(['PENDING starting', 'HEALTHY ready'])
  })
})
