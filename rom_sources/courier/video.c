// Tiles, sprites, and the row at the bottom: on the road it is a window, in the title a row of the picture.
#include "video.h"

#include "art.h"
#include "frame.h"
#include "hardware.h"

#define HIGH_TILES ((uint8_t *)0x8800)  // background tiles from 128
#define TITLE_ROW 16
#define WINDOW_TOP 128
#define WINDOW_LEFT 7
#define OAM_X 8
#define OAM_Y 16

static uint8_t title_is_shown;

static void copy(uint8_t *to, const uint8_t *from, uint16_t size) {
    while (size--) *to++ = *from++;
}

// The screen of a real console must be switched off in v-blank only; while it is off there is none to wait for.
void video_off(void) {
    if (LCDC & LCD_ENABLED) wait_vblank();
    LCDC = LCD_OFF;
}

void video_load(const uint8_t *tiles, uint16_t size) {
    if (size > 2048) {
        copy(HIGH_TILES, tiles + 2048, size - 2048);
        size = 2048;
    }
    copy(BACKGROUND_TILES, tiles, size);
}

void video_load_sprites(void) {
    copy(SPRITE_TILES, sprite_tiles, sprite_tiles_size);
    SCY = 0;
    BGP = 0xE4;
    OBP0 = 0xE0;  // white, dark, black
}

static void begin_picture(void) {
    uint8_t i;
    for (i = 0; i < 160; i++) OAM[i] = 0;
    run_dma();
    oam_changed = 0;
    row_from = 0;
    SCX = 0;
}

void video_show_title(const uint8_t *map) {
    uint8_t y, *to = BACKGROUND_MAP;
    for (y = 0; y < ROWS; y++) {
        copy(to, map, COLUMNS);
        map += COLUMNS;
        to += 32;
    }
    title_is_shown = 1;
    begin_picture();
    LCDC = LCD_ON;
}

void video_show_road(uint8_t number) {
    copy(WINDOW_MAP, text_empty, COLUMNS);
    copy(WINDOW_MAP + 32, text_empty, COLUMNS);
    copy(WINDOW_MAP + 32 + 2, text_marks, number);
    WX = WINDOW_LEFT;
    WY = WINDOW_TOP;
    title_is_shown = 0;
    begin_picture();
    LCDC = LCD_ON | LCD_WINDOW;
}

void video_row(const uint8_t *tiles) {
    row_to = title_is_shown ? BACKGROUND_MAP + 32 * TITLE_ROW : WINDOW_MAP;
    row_from = tiles;
}

void video_figure(uint8_t first_slot, uint8_t x, uint8_t y, uint8_t tile, const uint8_t *pieces, uint8_t slots) {
    figure_x = x + OAM_X;
    figure_y = y + OAM_Y;
    figure_tile = tile;
    figure_palette = 0;
    figure_slots = slots;
    draw_figure(OAM + (uint8_t)(first_slot << 2), pieces);
    oam_changed = 1;
}

void video_hide(uint8_t first_slot, uint8_t slots) {
    uint8_t *to = OAM + (uint8_t)(first_slot << 2);
    while (slots--) {
        *to = 0;
        to += 4;
    }
    oam_changed = 1;
}
