// The background has two maps: one is on the screen while the next room is copied into the other, so that a room appears at
// once and without a flash. Single rows go to the map on the screen, one in each v-blank.
#include "video.h"

#include "art.h"
#include "frame.h"
#include "hardware.h"

#define HIGH_TILES ((uint8_t *)0x8800)  // background tiles from 128
#define FIRST_MAP 0x9800
#define SECOND_MAP 0x9C00
#define LCD_SECOND_MAP 0x08
#define ROWS_IN_A_BLANK 4
#define QUEUE 16
#define OAM_X 8
#define OAM_Y 16

uint8_t image[ROWS][IMAGE_WIDTH];

static uint16_t shown_map;
static uint8_t queue[QUEUE], queue_first, queue_end;

// (y, x, tile) of the two halves, for draw_figure.
static const uint8_t plain[] = {2, 0, 0, 0, 0, 8, 2};
static const uint8_t mirrored[] = {2, 0, 0, 2, 0, 8, 0};

static void copy(uint8_t *to, const uint8_t *from, uint16_t size) {
    while (size--) *to++ = *from++;
}

// The screen of a real console must be switched off in v-blank only; while it is off there is none to wait for.
static void screen_off(void) {
    if (LCDC & LCD_ENABLED) wait_vblank();
    LCDC = LCD_OFF;
}

void video_load(const uint8_t *tiles, uint16_t size) {
    screen_off();
    if (size > 2048) {
        copy(HIGH_TILES, tiles + 2048, size - 2048);
        size = 2048;
    }
    copy(BACKGROUND_TILES, tiles, size);
}

void video_load_sprites(void) {
    screen_off();
    copy(SPRITE_TILES, sprite_tiles, sprite_tiles_size);
    SCX = 0;
    SCY = 0;
    OBP0 = 0xE0;  // white, dark, black
    OBP1 = 0xD0;  // white, light, black
}

static void fill(uint8_t *to, uint8_t tile) {
    uint8_t left = COLUMNS;
    while (left--) *to++ = tile;
}

static void forget_rows(void) {
    queue_first = queue_end = 0;
    row_from = 0;
}

void video_show(const uint8_t *map) {
    uint8_t y, *to = (uint8_t *)FIRST_MAP;
    screen_off();
    for (y = 0; y < ROWS; y++) {
        if (map) {
            copy(image[y], map, COLUMNS);
            map += COLUMNS;
        } else {
            fill(image[y], TILE_BLANK);
        }
        copy(to, image[y], COLUMNS);
        to += 32;
    }
    forget_rows();
    copy_count = 0;
    BGP = 0xE4;
    shown_map = FIRST_MAP;
    video_hide_sprites();
    run_dma();
    LCDC = LCD_ON;
}

void video_swap(void) {
    uint8_t y, left = 0;
    uint8_t *to;
    shown_map ^= FIRST_MAP ^ SECOND_MAP;
    to = (uint8_t *)shown_map;
    forget_rows();
    wait_vblank();
    flush_video();  // sprites and tiles have a v-blank of their own
    for (y = 0; y < ROWS; y++) {
        if (left == 0) {
            wait_vblank();
            left = ROWS_IN_A_BLANK;
        }
        left--;
        row_from = image[y];
        row_to = to;
        flush_video();
        to += 32;
    }
    wait_vblank();
    LCDC = shown_map == SECOND_MAP ? LCD_ON | LCD_SECOND_MAP : LCD_ON;
}

void video_mark(uint8_t row) {
    queue[queue_end] = row;
    queue_end = (queue_end + 1) & (QUEUE - 1);
}

void video_copy(uint8_t *to, const uint8_t *from, uint8_t units) {
    copy_to = to;
    copy_from = from;
    copy_count = units;
}

void video_plan(void) {
    uint8_t row;
    if (queue_first == queue_end) return;
    row = queue[queue_first];
    queue_first = (queue_first + 1) & (QUEUE - 1);
    row_to = (uint8_t *)(shown_map + ((uint16_t)row << 5));
    row_from = image[row];
}

void video_text(uint8_t row, uint8_t column, const char *text) {
    uint8_t *to = image[row] + column;
    char c;
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
    video_mark(row);
}

void video_centre(uint8_t row, const char *text) {
    uint8_t length = 0;
    while (text[length]) length++;
    fill(image[row], TILE_BLANK);
    video_text(row, (COLUMNS - length) >> 1, text);
}

void video_hide_sprites(void) {
    uint8_t left = 160, *to = OAM;
    while (left--) *to++ = 0;
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
    to[0] = 0;
    to[4] = 0;
    oam_changed = 1;
}
