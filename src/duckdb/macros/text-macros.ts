import { macro, type Macro } from './macro.ts'

type Padding = 'lpad' | 'rpad'

const paddingChecks = `
        WHEN s IS NULL OR n IS NULL OR p IS NULL THEN NULL
        WHEN n NOT BETWEEN 0 AND 2147483647 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Target length must be in the range [0..2147483647]')`

function textPadding(name: Padding): Macro {
  return macro(
    `t_${name}(s,n,p)`,
    `
      CASE${paddingChecks}
        WHEN p='' THEN u_raise('INVALID_FUNCTION_ARGUMENT: Padding string must not be empty')
        WHEN n<=length(s) THEN left(s,n)
        ELSE ${name}(s,CAST(n AS INTEGER),p)
      END
    `,
  )
}

/** Pads bytes: DuckDB pads only text, so the padding is made as hexadecimal digits. */
function binaryPadding(name: Padding): Macro {
  const padding = `unhex(${name}('',CAST(n-octet_length(s) AS INTEGER)*2,hex(p)))`
  return macro(
    `t_${name}_bin(s,n,p)`,
    `
      CASE${paddingChecks}
        WHEN octet_length(p)=0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: Padding bytes must not be empty')
        WHEN n=0 THEN ''::BLOB
        WHEN n<=octet_length(s) THEN array_slice(s,1,n)
        ELSE ${name === 'lpad' ? `${padding}||s` : `s||${padding}`}
      END
    `,
  )
}

