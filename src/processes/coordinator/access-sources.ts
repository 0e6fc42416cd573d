import { setTimeout as sleep } from 'node:timers/promises'
import type { FileDigests } from '../../coordinator/query/planned-data.ts'
import type { FileRecord, FileVersion } from '../../coordinator/system/file-record.ts'
import { watchFiles, type WatchedFiles } from '../../security/watched-files.ts'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { Meters } from '../../telemetry/meters.ts'
import type { KeptTexts } from '../child-life.ts'
import { textVersion, type TextVersion } from './text-version.ts'

/** What is told of a file, or of a server of keys. */
export type SourceName =
  | 'rules'
  | 'resource_groups'
  | 'session_properties'
  | 'passwords'
  | 'groups'
  | 'user_mapping'
  | 'token_key'
  | 'token_keys'

export interface AccessTelemetry {
  readonly logger: Logger
  readonly meters: () => Meters
}

export interface Followed<T> {
  /** That names it, where the end should say so. */
  readonly setting?: string
  /** Its text is recorded too, but for secrets in it: what was decided by it can be derived from the log. */
  readonly recorded?: true
  /** Reads what changed, off the event loop; at the start it is read at once. */
  readonly readAgain?: (text: string) => Promise<{ readonly value: T; readonly text: TextVersion }>
  /** How many rules it has. */
  readonly entries?: (value: T) => number
}

/** A change waits so long for the log, which has to know what is decided by; then it is in force all the same. */
const RECORD_WAIT_MS = 5_000

/** Files, and servers of keys, that say who may come in and do what; what becomes of them is told by log and figures. */
export interface AccessSources {
  /**
   * Reads a file, now and whenever it changes. What is in force is told to the log while this coordinator writes it.
   * @throws ExitError 64 when it cannot be taken at the start, and no process before had one in force that could stay so
   */
  follow<T>(name: SourceName, path: string, read: (text: string) => T, followed?: Followed<T>): WatchedFiles<T>
  /** Digests of what is in force now of the files whose text is recorded, by name. */
  readonly inForce: () => FileDigests
  /** All files in force now. */
  readonly versions: () => readonly FileVersion[]
  /** From now on the log gets the texts of files in force, and what changes; nothing where undefined. */
  recordIn(record: FileRecord | undefined): void
  taken(name: SourceName, path: string): void
  broken(name: SourceName, path: string, error: Error): void
  /** Of files that were broken before there was anybody to tell. */
  logBroken(): void
  /** Looks at no file any more. */
  stop(): void
}

/**
 * @param key of digests of what is not recorded as it is
 * @param telemetry undefined before there is any: nothing is told until then
 * @param kept texts of the process before this one
 */
export function createAccessSources(
  key: Buffer,
  telemetry: () => AccessTelemetry | undefined,
  kept: KeptTexts = NOTHING_KEPT,
): AccessSources {
  const followed: Pick<WatchedFiles<unknown>, 'stop'>[] = []
  const versions = new Map<SourceName, FileVersion>()
  /** What lies there cannot be taken. */
  const brokenNow = new Map<SourceName, { readonly path: string; readonly error: Error }>()
  let record: FileRecord | undefined

  function taken(name: SourceName, path: string): void {
    brokenNow.delete(name)
    telemetry()?.meters().set('filesBroken', { file: name }, 0)
    telemetry()?.logger.info('file.reloaded', { file: name, path }, 'What changed is in force')
  }

  function broken(name: SourceName, path: string, error: Error): void {
    brokenNow.set(name, { path, error })
    telemetry()?.meters().set('filesBroken', { file: name }, 1)
    const fields = { file: name, path, reason: error.message }
    telemetry()?.logger.error('file.broken', fields, 'It cannot be taken: what was there before stays in force')
  }

  /** A log that is lost to this process is told by its next writer what holds there. */
  async function announce(version: FileVersion, before: FileVersion): Promise<void> {
    const recorded = record?.changed(version, before).catch(() => {})
    await Promise.race([recorded, sleep(RECORD_WAIT_MS, undefined, { ref: false })])
  }

  return {
    taken,
    broken,
    follow<T>(name: SourceName, path: string, read: (text: string) => T, options: Followed<T> = {}) {
      const { setting, recorded, entries } = options
      const inForceOf = (value: T, text: TextVersion): InForce<T> => ({
        value,
        version: {
          file: name,
          path,
          ...text,
          ...(entries && { entries: entries(value) }),
        },
      })
      const readNow = (text: string): InForce<T> =>
        inForceOf(read(text), textVersion(text, { key, secret: recorded !== true }))
      const takenNow = (text: string): InForce<T> => {
        const now = readNow(text)
        kept.keep(name, text)
        return now
      }
      const last = kept.last[name]
      const file = orEnd(setting === undefined ? path : `${setting}: ${path}`, () =>
        watchFiles(
          [path],
          ([text]) => takenNow(text),
          {
            onReloaded() {
              versions.set(name, file.value.version)
              taken(name, path)
            },
            onBroken(error) {
              broken(name, path, error)
              record?.refused(file.value.version, error.message).catch(() => {})
            },
          },
          {
            before: () => (last === undefined ? undefined : { value: readNow(last) }),
            async readAgain([text], before) {
              const later = await options.readAgain?.(text)
              const next = later ? inForceOf(later.value, later.text) : readNow(text)
              await announce(next.version, before.version)
              kept.keep(name, text)
              return next
            },
          },
        ),
      )
      versions.set(name, file.value.version)
      followed.push(file)
      return {
        get value() {
          return file.value.value
        },
        stop: () => file.stop(),
      }
    },
    versions: () => [...versions.values()],
    inForce() {
      const digests: Record<string, string> = {}
      for (const [name, { kept, digest }] of versions) if (kept.as !== 'secret') digests[name] = digest
      return digests
    },
    recordIn(next) {
      record = next
      for (const version of versions.values()) record?.keep(version).catch(() => {})
      for (const [name, { error }] of brokenNow) {
        const version = versions.get(name)
        if (version) record?.refused(version, error.message).catch(() => {})
      }
    },
    logBroken() {
      for (const [name, { path, error }] of brokenNow) broken(name, path, error)
    },
    stop() {
      for (const file of followed) file.stop()
    },
  }
}

const NOTHING_KEPT: KeptTexts = { last: {}, keep: () => {} }

interface InForce<T> {
  readonly value: T
  readonly version: FileVersion
}

/** @throws ExitError 64 with one line when something of the configuration cannot be made */
export function orEnd<T>(what: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new ExitError(exitCodes.configuration, `${what}: ${(error as Error).message}`)
  }
}
