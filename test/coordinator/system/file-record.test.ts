import { expect, it } from 'vitest'
import { createFileRecord, type FileVersion } from '../../../src/coordinator/system/file-record.ts'
import { systemEventSchemas, type SystemEventType } from '../../../src/coordinator/system/events.ts'

interface Recorded {
  readonly type: SystemEventType
  readonly data: Readonly<Record<string, unknown>>
}

function bed(parts: (digest: string) => Promise<number> = async () => 0) {
  const reported: Recorded[] = []
  let away = false
  const record = createFileRecord({
    caughtUp: Promise.resolve(),
    recordedParts: parts,
    journal: {
      async record(type, data) {
        if (away) throw new Error('fenced')
        reported.push({ type, data: systemEventSchemas[type].parse(data) as Recorded['data'] })
        return {} as never
      },
    },
  })
  return { record, reported, types: () => reported.map(({ type }) => type), setAway: (is: boolean) => void (away = is) }
}

function version(digest: string, text = digest): FileVersion {
  return { file: 'rules', path: '/r', digest, bytes: text.length, entries: 1, kept: { as: 'recorded', text } }
}

it('the file record writes FileKept for the first version, and FileKept before FileTaken for a change', async () => {
  const { record, reported, types } = bed()
  await record.keep(version('a'))
  await record.changed(version('b'), version('a'))
  expect(types()).toEqual(['FileKept', 'FileKept', 'FileTaken'])
  expect(reported[2]!.data).toMatchObject({ occasion: 'reload', digest: 'b', before: 'a', entriesBefore: 1 })
})

it('the file record writes a text once, even when an earlier coordinator wrote it or it comes again', async () => {
  const { record, types } = bed(async (digest) => (digest === 'known' ? 1 : 0))
  await record.keep(version('known'))
  for (let times = 0; times < 5; times++) {
    await record.changed(version('a'), version('known'))
    await record.changed(version('known'), version('a'))
  }
  expect(types().filter((type) => type === 'FileKept')).toHaveLength(1)
  expect(types().filter((type) => type === 'FileTaken')).toHaveLength(10)
})

it('the file record writes a text again when it is incomplete, unknown or failed to be recorded', async () => {
  const long = version('long', 'x'.repeat(150_000))
  const half = bed(async () => 2)
  await half.record.keep(long)
  expect(half.types()).toHaveLength(3)
  const blind = bed(() => Promise.reject(new Error('the database is away')))
  await blind.record.keep(long)
  expect(blind.types()).toHaveLength(3)
  const failing = bed()
  failing.setAway(true)
  await expect(failing.record.changed(version('a'), version('b'))).rejects.toThrow('fenced')
  failing.setAway(false)
  await failing.record.changed(version('a'), version('b'))
  expect(failing.types()).toEqual(['FileKept', 'FileTaken'])
})

it('the file record splits a text of 1 MB into parts without half a surrogate pair', async () => {
  const text = '{"a": "𝒜\u0000ß"}'.repeat(80_000)
  const { record, reported } = bed()
  await record.keep(version('big', text))
  const parts = reported.map(({ data }) => String(data['text']))
  expect(parts.join('')).toBe(text)
  for (const part of parts) {
    expect(Buffer.byteLength(JSON.stringify(part))).toBeLessThan(512 * 1024)
    expect(/\p{Surrogate}/u.test(part)).toBe(false)
  }
})

it('the file record writes no text of a secret or too long file, and cuts the reason of a refusal', async () => {
  const { record, reported, types } = bed()
  await record.keep({ ...version('s'), kept: { as: 'secret' } })
  await record.changed({ ...version('l'), kept: { as: 'too_long' } }, version('s'))
  await record.refused(version('l'), 'y'.repeat(10_000))
  expect(types()).toEqual(['FileTaken', 'FileRefused'])
  expect(String(reported[1]!.data['reason'])).toHaveLength(500)
})
