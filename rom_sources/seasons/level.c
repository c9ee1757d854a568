// The level on the screen. Its map in video memory is a ring of 32 columns: whenever the screen has moved by one, the column
// that comes next on the right is copied over the one that has left.
#include "level.h"

#include "art.h"
#include "creatures.h"
#include "hardware.h"
#include "video.h"

#define CELLS_IN_A_COLUMN 8
#define MOST_COLUMNS 112
#define SCREEN_COLUMNS 22  // of tiles, with those that are seen in part
#define SCREEN_WIDTH 160
#define LEAD 64  // pixels between the left edge and the fox
#define CELL(x, y) (((uint16_t)((x) & 0xFFF0) >> 1) | ((uint8_t)(y) >> 4))

uint8_t level, columns;
uint16_t camera, camera_end;
uint8_t cells[MOST_COLUMNS * CELLS_IN_A_COLUMN];
static uint8_t drawn_columns, stale_column, stale_columns;

uint8_t column_waits, column_tiles[16], column_palettes[16];  // read by flush_column
uint8_t *column_to;

static void prepare_column(uint8_t column) {
    const uint8_t *from = cells + ((uint16_t)(column >> 1) << 3), *tiles;
    uint8_t *to = column_tiles, *palettes = column_palettes;
    uint8_t half = (column & 1) << 1, y, palette;
    for (y = 0; y < CELLS_IN_A_COLUMN; y++) {
        tiles = cell_tiles + ((uint16_t)*from << 2) + half;
        palette = cell_palettes[*from++];
        *to++ = tiles[0];
        *to++ = tiles[1];
        *palettes++ = palette;
        *palettes++ = palette;
    }
    column_to = BACKGROUND_MAP + (column & 31);
    column_waits = 1;
}

void level_load(void) {
    const uint8_t *from = level_cells[level - 1];
    uint16_t i, size;
    columns = level_columns[level - 1];
    size = (uint16_t)columns << 3;
    for (i = 0; i < size; i++) cells[i] = *from++;
    camera = 0;
    camera_end = ((uint16_t)columns << 4) - SCREEN_WIDTH;
    for (drawn_columns = 0; drawn_columns < SCREEN_COLUMNS; drawn_columns++) {
        prepare_column(drawn_columns);
        flush_column();
    }
    stale_columns = 0;
    creatures_load(level_creatures[level - 1]);
}

void level_follow(uint16_t x) {
    if (x < camera + LEAD) return;
    camera = x - LEAD;
    if (camera > camera_end) camera = camera_end;
}

uint8_t level_kind(uint16_t x, int16_t y) {
    if (y < 0 || y >= LEVEL_HEIGHT) return 0;
    return cell_kinds[cells[CELL(x, y)]];
}

void level_take(uint16_t x, int16_t y) {
    cells[CELL(x, y)] = CELL_AIR;
    stale_column = (uint8_t)(x >> 4) << 1;
    stale_columns = 2;
}

void level_plan(void) {
    if (drawn_columns < (uint8_t)(camera >> 3) + SCREEN_COLUMNS && drawn_columns < columns << 1) {
        prepare_column(drawn_columns++);
    } else if (stale_columns) {
        stale_columns--;
        prepare_column(stale_column++);
    }
}
