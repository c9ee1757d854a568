// The room on the screen.
#include "room.h"

#include "art.h"
#include "creatures.h"
#include "hardware.h"
#include "random.h"
#include "effects.h"
#include "video.h"

#define COLUMNS_OF_CELLS 10
#define ROWS_OF_CELLS 8
#define CELLS (COLUMNS_OF_CELLS * ROWS_OF_CELLS)
#define LAST_ROOM_OF_LIGHTHOUSE 7
#define LAST_ROOM_OF_CAVES 15

#define SPIKES_DOWN_FRAMES 56  // and up to 31 more
#define SPIKES_WARN_FRAMES 24
#define SPIKES_UP_FRAMES 40
#define SPIKE_BYTES 64

uint8_t cells[9 * CELLS_IN_A_ROW];
uint8_t room, part, doors_open, item, item_x, item_y, keys_taken, hearts_taken, spikes_up, has_spikes;
static uint8_t spike_frames;

static void draw_cell(uint8_t *to, const uint8_t *tiles) {
    to[0] = tiles[0];
    to[1] = tiles[1];
    to[IMAGE_WIDTH] = tiles[2];
    to[IMAGE_WIDTH + 1] = tiles[3];
}

static uint8_t this_floor(void) { return part_floors[PARTS - part]; }

static const uint8_t *tiles_of(uint8_t number) { return cell_tiles + ((uint16_t)number << 2); }

static void load_cells(void) {
    const uint8_t *from = room_cells + (uint16_t)room * CELLS;
    uint8_t *to = cells + CELLS_IN_A_ROW, *image_row = image[HUD_ROWS];
    uint8_t x, y;
    has_spikes = 0;
    for (y = 0; y < ROWS_OF_CELLS; y++) {
        uint8_t *target = image_row;
        for (x = 0; x < COLUMNS_OF_CELLS; x++) {
            uint8_t number = *from++, kind = cell_kinds[number];
            if ((kind & 0xF8) == KIND_DOOR && doors_open & (1 << (kind & 7))) {
                number = this_floor();
                kind = 0;
            }
            if (kind == KIND_SPIKES) has_spikes = 1;
            *to++ = kind;
            draw_cell(target, tiles_of(number));
            target += 2;
        }
        to += CELLS_IN_A_ROW - COLUMNS_OF_CELLS;
        image_row += 2 * IMAGE_WIDTH;
    }
}

static void load_item(void) {
    const uint8_t *from = room_items + (uint8_t)(3 * room);
    item = from[0];
    item_x = from[1];
    item_y = from[2];
    if (item > KEYS) {
        if (hearts_taken & (1 << (uint8_t)(item - KEYS - 1))) item = 0;
    } else if (item && keys_taken & (1 << (uint8_t)(item - 1))) {
        item = 0;
    }
}

static void show_spikes(uint8_t stage) {
    spikes_up = stage;
    video_copy(BACKGROUND_TILES + TILE_SPIKES * 16, spike_tiles + (uint8_t)(stage * SPIKE_BYTES), SPIKE_BYTES / 32);
}

void room_load(void) {
    part = room > LAST_ROOM_OF_CAVES ? 1 : room > LAST_ROOM_OF_LIGHTHOUSE ? 2 : 3;
    load_cells();
    load_item();
    creatures_load(room_creatures + (uint8_t)(9 * room));
    show_spikes(0);
    spike_frames = SPIKES_WARN_FRAMES;
}

static void replace_cells(uint8_t kind, const uint8_t *tiles, uint8_t new_kind) {
    uint8_t index, row, place;
    for (index = CELLS_IN_A_ROW; index < 9 * CELLS_IN_A_ROW; index++) {
        if (cells[index] != kind) continue;
        cells[index] = new_kind;
        row = (index >> 4) << 1;
        place = (index & 15) << 1;
        draw_cell(image[row] + place, tiles);
        video_mark(row);
        video_mark(row + 1);
    }
}

void room_open_door(uint8_t door) {
    doors_open |= 1 << door;
    replace_cells(KIND_DOOR + door, tiles_of(this_floor()), 0);
}

void room_light_lamp(void) { replace_cells(KIND_LAMP, lit_lamp, KIND_LAMP); }

void room_update_spikes(void) {
    if (!has_spikes || --spike_frames) return;
    switch (spikes_up) {
        case 0:
            show_spikes(1);
            spike_frames = SPIKES_WARN_FRAMES;
            break;
        case 1:
            show_spikes(2);
            sound_spikes();
            spike_frames = SPIKES_UP_FRAMES;
            break;
        default:
            show_spikes(0);
            spike_frames = SPIKES_DOWN_FRAMES + (random() & 31);
    }
}
