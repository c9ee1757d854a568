#pragma once
#include <stdint.h>

// What the rules think of a cell; draw_art.py writes the same numbers.
#define KIND_SPIKES 0x01
#define KIND_SOLID 0x80  // bit 7 of all that nobody walks through
#define KIND_DOOR 0xA0   // + the number of the door, 0 to 5
#define KIND_LAMP 0xC0

#define CELLS_IN_A_ROW 16  // 10 are on the screen; so a place on the screen gives its cell without a multiplication
#define CELL_AT(x, y) cells[(uint8_t)(((y) & 0xF0) | ((uint8_t)(x) >> 4))]

#define PARTS 3
#define ROOMS_IN_A_ROW 4
#define KEYS 6

extern uint8_t cells[9 * CELLS_IN_A_ROW];  // kinds; the first row is under the two top rows of the screen
extern uint8_t room, part;                 // 0 to 23, row by row from the top left; 1 shore, 2 caves, 3 lighthouse
extern uint8_t doors_open;                 // one bit a door
extern uint8_t item, item_x, item_y;       // 0 none, 1 to 6 a key, from 7 a heart
extern uint8_t keys_taken, hearts_taken;   // one bit each
extern uint8_t spikes_up;                  // 0 down, 1 about to rise, 2 up
extern uint8_t has_spikes;

void room_load(void);                // cells, picture, item and creatures of `room`
void room_open_door(uint8_t door);   // in cells and picture
void room_light_lamp(void);          // in the picture
void room_update_spikes(void);       // one frame
