import { macro, type Macro } from './macro.ts'

const bad = 'INVALID_FUNCTION_ARGUMENT'

/** Parts of aggregates, window functions and sketches. */
export const aggregateMacros: readonly Macro[] = [
  macro('q_pick(l, p)', `l[least(len(l), CAST(floor(p * len(l)) AS BIGINT) + 1)]`),
  macro(
    'q_percentile(p)',
    `CASE WHEN p NOT BETWEEN 0 AND 1 THEN u_raise('${bad}: Percentile must be between 0 and 1') ELSE p END`,
  ),
  // What is drawn at random stands in one place, and aggregates in no lambda: both are bound by a struct.
  macro(
    'q_sample_pick(l, p)',
    `list_transform([{'l': list_sort(l), 'p': q_percentile(p)}], lambda qp1: q_pick(qp1.l, qp1.p))[1]`,
  ),
  macro(
    'q_sample_picks(l, ps)',
    `
      list_transform([{'l': list_sort(l), 'p': ps}], lambda qp1: CASE
        WHEN len(qp1.l) > 0 THEN list_transform(qp1.p, lambda qp2: q_pick(qp1.l, q_percentile(qp2)))
      END)[1]
    `,
  ),
  // A row's place among those that a sample is drawn from.
  macro('q_drawn()', `random()`),
  // One row of a sample by weight: k is never below w.
  macro(
    'q_weighed(x, weight)',
    `list_transform([1 - q_drawn()], lambda qp3: {'k': weight / qp3, 'v': x, 'w': weight})[1]`,
  ),
  macro(
    'q_weighed_sample(l, n)',
    `
      list_sort(list_transform([l], lambda qp4: CASE
        WHEN len(qp4) <= n THEN list_transform(qp4, lambda qp5: {'v': qp5.v, 'w': qp5.w})
        ELSE list_transform([list_last(qp4).k], lambda qp7:
            list_transform(list_slice(qp4, 1, n), lambda qp5: {'v': qp5.v, 'w': greatest(qp5.w, qp7)}))[1]
      END)[1])
    `,
  ),
  macro('q_weighed_at(l, p)', `l[u_weighed_place(list_transform(l, lambda qp6: qp6.w), q_percentile(p))].v`),
  macro('q_weighed_pick(l, p)', `list_transform([{'l': l, 'p': p}], lambda qp1: q_weighed_at(qp1.l, qp1.p))[1]`),
  macro(
    'q_weighed_picks(l, ps)',
    `
      list_transform([{'l': l, 'p': ps}], lambda qp1: CASE
        WHEN len(qp1.l) > 0 THEN list_transform(qp1.p, lambda qp2: q_weighed_at(qp1.l, qp2))
      END)[1]
    `,
  ),
  // A hash's level, which every second value of the one before reaches, and its place there: fewer the finer the level.
  macro('q_distinct_level(h)', `CAST(39 - floor(log2((h & 1099511627775) | 1)) AS INTEGER)`),
  macro(
    'q_distinct_code(h, f)',
    `
      list_transform([h], lambda qd6: list_transform([q_distinct_level(qd6)], lambda qd7:
          CAST((qd7 << 18) + CAST((qd6 >> 40) >> CAST(24 - greatest(18 - 2 * qd7, f) AS UBIGINT) AS INTEGER) AS INTEGER))[1])[1]
    `,
  ),
  // Of so few codes two values that share one are rare.
  macro(
    'q_distinct_count(l, f)',
    `
      CAST(CASE
        WHEN l IS NULL THEN 0
        WHEN len(l) <= 256 THEN len(l)
        ELSE list_transform([list_histogram(list_transform(l, lambda qd8: qd8 >> 18))], lambda qd9:
            u_distinct_estimate(map_keys(qd9), map_values(qd9), f))[1]
      END AS BIGINT)
    `,
  ),
  macro('q_digest_rank(n, p)', `least(n, CAST(floor(p * n) AS HUGEINT) + 1)`),
  // Weights are counted off until the rank is reached: a value may weigh more than a list can be long.
  macro(
    'q_digest_pick(d, p)',
    `
      list_reduce(list_transform(d, lambda qd1: {'v': qd1.v, 'w': CAST(qd1.w AS HUGEINT)}), lambda qd2, qd3: CASE
        WHEN qd2.w <= 0 THEN qd2
        ELSE {'v': qd3.v, 'w': qd2.w - qd3.w}
      END, {'v': d[1].v, 'w': CAST(q_digest_rank(CAST(list_sum(list_transform(d, lambda qd1: CAST(qd1.w AS HUGEINT))) AS
          HUGEINT), q_percentile(p)) AS HUGEINT)}).v
    `,
  ),
  // NULL among the quantiles is 0.
  macro(
    'q_tdigest_picks(d, ps)',
    `
      list_transform([{'d': d, 'p': list_transform(ps, lambda qd6: coalesce(qd6, 0))}], lambda qd7: CASE
        WHEN qd7.d IS NULL THEN NULL
        WHEN qd7.p <> list_sort(qd7.p) THEN
          u_raise('${bad}: percentiles must be sorted in increasing order')
        ELSE list_transform(qd7.p, lambda qd10: q_digest_pick(qd7.d, qd10))
      END)[1]
    `,
  ),
  macro(
    'q_quantile_at(d, x)',
    `
      coalesce(list_sum(list_transform(list_filter(d, lambda qd3: qd3.v <= x), lambda qd4: qd4.w)), 0) /
          list_sum(list_transform(d, lambda qd5: qd5.w))
    `,
  ),
  macro(
    'q_merge_counts(l)',
    `
      CASE
        WHEN l IS NOT NULL THEN list_transform([flatten(list_transform(l, lambda qm1: map_entries(qm1)))], lambda
            qm2: map_from_entries(list_transform(q_groups(list_transform(qm2, lambda qm3: qm3.key)), lambda qm4:
            {'k': qm2[qm4[1]].key, 'v': CAST(list_sum(list_transform(qm4, lambda qm5: qm2[qm5].value))
            AS BIGINT)})))[1]
      END
    `,
  ),
  macro(
    'q_most_frequent(h, n)',
    `
      map_from_entries(list_transform(list_slice(list_sort(list_transform(map_entries(h), lambda qf1: {'n':
          qf1.value, 'k': qf1.key}), 'DESC'), 1, n), lambda qf2: {'k': qf2.k, 'v': qf2.n}))
    `,
  ),
  macro(
    'q_pairs_map(l)',
    `map_from_entries(list_transform(range(1, len(l) // 2 + 1), lambda qf3: {'k': l[2 * qf3 - 1], 'v': l[2 * qf3]}))`,
  ),
  macro(
    'q_result_count(n, f)',
    `
      CASE
        WHEN n <= 0 THEN u_raise('${bad}: '||CASE WHEN ends_with(f, '_by') THEN 'third' ELSE 'second'
            END||' argument of '||f||' must be a positive integer')
        WHEN n > 10000 THEN u_raise('${bad}: '||CASE WHEN ends_with(f, '_by') THEN 'third' ELSE 'second'
            END||' argument of '||f||' must be less than or equal to 10000; found '||n)
        ELSE n
      END
    `,
  ),
  macro(
    'q_window_offset(n)',
    `
      CASE
        WHEN n IS NULL THEN u_raise('${bad}: Offset must not be null')
        WHEN n < 0 THEN u_raise('${bad}: Offset must be at least 0')
        ELSE n
      END
    `,
  ),
  macro('q_window_nth(n)', `CASE WHEN n < 1 THEN u_raise('${bad}: Offset must be at least 1') ELSE n END`),
  macro('q_window_buckets(n)', `CASE WHEN n <= 0 THEN u_raise('${bad}: Buckets must be greater than 0') ELSE n END`),
  macro(
    'q_log10(a)',
    `CASE WHEN a < 0 THEN CAST('NaN' AS DOUBLE) WHEN a = 0 THEN CAST('-Infinity' AS DOUBLE) ELSE log10(a) END`,
  ),
  macro(
    'q_log2(a)',
    `CASE WHEN a < 0 THEN CAST('NaN' AS DOUBLE) WHEN a = 0 THEN CAST('-Infinity' AS DOUBLE) ELSE log2(a) END`,
  ),
  macro('q_random_bound(n)', `CASE WHEN n <= 0 THEN u_raise('${bad}: bound must be positive') ELSE n END`),
  macro(
    'q_random_range(a, b)',
    `CASE WHEN b <= a THEN u_raise('${bad}: upper bound must be greater than lower bound') ELSE CAST(b AS DOUBLE) - a END`,
  ),
]
