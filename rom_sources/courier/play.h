#pragma once
#include <stdint.h>

#define SIGN_SUN 1
#define SIGN_MOON 2
#define RESULT_NONE 0
#define RESULT_WON 1
#define RESULT_LOST 2

extern uint8_t sign;      // 0 while the window is closed
extern uint8_t sign_seen; // the sign as long as it is on the screen, else 0
extern uint8_t at_fork;   // whether a gate can be chosen
extern uint8_t chosen;    // 0, or the sign of the gate
extern uint8_t result;
extern uint8_t frames;    // since the road began, modulo 256
extern uint16_t steps;    // walked so far
extern uint16_t left;     // steps to the fork
extern uint8_t scroll;    // of the background, in pixels

void play_begin(void);
uint8_t play_update(void);  // one frame; whether START ends it
