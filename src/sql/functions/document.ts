import type { FunctionDefinition } from './function-definition.ts'
import { functionFamilies, nameOf } from './function-table.ts'

/** Generates `docs/functions.md`, the function table for readers, so that it always matches the engine. */
export function functionsDocument(): string {
  const families = Object.entries(functionFamilies()).map(
    ([family, definitions]) => [family, definitions.filter((definition) => !definition.hidden)] as const,
  )
  const all = families.flatMap(([, definitions]) => definitions)
  const names = new Set(all.map(nameOf))
  const sections = families.map(([family, definitions]) => section(family, definitions))
  return `# Functions

Generated from the function table (\`npm run docs:functions\`): ${names.size} names, ${all.length} signatures. Names,
signatures and results are Trino's. A note says where a result may differ; without one it is Trino's, errors included.
Machine learning and geospatial functions are left out: they are FUNCTION_NOT_FOUND. Times finer than microseconds are
carried, compared, cast and printed; functions that would cut them say NOT_SUPPORTED. The rules of time zones are those of
the ICU of the Node that an engine runs in: workers with other versions of Node may differ in years to come.

${sections.join('\n\n')}
`
}

function section(family: string, definitions: readonly FunctionDefinition[]): string {
  const rows = definitions
    .toSorted((a, b) => (a.signature < b.signature ? -1 : 1))
    .map((definition) => {
      const kind = definition.deterministic ? definition.kind : `${definition.kind}, not deterministic`
      return `| \`${definition.signature}\` | ${result(definition)} | ${kind} | ${definition.note} |`
    })
  return `## ${family}

| function | result | kind | note |
| --- | --- | --- | --- |
${rows.join('\n')}`
}

function result(definition: FunctionDefinition): string {
  return typeof definition.result === 'string' ? `\`${definition.result}\`` : 'by the arguments'
}
