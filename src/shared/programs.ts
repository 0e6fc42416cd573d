import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** Two folders up from here in `src/`, `dist/` and the bundle alike. */
const built = join(fileURLToPath(new URL('../../', import.meta.url)), 'dist')
const bundle = join(built, 'bundle')

/**
 * File URL of a built program, named by its file below `src` without an ending. `bundle.mjs` makes each of them one file with
 * all that it imports, since Node takes half a start's CPU to find and link the 1,200 files of a coordinator; a bundle that was
 * not made of what lies in `dist` now is left alone.
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

/** Any change of a source changes the compiler's own record of them, whose digest the bundle carries. */
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
