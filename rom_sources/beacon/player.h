#pragma once
#include <stdint.h>

enum direction { DOWN, UP, LEFT, RIGHT };

extern uint8_t player_x, player_y;  // the middle of the keeper's feet, pixels of the screen
extern uint8_t facing, player_walks;
extern uint8_t bumped;  // the kind of the solid cell that stopped the keeper in this frame, or 0

// Moves by the buttons; returns 1 + the direction if the keeper has left the room, else 0.
uint8_t player_move(void);
