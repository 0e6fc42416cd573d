import { z } from 'zod'
import { storedColumnSchema, viewDefinitionSchema, writtenFileSchema } from '../spi/table-writer.ts'
import { adoptedSchema, innerPathSchema, manifestHead, type Manifest, type ManifestContent } from './manifest.ts'

/**
 * The first format: files have the columns of the table under their names, and their paths are relative to the folder
 * of the table. Manifests of this format are read for ever, and never written.
 */
const firstFormatSchema = z.object({
  format: z.literal(1),
  ...manifestHead,
  content: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('schema') }),
    z.object({
      kind: z.literal('table'),
      id: z.string(),
      comment: z.string().optional(),
      columns: z.array(storedColumnSchema.extend({ duckdbType: z.string() })),
      files: z.array(writtenFileSchema.omit({ change: true }).extend({ path: innerPathSchema })),
      adopted: adoptedSchema.optional(),
    }),
    z.object({ kind: z.literal('view'), definition: viewDefinitionSchema }),
    z.object({ kind: z.literal('dropped') }),
  ]),
})
type FirstFormat = z.infer<typeof firstFormatSchema>

const ONLY_SCHEMA = 1

/** @param folder of the object, relative to the location */
export function parseFirstFormat(json: unknown, folder: string): Manifest {
  const { content, ...head } = firstFormatSchema.parse(json)
  return { ...head, format: 2, content: upgraded(content, folder) }
}

function upgraded(content: FirstFormat['content'], folder: string): ManifestContent {
  if (content.kind !== 'table') return content
  const columns = content.columns.map((column, index) => ({ ...column, id: index + 1, physical: column.name }))
  return {
    ...content,
    columns,
    nextColumn: columns.length + 1,
    schemas: [
      { id: ONLY_SCHEMA, columns: columns.map(({ id, physical, duckdbType }) => ({ id, physical, duckdbType })) },
    ],
    fileSchema: ONLY_SCHEMA,
    files: content.files.map((file) => ({ ...file, path: `${folder}/${file.path}`, schema: ONLY_SCHEMA })),
    removals: [],
    // In format 1, no version removed single rows or changed columns. A replaced table has another id.
    changedAt: 1,
  }
}
