import { EngineError } from '../../shared/engine-error.ts'
import type { CommittedWrite, PreparedWrite } from '../spi/table-writer.ts'
import { mayAdopt, type ChangeTargets, type ChangeTargetsDeps } from './change-targets.ts'
import type { LakeFolders } from './lake-folders.ts'
import type { ListedFiles } from './lake-files.ts'
import { adoption, committedVersion, nextManifest, type Manifest } from './manifest.ts'
import { adoptedContent } from './manifest-table.ts'
import { factsOf } from './plain-table.ts'
import { createVersion, makeFolder, readNewest, type OnStep } from './version-chain.ts'

export interface LakeCommitsDeps extends ChangeTargetsDeps {
  readonly targets: Pick<ChangeTargets, 'nameOf'>
  /** Wall clock, milliseconds. */
  readonly now?: () => number
  /** Called at each step of a commit, for tests of crashes. */
  readonly onStep?: OnStep | undefined
}

/** Carries out decided changes: each becomes the next version of a manifest, unless it is in a version already. */
export class LakeCommits {
  readonly #deps: LakeCommitsDeps
  readonly #folders: LakeFolders
  readonly #now: () => number
  /** Commits of this process to one folder run one after the other: at the same time they would only conflict. */
  readonly #queues = new Map<string, Promise<unknown>>()

  constructor(deps: LakeCommitsDeps) {
    this.#deps = deps
    this.#folders = deps.folders
    this.#now = deps.now ?? Date.now
  }

  /** @throws EngineError TRANSACTION_CONFLICT when the change can no longer be made */
  commit(prepared: PreparedWrite): Promise<CommittedWrite> {
    return this.#queued(this.#deps.targets.nameOf(prepared.change), () => this.#commitNow(prepared))
  }

  /** The commit of a change, if it has been made. */
  async find({ change, queryId }: PreparedWrite): Promise<CommittedWrite | undefined> {
    const folders = this.#folders
    const parent = await folders.schemaFolder(change.schema)
    if (parent === undefined) return undefined
    const newest = await readNewest('table' in change ? await folders.objectFolder(parent, change.table) : parent)
    const version = newest && committedVersion(newest, queryId)
    return version === undefined ? undefined : { version, changed: false }
  }

  /** Makes a manifest for a folder of plain files, before anything is changed. */
  async #adopt(folder: string, listed: ListedFiles): Promise<void> {
    const found = await factsOf(listed, this.#deps.cache)
    await createVersion(folder, adoption(adoptedContent(found, this.#deps.duckdbType), this.#now()), this.#deps.onStep)
  }

  /** The data files of a table's folder; files in a schema's folder belong to no table. */
  async #plainFiles(folder: string, { change }: PreparedWrite): Promise<ListedFiles | undefined> {
    return 'table' in change ? this.#folders.dataFiles(change.schema, change.table, folder) : undefined
  }

  /** Makes one object's next version, unless its newest version has the query's change. */
  async #commitVersion(folder: string, prepared: PreparedWrite): Promise<CommittedWrite> {
    let created: number | undefined
    for (;;) {
      const newest = await readNewest(folder)
      await this.#deps.onStep?.('read', newest?.version ?? 0)
      const version = newest && committedVersion(newest, prepared.queryId)
      if (version !== undefined) return { version, changed: version === created }
      const listed = newest ? undefined : await this.#plainFiles(folder, prepared)
      if (listed && prepared.change.kind !== 'dropSchema' && mayAdopt(prepared.change)) {
        await this.#adopt(folder, listed)
        continue
      }
      // The loop goes on even when this succeeds. A committer may be delayed so long that later versions were made and
      // the next one was swept; then it has created a version that no reader uses. Only the newest version counts.
      const manifest = this.#next(newest, prepared, listed !== undefined)
      if (await createVersion(folder, manifest, this.#deps.onStep)) created = manifest.version
    }
  }

  #next(newest: Manifest | undefined, prepared: PreparedWrite, plainData: boolean): Manifest {
    return nextManifest(newest, { prepared, now: this.#now(), plainData, duckdbType: this.#deps.duckdbType })
  }

  async #commitNow(prepared: PreparedWrite): Promise<CommittedWrite> {
    const { change } = prepared
    switch (change.kind) {
      case 'createSchema': {
        const folder = await this.#folders.newSchemaFolder(change.schema)
        await makeFolder(folder)
        return this.#commitVersion(folder, prepared)
      }
      case 'dropSchema': {
        const folder = await this.#folders.schemaFolder(change.schema)
        if (folder === undefined) throw gone(`Schema '${this.#deps.targets.nameOf(change)}'`)
        for (const table of prepared.cascade ?? []) await this.#dropObject(folder, table, prepared)
        return this.#commitVersion(folder, prepared)
      }
      default: {
        const parent = await this.#folders.schemaFolder(change.schema)
        if (parent === undefined) throw gone(`Schema '${this.#deps.catalog}.${change.schema}'`)
        const folder = await this.#folders.objectFolder(parent, change.table)
        await makeFolder(folder)
        return this.#commitVersion(folder, prepared)
      }
    }
  }

  /** Drops a table or view with its schema; an object that is already dropped stays as it is. */
  async #dropObject(parent: string, table: string, prepared: PreparedWrite): Promise<void> {
    const { schema } = prepared.change
    const folder = await this.#folders.objectFolder(parent, table)
    const newest = await readNewest(folder)
    if (newest && (committedVersion(newest, prepared.queryId) !== undefined || newest.content.kind === 'dropped'))
      return
    const kind = newest?.content.kind === 'view' ? 'dropView' : 'dropTable'
    const { tableId: _, ...target } = prepared
    await this.#commitVersion(folder, { ...target, change: { kind, schema, table } })
  }

  #queued<T>(key: string, work: () => Promise<T>): Promise<T> {
    const done = (this.#queues.get(key) ?? Promise.resolve()).then(work, work)
    const settled = done
      .catch(() => {})
      .then(() => {
        if (this.#queues.get(key) === settled) this.#queues.delete(key)
      })
    this.#queues.set(key, settled)
    return done
  }
}

export function gone(what: string): EngineError {
  return new EngineError('TRANSACTION_CONFLICT', `${what} was dropped while the query ran`)
}
