#pragma once
#include <stdint.h>

enum creature_kind { NOTHING, SNAIL, BEE, PUFF };

// The order of the fields is the order of the labels in state.s.
struct creature {
    uint8_t kind;
    uint8_t y;   // its middle
    uint16_t x;  // in the level
    int8_t dx;
    uint8_t timer;  // moves until it thinks again
    uint8_t steps;
    uint8_t home;  // the height around which a bee flies
};

#define CREATURES 3
extern struct creature creatures[CREATURES];

void creatures_load(const uint8_t *from);
void creatures_update(void);  // one frame
struct creature *creatures_touching(uint16_t x, uint8_t y);
