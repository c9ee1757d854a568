// The road: an inn, a way through the land, a wall with two gates. A column is 8 pixels, as far as one step goes.
#pragma once
#include <stdint.h>

#define ROADS 4
#define FIRST_COLUMN 5     // where the courier begins
#define LAST_SIGHT 13      // the last column from which the sign of the inn can be seen
#define COURIER_SCREEN_X 40

extern uint8_t road;       // 1 lane, 2 road, 3 valley, 4 pass
extern uint16_t fork;      // column in front of the two gates

extern uint8_t scenery;    // which stretches of land come first, 0 to 15; it changes nothing but the view

void road_load(void);              // with the screen off
void road_prepare(uint16_t at);    // the column that comes into sight when the courier stands at this one
void road_flush(void);             // copies it, in v-blank
