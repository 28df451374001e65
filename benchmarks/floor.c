/* The floor of a DA-SGD step: what no implementation can avoid, and nothing else.
 *
 * A step must read the drawn row and the parameters, change the parameters (axpy), and know the next
 * row's inner product before the next slope can be chosen (dot). The scalar dependency chain (residual,
 * slope, gradient norm, step size with its square root and division) cannot overlap with the pass,
 * because the pass needs its result.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#ifndef LANES
#define LANES 32
#endif

double floor_seconds(const double *restrict rows, const double *restrict outcomes,
                     const double *restrict norms, const int64_t *restrict draws, int64_t count,
                     int64_t size, double up, double down, double rho, double *restrict theta) {
    struct timespec begin, end;
    double squares = 1.0, travelled = 0.1, dot = 0.0, squared = 0.0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int64_t k = 0; k < count; k++) {
        const double *row = rows + draws[k] * size;
        const double *next = rows + draws[k + 1 < count ? k + 1 : 0] * size;
        double residual = dot - outcomes[draws[k]];
        double gamma = sqrt(up * down * squared + 1e-12) / (2.0 * rho);
        double slope = residual + 0.5 * (up - down) * squared / (2.0 * gamma) >= 0 ? up : -down;
        double own = slope * slope / (2.0 * gamma);
        squares += slope * slope * norms[draws[k]] + 2.0 * slope * own * dot + own * own * squared;
        double step = travelled / sqrt(squares);
        double keep = 1.0 - step * own, push = -step * slope;
        /* Sums of LANES partial sums each: no addition waits for the one before it. */
        double dots[LANES] = {0}, squares_of[LANES] = {0};
        int64_t j = 0;
        for (; j + LANES <= size; j += LANES) {
            for (int l = 0; l < LANES; l++) {
                double value = keep * theta[j + l] + push * row[j + l];
                theta[j + l] = value;
                squares_of[l] += value * value;
                dots[l] += next[j + l] * value;
            }
        }
        dot = 0.0;
        squared = 0.0;
        for (; j < size; j++) {
            double value = keep * theta[j] + push * row[j];
            theta[j] = value;
            squared += value * value;
            dot += next[j] * value;
        }
        for (int l = 0; l < LANES; l++) {
            dot += dots[l];
            squared += squares_of[l];
        }
        double far = sqrt(squared);
        if (far > travelled) travelled = far;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (end.tv_sec - begin.tv_sec) + 1e-9 * (end.tv_nsec - begin.tv_nsec);
}
