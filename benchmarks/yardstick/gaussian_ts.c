/* Gaussian Thompson sampling over many tasks: the speed yardstick of the compiled simulator.
 *
 *   gcc -O3 -march=native -o gaussian_ts gaussian_ts.c -lm
 *   ./gaussian_ts TASKS SEED [true|identity]
 *
 * prints the mean total reward per task, its standard error and the nanoseconds per pull (one thread).
 * The problem is the paper's: 6 arms, 10 pulls, mu ~ N(nu, Psi), rewards N(mu_a, 1).  The third argument is the
 * prior that the policy believes: the true one, or N(0, I); environments always come from the true one.
 *
 * A vector lane is a task.  Each pull draws m + L z with six fresh normals (L L' is the posterior covariance, L a
 * general 6x6 matrix), plays the best arm a, and conditions by Potter's square-root update: with f = row a of L,
 *     s = f'f + 1,   m += L f (r - m_a) / s,   L -= L f f' / (s + sqrt s).
 * The update waits for the next pull, where it shares a pass over L with the draw.  Nothing is approximated. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <immintrin.h>                                /* needs AVX2; uses AVX-512 where there is one */

/* Width, and what vector extensions cannot say in C: square root, and choosing lane by lane. */
#ifdef __AVX512DQ__
#define WIDTH 8                                       /* tasks in a vector */
#define MASK __mmask8
#define ROOT(x) _mm512_sqrt_pd(x)
#define ABOVE(a, b) _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ)
#define TOP_BIT(x) _mm512_movepi64_mask((__m512i)(x))
#define PICK(m, a, b) _mm512_mask_blend_pd(m, b, a)   /* m ? a : b */
#else
#define WIDTH 4
#define MASK vec
#define ROOT(x) _mm256_sqrt_pd(x)
#define ABOVE(a, b) ((vec)((a) > (b)))
#define TOP_BIT(x) ((vec)(x))
#define PICK(m, a, b) _mm256_blendv_pd(b, a, m)
#endif
enum { ARMS = 6, HORIZON = 10, GROUPS = 8 };          /* vectors in lockstep: they hide latency, and fit in L1 */
typedef double vec __attribute__((vector_size(8 * WIDTH)));
typedef uint64_t bits __attribute__((vector_size(8 * WIDTH)));
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))     /* keeps the register allocation of each loop apart */
#define EACH(i, from) _Pragma("GCC unroll 6") for (int i = from; i < ARMS; i++)
#define SPREAD(x) ((x) - (vec){0})                    /* one number in all lanes */

/* ---- random numbers -------------------------------------------------------------------------------------------- */

typedef struct { bits a, b, c, d; } stream;           /* one xoshiro256+ per lane */

INLINE bits next(stream *s)
{
    bits out = s->a + s->d, t = s->b << 17;
    s->c ^= s->a; s->d ^= s->b; s->b ^= s->c; s->a ^= s->d; s->c ^= t;
    s->d = s->d << 45 | s->d >> 19;
    return out;
}

static void seed_streams(stream *s, int n, uint64_t seed)  /* splitmix64 */
{
    uint64_t *words = (uint64_t *)s;
    for (size_t i = 0; i < n * sizeof *s / sizeof *words; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        words[i] = z ^ z >> 31;
    }
}

/* Polynomials interpolated at Chebyshev nodes; relative errors below 3e-16. */
#define POLYNOMIAL(x, c0, c1, c2, c3, c4, c5, c6) \
    (c0 + (x) * (c1 + (x) * (c2 + (x) * (c3 + (x) * (c4 + (x) * (c5 + (x) * c6))))))
static const uint64_t ONE = 0x3ff0000000000000, TWO = 0x4000000000000000, MANTISSA = 0xfffffffffffff;

