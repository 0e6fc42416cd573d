import { basename, dirname, join } from 'node:path'
import type { SchemaTableName } from '../spi/connector.ts'
import { folderOfName, nameOfFolder } from './folder-names.ts'
import { listDataFiles, listFolders, pickName, type ListedFiles } from './lake-files.ts'
import { resolveInside } from './resolve-inside.ts'
import type { TextTest } from './column-search.ts'
import type { Manifest } from './manifest.ts'
import type { TableSettings } from './table-settings.ts'
import { readNewest, relativeFolder } from './version-chain.ts'
import { newestIn, visibleContent, type NewestOf } from './visibility.ts'

/**
 * The object of a name in a schema: from its newest manifest, or else from the data files of its folder; undefined when
 * there is no object (no folder, no files, dropped).
 */
export type NamedObject =
  | { readonly kind: 'TABLE' | 'VIEW' | 'MATERIALIZED_VIEW'; readonly folder: string; readonly manifest: Manifest }
  | { readonly kind: 'PLAIN'; readonly folder: string; readonly listed: ListedFiles }

type TakeObject = (name: string, object: NamedObject) => void | Promise<void>

/** The number of folders that are examined at a time. */
const AT_ONCE = 16

/** Schemas, tables and views of a location, by SQL names. */
export interface LakeFolders {
  /** The schema's folder, links followed, dropped or not; undefined when there is none. */
  schemaFolder(schema: string): Promise<string | undefined>
  /** The folder for a new schema: an existing one, or one named for it. */
  newSchemaFolder(schema: string): Promise<string>
  isSchema(schema: string): Promise<boolean>
  listSchemas(): Promise<string[]>
  /**
   * The folder of a name in a schema's folder, whatever it contains; a folder that does not exist yet is named for it.
   */
  objectFolder(schemaFolder: string, name: string): Promise<string>
  find(schema: string, name: string): Promise<NamedObject | undefined>
  /**
   * Passes on the objects of a schema, a few at a time. Objects that cannot be read (mixed formats, links that lead
   * out) are left out.
   * @param named folders of names that this rejects are not examined
   * @param wanted objects with a manifest whose text this rejects are left out, unless the manifest is parsed already
   */
  each(schema: string, named: (name: string) => boolean, take: TakeObject, wanted?: TextTest): Promise<void>
  /** The data files in the folder of a name without manifest; undefined when there are none. */
  dataFiles(schema: string, name: string, folder: string): Promise<ListedFiles | undefined>
  /** @param named folders of names that this rejects are not examined */
  list(schema: string, named?: (name: string) => boolean): Promise<SchemaTableName[]>
}

/** @param settings the catalog file's settings of tables, by `schema.table` */
export function createLakeFolders(
  location: string,
  settings: ReadonlyMap<string, TableSettings> = new Map(),
): LakeFolders {
  return new LocationFolders(location, settings)
}

class LocationFolders implements LakeFolders {
  readonly #location: string
  readonly #settings: ReadonlyMap<string, TableSettings>
  readonly #foldersIn = sharedAsk((path: string) => listFolders(path))
  readonly #inside: (path: string) => Promise<string>

  constructor(location: string, settings: ReadonlyMap<string, TableSettings>) {
    this.#location = location
    this.#settings = settings
    this.#inside = sharedAsk((path: string) => resolveInside(location, path))
  }

