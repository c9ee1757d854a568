#include "frame.h"

uint8_t oam_changed, copy_count;
const uint8_t *row_from, *copy_from;
uint8_t *row_to, *copy_to;
uint8_t figure_x, figure_y, figure_tile, figure_palette, figure_slots;
