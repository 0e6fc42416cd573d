import { fileURLToPath } from 'node:url'

/** The project's folder: two folders up from here in `src/`, `dist/` and the bundle alike. */
const root = new URL('../../', import.meta.url)

/** The folder of files that are shipped with the code. */
export const shippedFiles: string = fileURLToPath(new URL('etc', root))

/** The folder of migrations. Each is applied to the database once, in the order of the file names. */
export const migrationsFolder: string = fileURLToPath(new URL('migrations', root))

/** The folder of the built console. */
export const consoleFolder: string = fileURLToPath(new URL('dist/console', root))