/* -2 log u for u in (0, 1]: u = 2^k m with m in [sqrt 1/2, sqrt 2), and log m = 2 atanh((m - 1) / (m + 1)). */
INLINE vec minus_two_log(vec u)
{
    const uint64_t root_half = 0x3fe6a09e667f3bcd, two52 = 0x4330000000000000;  /* as bits */
    bits b = (bits)u + (ONE - root_half);
    vec k = (vec)(b >> 52 | two52) - (0x1p52 + 1023), m = (vec)((b & MANTISSA) + root_half);
    vec t = (m - 1) / (m + 1), w = t * t;
    return k * -1.3862943611198906
           + t * POLYNOMIAL(w, -4.0, -1.333333333331057, -0.8000000012354611, -0.571428320319513,
                            -0.4444686984281641, -0.36243844007787285, -0.33675627137797287);
}

/* A point at this radius and a random angle: 52 bits place it within 45 degrees of an axis, 2 bits choose the axis. */
INLINE void turn(vec radius, bits b, vec *first, vec *second)
{
    vec x = (vec)((b & MANTISSA) | TWO) - 3, w = x * x;  /* in [-1, 1): the angle is x pi / 4 */
    vec s = x * POLYNOMIAL(w, 0.7853981633974483, -0.08074551218828054, 0.002490394570188844, -3.657620415891387e-05,
                           3.133616225433416e-07, -1.7571500746983935e-09, 6.877360573166326e-12);
    vec c = POLYNOMIAL(w, 1.0, -0.30842513753403783, 0.015854344243741547, -0.00032599188648354014,
                       3.590859179850238e-06, -2.4609507094028117e-08, 1.1365469207731353e-10);
    s *= radius;
    c = (vec)((bits)(c * radius) ^ (b & 1ull << 63));
    MASK swap = TOP_BIT(b << 1);
    *first = PICK(swap, s, c);
    *second = PICK(swap, c, s);
}

/* Box-Muller, n even.  Three short loops beat one long one, and two streams halve the wait for the generator. */
NOINLINE void fill_normals(stream *streams, vec *z, int n)
{
    stream radius = streams[0], angle = streams[1];
    for (int i = 0; i < n; i += 2) { z[i] = (vec)next(&radius); z[i + 1] = (vec)next(&angle); }
    streams[0] = radius; streams[1] = angle;
    for (int i = 0; i < n; i += 2) z[i] = minus_two_log(2 - (vec)((bits)z[i] >> 12 | ONE));
    for (int i = 0; i < n; i += 2) turn(ROOT(z[i]), (bits)z[i + 1], &z[i], &z[i + 1]);
}

/* ---- a block of GROUPS * WIDTH tasks --------------------------------------------------------------------------- */

typedef struct { double mean[ARMS], root[ARMS][ARMS]; } prior;

typedef struct {                                      /* WIDTH tasks */
    vec mean[ARMS], root[ARMS][ARMS];                 /* belief before the last pull; root[column][row] */
    vec row[ARMS], gain, shrink;                      /* what that pull taught: f, (r - m_a) / s, 1 / (s + sqrt s) */
    vec mu[ARMS], total;
} group;

typedef enum { FIRST, MIDDLE, LAST } stage;

INLINE vec pick_arm(const MASK *better, const vec *x)  /* x of the played arm: the last that beat those before it */
{
    vec out = x[0];
    EACH(i, 1) out = PICK(better[i], x[i], out);
    return out;
}

INLINE void pull(group *restrict t, const prior *restrict believed, const vec *restrict z, stage when)
{
    vec lf[ARMS], draw[ARMS], chosen[ARMS];
    if (when != FIRST) {
        EACH(i, 0) lf[i] = t->root[0][i] * t->row[0];
        EACH(j, 1) EACH(i, 0) lf[i] += t->root[j][i] * t->row[j];
    }
    EACH(i, 0) {
        t->mean[i] = draw[i] = when == FIRST ? SPREAD(believed->mean[i]) : t->mean[i] + lf[i] * t->gain;
        if (when != FIRST) lf[i] *= t->shrink;
    }
    EACH(j, 0) {
        vec f = t->row[j], noise = z[j];
        EACH(i, 0) {
            vec l = when == FIRST ? SPREAD(believed->root[i][j]) : t->root[j][i] - lf[i] * f;
            draw[i] += l * noise;
            if (when != LAST) t->root[j][i] = l;
        }
    }
    __asm__ volatile("" ::: "memory");                /* read L back: otherwise GCC stores it a second time */

    MASK better[ARMS];
    vec best = draw[0];
    EACH(i, 1) { better[i] = ABOVE(draw[i], best); best = PICK(better[i], draw[i], best); }
    vec reward = pick_arm(better, t->mu) + z[ARMS], s = SPREAD(1.);
    t->total += reward;
    if (when == LAST) return;
    EACH(j, 0) { t->row[j] = chosen[j] = pick_arm(better, t->root[j]); s += chosen[j] * chosen[j]; }
    vec q = ROOT(s), d = 1 / (s * (q + 1));           /* one division for both 1 / s and 1 / (s + q) */
    t->gain = (reward - pick_arm(better, t->mean)) * (d * (q + 1));
    t->shrink = d * q;
}

