import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** The folder of built programs: two folders up from here in `src/`, `dist/` and the bundle alike. */
const built = join(fileURLToPath(new URL('../../', import.meta.url)), 'dist')
const bundle = join(built, 'bundle')

/**
 * File URL of a built program, named by its file below `src` without the extension. `bundle.mjs` makes each program one
 * file with all of its imports: Node takes half of a start's CPU to find and link the 1,200 files of a coordinator. A
 * bundle that was not made from the current `dist` is not used.
 */
export function programUrl(path: string): URL {
  const name = path.slice(path.lastIndexOf('/') + 1)
  return isBundled() || bundleIsOfToday() ? fileUrl(bundle, name) : fileUrl(built, path)
}

function fileUrl(folder: string, program: string): URL {
  return pathToFileURL(join(folder, `${program}.js`))
}

function isBundled(): boolean {
  return dirname(fileURLToPath(import.meta.url)) === bundle
}

/**
 * Whether the bundle was made from the current `dist`: any change of a source changes the compiler's record of them,
 * whose digest the bundle carries.
 */
function bundleIsOfToday(): boolean {
  try {
    const record = createHash('sha256')
      .update(readFileSync(join(built, '.tsbuildinfo')))
      .digest('hex')
    return readFileSync(join(bundle, 'made-of'), 'utf8') === record
  } catch {
    return false
  }
}
