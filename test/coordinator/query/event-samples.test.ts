import { describe, expect, it } from 'vitest'
import { queryEventSchemas, type QueryEventType } from '../../../src/coordinator/query/stream/events.ts'
import { queryEventTypes, sampleData } from '../../support/query-events.ts'

describe('The samples of events in `sampleData`', () => {
  it('cover every event type', () => {
    expect(Object.keys(sampleData).toSorted()).toEqual(Object.keys(queryEventSchemas).toSorted())
    expect(queryEventTypes.toSorted()).toEqual(Object.keys(queryEventSchemas).toSorted())
  })

  it.each(Object.keys(sampleData) as QueryEventType[])('%s fits its schema', (type) => {
    expect(queryEventSchemas[type].parse(sampleData[type])).toEqual(sampleData[type])
  })
})
