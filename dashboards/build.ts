import { mkdirSync, writeFileSync } from 'node:fs'
import { files } from './files.ts'

/** Writes what Grafana and Prometheus read: `npm run dashboards`. A test keeps the files in step with the code. */
for (const [name, text] of files()) {
  const path = new URL(name, new URL('../../../dashboards/', import.meta.url))
  mkdirSync(new URL('.', path), { recursive: true })
  writeFileSync(path, text)
}
