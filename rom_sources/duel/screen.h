#pragma once
#include <stdint.h>

#define COLUMNS 20
#define ROWS 18

// Rows of the picture that change while it is shown: each has an image in RAM and goes to video memory in v-blank.
#define ROW_BARS 0
#define ROW_NAMES 1
#define ROW_BANNER 2
#define ROW_HINT 3
#define LIVE_ROWS 4

extern uint8_t live_rows[LIVE_ROWS][32];
extern uint8_t live_rows_changed;  // one bit a row

void screen_load(void);
void screen_show(const uint8_t *map);
void screen_plan(void);
void screen_text(uint8_t row, uint8_t column, const char *text);
void screen_centre(uint8_t row, const char *text);
void screen_clear(uint8_t row);
