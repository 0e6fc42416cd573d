import { macro, type Macro } from './macro.ts'

/** Zones, rounding and the texts of times, intervals and floating-point numbers. */
export const datetimeMacros: readonly Macro[] = [
  macro('q_zmin(z)', `(CAST(z[1]||'1' AS INT)*(CAST(z[2:3] AS INT)*60+CAST(z[5:6] AS INT)))`),
  macro(
    'q_local(t,z)',
    `CASE WHEN z='UTC' THEN t WHEN z[1] IN ('+','-') THEN t+to_minutes(q_zmin(z)) ELSE timezone(z,t::TIMESTAMPTZ) END`,
  ),
  macro('q_before(l,z)', `l-(timezone(z,(l-INTERVAL 1 DAY)::TIMESTAMPTZ)-(l-INTERVAL 1 DAY))`),
  macro(
    'q_instant(l,z)',
    `
      CASE
        WHEN z='UTC' THEN l
        WHEN z[1] IN ('+','-') THEN l-to_minutes(q_zmin(z))
        WHEN timezone(z,q_before(l,z)::TIMESTAMPTZ)=l THEN q_before(l,z)
        WHEN timezone(z,timezone(z,l))=l THEN timezone(z,l)::TIMESTAMP
        ELSE q_before(l,z)
      END
    `,
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
  macro('q_floordiv(a,k)', `a//k - CASE WHEN a%k<0 THEN 1 ELSE 0 END`),
  macro(
    'q_joda(l,z)',
    `
      CASE
        WHEN q_off(l,z)<>q_off(l-q_off(l,z),z) AND q_off(l,z)<INTERVAL 0 SECOND AND
            q_off(l-q_off(l-q_off(l,z),z),z)<>q_off(l-q_off(l,z),z) THEN l-q_off(l,z)
        ELSE l-q_off(l-q_off(l,z),z)
      END
    `,
  ),
  macro('q_moved(t0,l,z)', `CASE WHEN q_off(l-q_off(t0,z),z)=q_off(t0,z) THEN l-q_off(t0,z) ELSE q_joda(l,z) END`),
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
  macro(
    'q_text_timestamp(t,p)',
    `q_year(t)||strftime(t,'-%m-%d %H:%M:%S')||CASE WHEN p=0 THEN '' ELSE '.'||left(strftime(t,'%f'),p) END`,
  ),
  macro('q_offmin(t,z)', `(epoch_us(q_local(t,z))-epoch_us(t))//60000000`),
  macro(
    'q_offset_text(o)',
    `CASE WHEN o<0 THEN '-' ELSE '+' END||lpad((abs(o)//60)::VARCHAR,2,'0')||':'||lpad((abs(o)%60)::VARCHAR,2,'0')`,
  ),
  macro(
    'q_text_interval_day(x)',
    `
      CASE WHEN x<0 THEN '-' ELSE ''
          END||(abs(x)//86400000)||' '||lpad((abs(x)//3600000%24)::VARCHAR,2,'0')||':'||lpad((abs(x)//60000%60)::VARCHAR,2,'0')||':'||lpad((abs(x)//1000%60)::VARCHAR,2,'0')||'.'||lpad((abs(x)%1000)::VARCHAR,3,'0')
    `,
  ),
  macro(
    'q_e10(a)',
    `
      coalesce(nullif(split_part(a,'e',2),'')::INT,0)+CASE
        WHEN ltrim(split_part(split_part(a,'e',1),'.',1),'0')<>'' THEN
            length(ltrim(split_part(split_part(a,'e',1),'.',1),'0'))-1
        ELSE
            -1-(length(split_part(split_part(a,'e',1),'.',2))-length(ltrim(split_part(split_part(a,'e',1),'.',2),'0')))
      END
    `,
  ),
  macro('q_dig(a)', `rtrim(ltrim(replace(split_part(a,'e',1),'.',''),'0'),'0')`),
  macro('q_mant(d)', `left(d,1)||'.'||CASE WHEN length(d)>1 THEN d[2:] ELSE '0' END`),
  macro(
    'q_sci(x)',
    `
      CASE
        WHEN isnan(x) THEN 'NaN'
        WHEN isinf(x) THEN CASE WHEN x>0 THEN 'Infinity' ELSE '-Infinity' END
        WHEN x=0 THEN CASE WHEN signbit(x) THEN '-0E0' ELSE '0E0' END
        ELSE CASE WHEN x<0 THEN '-' ELSE '' END||q_mant(q_dig(abs(x)::VARCHAR))||'E'||q_e10(abs(x)::VARCHAR)
      END
    `,
  ),
  macro(
    'q_sci_real(x)',
    `
      CASE
        WHEN isnan(x) OR isinf(x) OR x=0 THEN q_sci(x)
        ELSE CASE WHEN x<0 THEN '-' ELSE ''
            END||q_mant(q_dig(printf('%.6e',abs(x)::DOUBLE)))||'E'||q_e10(replace(printf('%.6e',abs(x)::DOUBLE),'e+','e'))
      END
    `,
  ),
  macro(
    'q_java_double(x)',
    `
      CASE
        WHEN isnan(x) THEN 'NaN'
        WHEN isinf(x) THEN CASE WHEN x>0 THEN 'Infinity' ELSE '-Infinity' END
        WHEN x=0 THEN CASE WHEN signbit(x) THEN '-0.0' ELSE '0.0' END
        WHEN abs(x)>=1e-3 AND abs(x)<1e7 THEN x::VARCHAR
        ELSE q_sci(x)
      END
    `,
  ),
  macro('q_text_interval_year(x)', `CASE WHEN x<0 THEN '-' ELSE '' END||(abs(x)//12)||'-'||(abs(x)%12)`),
]
