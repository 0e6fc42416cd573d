import { describe, expect, it } from 'vitest'
import { queryEventSchemas, type QueryEventType } from '../../../src/coordinator/query/stream/events.ts'
import { queryEventTypes, sampleData } from '../../support/query-events.ts'

describe('the samples of events that tests fold', () => {
  it('are of every type', () => {
    expect(Object.keys(sampleData).toSorted()).toEqual(Object.keys(queryEventSchemas).toSorted())
    expect(queryEventTypes.toSorted()).toEqual(Object.keys(queryEventSchemas).toSorted())
  })

  it.each(Object.keys(sampleData) as QueryEventType[])('%s is what its schema takes', (type) => {
    expect(queryEventSchemas[type].parse(sampleData[type])).toEqual(sampleData[type])
  })
})