  async schemaFolder(schema: string): Promise<string | undefined> {
    const name = pickName(await this.#foldersIn(this.#location), schema, 'Schema')
    return name === undefined ? undefined : this.#inside(join(this.#location, name))
  }

  async newSchemaFolder(schema: string): Promise<string> {
    return (await this.schemaFolder(schema)) ?? join(this.#location, folderOfName(schema))
  }

  async isSchema(schema: string): Promise<boolean> {
    const folder = await this.schemaFolder(schema)
    return folder !== undefined && this.#isLive(folder)
  }

  async listSchemas(): Promise<string[]> {
    const schemas: string[] = []
    for (const [name, found] of await listFolders(this.#location)) {
      if (found.length > 1) continue
      const folder = await resolveInside(this.#location, join(this.#location, found[0]!)).catch(() => undefined)
      // A link may lead out of the location. The list contains this schema, but a statement that uses it is refused.
      if (folder === undefined || (await this.#isLive(folder))) schemas.push(name)
    }
    return schemas.sort()
  }

  async objectFolder(parent: string, name: string): Promise<string> {
    const found = pickName(await listFolders(parent), name, 'Table')
    return found === undefined ? join(parent, folderOfName(name)) : resolveInside(this.#location, join(parent, found))
  }

  async find(schema: string, name: string): Promise<NamedObject | undefined> {
    const parent = await this.schemaFolder(schema)
    const found = parent && pickName(await this.#foldersIn(parent), name, 'Table')
    return found ? this.#objectAt(schema, name, await this.#inside(join(parent, found))) : undefined
  }

  dataFiles(schema: string, name: string, folder: string): Promise<ListedFiles | undefined> {
    return listDataFiles(this.#location, folder, this.#settings.get(`${schema}.${name}`))
  }

  async each(schema: string, named: (name: string) => boolean, take: TakeObject, wanted?: TextTest): Promise<void> {
    const folder = await this.schemaFolder(schema)
    if (folder !== undefined) await this.#eachIn(schema, folder, named, take, wanted)
  }

  async list(schema: string, named: (name: string) => boolean = () => true): Promise<SchemaTableName[]> {
    const tables: SchemaTableName[] = []
    await this.each(schema, named, (table, { kind }) => {
      tables.push({ schema, table, kind: kind === 'VIEW' ? 'VIEW' : 'TABLE' })
    })
    return tables.sort((a, b) => (a.table < b.table ? -1 : 1))
  }

  async #objectAt(schema: string, name: string, folder: string): Promise<NamedObject | undefined> {
    const manifest = await readNewest({ location: this.#location, folder })
    return manifest ? objectOf(folder, manifest, newestIn(this.#location)) : this.#filesOf(schema, name, folder)
  }

  async #filesOf(schema: string, name: string, folder: string): Promise<NamedObject | undefined> {
    const listed = await this.dataFiles(schema, name, folder)
    return listed && { kind: 'PLAIN', folder, listed }
  }

  /** @param folder with links followed: then a subfolder that is not a link has its real path */
  async #eachIn(
    schema: string,
    folder: string,
    named: (name: string) => boolean,
    take: TakeObject,
    wanted?: TextTest,
  ): Promise<void> {
    const location = this.#location
    const links = new Set<string>()
    const listed = await listFolders(folder, (name) => links.add(name))
    const names = [...listed].filter(([name, found]) => found.length === 1 && named(name)).sort()
    const listing = new ConsistentListing(location)
    const examine = async (name: string, found: string): Promise<NamedObject | undefined> => {
      const path = join(folder, found)
      const real = links.has(found) ? await resolveInside(location, path) : path
      const manifest = await readNewest({ location, folder: real }, wanted)
      if (manifest === 'refused') return undefined
      return manifest ? listing.see(name, real, manifest) : this.#filesOf(schema, name, real)
    }
    for (let from = 0; from < names.length; from += AT_ONCE) {
      const some = names.slice(from, from + AT_ONCE)
      const objects = await Promise.all(some.map(([name, [found]]) => examine(name, found!).catch(() => undefined)))
      for (const [i, object] of objects.entries()) if (object) await take(some[i]![0], object)
    }
    for (const { name, object } of await listing.moved()) if (named(name)) await take(name, object)
  }

  async #hasObjects(folder: string): Promise<boolean> {
    let found = false
    await this.#eachIn('', folder, () => true, () => void (found = true)) // prettier-ignore
    return found
  }

  /**
   * Whether a schema is not dropped. A dropped schema still counts if another writer put a table into it at the same
   * moment, so that nothing committed is lost.
   */
  async #isLive(folder: string): Promise<boolean> {
    const newest = await readNewest({ location: this.#location, folder })
    if (!newest) return true
    const { kind } = await visibleContent(newest.content, newestIn(this.#location))
    if (kind !== 'dropped') return true
    // Readers do not see a schema under its new name before the instant of the rename.
    return newest.content.kind === 'dropped' && (await this.#hasObjects(folder))
  }
}

/**
 * The objects of a schema as of one instant, although their manifests are read one after the other: an object that gets
 * another name meanwhile is listed under exactly one of its names.
 */
class ConsistentListing {
  readonly #location: string
  /** Manifests by their folders, relative to the location, as this listing read them. */
  readonly #seen = new Map<string, Manifest>()
  /** Objects that readers see only from an instant on. */
  readonly #later: { readonly name: string; readonly folder: string; readonly manifest: Manifest }[] = []
  readonly #movedTo = new Set<string>()

  constructor(location: string) {
    this.#location = location
  }

  /** @returns the object; undefined if there is none, or if only the whole listing decides whether there is one */
  async see(name: string, folder: string, manifest: Manifest): Promise<NamedObject | undefined> {
    const { content } = manifest
    const path = relativeFolder({ location: this.#location, folder })
    this.#seen.set(path, manifest)
    if ('since' in content && content.since) this.#later.push({ name, folder, manifest })
    else if (content.kind !== 'dropped') return objectOf(folder, manifest, newestIn(this.#location))
    else if (content.movedTo !== undefined) this.#movedTo.add(content.movedTo)
    return undefined
  }

  /** The objects that were left out: those with an instant, and those that moved after their new name was read. */
  async moved(): Promise<readonly { readonly name: string; readonly object: NamedObject }[]> {
    const found: { readonly name: string; readonly object: NamedObject }[] = []
    const later = [...this.#later]
    for (const path of this.#movedTo) {
      const seen = this.#seen.get(path)
      if (!this.#isBeside(path) || (seen && seen.content.kind !== 'dropped')) continue
      const folder = join(this.#location, path)
      const manifest = await readNewest({ location: this.#location, folder })
      if (manifest) later.push({ name: nameOfFolder(basename(path)), folder, manifest })
    }
    const fresh = newestIn(this.#location)
    for (const { name, folder, manifest } of later) {
      const object = await objectOf(folder, manifest, async (path) => this.#seen.get(path) ?? fresh(path))
      if (object) found.push({ name, object })
    }
    return found
  }

  /** Whether a folder is in the schema of this listing. */
  #isBeside(path: string): boolean {
    const [seen] = this.#seen.keys()
    return seen !== undefined && dirname(seen) === dirname(path)
  }
}

async function objectOf(folder: string, manifest: Manifest, newestOf: NewestOf): Promise<NamedObject | undefined> {
  const { kind } = await visibleContent(manifest.content, newestOf)
  switch (kind) {
    case 'table':
      return { kind: 'TABLE', folder, manifest }
    case 'view':
      return { kind: 'VIEW', folder, manifest }
    case 'materializedView':
      return { kind: 'MATERIALIZED_VIEW', folder, manifest }
    case 'schema':
    case 'dropped':
      return undefined
  }
}

/**
 * Shares one call among all callers in one pass of the event loop, such as the scans of a query. A call in a later pass
 * never gets an earlier answer, so it sees every change that this process knew of before the call.
 */
function sharedAsk<T>(ask: (path: string) => Promise<T>): (path: string) => Promise<T> {
  const asked = new Map<string, Promise<T>>()
  return (path) => {
    const known = asked.get(path)
    if (known) return known
    if (asked.size === 0) process.nextTick(() => asked.clear())
    const answer = ask(path)
    asked.set(path, answer)
    return answer
  }
}
