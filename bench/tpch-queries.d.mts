export const tpchQueries: Readonly<Record<string, string>>
