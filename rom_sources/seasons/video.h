#pragma once
#include <stdint.h>

#define COLUMNS 20
#define ROWS 18

extern uint8_t hud[32];  // the upper row of the window at the bottom; goes to video memory when hud_changed is set
extern uint8_t hud_changed;

void flush_column(void);                                       // column.s

void video_off(void);                                          // in v-blank
void video_load(const uint8_t *tiles, uint16_t size);          // background tiles, with the screen off
void video_load_sprites(void);
void video_palettes(uint8_t season);                           // 0 to 3
void video_show_title(const uint8_t *map);
void video_show_level(void);
void video_plan(void);
void video_text(const char *text);                             // in the row, from its middle; blanks around it

void video_hide_sprites(void);
void video_sprite(uint8_t slot, uint8_t x, uint8_t y, uint8_t tile, uint8_t attributes);  // 16 x 16, its middle at (x, y)
void video_hide(uint8_t slot);

#define MIRRORED 0x20
