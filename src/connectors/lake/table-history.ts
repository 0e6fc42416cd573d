import { join } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import type { TablePoint } from '../spi/connector.ts'
import { oldestReadable } from './expired-versions.ts'
import type { LakeFolders } from './lake-folders.ts'
import { movedId, type Manifest, type TableContent } from './manifest.ts'
import { nameOfFolder } from './folder-names.ts'
import { listVersions, readVersion, relativeFolder } from './version-chain.ts'

/** The manifest of a table, and the folder that it is in, absolute. */
export interface TableVersion {
  readonly folder: string
  readonly manifest: Manifest & { readonly content: TableContent }
}

export interface HistoryDeps {
  readonly location: string
  readonly folders: Pick<LakeFolders, 'objectFolder'>
  /** How long a version can be read after the next one was made, milliseconds. */
  readonly keptMillis: number
  /** Wall clock, milliseconds. */
  readonly now: () => number
}

/**
 * Earlier versions of a table, also from before it got its name. The history begins with the statement that created the
 * table: CREATE OR REPLACE makes another table.
 */
export class TableHistory {
  readonly #deps: HistoryDeps

  constructor(deps: HistoryDeps) {
    this.#deps = deps
  }

  /**
   * The version of a table at a point of its history.
   * @param newest the table of today
   * @param name `schema.table`, for messages
   * @throws EngineError INVALID_ARGUMENTS when there is none, or none that is kept
   */
  async versionAt(newest: TableVersion, at: TablePoint, name: string): Promise<TableVersion> {
    if (at.kind === 'reference') throw noVersion(at, name)
    const found = await this.#find(newest, at, Infinity)
    if (found && (await this.#isKept(found, newest))) return found
    throw noVersion(at, name)
  }

  /** The versions that are kept, the newest first. Each has the number of the version before it, if that is known. */
  async *versions(newest: TableVersion): AsyncGenerator<TableVersion & { readonly parent: number | undefined }> {
    const oldest = this.#oldest(newest)
    let nextTime = Infinity
    let version: TableVersion | undefined = newest
    let earlier: number[] = await this.#earlier(newest)
    while (version !== undefined && nextTime >= oldest) {
      const here = await this.#lastOf(earlier, version)
      const origin: TableVersion | undefined = here ? undefined : await this.#origin(version)
      if (origin) earlier = await this.#earlier(origin)
      const before: TableVersion | undefined = here ?? origin
      yield { ...version, parent: before?.manifest.version }
      nextTime = version.manifest.time
      version = before
    }
  }

  /** Takes the last number from a list of versions in the folder of `version`. */
  async #lastOf(earlier: number[], { folder, manifest }: TableVersion): Promise<TableVersion | undefined> {
    const number = earlier.pop()
    return number === undefined ? undefined : this.#tableIn(folder, number, manifest.content.id)
  }

  async #earlier({ folder, manifest }: TableVersion): Promise<number[]> {
    return (await listVersions(folder)).filter((version) => version < manifest.version)
  }

  /**
   * @param newest a version of the table, in the folder that is searched
   * @param most the highest version of this table in the folder: later versions belong to another table
   */
  async #find(
    newest: TableVersion,
    at: Exclude<TablePoint, { kind: 'reference' }>,
    most: number,
  ): Promise<TableVersion | undefined> {
    const { folder, manifest } = newest
    const { id } = manifest.content
    const versions = (await listVersions(folder)).filter((version) => version <= Math.min(most, manifest.version))
    const read = (index: number) => this.#tableIn(folder, versions[index]!, id)
    const isAfter = async (index: number): Promise<boolean> => {
      if (at.kind === 'version') return versions[index]! > Number(at.version)
      const time = await this.#timeOf(folder, versions[index]!)
      return time === undefined || time > at.millis
    }
    // The first version behind the point. The last version of the list is the table.
    const behind = await firstOf(0, versions.length, isAfter)
    const found = behind > 0 ? await read(behind - 1) : undefined
    if (found) return at.kind === 'time' || found.manifest.version === Number(at.version) ? found : undefined
    if (behind === versions.length) return undefined
    // At that time the table did not have this name yet. It got the name with the first of the later versions.
    const first = await firstOf(behind, versions.length - 1, async (index) => (await read(index)) !== undefined)
    const came = await read(first)
    const origin = came && (await this.#origin(came))
    return origin && this.#find(origin, at, origin.manifest.version)
  }

  /** The last version under the name that the table had before. */
  async #origin({ folder, manifest }: TableVersion): Promise<TableVersion | undefined> {
    const { since } = manifest.content
    if (!since) return undefined
    const named = join(this.#deps.location, since.folder)
    // A rename of the schema also moved all its tables.
    const isSchema = !since.folder.includes('/')
    const before = isSchema
      ? await this.#deps.folders.objectFolder(named, nameOfFolder(folder.split('/').at(-1)!))
      : named
    const most = isSchema ? manifest.version - 1 : since.version
    const from = relativeFolder({ location: this.#deps.location, folder: before })
    const versions = (await listVersions(before)).filter((version) => version <= most)
    // Another table may have got the old name since, with versions up to that number.
    for (const version of versions.reverse()) {
      const found = await this.#tableIn(before, version, undefined)
      if (found && movedId(found.manifest.content.id, since.queryId, from) === manifest.content.id) return found
    }
    return undefined
  }

  /** @param id of the table; undefined: any table */
  async #tableIn(folder: string, version: number, id: string | undefined): Promise<TableVersion | undefined> {
    const manifest = await readVersion({ location: this.#deps.location, folder }, version)
    const content = manifest?.content
    if (content?.kind !== 'table' || (id !== undefined && content.id !== id)) return undefined
    return { folder, manifest: { ...manifest!, content } }
  }

  async #timeOf(folder: string, version: number): Promise<number | undefined> {
    return (await readVersion({ location: this.#deps.location, folder }, version))?.time
  }

  #oldest({ manifest }: TableVersion): number {
    return oldestReadable(manifest.content, this.#deps.now(), this.#deps.keptMillis)
  }

  /** Whether no sweep removes the version while a query reads it that begins now. */
  async #isKept({ folder, manifest }: TableVersion, newest: TableVersion): Promise<boolean> {
    const next = (await listVersions(folder)).find((each) => each > manifest.version)
    const time = next === undefined ? undefined : await this.#timeOf(folder, next)
    return time === undefined || time >= this.#oldest(newest)
  }
}

/** The first index from `from` on that passes the test; `to` if none does. All later indexes must pass too. */
async function firstOf(from: number, to: number, test: (index: number) => Promise<boolean>): Promise<number> {
  let [low, high] = [from, to]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (await test(middle)) high = middle
    else low = middle + 1
  }
  return low
}

/** The error for a point without a version, in the words of Trino's Iceberg connector. */
export function noVersion(at: TablePoint, name: string): EngineError {
  switch (at.kind) {
    case 'reference':
      return new EngineError('INVALID_ARGUMENTS', `Cannot find snapshot with reference name: ${at.name}`)
    case 'version':
      return new EngineError('INVALID_ARGUMENTS', `Iceberg snapshot ID does not exists: ${at.version}`)
    case 'time': {
      const time = new Date(at.millis)
      const shown = Number.isNaN(time.getTime()) ? `${at.millis} ms` : time.toISOString().replace('.000Z', 'Z')
      return new EngineError('INVALID_ARGUMENTS', `No version history table ${name} at or before ${shown}`)
    }
  }
}
