#pragma once
#include <stdint.h>

enum creature_kind { NOTHING, CRAB, BAT, GHOST };

// The order of the fields is the order of the labels in state.s.
struct creature {
    uint8_t kind;
    uint8_t x, y;  // its middle on the screen
    int8_t dx, dy;
    uint8_t timer;    // moves until it thinks again
    uint8_t dazzled;  // moves for which it stands still and harms nobody
    uint8_t steps;
};

#define CREATURES 3
extern struct creature creatures[CREATURES];

void creatures_load(const uint8_t *from);
void creatures_update(void);         // one frame
void creatures_dazzle(void);         // those whom the lantern reaches
uint8_t creatures_touch_keeper(void);
