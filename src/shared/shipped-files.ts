import { fileURLToPath } from 'node:url'

/** Two folders up from here in `src/`, `dist/` and the bundle alike. */
const root = new URL('../../', import.meta.url)

/** Folder of what is shipped with the project beside its code. */
export const shippedFiles: string = fileURLToPath(new URL('etc', root))

/** Folder of what is done to the database, once, in the order of the files' names. */
export const migrationsFolder: string = fileURLToPath(new URL('migrations', root))
