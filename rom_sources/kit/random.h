#pragma once
#include <stdint.h>

extern uint16_t rng_seed;  // the generator's state; may be written at any time, zero included

uint8_t random(void);
