// The road on the screen. Its map in video memory is a ring of 32 columns: each step brings one column into sight.
#include "road.h"

#include "art.h"
#include "hardware.h"

#define HEIGHT 16  // tiles of a column
#define INN_COLUMNS 16
#define GATES_COLUMNS 18
#define GATES_BEFORE 2  // columns of the gates' picture before the fork
#define AHEAD 16        // columns from the courier to the one behind the right edge

uint8_t road, scenery;
uint16_t fork;
static uint16_t land;  // column where the stretches of 8 columns begin
static uint8_t column_waits;
static const uint8_t *column_from;
static uint8_t *column_to;

static const uint16_t lengths[ROADS] = {25, 100, 300, 1000};

static const uint8_t *tiles_of(uint16_t column) {
    uint8_t stretch;
    if (column < INN_COLUMNS) return inn_tiles + (uint16_t)(column << 4);
    if (column >= fork - GATES_BEFORE) {
        column -= fork - GATES_BEFORE;
        return column < GATES_COLUMNS ? gates_tiles + (uint16_t)(column << 4) : plain_tiles;
    }
    if (column < land) return plain_tiles;
    column -= land;
    stretch = (uint8_t)(column >> 3);
    if (stretch) stretch += scenery;  // the first one is on the screen before scenery is drawn by lot
    stretch = block_order[stretch & (BLOCK_ORDER - 1)];
    return block_tiles + ((uint16_t)stretch << 7) + ((uint8_t)(column & 7) << 4);
}

static void take(uint16_t column) {
    column_from = tiles_of(column);
    column_to = BACKGROUND_MAP + ((uint8_t)column & 31);
}

void road_flush(void) {
    const uint8_t *from = column_from;
    uint8_t *to = column_to;
    uint8_t left = HEIGHT;
    if (!column_waits) return;
    column_waits = 0;
    do {
        *to = *from++;
        to += 32;
    } while (--left);
}

void road_prepare(uint16_t at) {
    take(at + AHEAD);
    column_waits = 1;
}

void road_load(void) {
    uint8_t column;
    fork = LAST_SIGHT + 1 + lengths[road - 1];
    land = INN_COLUMNS + ((uint8_t)(fork - GATES_BEFORE - INN_COLUMNS) & 7);
    for (column = 0; column <= FIRST_COLUMN + AHEAD; column++) {
        take(column);
        column_waits = 1;
        road_flush();
    }
}
