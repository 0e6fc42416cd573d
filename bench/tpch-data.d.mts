export function tpchLake(scale: number): Promise<string>
export function tpchViews(folder: string | undefined): string[]
export const tpchTables: readonly string[]
