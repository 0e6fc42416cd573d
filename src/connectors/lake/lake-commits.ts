import { randomUUID } from 'node:crypto'
import { rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import type { CommittedWrite, PreparedWrite, TableChange } from '../spi/table-writer.ts'
import { mayAdopt, type ChangeTargets, type ChangeTargetsDeps } from './change-targets.ts'
import { folderInTheMaking } from './folder-names.ts'
import type { LakeFolders } from './lake-folders.ts'
import type { ListedFiles } from './lake-files.ts'
import { committedVersion, movedId, type Instant, type Manifest, type ManifestContent } from './manifest.ts'
import { adoptedContent } from './manifest-table.ts'
import { factsOf } from './plain-table.ts'
import { adoption, conflict, nextContent, nextManifest, versionAfter, type Before } from './next-content.ts'
import {
  createVersion,
  makeFolder,
  readNewest,
  relativeFolder,
  syncFolder,
  type Chain,
  type OnStep,
} from './version-chain.ts'
import { newestIn, visibleContent } from './visibility.ts'

type RenameObject = Extract<TableChange, { to: object }>
type RenameSchema = Extract<TableChange, { kind: 'renameSchema' }>

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
    this.#now = deps.now ?? (() => Date.now())
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
    const newest = await this.#newest('table' in change ? await folders.objectFolder(parent, change.table) : parent)
    const version = newest && committedVersion(newest, queryId)
    return version === undefined ? undefined : { version, changed: false }
  }

  /** Makes a manifest for a folder of plain files, before anything is changed. */
  async #adopt(folder: string, listed: ListedFiles): Promise<void> {
    const found = await factsOf(listed, this.#deps.cache)
    const manifest = adoption(adoptedContent(found, this.#deps.duckdbType), this.#now())
    await createVersion(this.#chain(folder), manifest, { isFirst: true, onStep: this.#deps.onStep })
  }

  /**
   * The data files of a table's folder without versions, which is made if it does not exist; files in a schema's folder
   * belong to no table.
   */
  async #plainFiles(folder: string, { change }: PreparedWrite): Promise<ListedFiles | undefined> {
    if (!('table' in change)) return undefined
    await makeFolder(folder)
    return this.#folders.dataFiles(change.schema, change.table, folder)
  }

  #chain(folder: string): Chain {
    return { location: this.#deps.location, folder }
  }

  #newest(folder: string): Promise<Manifest | undefined> {
    return readNewest(this.#chain(folder))
  }

  #relative(folder: string): string {
    return relativeFolder(this.#chain(folder))
  }

  /**
   * Makes one object's next version, unless its newest version has the query's change.
   * @param above the version gets a higher number
   */
  async #commitVersion(
    folder: string,
    prepared: PreparedWrite,
    content: (before: Before) => ManifestContent = (before) => nextContent(before, prepared, this.#deps.duckdbType),
    above = 0,
  ): Promise<CommittedWrite> {
    let created: number | undefined
    for (;;) {
      const newest = await this.#newest(folder)
      await this.#deps.onStep?.('read', newest?.version ?? 0)
      const version = newest && committedVersion(newest, prepared.queryId)
      if (version !== undefined) return { version, changed: version === created }
      const listed = newest ? undefined : await this.#plainFiles(folder, prepared)
      if (listed && prepared.change.kind !== 'dropSchema' && mayAdopt(prepared.change)) {
        await this.#adopt(folder, listed)
        continue
      }
      const visible = newest && (await visibleContent(newest.content, newestIn(this.#deps.location)))
      const now = this.#now()
      const before = { newest, visible, plainData: listed !== undefined, folder: this.#relative(folder), now }
      // The loop continues even when this succeeds. A committer may be delayed so long that later versions were made and
      // the next one was swept; then it has created a version that no reader uses. Only the newest version counts.
      const manifest = nextManifest(newest, prepared, content(before), now, above)
      const { onStep } = this.#deps
      if (await createVersion(this.#chain(folder), manifest, { isFirst: !newest, onStep })) created = manifest.version
    }
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
        const folder = await this.#schemaFolder(change.schema)
        for (const table of prepared.cascade ?? []) await this.#dropObject(folder, table, prepared)
        return this.#commitVersion(folder, prepared)
      }
      case 'renameTable':
      case 'renameView':
      case 'renameMaterializedView':
        return this.#renameObject(prepared, change)
      case 'renameSchema':
        return this.#renameSchema(prepared, change)
      default: {
        const folder = await this.#folders.objectFolder(await this.#schemaFolder(change.schema), change.table)
        return this.#commitVersion(folder, prepared)
      }
    }
  }

  async #schemaFolder(schema: string): Promise<string> {
    const folder = await this.#folders.schemaFolder(schema)
    if (folder === undefined) throw gone(`Schema '${this.#deps.catalog}.${schema}'`)
    return folder
  }

  /**
   * Renames an object by two commits: the first makes it under its new name, the second ends its old name. Readers see
   * the new name from the second commit on. Both commits can be repeated.
   */
  async #renameObject(prepared: PreparedWrite, change: RenameObject): Promise<CommittedWrite> {
    const { queryId } = prepared
    const folder = await this.#folders.objectFolder(await this.#schemaFolder(change.schema), change.table)
    const target = await this.#folders.objectFolder(await this.#schemaFolder(change.to.schema), change.to.table)
    const old = await this.#manifestOf(folder, prepared)
    const version = committedVersion(old, queryId)
    if (version !== undefined) return { version, changed: false }
    const content = await visibleContent(old.content, newestIn(this.#deps.location))
    if (!isRenamed(content, prepared)) throw gone(`'${this.#deps.targets.nameOf(change)}'`)
    const since = { folder: this.#relative(folder), version: old.version, queryId }
    await this.#moveTo(target, prepared, old, since, since.folder)
    return this.#commitVersion(folder, prepared, () => ({ kind: 'dropped', movedTo: this.#relative(target) }))
  }

  /**
   * The objects of the schema get manifests in the folder of its new name, which readers see from the last commit on:
   * the end of the old name. Until then readers see the objects of the old name.
   */
  async #renameSchema(prepared: PreparedWrite, change: RenameSchema): Promise<CommittedWrite> {
    const { queryId } = prepared
    const folder = await this.#schemaFolder(change.schema)
    const old = await this.#newest(folder)
    const version = old && committedVersion(old, queryId)
    if (version !== undefined) return { version, changed: false }
    const instant = { folder: this.#relative(folder), version: old?.version ?? 0, queryId }
    const target = await this.#folders.newSchemaFolder(change.to)
    await this.#makeSchema(target, prepared, instant)
    for (const name of prepared.cascade ?? []) {
      const [from, to] = [
        await this.#folders.objectFolder(folder, name),
        await this.#folders.objectFolder(target, name),
      ]
      const object = await this.#manifestOf(from, { ...prepared, change: { kind: 'dropTable', schema: change.schema, table: name } }) // prettier-ignore
      const { content } = object
      if (content.kind === 'schema' || content.kind === 'dropped') continue
      await makeFolder(to)
      await this.#moveTo(to, prepared, object, instant, this.#relative(from))
      await this.#commitVersion(from, prepared, () => ({ ...content, until: instant }))
    }
    return this.#commitVersion(folder, prepared, () => ({ kind: 'dropped', movedTo: this.#relative(target) }))
  }

  /** Makes a new folder visible together with its manifest: readers take a folder without manifest for a schema. */
  async #makeSchema(folder: string, prepared: PreparedWrite, since: Instant): Promise<void> {
    const content = { kind: 'schema', since } as const
    if ((await stat(folder).catch(() => undefined)) === undefined) {
      const hidden = join(dirname(folder), folderInTheMaking(prepared.queryId, randomUUID()))
      await makeFolder(hidden)
      const manifest = nextManifest(undefined, prepared, content, this.#now())
      await createVersion(this.#chain(hidden), manifest, { isFirst: true })
      await rename(hidden, folder).catch(() => rm(hidden, { recursive: true, force: true }))
      await syncFolder(dirname(folder))
    }
    await this.#commitVersion(folder, prepared, () => content)
  }

  /** The newest manifest of an object, made from its plain files if it has none. */
  async #manifestOf(folder: string, prepared: PreparedWrite): Promise<Manifest> {
    for (;;) {
      const newest = await this.#newest(folder)
      if (newest) return newest
      const listed = await this.#plainFiles(folder, prepared)
      if (!listed) throw gone(`'${this.#deps.targets.nameOf(prepared.change)}'`)
      await this.#adopt(folder, listed)
    }
  }

  /** Makes the manifest of an object under its new name. Its version is higher than the last one of the old name. */
  async #moveTo(folder: string, prepared: PreparedWrite, old: Manifest, since: Instant, from: string): Promise<void> {
    const content = movedContent(old.content, from, prepared)
    await this.#commitVersion(
      folder,
      prepared,
      ({ newest, visible, plainData }) => {
        if (plainData || (visible && visible.kind !== 'dropped'))
          throw conflict(`'${this.#relative(folder)}' was created by another writer`)
        if (content.kind !== 'table') return { ...content, since }
        // A change of rows that was analyzed before is refused: another table may have had this name.
        return { ...content, changedAt: versionAfter(newest, old.version), since }
      },
      old.version,
    )
  }

  /** Drops a table or view with its schema; an object that is already dropped stays as it is. */
  async #dropObject(parent: string, table: string, prepared: PreparedWrite): Promise<void> {
    const { schema } = prepared.change
    const folder = await this.#folders.objectFolder(parent, table)
    const newest = await this.#newest(folder)
    const content = newest && (await visibleContent(newest.content, newestIn(this.#deps.location)))
    if (newest && (committedVersion(newest, prepared.queryId) !== undefined || content?.kind === 'dropped')) return
    const kind = content?.kind === 'view' ? 'dropView' : content?.kind === 'materializedView' ? 'dropMaterializedView' : 'dropTable' // prettier-ignore
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

/** Whether the object is the one that the prepared change gives another name. */
function isRenamed(content: ManifestContent, { change, tableId }: PreparedWrite): boolean {
  switch (change.kind) {
    case 'renameView':
      return content.kind === 'view'
    case 'renameMaterializedView':
      return content.kind === 'materializedView' && content.id === tableId
    default:
      return content.kind === 'table' && content.id === tableId
  }
}

/** The object as it is under its new name. @param from its old folder, relative to the location */
function movedContent(
  content: ManifestContent,
  from: string,
  { queryId }: PreparedWrite,
): ManifestContent & { kind: 'table' | 'view' | 'materializedView' } {
  switch (content.kind) {
    case 'table': {
      const { until: _, adopted, ...table } = content
      const id = movedId(table.id, queryId, from)
      return { ...table, id, ...(adopted && { adopted: { ...adopted, folder: adopted.folder ?? from } }) }
    }
    case 'view':
    case 'materializedView': {
      const { until: _, ...view } = content
      return view
    }
    case 'schema':
    case 'dropped':
      throw new Error(`${content.kind} does not move`)
  }
}

export function gone(what: string): EngineError {
  return new EngineError('TRANSACTION_CONFLICT', `${what} was dropped while the query ran`)
}
