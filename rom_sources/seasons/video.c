// Tiles, palettes, sprites, and the window at the bottom.
#include "video.h"

#include "art.h"
#include "frame.h"
#include "hardware.h"

#define HIGH_TILES ((uint8_t *)0x8800)  // background tiles from 128
#define TITLE_ROW 16
#define WINDOW_TOP 128
#define WINDOW_LEFT 7
#define PALETTE_BYTES 64
#define OAM_X 8
#define OAM_Y 16

uint8_t hud[32], hud_changed;
static uint8_t title_is_shown;

// (y, x, tile) of the two halves, for draw_figure.
static const uint8_t plain[] = {2, 0, 0, 0, 0, 8, 2};
static const uint8_t mirrored[] = {2, 0, 0, 2, 0, 8, 0};

static void copy(uint8_t *to, const uint8_t *from, uint16_t size) {
    while (size--) *to++ = *from++;
}

static void fill(uint8_t *to, uint8_t value, uint16_t size) {
    while (size--) *to++ = value;
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
    uint8_t i;
    copy(SPRITE_TILES, sprite_tiles, sprite_tiles_size);
    OCPS = 0x80;
    for (i = 0; i < PALETTE_BYTES / 2; i++) OCPD = sprite_palettes[i];
}

void video_palettes(uint8_t season) {
    const uint8_t *from = season_palettes + (uint16_t)season * PALETTE_BYTES;
    uint8_t i;
    BCPS = 0x80;
    for (i = 0; i < PALETTE_BYTES; i++) BCPD = *from++;
}

static void begin_picture(void) {
    row_from = 0;
    hud_changed = 0;
    video_hide_sprites();
    run_dma();
}

void video_show_title(const uint8_t *map) {
    uint8_t y, *to = BACKGROUND_MAP;
    VBK = 1;
    fill(BACKGROUND_MAP, 0, 32 * ROWS);
    fill(BACKGROUND_MAP + 32 * TITLE_ROW, PAPER, 32);
    VBK = 0;
    for (y = 0; y < ROWS; y++) {
        copy(to, map, COLUMNS);
        map += COLUMNS;
        to += 32;
    }
    SCX = 0;
    title_is_shown = 1;
    begin_picture();
    LCDC = LCD_ON;
}

void video_show_level(void) {
    VBK = 1;
    fill(WINDOW_MAP, PAPER, 64);
    VBK = 0;
    fill(WINDOW_MAP, TILE_BLANK, 64);
    SCX = 0;
    WX = WINDOW_LEFT;
    WY = WINDOW_TOP;
    title_is_shown = 0;
    begin_picture();
    hud_changed = 1;
    LCDC = LCD_ON | LCD_WINDOW;
}

void video_plan(void) {
    if (!hud_changed) return;
    hud_changed = 0;
    row_to = title_is_shown ? BACKGROUND_MAP + 32 * TITLE_ROW : WINDOW_MAP;
    row_from = hud;
}

void video_text(const char *text) {
    uint8_t length = 0, *to;
    char c;
    while (text[length]) length++;
    fill(hud, TILE_BLANK, COLUMNS);
    to = hud + ((COLUMNS - length) >> 1);
    while ((c = *text++) != 0) {
        uint8_t tile = TILE_BLANK;
        if (c >= 'A' && c <= 'Z') {
            tile = c - 'A' + TILE_A;
        } else if (c >= '0' && c <= '9') {
            tile = c - '0' + TILE_0;
        } else if (c == '!') {
            tile = TILE_BANG;
        } else if (c == '.') {
            tile = TILE_DOT;
        } else if (c == '>') {
            tile = TILE_CURSOR;
        }
        *to++ = tile;
    }
    hud_changed = 1;
}

void video_hide_sprites(void) {
    fill(OAM, 0, 160);
    oam_changed = 1;
}

void video_sprite(uint8_t slot, uint8_t x, uint8_t y, uint8_t tile, uint8_t attributes) {
    figure_x = x + OAM_X - 8;
    figure_y = y + OAM_Y - 8;
    figure_tile = tile;
    figure_palette = attributes;
    figure_slots = 2;
    draw_figure(OAM + (uint8_t)(slot << 3), attributes & MIRRORED ? mirrored : plain);
    oam_changed = 1;
}

void video_hide(uint8_t slot) {
    uint8_t *to = OAM + (uint8_t)(slot << 3);
    if (!to[0]) return;
    to[0] = 0;
    to[4] = 0;
    oam_changed = 1;
}
