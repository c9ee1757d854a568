#pragma once
#include <stdint.h>

#define LEVELS 3

void opponent_begin_round(uint8_t level);
void opponent_think(void);  // sets opponent.buttons
