import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { systemEventVersions } from '../../src/coordinator/system/events.ts'
import type { QueryEvent } from '../../src/coordinator/query/stream/events.ts'
import { publicEventNames, publicJsonSchema, publicType } from '../../src/publishing/public-events.ts'
import { publicFeed } from '../../src/publishing/public-feed.ts'
import { FactKeeper } from '../../src/publishing/query-facts.ts'
import { failureOf } from '../../src/shared/engine-error.ts'
import { event, queryEventTypes, QUERY_ID } from '../support/query-events.ts'
import { isValidMoment, recordedOf, streamsOf } from '../support/recorded-events.ts'

const folder = new URL('../../etc/public-events/', import.meta.url)
const recorded = new URL('../fixtures/public-event-schemas.json', import.meta.url)

const ajv = new Ajv2020({ strict: false, allErrors: true })
ajv.addFormat('date-time', isValidMoment)

const validators = new Map(publicEventNames.map((name) => [publicType(name), ajv.compile(publicJsonSchema(name))]))

/** Validates a message by the schema of its type. Returns the errors, or undefined for a valid message. */
function faults(message: { readonly type: string }): unknown {
  const validate = validators.get(message.type)
  return validate === undefined ? `no schema: ${message.type}` : validate(message) ? undefined : validate.errors
}

type Schema = { readonly [key: string]: unknown }

/**
 * Lists the changes from `before` to `after` that can break a reader: a field is gone, may now be absent, or has
 * another schema. Descriptions may change, and optional fields may be added.
 */
