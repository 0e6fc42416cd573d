import { macro, type Macro } from './macro.ts'

/** Zones, rounding and the texts of times, intervals and floating-point numbers. */
export const datetimeMacros: readonly Macro[] = [
  // Zones are checked before, so these functions fail for none of them and are called directly. A timestamp without
  // microseconds is infinite, so it is the same in every zone.
  macro('q_local(t,z)', `CASE WHEN z='UTC' THEN t ELSE coalesce(make_timestamp(j_zone_local(epoch_us(t),z)),t) END`),
  macro(
    'q_instant(l,z)',
    `CASE WHEN z='UTC' THEN l ELSE coalesce(make_timestamp(j_zone_instant(epoch_us(l),z)),l) END`,
  ),
  macro('q_joda(l,z)', `CASE WHEN z='UTC' THEN l ELSE coalesce(make_timestamp(j_zone_joda(epoch_us(l),z)),l) END`),
  // The instant of a local time that was moved from the local time of the instant t0.
  macro(
    'q_moved(t0,l,z)',
    `CASE WHEN z='UTC' THEN l ELSE coalesce(make_timestamp(j_zone_moved(epoch_us(l),epoch_us(t0),z)),l) END`,
  ),
  macro(
    'q_offset_minutes(o)',
    `CASE WHEN abs(o) > 840 THEN u_raise('INVALID_FUNCTION_ARGUMENT: Invalid offset minutes '||o) ELSE o END`,
  ),
  macro(
    'q_zone_offset(i)',
    `
      CASE
        WHEN i % 60000 <> 0 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Invalid time zone offset interval: interval contains seconds')
        ELSE q_offset_minutes(i // 60000)
      END
    `,
  ),
  macro('q_off(t,z)', `q_local(t,z)-t`),
  // The number of units to add to a moment: Trino counts them in 32 bits, and more than `most` lead to no valid moment.
  macro(
    'q_steps(n,most)',
    `
      CASE
        WHEN n BETWEEN -most - 1 AND most THEN n
        WHEN n IS NOT NULL THEN u_raise('INVALID_FUNCTION_ARGUMENT: '||CASE
            WHEN n BETWEEN -2147483648 AND 2147483647 THEN 'long' ELSE 'integer' END||' overflow')
      END
    `,
  ),
  macro(
    'q_date_steps(n,most)',
    `
      CASE
        WHEN n BETWEEN -most - 1 AND most THEN CAST(n AS INTEGER)
        WHEN n IS NOT NULL THEN u_fail('GENERIC_INTERNAL_ERROR: integer overflow')
      END
    `,
  ),
  macro('q_floordiv(a,k)', `a//k - CASE WHEN a%k<0 THEN 1 ELSE 0 END`),
  macro(
    'q_round(t,u)',
    `make_timestamp(((epoch_us(t)+u//2)//u - CASE WHEN (epoch_us(t)+u//2)%u<0 THEN 1 ELSE 0 END)*u)`,
  ),
  macro(
    'q_year(t)',
    `
      CASE WHEN year(t)<0 THEN '-' WHEN year(t)>9999 THEN '+' ELSE '' END||lpad(abs(year(t))::VARCHAR,
          greatest(4,length(abs(year(t))::VARCHAR))::INT, '0')
    `,
  ),
  // strftime writes years that need no sign and no padding.
  macro('q_of_four_digits(t)', `t BETWEEN TIMESTAMP '1000-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999'`),
  macro(
    'q_text_timestamp(t,p)',
    `
      CASE
        WHEN q_of_four_digits(t) THEN CASE
          WHEN p=0 THEN strftime(t,'%Y-%m-%d %H:%M:%S')
          WHEN p=3 THEN strftime(t,'%Y-%m-%d %H:%M:%S.%g')
          ELSE left(strftime(t,'%Y-%m-%d %H:%M:%S.%f'),20+p)
        END
        ELSE q_year(t)||strftime(t,'-%m-%d %H:%M:%S')||CASE WHEN p=0 THEN '' ELSE '.'||left(strftime(t,'%f'),p) END
      END
    `,
  ),
  // For a time with an expensive expression.
  macro('q_text_moment(t,p)', `list_transform([t], lambda qt1: q_text_timestamp(qt1,p))[1]`),
  macro('q_offmin(t,z)', `(epoch_us(q_local(t,z))-epoch_us(t))//60000000`),
  macro(
    'q_offset_text(o)',
    `CASE WHEN o<0 THEN '-' ELSE '+' END||strftime(make_timestamp(CAST(abs(o) AS BIGINT)*60000000),'%H:%M')`,
  ),
  macro(
    'q_text_interval_day(x)',
    `
      CASE
        WHEN x=-9223372036854775808 THEN '-106751991167 07:12:55.808'
        ELSE CASE WHEN x<0 THEN '-' ELSE '' END||(abs(x)//86400000)||strftime(make_timestamp(abs(x)%86400000*1000),' %H:%M:%S.%g')
      END
    `,
  ),
  // DuckDB writes the same digits as Java; a is the text of a number from 1 on without exponent.
  macro(
    'q_sci_whole(a)',
    `
      list_transform([a], lambda qn1: CASE
        WHEN length(qn1)=3 AND ends_with(qn1,'.0') THEN qn1||'E0'
        ELSE list_transform([rtrim(replace(substring(qn1,2),'.',''),'0')], lambda qn2: concat(left(qn1,1),'.',CASE WHEN qn2='' THEN '0' ELSE qn2
            END,'E',instr(qn1,'.')-2))[1]
      END)[1]
    `,
  ),
  // a is the text of a number from a thousandth to below one; its first significant digit is the n-th of its fraction.
  macro(
    'q_sci_digits(a, n)',
    `concat(substring(a,n+2,1),'.',CASE WHEN length(a)=n+2 THEN '0' ELSE substring(a,n+3) END,'E-',n)`,
  ),
  macro(
    'q_sci_part(a)',
    `
      list_transform([a], lambda qn5: CASE
        WHEN qn5>='0.1' THEN q_sci_digits(qn5,1)
        WHEN qn5>='0.01' THEN q_sci_digits(qn5,2)
        ELSE q_sci_digits(qn5,3)
      END)[1]
    `,
  ),
  // DuckDB's CAST to VARCHAR writes wrong digits for 2 to the power of 81, 91 and 807.
  macro('q_digits(x)', `CAST(to_json(x) AS VARCHAR)`),
  // Trino's text: DuckDB writes ordinary numbers with Java's digits; JavaScript writes all others.
  macro(
    'q_sci(x)',
    `
      CASE
        WHEN x>=1 AND x<10 THEN x::VARCHAR||'E0'
        WHEN x>=1 AND x<1e15 THEN q_sci_whole(x::VARCHAR)
        WHEN x<=-1 AND x>-1e15 THEN '-'||q_sci_whole(abs(x)::VARCHAR)
        WHEN x>=1e-3 AND x<1 THEN q_sci_part(x::VARCHAR)
        WHEN x<=-1e-3 AND x>-1 THEN '-'||q_sci_part(abs(x)::VARCHAR)
        WHEN x=0 AND NOT signbit(x) THEN '0E0'
        ELSE u_double_text(x)
      END
    `,
  ),
  // Java's text of a real rounded to seven significant digits, which printf writes as 1.234560e+02. Halves are rounded
  // up for numbers that Java treats as long, and to even for others.
  macro(
    'q_sci_real(x)',
    `
      CASE
        WHEN isnan(x) OR isinf(x) OR x=0 THEN u_double_text(CAST(x AS DOUBLE))
        ELSE list_transform([CAST(q_real_text(x) AS DOUBLE)], lambda qn6: list_transform([printf('%.6e',CASE
            WHEN qn6=trunc(qn6) AND abs(qn6)<9.2e18 THEN qn6*1.0000000000000002
            ELSE qn6
          END)], lambda qn4: regexp_replace(rtrim(left(qn4,-4),'0'),'\\.$','.0')||'E'||CAST(right(qn4,3) AS INTEGER))[1])[1]
      END
    `,
  ),
  macro(
    'q_java_double(x)',
    `
      CASE
        WHEN abs(x)>=1e-3 AND abs(x)<1e7 THEN x::VARCHAR
        WHEN x=0 AND NOT signbit(x) THEN '0.0'
        ELSE u_java_double(x)
      END
    `,
  ),
  macro(
    'q_text_interval_year(x)',
    `CASE WHEN x<0 THEN '-' ELSE '' END||(abs(CAST(x AS BIGINT))//12)||'-'||(abs(CAST(x AS BIGINT))%12)`,
  ),
]
