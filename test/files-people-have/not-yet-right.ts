/** Cases whose answer is not right yet, each with its class. A case leaves the list with the change that makes it right. */
export const notYetRight: Readonly<Record<string, string>> = {
  bn1: 'big-numbers',
  csv1: 'csv-dialect',
  csv2: 'csv-dialect',
  csv4: 'csv-dialect',
  le1: 'csv-line-ends',
  le2: 'csv-line-ends',
  lv1: 'late-values',
  lv3: 'late-values',
  lv4: 'late-values',
  bss_i32: 'parquet-encodings',
  bss_dec: 'parquet-encodings',
  timens: 'parquet-types',
  geo: 'parquet-types',
  rn1: 'rename',
}
