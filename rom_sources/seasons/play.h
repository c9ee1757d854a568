#pragma once
#include <stdint.h>

enum result { RESULT_NONE, RESULT_WON, RESULT_LOST };

extern uint8_t lives;        // 3 to 0
extern uint8_t apples, stomps;
extern uint8_t progress;     // the furthest place so far, in 8 pixels
extern uint8_t result;
extern uint8_t hurt_frames;  // for which nothing more can happen to the fox

void play_begin(void);        // the level that `level` says
uint8_t play_update(void);    // one frame; 1 when the player has asked to go on after the result