/** Character and binary strings. */
export const textMacros: readonly Macro[] = [
  macro(
    't_luhn(s)',
    `
      CASE
        WHEN s='' THEN false
        WHEN NOT regexp_full_match(s,'[0-9]+') THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Input contains non-digit character')
        ELSE list_sum(list_transform(list_reverse(q_characters(s)), lambda c, i: CASE
          WHEN i%2=1 THEN ord(c)-48
          ELSE (2*(ord(c)-48))%10 + (2*(ord(c)-48))//10
        END))%10=0
      END
    `,
  ),
  macro('t_unit(n,w)', `CASE WHEN n=0 THEN '' ELSE n||' '||w||CASE WHEN n=1 THEN '' ELSE 's' END END`),
  macro(
    't_hrs(x)',
    `
      CASE
        WHEN x IS NULL THEN NULL
        WHEN isnan(x) OR isinf(x) THEN u_raise('INVALID_FUNCTION_ARGUMENT: Invalid argument found: '||CASE WHEN
            isnan(x) THEN 'NaN' WHEN x>0 THEN 'Infinity' ELSE '-Infinity' END)
        WHEN t_jround(abs(x))=0 THEN '0 seconds'
        ELSE concat_ws(', ', nullif(t_unit(t_jround(abs(x))//604800,'week'),''),
            nullif(t_unit(t_jround(abs(x))%604800//86400,'day'),''),
            nullif(t_unit(t_jround(abs(x))%86400//3600,'hour'),''),
            nullif(t_unit(t_jround(abs(x))%3600//60,'minute'),''), nullif(t_unit(t_jround(abs(x))%60,'second'),''))
      END
    `,
  ),
  macro(
    't_jround(x)',
    `CASE WHEN x>=9223372036854775807 THEN 9223372036854775807 ELSE CAST(floor(x+0.5) AS BIGINT) END`,
  ),
  macro(
    't_pds(s)',
    `
      CASE
        WHEN s IS NULL THEN NULL
        WHEN NOT regexp_full_match(s,'([0-9]+\\.?[0-9]*|\\.[0-9]+)(B|kB|MB|GB|TB|PB|EB|ZB|YB)') THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Invalid data size: '''||s||'''')
        ELSE list_transform([regexp_extract(s,'^([0-9]*)\\.?([0-9]*)([a-zA-Z]+)',['d','f','u'])], lambda tp1:
            t_pds2(tp1.d,tp1.f,list_position(['B','kB','MB','GB','TB','PB','EB','ZB','YB'],tp1.u)-1))[1]
      END
    `,
  ),
  macro(
    't_pds2(d,f,k)',
    `
      CAST(CAST(d AS HUGEINT)*CAST(pow(1024,k) AS HUGEINT) AS DECIMAL(38,0)) + CASE
        WHEN f<>'' THEN CAST(floor(CAST('0.'||f AS DECIMAL(18,15))*CAST(pow(1024,k) AS HUGEINT)::DECIMAL(20,0)) AS
            DECIMAL(38,0))
        ELSE 0
      END
    `,
  ),
  macro(
    't_b64(s)',
    `
      CASE
        WHEN s IS NULL THEN NULL
        WHEN length(rtrim(s,'='))%4=1 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Input byte[] should at least have 2 bytes for base64 bytes')
        ELSE from_base64(CASE WHEN contains(s,'=') THEN s ELSE rpad(s,CAST((length(s)+3)//4*4 AS INTEGER),'=') END)
      END
    `,
  ),
  // Three significant digits; halves that a double represents exactly are rounded away from zero.
  macro(
    't_fn1(x)',
    `
      CASE
        WHEN x<10 THEN printf('%.2f', CASE WHEN x*8=floor(x*8) THEN round(x,2) ELSE x END)
        WHEN x<100 THEN printf('%.1f', CASE WHEN x*8=floor(x*8) THEN round(x,1) ELSE x END)
        ELSE printf('%.0f', round(x,0))
      END
    `,
  ),
  macro(
    't_fn2(x,u)',
    `
      list_transform([x], lambda tf1: list_transform([t_fn1(tf1)], lambda tf2:
          CASE WHEN contains(tf2,'.') THEN rtrim(rtrim(tf2,'0'),'.') ELSE tf2 END || u)[1])[1]
    `,
  ),
  macro(
    't_fnum(n)',
    `
      CASE
        WHEN n BETWEEN -999 AND 999 THEN n::varchar
        WHEN n IS NOT NULL THEN list_transform([n], lambda tf3: list_transform([abs(tf3::hugeint)], lambda tf4:
            t_fn2(tf3/CASE
          WHEN tf4<1000000 THEN 1e3
          WHEN tf4<1000000000 THEN 1e6
          WHEN tf4<1000000000000 THEN 1e9
          WHEN tf4<1000000000000000 THEN 1e12
          ELSE 1e15
        END, CASE
          WHEN tf4<1000000 THEN 'K'
          WHEN tf4<1000000000 THEN 'M'
          WHEN tf4<1000000000000 THEN 'B'
          WHEN tf4<1000000000000000 THEN 'T'
          ELSE 'Q'
        END))[1])[1]
      END
    `,
  ),
  macro(
    't_trunc(x)',
    `
      CASE
        WHEN isnan(x) THEN 0
        WHEN x>=9223372036854775807 THEN 9223372036854775807
        WHEN x<=-9223372036854775808 THEN -9223372036854775808
        ELSE trunc(x)::bigint
      END
    `,
  ),
  textPadding('lpad'),
  textPadding('rpad'),
  binaryPadding('lpad'),
  binaryPadding('rpad'),
  macro(
    't_split(s,d,n)',
    `
      CASE
        WHEN s IS NULL OR d IS NULL OR n IS NULL THEN NULL
        WHEN n<=0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: Limit must be positive')
        WHEN n>2147483647 THEN u_raise('INVALID_FUNCTION_ARGUMENT: Limit is too large')
        WHEN d='' THEN u_raise('INVALID_FUNCTION_ARGUMENT: The delimiter may not be the empty string')
        WHEN len(string_split(s,d))<=n THEN string_split(s,d)
        ELSE list_append(string_split(s,d)[1:n-1], substring(s,
            CAST(1+coalesce(list_sum(list_transform(string_split(s,d)[1:n-1], lambda x:
            length(x))),0)+(n-1)*length(d) AS BIGINT)))
      END
    `,
  ),
  macro(
    't_split_part(s,d,n)',
    `
      CASE
        WHEN s IS NULL OR d IS NULL OR n IS NULL THEN NULL
        WHEN n<=0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: Index must be greater than zero')
        WHEN d='' THEN CASE WHEN n<=length(s) THEN substring(s,n,1) END
        ELSE string_split(s,d)[n]
      END
    `,
  ),
  macro(
    't_s2m_entries(s,d)',
    `CASE WHEN s='' THEN []::varchar[] WHEN ends_with(s,d) THEN string_split(s,d)[1:-2] ELSE string_split(s,d) END`,
  ),
  macro(
    't_s2m_chk(s,d,k,f)',
    `
      CASE
        WHEN d='' THEN u_raise('INVALID_FUNCTION_ARGUMENT: entryDelimiter is empty')
        WHEN k='' THEN u_raise('INVALID_FUNCTION_ARGUMENT: keyValueDelimiter is empty')
        WHEN d=k THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: entryDelimiter and keyValueDelimiter must not be the same')
        ELSE true
      END
    `,
  ),
  macro(
    't_s2m_pairs(s,d,k,q)',
    `
      list_transform(t_s2m_entries(s,d), lambda e: CASE
        WHEN len(string_split(e,k))<>2 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Key-value delimiter must appear exactly once in each entry. Bad input: '||q||e||q)
        ELSE {'k':split_part(e,k,1),'v':split_part(e,k,2)}
      END)
    `,
  ),
  macro(
    't_split_to_map(s,d,k)',
    `
      CASE
        WHEN s IS NULL OR d IS NULL OR k IS NULL THEN NULL
        WHEN t_s2m_chk(s,d,k,1) THEN list_transform([t_s2m_pairs(s,d,k,'''')], lambda ts1: CASE
          WHEN len(list_distinct(list_transform(ts1, lambda p: p.k)))<len(ts1) THEN
              u_raise('INVALID_FUNCTION_ARGUMENT: Duplicate keys ('||ts1[q_repeated(list_transform(ts1, lambda p:
              p.k))].k||') are not allowed')
          ELSE map_from_entries(ts1)
        END)[1]
      END
    `,
  ),
  macro(
    't_split_to_multimap(s,d,k)',
    `
      CASE
        WHEN s IS NULL OR d IS NULL OR k IS NULL THEN NULL
        WHEN t_s2m_chk(s,d,k,1) THEN list_transform([t_s2m_pairs(s,d,k,'')], lambda ts1: CASE
          WHEN list_unique(list_transform(ts1, lambda ts2: ts2.k)) = len(ts1) THEN
              map_from_entries(list_transform(ts1, lambda ts2: {'k': ts2.k, 'v': [ts2.v]}))
          ELSE q_multimap(ts1)
        END)[1]
      END
    `,
  ),
  macro(
    't_strpos(s,u,n)',
    `
      CASE
        WHEN n=0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: ''instance'' must be a positive or negative number.')
        ELSE u_strpos(s,u,n)
      END
    `,
  ),
  macro(
    't_chr(n)',
    `
      CASE
        WHEN n NOT BETWEEN 0 AND 1114111 OR n BETWEEN 55296 AND 57343 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Not a valid Unicode code point: '||n)
        ELSE chr(CAST(n AS INTEGER))
      END
    `,
  ),
]
