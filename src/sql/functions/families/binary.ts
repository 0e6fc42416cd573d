import { PARTIAL, named, scalar, type FunctionDefinition } from '../function-definition.ts'

/** A decoder that accepts text, or the same text as bytes. */
function decoder(name: string, call: (text: string) => string): FunctionDefinition[] {
  return [
    scalar(`${name}(varchar(x))`, 'varbinary', call('$1'), PARTIAL),
    scalar(`${name}(varbinary)`, 'varbinary', call('decode($1)'), PARTIAL),
  ]
}

export const binaryFunctions: readonly FunctionDefinition[] = [
  scalar('to_utf8(varchar(x))', 'varbinary', 'encode($1)', PARTIAL),
  scalar('to_utf8(char(x))', 'varbinary', 'encode($1)', PARTIAL),
  scalar('from_utf8(varbinary)', 'varchar', `coalesce(TRY(least(decode($1))), u_from_utf8($1, chr(65533)))`, PARTIAL),
  scalar('from_utf8(varbinary, varchar(x))', 'varchar', 'q_from_utf8($1, $2)', PARTIAL),
  scalar('from_utf8(varbinary, bigint)', 'varchar', 'q_from_utf8($1, t_chr($2))', PARTIAL),
  scalar('to_hex(varbinary)', 'varchar', 'hex($1)', PARTIAL),
  ...decoder('from_hex', (x) => `q_from_hex(${x})`),
  scalar('to_base64(varbinary)', 'varchar', 'to_base64($1)', PARTIAL),
  ...decoder('from_base64', (x) => `q_from_base64(${x})`),
  scalar('to_base64url(varbinary)', 'varchar', `translate(to_base64($1), '+/', '-_')`, PARTIAL),
  ...decoder('from_base64url', (x) => `q_from_base64url(${x})`),
  scalar('to_base32(varbinary)', 'varchar', 'u_to_base32($1)', PARTIAL),
  ...decoder('from_base32', (x) => `u_from_base32(${x})`),
  ...named(['md5', 'sha1', 'sha256'], (name) =>
    scalar(`${name}(varbinary)`, 'varbinary', `unhex(${name}($1))`, PARTIAL),
  ),
  scalar('sha512(varbinary)', 'varbinary', 'unhex(u_sha512($1))', PARTIAL),
  ...named(['md5', 'sha1', 'sha256', 'sha512'], (name) =>
    scalar(`hmac_${name}(varbinary, varbinary)`, 'varbinary', `unhex(u_hmac($1, $2, '${name}'))`, PARTIAL),
  ),
  scalar('crc32(varbinary)', 'bigint', 'u_crc32($1)', PARTIAL),
  scalar('xxhash64(varbinary)', 'varbinary', 'u_xxhash64($1)', PARTIAL),
  scalar('murmur3(varbinary)', 'varbinary', 'u_murmur3($1)', PARTIAL),
  scalar('spooky_hash_v2_32(varbinary)', 'varbinary', 'u_spooky_32($1)', PARTIAL, {
    note: 'NOT_SUPPORTED from 192 bytes on',
  }),
  scalar('spooky_hash_v2_64(varbinary)', 'varbinary', 'u_spooky_64($1)', PARTIAL, {
    note: 'NOT_SUPPORTED from 192 bytes on',
  }),
  scalar('to_big_endian_64(bigint)', 'varbinary', `unhex(printf('%016x', $1))`, PARTIAL),
  scalar('to_big_endian_32(integer)', 'varbinary', `unhex(right(printf('%016x', CAST($1 AS BIGINT)), 8))`, PARTIAL),
  scalar(
    'from_big_endian_64(varbinary)',
    'bigint',
    `CAST(CAST(q_sized($1, 8, 'expected 8-byte input, but got instead: '||octet_length($1)) AS BIT) AS BIGINT)`,
    PARTIAL,
  ),
  scalar(
    'from_big_endian_32(varbinary)',
    'integer',
    `CAST(CAST(q_sized($1, 4, 'expected 4-byte input, but got instead: '||octet_length($1)) AS BIT) AS INTEGER)`,
    PARTIAL,
  ),
  // For doubles, Java writes a single NaN without a sign; for reals, it keeps the bits.
  scalar(
    'to_ieee754_64(double)',
    'varbinary',
    'CAST(CAST(CASE WHEN isnan($1) THEN abs($1) ELSE $1 END AS BIT) AS BLOB)',
    PARTIAL,
  ),
  scalar('to_ieee754_32(real)', 'varbinary', 'CAST(CAST($1 AS BIT) AS BLOB)', PARTIAL),
  scalar(
    'from_ieee754_64(varbinary)',
    'double',
    `CAST(CAST(q_sized($1, 8, 'Input floating-point value must be exactly 8 bytes long') AS BIT) AS DOUBLE)`,
    PARTIAL,
  ),
  scalar(
    'from_ieee754_32(varbinary)',
    'real',
    `CAST(CAST(q_sized($1, 4, 'Input floating-point value must be exactly 4 bytes long') AS BIT) AS FLOAT)`,
    PARTIAL,
  ),
]
