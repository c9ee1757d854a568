// What flush_video copies in the next v-blank, and what draw_figure draws with. Nobody else may write to video memory while
// the screen is on. A game that has another place for these variables in RAM defines them itself and leaves frame.c out.
#pragma once
#include <stdint.h>

extern uint8_t oam_changed;  // the OAM image goes to the sprites by DMA

extern const uint8_t *row_from;  // 20 tiles of the background; 0: no row
extern uint8_t *row_to;

extern uint8_t copy_count;  // of pairs of tiles, 32 bytes each: 4 beside a row and the DMA
extern const uint8_t *copy_from;
extern uint8_t *copy_to;  // a multiple of 32

extern uint8_t figure_x, figure_y;    // added to the places of the figure's sprites
extern uint8_t figure_tile;           // added to their tiles
extern uint8_t figure_palette;        // their attributes
extern uint8_t figure_slots;          // sprites that belong to the figure; those it does not need are hidden
