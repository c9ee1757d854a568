#pragma once
#include <stdint.h>

#define COLUMNS 20
#define ROWS 18

void video_off(void);                                  // in v-blank
void video_load(const uint8_t *tiles, uint16_t size);  // background tiles, with the screen off
void video_load_sprites(void);
void video_show_title(const uint8_t *map);
void video_show_road(uint8_t number);                  // its columns are there; the screen is on afterwards
void video_row(const uint8_t *tiles);                  // the 20 tiles of the row below the picture

void video_figure(uint8_t first_slot, uint8_t x, uint8_t y, uint8_t tile, const uint8_t *pieces, uint8_t slots);
void video_hide(uint8_t first_slot, uint8_t slots);
