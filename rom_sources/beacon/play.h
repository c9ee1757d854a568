#pragma once
#include <stdint.h>

enum result { RESULT_NONE, RESULT_WON, RESULT_LOST };

extern uint8_t lives;       // 5 to 0
extern uint8_t keys;        // found so far, 0 to 6
extern uint8_t doors;       // opened so far, 0 to 6
extern uint8_t light;       // of the lantern, 0 to 240; it shines when it is full
extern uint8_t result;
extern uint8_t hurt_frames; // for which nothing more can happen to the keeper

void play_begin(uint8_t first_part);  // 1 to 3
uint8_t play_update(void);            // one frame; 1 when the player has seen the result
