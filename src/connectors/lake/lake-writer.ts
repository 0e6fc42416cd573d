import { join } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import type {
  CommittedWrite,
  ConnectorWriter,
  PreparedWrite,
  StoredColumn,
  TableChange,
  WriteTarget,
} from '../spi/table-writer.ts'
import { createAttempts, DATA_FOLDER } from './attempts.ts'
import type { FileFactsCache } from './file-facts.ts'
import type { LakeFolders, NamedObject } from './lake-folders.ts'
import { listDataFiles } from './lake-files.ts'
import { adoption, ADOPTED_ID, committedVersion, nextManifest, type Manifest } from './manifest.ts'
import { adoptedContent } from './manifest-table.ts'
import { findFiles } from './plain-table.ts'
import { checkWritable } from './refusals.ts'
import { sweepLake } from './sweep.ts'
import { createVersion, makeFolder, MANIFEST_FOLDER, readNewest, type OnStep } from './version-chain.ts'

export interface LakeWriterDeps {
  readonly catalog: string
  readonly location: string
  readonly folders: LakeFolders
  readonly cache: FileFactsCache
  duckdbType(type: string): string
  /** Wall clock, milliseconds. */
  readonly now?: () => number
  /** Told where a commit is: for tests of crashes. */
  readonly onStep?: OnStep
}