#define FOR_EACH_GROUP(t, z, when) for (int g = 0; g < GROUPS; g++) pull(t + g, believed, z + g * (ARMS + 1), when)
NOINLINE void first_pull(group *t, const prior *believed, const vec *z) { FOR_EACH_GROUP(t, z, FIRST); }
NOINLINE void middle_pull(group *t, const prior *believed, const vec *z) { FOR_EACH_GROUP(t, z, MIDDLE); }
NOINLINE void last_pull(group *t, const prior *believed, const vec *z) { FOR_EACH_GROUP(t, z, LAST); }

static void simulate_block(group *t, const prior *truth, const prior *believed, stream *streams)
{
    static vec z[GROUPS * (ARMS + 1)];
    fill_normals(streams, z, GROUPS * ARMS);
    for (int g = 0; g < GROUPS; g++) {                /* mu ~ N(nu, Psi) */
        EACH(i, 0) t[g].mu[i] = SPREAD(truth->mean[i]);
        EACH(j, 0) EACH(i, 0) t[g].mu[i] += truth->root[i][j] * z[g * ARMS + j];
        t[g].total = SPREAD(0.);
    }
    for (int h = 0; h < HORIZON; h++) {
        fill_normals(streams, z, GROUPS * (ARMS + 1));
        (h == 0 ? first_pull : h < HORIZON - 1 ? middle_pull : last_pull)(t, believed, z);
    }
}

int main(int argc, char **argv)
{
    int identity = argc == 4 && strcmp(argv[3], "identity") == 0;
    if (argc < 3 || argc > 4 || (argc == 4 && !identity && strcmp(argv[3], "true") != 0) || atol(argv[1]) < 1) {
        fprintf(stderr, "usage: %s TASKS SEED [true|identity]\n", argv[0]);
        return 2;
    }
    long blocks = (atol(argv[1]) + GROUPS * WIDTH - 1) / (GROUPS * WIDTH);    /* TASKS is rounded up to whole blocks */
    prior truth = {.mean = {.5, 0, 0, .1, 0, 0}}, believed = {.mean = {0}};
    for (int i = 0; i < ARMS; i++) {                  /* Cholesky of Psi: 3x3 blocks, 1 on and .9 off the diagonal */
        for (int j = i / 3 * 3; j <= i; j++) {
            double rest = i == j ? 1 : .9;
            for (int k = 0; k < j; k++) rest -= truth.root[i][k] * truth.root[j][k];
            truth.root[i][j] = i == j ? sqrt(rest) : rest / truth.root[j][j];
        }
        believed.root[i][i] = 1;
    }
    if (!identity) believed = truth;

    static group block[GROUPS];
    vec sum = {0}, squares = {0};
    stream streams[2];
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    seed_streams(streams, 2, strtoull(argv[2], NULL, 10));
    for (long b = 0; b < blocks; b++) {
        simulate_block(block, &truth, &believed, streams);
        for (int g = 0; g < GROUPS; g++) { sum += block[g].total; squares += block[g].total * block[g].total; }
    }
    clock_gettime(CLOCK_MONOTONIC, &end);

    double n = (double)blocks * GROUPS * WIDTH, mean = 0, square = 0;
    for (int i = 0; i < WIDTH; i++) { mean += sum[i] / n; square += squares[i] / n; }
    double ns = (end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec);
    printf("mean %.5f  std_error %.5f  ns_per_pull %.3f\n",
           mean, sqrt((square - mean * mean) / (n - 1)), ns / (n * HORIZON));
}
