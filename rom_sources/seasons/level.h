#pragma once
#include <stdint.h>

// What the rules think of a cell; draw_art.py writes the same numbers.
#define KIND_APPLE 1
#define KIND_BRAMBLE 2
#define KIND_SOLID 0x80

#define LEVELS 4
#define LEVEL_HEIGHT 128  // pixels; below is the row with lives and apples

extern uint8_t level;     // 1 to 4
extern uint8_t columns;   // of cells in this level
extern uint16_t camera;   // pixels of the level that have left the screen on the left
extern uint16_t camera_end;

void level_load(void);                       // cells and picture, with the screen off
void level_follow(uint16_t x);               // scrolls, so that x is not in the right half of the screen
uint8_t level_kind(uint16_t x, int16_t y);   // of the cell at this pixel; 0 above the screen and below the level
void level_take(uint16_t x, int16_t y);      // the apple there
void level_plan(void);                       // chooses the column that the next v-blank copies
