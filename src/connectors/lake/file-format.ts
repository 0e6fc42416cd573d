/** The formats of a table's files. */
export const fileFormats = ['parquet', 'csv', 'json'] as const
export type FileFormat = (typeof fileFormats)[number]
