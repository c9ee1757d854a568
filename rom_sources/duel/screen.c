// The background: whole pictures with the screen off, single rows in v-blank.
#include "screen.h"

#include "art.h"
#include "hardware.h"
#include "sprites.h"

uint8_t live_rows[LIVE_ROWS][32];
uint8_t live_rows_changed;

static const uint8_t row_places[LIVE_ROWS] = {1, 2, 5, 7};
#define ROW_TARGET(y) ((uint8_t *)(0x9800 + 32 * (y)))  // in BACKGROUND_MAP
static uint8_t *const row_targets[LIVE_ROWS] = {ROW_TARGET(1), ROW_TARGET(2), ROW_TARGET(5), ROW_TARGET(7)};
static uint8_t *const row_images[LIVE_ROWS] = {&live_rows[0][0], &live_rows[1][0], &live_rows[2][0], &live_rows[3][0]};
static const uint8_t *shown_map;
const uint8_t *row_from;  // read by flush_video; 0: no row
uint8_t *row_to;

static void copy(uint8_t *to, const uint8_t *from, uint16_t size) {
    while (size--) *to++ = *from++;
}

// The screen of a real console must be switched off in v-blank only; while it is off there is none to wait for.
static void screen_off(void) {
    if (LCDC & LCD_ENABLED) wait_vblank();
    LCDC = LCD_OFF;
}

void screen_load(void) {
    screen_off();
    copy(BACKGROUND_TILES, background_tiles, background_tiles_size);
    copy(SPRITE_TILES, sprite_tiles, sprite_tiles_size);
    SCX = 0;
    SCY = 0;
    BGP = 0xE4;
    OBP0 = 0xD0;  // the player: white, light, black
    OBP1 = 0xE4;  // the opponent: light, dark, black
}

static const uint8_t *map_row(uint8_t row) {
    const uint8_t *from = shown_map;
    uint8_t y = row_places[row];
    while (y--) from += COLUMNS;
    return from;
}

void screen_clear(uint8_t row) {
    copy(live_rows[row], map_row(row), COLUMNS);
    live_rows_changed |= 1 << row;
}

// Switches to another picture: everything live starts empty, no sprite is shown.
void screen_show(const uint8_t *map) {
    uint8_t y, row;
    uint8_t *to = BACKGROUND_MAP;
    screen_off();
    shown_map = map;
    for (y = 0; y < ROWS; y++) {
        copy(to, map, COLUMNS);
        map += COLUMNS;
        to += 32;
    }
    for (row = 0; row < LIVE_ROWS; row++) screen_clear(row);
    live_rows_changed = 0;
    row_from = 0;
    sprites_clear();
    run_dma();
    LCDC = LCD_ON;
}

// Chooses what the next v-blank copies; flush_video does it.
void screen_plan(void) {
    uint8_t bit = 1, row = 0;
    sprites_plan();
    if (!live_rows_changed) return;
    while (!(live_rows_changed & bit)) {
        bit <<= 1;
        row++;
    }
    live_rows_changed &= ~bit;
    row_to = row_targets[row];
    row_from = row_images[row];
}

void screen_text(uint8_t row, uint8_t column, const char *text) {
    uint8_t *to = live_rows[row] + column;
    char c;
    while ((c = *text++) != 0) {
        uint8_t tile = TILE_SKY;
        if (c >= 'A' && c <= 'Z') {
            tile = c - 'A' + TILE_A;
        } else if (c >= '0' && c <= '9') {
            tile = c - '0' + TILE_0;
        } else if (c == '!') {
            tile = TILE_BANG;
        } else if (c == '.') {
            tile = TILE_DOT;
        } else if (c == '?') {
            tile = TILE_QUERY;
        } else if (c == '>') {
            tile = TILE_CURSOR;
        }
        *to++ = tile;
    }
    live_rows_changed |= 1 << row;
}

// The text alone in the row, in the middle.
void screen_centre(uint8_t row, const char *text) {
    uint8_t length = 0;
    while (text[length]) length++;
    screen_clear(row);
    screen_text(row, (COLUMNS - length) >> 1, text);
}
