#pragma once
#include <stdint.h>

#define COLUMNS 20
#define ROWS 18
#define HUD_ROWS 2
#define IMAGE_WIDTH 32

extern uint8_t image[ROWS][IMAGE_WIDTH];  // the picture; single rows go to video memory when they are marked

void video_load(const uint8_t *tiles, uint16_t size);           // background tiles, with the screen off
void video_load_sprites(void);
void video_show(const uint8_t *map);                            // a whole picture, or 0: black; with the screen off
void video_swap(void);                                          // the image replaces what is shown, in seven frames
void video_mark(uint8_t row);                                   // this row of the image has changed
void video_copy(uint8_t *to, const uint8_t *from, uint8_t units);  // units of 32 bytes, in the next v-blank
void video_plan(void);                                          // chooses the row that the next v-blank copies
void video_text(uint8_t row, uint8_t column, const char *text);
void video_centre(uint8_t row, const char *text);               // alone in a black row

void video_hide_sprites(void);
void video_sprite(uint8_t slot, uint8_t x, uint8_t y, uint8_t tile, uint8_t attributes);  // 16 x 16, its middle at (x, y)
void video_hide(uint8_t slot);

#define MIRRORED 0x20
#define OTHER_PALETTE 0x10