function breaks(before: unknown, after: unknown, at = ''): readonly string[] {
  if (!isSchema(before) || !isSchema(after)) return JSON.stringify(before) === JSON.stringify(after) ? [] : [at]
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  names.delete('description')
  return [...names].flatMap((name) => {
    const below = `${at}/${name}`
    switch (name) {
      case 'properties': {
        const [old, now] = [before[name], after[name]] as [Schema, Schema]
        return Object.keys(old).flatMap((field) => breaks(old[field], now[field], `${below}/${field}`))
      }
      case 'required': {
        const now = new Set(after[name] as readonly string[])
        return (before[name] as readonly string[])
          .filter((field) => !now.has(field))
          .map((field) => `${below}/${field}`)
      }
      default:
        return breaks(before[name], after[name], below)
    }
  })
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

describe('Schemas of public events', () => {
  it.each(publicEventNames)('match the file of %s', async (name) => {
    await expect(`${JSON.stringify(publicJsonSchema(name), null, 2)}\n`).toMatchFileSnapshot(
      new URL(`${name}.json`, folder).pathname,
    )
  })

  it('have one file for each public event, and no other files', () => {
    expect(readdirSync(folder).toSorted()).toEqual(publicEventNames.map((name) => `${name}.json`).toSorted())
  })

  it('keep every recorded field, unchanged', () => {
    const now = Object.fromEntries(publicEventNames.map((name) => [name, publicJsonSchema(name)])) as Schema
    const before = JSON.parse(readFileSync(recorded, 'utf8')) as Schema
    expect(Object.keys(before).flatMap((name) => breaks(before[name], now[name], name))).toEqual([])
    // A new field is a promise from now on. QUIPU_RECORD_LOGS=1 records it, but the check above still refuses a
    // break.
    if (process.env['QUIPU_RECORD_LOGS'] === '1') writeFileSync(recorded, `${JSON.stringify(now, null, 2)}\n`)
    else expect(now).toEqual(before)
  })

  it.each<[string, unknown, unknown, readonly string[]]>([
    ['the same', { type: 'string' }, { type: 'string', description: 'a better text' }, []],
    [
      'an added field',
      { properties: { a: {} }, required: ['a'] },
      { properties: { a: {}, b: {} }, required: ['a'] },
      [],
    ],
    ['a removed field', { properties: { a: {}, b: {} } }, { properties: { a: {} } }, ['/properties/b']],
    [
      'another type',
      { properties: { a: { type: 'string' } } },
      { properties: { a: { type: 'number' } } },
      ['/properties/a/type'],
    ],
    ['a field that is no longer required', { required: ['a', 'b'] }, { required: ['a'] }, ['/required/b']],
    ['another value', { enum: ['a'] }, { enum: ['a', 'b'] }, ['/enum']],
    [
      'unknown fields that are no longer allowed',
      { type: 'object' },
      { type: 'object', additionalProperties: false },
      ['/additionalProperties'],
    ],
    [
      'a nested change',
      { items: { properties: { a: { minimum: 0 } } } },
      { items: { properties: { a: {} } } },
      ['/items/properties/a/minimum'],
    ],
  ])('compare by `breaks`: %s', (_, before, after, expected) => expect(breaks(before, after)).toEqual(expected))
})

async function reported(
  events: readonly QueryEvent[],
  texts = false,
): Promise<readonly { type: string; data: Schema }[]> {
  const all = recordedOf(events)
  const keeper = new FactKeeper(streamsOf(all))
  const feed = publicFeed({ logId: 'l', texts })
  const messages: { type: string; data: Schema }[] = []
  for (const one of all) {
    const facts = keeper.take(one)
    const message = feed.types.has(one.type) ? await feed.messageOf(one, facts) : undefined
    if (message === undefined) continue
    expect(message.key).toBe(QUERY_ID)
    const body = JSON.parse(message.text) as { type: string; data: Schema; dataschema: string }
    expect(body).toMatchObject({
      source: '/quipu/l',
      id: `${QUERY_ID}/${one.sequence}`,
      subject: QUERY_ID,
      time: one.time,
    })
    expect(faults(body)).toBeUndefined()
    messages.push(body)
  }
  return messages
}

const HIDDEN = 'hidden text'
const failure = failureOf('INVALID_CAST_ARGUMENT', `Cannot cast '${HIDDEN}'`)

describe('Public events', () => {
  it('contain no SQL text and no error message unless texts are published', async () => {
    const every = queryEventTypes.map((type, seconds) =>
      type === 'QueryFailed'
        ? event(type, seconds, { failure })
        : type === 'QueryCreated'
          ? event(type, seconds, { sql: `SELECT '${HIDDEN}'` })
          : type === 'QueryPlanned'
            ? event(type, seconds, {
                outline: { name: 'Filter', details: { filter: HIDDEN }, layout: [], children: [] },
              })
            : event(type, seconds),
    )
    const messages = await reported(every)
    expect(messages.map(({ type }) => type)).toEqual([
      'quipu.public.query.created.v1',
      'quipu.public.query.planned.v1',
      'quipu.public.write.committed.v1',
      'quipu.public.query.finished.v1',
      'quipu.public.query.failed.v1',
    ])
    expect(JSON.stringify(messages)).not.toContain(HIDDEN)
    expect(messages[2]!.data).toEqual({
      queryId: QUERY_ID,
      catalog: 'lake',
      schema: 's',
      table: 't',
      operation: 'insert',
      rows: 0,
      bytes: 0,
    })
    const withTexts = await reported(every, true)
    expect(withTexts[0]!.data['statement']).toBe(`SELECT '${HIDDEN}'`)
    expect(withTexts[4]!.data['message']).toBe(failure.message)
  })

  it('announce that a query was forgotten with its key alone, and leave out forgotten events', async () => {
    const feed = publicFeed({ logId: 'l', texts: true })
    const [sample] = recordedOf([event('QueryCreated')])
    const facts = () => Promise.reject(new Error('nobody asks'))
    const system = { ...sample!, stream: 'system', type: 'DataForgotten', v: systemEventVersions.DataForgotten }
    const message = await feed.messageOf({ ...system, data: { stream: QUERY_ID, sequences: [1], by: 'ada' } }, facts)
    expect(message?.key).toBe(QUERY_ID)
    expect(message?.text).not.toContain('ada')
    expect(faults(JSON.parse(message!.text) as { type: string })).toBeUndefined()
    expect(await feed.messageOf({ ...sample!, data: null, forgotten: true }, facts)).toBeUndefined()
  })
})
