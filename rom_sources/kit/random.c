#include "random.h"

uint16_t rng_seed;

// xorshift with the triple (7, 9, 8): all 65,535 states but zero, which it can never leave.
uint8_t random(void) {
    uint16_t x = rng_seed;
    if (x == 0) x = 0xD0E1;
    x ^= x << 7;
    x ^= x >> 9;
    x ^= x << 8;
    rng_seed = x;
    return (uint8_t)x ^ (uint8_t)(x >> 8);
}