/** Writes of a lake: every change is a new version of one manifest, created if nobody has. */
export function createLakeWriter(deps: LakeWriterDeps): ConnectorWriter {
  const { catalog, location, folders } = deps
  const now = deps.now ?? Date.now
  const attempts = createAttempts(folders)
  /** Commits of this process to one folder go one after the other: they would only be each other's conflicts. */
  const queues = new Map<string, Promise<unknown>>()

  async function resolve(change: TableChange): Promise<Pick<WriteTarget, 'baseVersion' | 'tableId' | 'columns'>> {
    if (change.kind === 'createSchema' || change.kind === 'dropSchema') {
      const there = await folders.isSchema(change.schema)
      if (change.kind === 'createSchema' && there) throw exists('SCHEMA_ALREADY_EXISTS', `Schema '${name(change)}'`)
      if (change.kind === 'dropSchema' && !there) throw missingSchema(name(change))
      if (change.kind === 'dropSchema' && !change.cascade && (await folders.list(change.schema)).length > 0) {
        throw new EngineError('SCHEMA_NOT_EMPTY', `Cannot drop non-empty schema '${change.schema}'`)
      }
      const folder = await folders.schemaFolder(change.schema)
      return { baseVersion: await newestVersion(folder), columns: [] }
    }
    if (!(await folders.isSchema(change.schema))) throw missingSchema(`${catalog}.${change.schema}`)
    const object = await folders.find(change.schema, change.table)
    const baseVersion =
      object && 'manifest' in object ? object.manifest.version : await newestVersion(await objectFolder(change))
    switch (change.kind) {
      case 'createTable':
        if (object?.kind === 'VIEW' || (object && !change.replace)) {
          throw exists('TABLE_ALREADY_EXISTS', `${object.kind === 'VIEW' ? 'View' : 'Table'} '${name(change)}'`)
        }
        for (const { type } of change.columns) deps.duckdbType(type)
        return { baseVersion, columns: change.columns }
      case 'insert':
      case 'dropTable':
        if (!object || object.kind === 'VIEW') throw missingTable(name(change))
        return { baseVersion, ...tableId(object), columns: change.kind === 'insert' ? await columnsOf(object) : [] }
      case 'createView':
        if (object && !(object.kind === 'VIEW' && change.replace)) {
          throw exists('TABLE_ALREADY_EXISTS', `${object.kind === 'VIEW' ? 'View' : 'Table'} '${name(change)}'`)
        }
        return { baseVersion, columns: [] }
      case 'dropView':
        if (object?.kind !== 'VIEW') throw missingTable(name(change))
        return { baseVersion, columns: [] }
    }
  }

  /** Also of a name that was dropped. */
  async function newestVersion(folder: string | undefined): Promise<number> {
    return folder === undefined ? 0 : ((await readNewest(folder))?.version ?? 0)
  }

  async function objectFolder({ schema, table }: { schema: string; table: string }): Promise<string | undefined> {
    const parent = await folders.schemaFolder(schema)
    return parent && folders.objectFolder(parent, table)
  }

  /** What is decided will be carried out: a change that the system would refuse is refused before. */
  async function checkPlace(change: { readonly schema: string; readonly table?: string }): Promise<void> {
    const { schema, table } = change
    const parent = (await folders.schemaFolder(schema)) ?? location
    const folder = table === undefined ? parent : await folders.objectFolder(parent, table)
    for (const part of [MANIFEST_FOLDER, DATA_FOLDER]) await checkWritable(catalog, join(folder, part))
  }

  /** And one that needs what nobody can read: the files of a table without manifest, of which it gets one first. */
  async function checkObject(change: { readonly schema: string; readonly table: string }): Promise<void> {
    await checkPlace(change)
    const object = await folders.find(change.schema, change.table)
    if (object?.kind === 'PLAIN') await findFiles(location, object.folder, deps.cache)
  }

  async function columnsOf(object: NamedObject): Promise<StoredColumn[]> {
    if (object.kind === 'PLAIN') {
      const found = await findFiles(location, object.folder, deps.cache)
      return (found?.columns ?? []).map(({ name: column, type }) => ({ name: column, type, nullable: true }))
    }
    const { content } = object.manifest
    return content.kind === 'table' ? content.columns.map(({ duckdbType: _, ...column }) => column) : []
  }

  const name = (change: TableChange): string =>
    'table' in change ? `${catalog}.${change.schema}.${change.table}` : `${catalog}.${change.schema}`

  /** A folder of plain files gets a manifest that names them before anything is changed. */
  async function adopt(folder: string): Promise<void> {
    const found = await findFiles(location, folder, deps.cache)
    if (found) await createVersion(folder, adoption(adoptedContent(found, deps.duckdbType), now()), deps.onStep)
  }

  /** One object's next version, unless its newest has the query's change. */
  async function commitVersion(folder: string, prepared: PreparedWrite): Promise<CommittedWrite> {
    let created: number | undefined
    for (;;) {
      const newest = await readNewest(folder)
      await deps.onStep?.('read', newest?.version ?? 0)
      const version = newest && committedVersion(newest, prepared.queryId)
      if (version !== undefined) return { version, changed: version === created }
      const plainData = !newest && (await listDataFiles(location, folder)) !== undefined
      if (plainData && prepared.change.kind !== 'dropSchema' && mayAdopt(prepared.change)) {
        await adopt(folder)
        continue
      }
      // Not done yet when this succeeds: who slept so long that later versions came and the next one was swept, has
      // created a version that nobody reads. What the newest version says counts.
      const manifest = next(newest, prepared, plainData)
      if (await createVersion(folder, manifest, deps.onStep)) created = manifest.version
    }
  }

  const next = (newest: Manifest | undefined, prepared: PreparedWrite, plainData: boolean): Manifest =>
    nextManifest(newest, { prepared, now: now(), plainData, duckdbType: deps.duckdbType })

  async function commit(prepared: PreparedWrite): Promise<CommittedWrite> {
    const { change } = prepared
    switch (change.kind) {
      case 'createSchema': {
        const folder = await folders.newSchemaFolder(change.schema)
        await makeFolder(folder)
        return commitVersion(folder, prepared)
      }
      case 'dropSchema': {
        const folder = await folders.schemaFolder(change.schema)
        if (folder === undefined) throw gone(`Schema '${name(change)}'`)
        for (const table of prepared.cascade ?? []) await dropObject(folder, table, prepared)
        return commitVersion(folder, prepared)
      }
      default: {
        const parent = await folders.schemaFolder(change.schema)
        if (parent === undefined) throw gone(`Schema '${catalog}.${change.schema}'`)
        const folder = await folders.objectFolder(parent, change.table)
        await makeFolder(folder)
        return commitVersion(folder, prepared)
      }
    }
  }

  /** A table or view that goes with its schema; one that is gone already is left alone. */
  async function dropObject(parent: string, table: string, prepared: PreparedWrite): Promise<void> {
    const { schema } = prepared.change
    const folder = await folders.objectFolder(parent, table)
    const newest = await readNewest(folder)
    if (newest && (committedVersion(newest, prepared.queryId) !== undefined || newest.content.kind === 'dropped'))
      return
    const kind = newest?.content.kind === 'view' ? 'dropView' : 'dropTable'
    const { tableId: _, ...target } = prepared
    await commitVersion(folder, { ...target, change: { kind, schema, table } })
  }

  function inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    const done = (queues.get(key) ?? Promise.resolve()).then(work, work)
    const settled = done
      .catch(() => {})
      .then(() => {
        if (queues.get(key) === settled) queues.delete(key)
      })
    queues.set(key, settled)
    return done
  }

  return {
    async begin(queryId, change) {
      const resolved = await resolve(change)
      await checkPlace(change)
      return { catalog, queryId, change, ...resolved }
    },
    ...attempts,
    async prepare(target, files) {
      const resolved = await resolve(target.change)
      if (target.tableId !== resolved.tableId) throw gone(`Table '${name(target.change)}'`)
      const { change } = target
      await ('table' in change && mayAdopt(change) ? checkObject(change) : checkPlace(change))
      const cascade =
        change.kind === 'dropSchema' && change.cascade
          ? { cascade: (await folders.list(change.schema)).map(({ table }) => table) }
          : {}
      for (const table of cascade.cascade ?? []) await checkObject({ schema: change.schema, table })
      return { ...target, baseVersion: resolved.baseVersion, files: [...files], ...cascade }
    },
    commit: (prepared) => inTurn(name(prepared.change), () => commit(prepared)),
    async find({ change, queryId }) {
      const parent = await folders.schemaFolder(change.schema)
      if (parent === undefined) return undefined
      const newest = await readNewest('table' in change ? await folders.objectFolder(parent, change.table) : parent)
      const version = newest && committedVersion(newest, queryId)
      return version === undefined ? undefined : { version, changed: false }
    },
    sweep: (options) => sweepLake(location, options),
  }
}

/** What needs the files that lie in the folder to be a table. */
function mayAdopt(change: TableChange): boolean {
  return change.kind === 'insert' || change.kind === 'dropTable' || (change.kind === 'createTable' && change.replace)
}

function tableId(object: NamedObject): { readonly tableId?: string } {
  if (object.kind === 'PLAIN') return { tableId: ADOPTED_ID }
  return object.manifest.content.kind === 'table' ? { tableId: object.manifest.content.id } : {}
}

function exists(errorName: 'SCHEMA_ALREADY_EXISTS' | 'TABLE_ALREADY_EXISTS', what: string): EngineError {
  return new EngineError(errorName, `${what} already exists`)
}

function missingSchema(schema: string): EngineError {
  return new EngineError('SCHEMA_NOT_FOUND', `Schema '${schema}' does not exist`)
}

function missingTable(table: string): EngineError {
  return new EngineError('TABLE_NOT_FOUND', `Table '${table}' does not exist`)
}

function gone(what: string): EngineError {
  return new EngineError('TRANSACTION_CONFLICT', `${what} was dropped while the query ran`)
}
