#pragma once
#include <stdint.h>

extern uint16_t runner_x;   // middle of the fox, pixels of the level
extern int16_t runner_y;    // its feet; the level is 128 pixels high
extern int8_t runner_speed; // downwards, 1/16 of a pixel a frame
extern uint8_t on_ground, faces_left, runner_walks;

void runner_place(uint16_t x, int16_t y);
void runner_move(void);  // one frame, by the buttons
void runner_bounce(int8_t speed);
