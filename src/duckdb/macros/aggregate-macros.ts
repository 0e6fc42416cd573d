import { keptField, macro, type Macro } from './macro.ts'

const bad = 'INVALID_FUNCTION_ARGUMENT'

/** Parts of aggregates, window functions and sketches. */
export const aggregateMacros: readonly Macro[] = [
  macro('q_pick(l, p)', `l[least(len(l), CAST(floor(p * len(l)) AS BIGINT) + 1)]`),
  macro(
    'q_percentile(p)',
    `CASE WHEN p NOT BETWEEN 0 AND 1 THEN u_raise('${bad}: Percentile must be between 0 and 1') ELSE p END`,
  ),
  macro(
    'q_known_percentile(p)',
    `CASE WHEN p IS NULL THEN u_raise('${bad}: Percentile cannot be null') ELSE q_percentile(p) END`,
  ),
  // A random value must be drawn once, and an aggregate cannot be in a lambda: a struct binds both.
  macro(
    'q_sample_pick(l, p)',
    `list_transform([{'l': list_sort(l), 'p': ${keptField('q_percentile(p)')}}], lambda qp1: CASE WHEN qp1.p IS NOT NULL THEN q_pick(qp1.l, qp1.p) END)[1]`,
  ),
  macro(
    'q_sample_picks(l, ps)',
    `
      list_transform([{'l': list_sort(l), 'p': ${keptField('ps')}}], lambda qp1: CASE
        WHEN len(qp1.l) > 0 THEN list_transform(qp1.p, lambda qp2: q_pick(qp1.l, q_known_percentile(qp2)))
      END)[1]
    `,
  ),
  // Returns `found`, unless a value or a weight of the group is not allowed in Trino's digests.
  macro('q_infinite_text(x)', `CASE WHEN isnan(x) THEN 'NaN' WHEN x > 0 THEN 'Infinity' ELSE '-Infinity' END`),
  macro(
    'q_percentile_of_values(x, found)',
    `CASE WHEN x IS NOT NULL THEN u_raise('${bad}: value must be finite; was '||q_infinite_text(x)) ELSE found END`,
  ),
  macro(
    'q_digest_of_values(x, found)',
    `
      CASE
        WHEN x IS NULL THEN found
        WHEN isnan(x) THEN u_fail('GENERIC_INTERNAL_ERROR: value is NaN')
        ELSE u_fail('GENERIC_INTERNAL_ERROR: value must be finite')
      END
    `,
  ),
  macro(
    'q_percentile_of_weights(w, found)',
    `
      CASE
        WHEN w IS NULL THEN found
        WHEN isfinite(w) THEN u_raise('${bad}: weight must be >= 1, was '||q_java_double(w))
        ELSE u_raise('${bad}: weight must be finite, was '||q_infinite_text(w))
      END
    `,
  ),
  // A row's random position for drawing a sample.
  macro('q_drawn()', `random()`),
  // One row of a weighted sample: k is never below w.
  macro(
    'q_weighed(x, weight)',
    `list_transform([1 - q_drawn()], lambda qp3: {'k': weight / qp3, 'v': ${keptField('x')}, 'w': ${keptField('weight')}})[1]`,
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
  macro(
    'q_weighed_pick(l, p)',
    `list_transform([{'l': ${keptField('l')}, 'p': ${keptField('p')}}], lambda qp1: CASE WHEN qp1.p IS NOT NULL THEN q_weighed_at(qp1.l, qp1.p) END)[1]`,
  ),
  macro(
    'q_weighed_picks(l, ps)',
    `
      list_transform([{'l': ${keptField('l')}, 'p': ${keptField('ps')}}], lambda qp1: CASE
        WHEN len(qp1.l) > 0 THEN list_transform(qp1.p, lambda qp2: q_weighed_at(qp1.l, q_known_percentile(qp2)))
      END)[1]
    `,
  ),
  // A hash's level and its code there. Each level is reached by half as many values as the level before; finer levels
  // have fewer codes.
  macro('q_distinct_level(h)', `CAST(39 - floor(log2((h & 1099511627775) | 1)) AS INTEGER)`),
  macro(
    'q_distinct_code(h, f)',
    `
      list_transform([h], lambda qd6: list_transform([q_distinct_level(qd6)], lambda qd7:
          CAST((qd7 << 18) + CAST((qd6 >> 40) >> CAST(24 - greatest(18 - 2 * qd7, f) AS UBIGINT) AS INTEGER) AS INTEGER))[1])[1]
    `,
  ),
  // For so few codes it is rare that two values share one.
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
  // A sketch of different values holds their codes until they are more than its number of buckets (1 << b). After that
  // it holds the highest level of each bucket, as bucket << 6 | level.
  macro('q_sketch_place(c, b)', `(((c & 262143) >> (greatest(18 - 2 * (c >> 18), 16) - b)) << 6) | (c >> 18)`),
  macro(
    'q_sketch_highest(l)',
    `
      list_transform([CAST(list_sort(l) AS INTEGER[])], lambda qs1: list_filter(qs1, lambda qs2, qs3: CASE WHEN qs3 = len(qs1) THEN true
          ELSE (qs1[qs3 + 1] >> 6) <> (qs2 >> 6) END))[1]
    `,
  ),
  macro(
    'q_sketch(l, b)',
    `
      list_transform([{'l': ${keptField('l')}, 'b': CAST(b AS INTEGER)}], lambda qs4: CASE
        WHEN len(qs4.l) <= 1 << qs4.b THEN {'b': qs4.b, 'd': false, 'c': list_sort(qs4.l)}
        WHEN qs4.l IS NOT NULL THEN {'b': qs4.b, 'd': true, 'c': q_sketch_highest(list_transform(qs4.l, lambda qs5:
            q_sketch_place(qs5, qs4.b)))}
      END)[1]
    `,
  ),
  // The number of buckets (as bits) for the given standard error, which is 1.04 divided by their root.
  macro(
    'q_sketch_bits(e)',
    `
      CASE
        WHEN e NOT BETWEEN 0.0040625 AND 0.26 THEN
            u_raise('${bad}: Max standard error must be in [0.0040625, 0.26]: '||e)
        ELSE least(16, greatest(12, CAST(ceil(2 * log2(1.04 / e)) AS INTEGER)))
      END
    `,
  ),
  macro(
    'q_sketch_merge(l)',
    `
      list_transform([{'l': ${keptField('l')}, 'b': list_min(list_transform(l, lambda qs6: qs6.b)),
          'd': list_max(list_transform(l, lambda qs6: qs6.d))}], lambda qs7: CASE
        WHEN qs7.d THEN {'b': qs7.b, 'd': true, 'c': q_sketch_highest(flatten(list_transform(qs7.l, lambda qs8:
            list_transform(qs8.c, lambda qs9: CASE
              WHEN qs8.d THEN ((qs9 >> (6 + qs8.b - qs7.b)) << 6) | (qs9 & 63)
              ELSE q_sketch_place(qs9, qs7.b)
            END))))}
        WHEN qs7.l IS NOT NULL THEN q_sketch(list_distinct(flatten(list_transform(qs7.l, lambda qs8: qs8.c))), qs7.b)
      END)[1]
    `,
  ),
  macro(
    'q_sketch_count(s)',
    `
      CASE
        WHEN s.d THEN list_transform([list_histogram(list_transform(s.c, lambda qs1: qs1 & 63))], lambda qs2:
            CAST(u_highest_estimate(map_keys(qs2), map_values(qs2), s.b) AS BIGINT))[1]
        WHEN s IS NOT NULL THEN q_distinct_count(s.c, 16)
      END
    `,
  ),
  // Also reads sketches that were stored in the older format, as maps of hashes.
  macro(
    'q_sketch_read(t)',
    `
      CASE
        WHEN starts_with(t, '{"b":') THEN CAST(CAST(t AS JSON) AS STRUCT(b INTEGER, d BOOLEAN, c INTEGER[]))
        ELSE q_sketch(list_distinct(list_transform(map_keys(CAST(CAST(t AS JSON) AS MAP(UBIGINT, BIGINT))), lambda qs3:
            q_distinct_code(qs3, 16))), 12)
      END
    `,
  ),
  macro(
    'q_common_count(a, b)',
    `
      greatest(0, q_distinct_count(map_keys(a), 16) + q_distinct_count(map_keys(b), 16) -
          q_distinct_count(list_distinct(list_concat(map_keys(a), map_keys(b))), 16))
    `,
  ),
  // A digest of many values has points of equal weight, evenly spread over their ranks.
  macro(
    'q_digest_fit(d, n, m)',
    `
      list_transform([{'d': ${keptField('d')}, 'n': CAST(n AS BIGINT), 'm': CAST(m AS BIGINT)}], lambda qd1: CASE
        WHEN len(qd1.d) <= qd1.n THEN qd1.d
        ELSE list_transform([list_transform(qd1.d, lambda qd2: qd2.w)], lambda qd3:
            list_transform([list_sum(qd3) / qd1.m], lambda qd4:
            list_transform(list_select(qd1.d, CAST(u_weighed_points(qd3, qd1.m) AS BIGINT[])), lambda qd5:
            {'v': qd5.v, 'w': qd4}))[1])[1]
      END)[1]
    `,
  ),
  // For a sample of n values.
  macro(
    'q_digest_of(l, n)',
    `
      list_transform([{'l': list_sort(l), 'n': CAST(n AS DOUBLE)}], lambda qd1: list_transform([qd1.n / len(qd1.l)],
          lambda qd2: list_transform(qd1.l, lambda qd3: {'v': qd3, 'w': qd2}))[1])[1]
    `,
  ),
  macro(
    'q_digest_weight(w)',
    `CASE WHEN w <= 0 THEN u_raise('${bad}: Percentile weight must be > 0, was '||w) ELSE CAST(w AS DOUBLE) END`,
  ),
  macro(
    'q_digest_accuracy(a)',
    `
      CASE
        WHEN a <= 0 OR a >= 1 THEN
            u_raise('${bad}: Percentile accuracy must be exclusively between 0 and 1, was '||q_java_double(a))
        ELSE a
      END
    `,
  ),
  macro(
    'q_digest_pick(d, p)',
    `
      list_transform([list_transform(d, lambda qd1: qd1.w)], lambda qd2: d[CASE
        WHEN list_min(qd2) = list_max(qd2) THEN least(len(qd2), CAST(floor(q_percentile(p) * len(qd2)) AS BIGINT) + 1)
        ELSE u_weighed_place(qd2, q_percentile(p))
      END].v)[1]
    `,
  ),
  // A NULL among the quantiles counts as 0.
  macro(
    'q_tdigest_picks(d, ps)',
    `
      list_transform([{'d': ${keptField('d')}, 'p': list_transform(ps, lambda qd6: coalesce(qd6, 0))}], lambda qd7: CASE
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
    `
      list_transform([l], lambda qf4:
          map_from_entries(list_transform(range(1, len(qf4) // 2 + 1), lambda qf3: {'k': qf4[2 * qf3 - 1], 'v': qf4[2 * qf3]})))[1]
    `,
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
  macro('q_random_bound(n)', `CASE WHEN n <= 0 THEN u_raise('${bad}: bound must be positive') ELSE n END`),
  macro(
    'q_random_range(a, b)',
    `CASE WHEN b <= a THEN u_raise('${bad}: upper bound must be greater than lower bound') ELSE CAST(b AS DOUBLE) - a END`,
  ),
]
