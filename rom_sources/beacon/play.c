// The rules: keys, doors, lives, the lantern, and the end.
#include "play.h"

#include "art.h"
#include "creatures.h"
#include "hardware.h"
#include "input.h"
#include "player.h"
#include "room.h"
#include "effects.h"
#include "video.h"

#define MOST_LIVES 5
#define FULL_LIGHT 240
#define LIGHT_IN_A_COLUMN_SHIFT 3  // 30 columns of the gauge show it
#define GAUGE_TILES 4
#define HURT_FRAMES 96
#define PAUSE_FRAMES 24
#define FLASH_FRAMES 8
#define RESULT_FRAMES 90
#define REACH 12  // pixels between the keeper and an item

#define SLOT_KEEPER 0
#define SLOT_ITEM 1
#define SLOT_CREATURES 2

static const uint8_t first_rooms[PARTS] = {21, 13, 6};
static const uint8_t first_x[PARTS] = {72, 80, 80};
static const uint8_t first_y[PARTS] = {72, 128, 128};

uint8_t lives, keys, doors, light, result, hurt_frames;
static uint8_t entry_x, entry_y, pause_frames, flash_frames, frames, shown_columns, keeper_tile, keeper_shown;
static uint8_t seen_x[CREATURES], seen_y[CREATURES], seen_tile[CREATURES];

// --- the two rows at the top of the screen ---

static void draw_hearts(void) {
    uint8_t i, *to = image[0] + 1;
    for (i = 0; i < MOST_LIVES; i++) *to++ = i < lives ? TILE_HEART : TILE_NO_HEART;
    video_mark(0);
}

static void draw_keys(void) {
    uint8_t i, bit = 1, *to = image[0] + 13;
    for (i = 0; i < KEYS; i++) {
        uint8_t tile = TILE_BLANK;
        if (doors_open & bit) {
            tile = open_emblems[i];
        } else if (keys_taken & bit) {
            tile = held_emblems[i];
        }
        *to++ = tile;
        bit <<= 1;
    }
    video_mark(0);
}

static void draw_gauge(void) {
    uint8_t i, left = light >> LIGHT_IN_A_COLUMN_SHIFT, *to = image[0] + 8;
    shown_columns = left;
    if (light == FULL_LIGHT) left = 8 * GAUGE_TILES;
    for (i = 0; i < GAUGE_TILES; i++) {
        uint8_t filled = left > 8 ? 8 : left;
        *to++ = gauge_tiles[filled];
        left -= filled;
    }
    video_mark(0);
}

static const char *const part_names[PARTS] = {"THE SHORE", "THE CAVES", "THE LIGHTHOUSE"};

// --- sprites ---

static const uint8_t keeper_tiles[] = {FIGURE_KEEPER_DOWN, FIGURE_KEEPER_UP, FIGURE_KEEPER_SIDE, FIGURE_KEEPER_SIDE};
static const uint8_t creature_tiles[] = {0, FIGURE_CRAB, FIGURE_BAT, FIGURE_GHOST};

static void show_keeper(void) {
    uint8_t tile = keeper_tiles[facing];
    if (hurt_frames & 4) {
        video_hide(SLOT_KEEPER);
        return;
    }
    if (player_walks && frames & 8) tile += 4;
    video_sprite(SLOT_KEEPER, player_x, player_y - 3, tile, facing == LEFT ? MIRRORED : 0);
}

static void show_creature(uint8_t i) {
    const struct creature *one = &creatures[i];
    uint8_t tile;
    if (!one->kind) return;
    tile = creature_tiles[one->kind];
    if (one->dazzled) {
        tile |= 0x80;
    } else if (one->steps & 8) {
        tile += 4;
    }
    if (seen_x[i] == one->x && seen_y[i] == one->y && seen_tile[i] == tile) return;
    seen_x[i] = one->x;
    seen_y[i] = one->y;
    seen_tile[i] = tile;
    video_sprite(SLOT_CREATURES + i, one->x, one->y, tile & 0x7F, tile & 0x80 ? 0 : OTHER_PALETTE);
}

static void show_item(void) {
    if (item == 0) {
        video_hide(SLOT_ITEM);
    } else if (item > KEYS) {
        video_sprite(SLOT_ITEM, item_x, item_y, FIGURE_HEART, 0);
    } else {
        video_sprite(SLOT_ITEM, item_x + 4, item_y, FIRST_KEY + ((item - 1) << 1), 0);
        OAM[8 * SLOT_ITEM + 4] = 0;  // a key is one sprite wide
    }
}

static void show_all(void) {
    uint8_t i;
    show_item();
    for (i = 0; i < CREATURES; i++) {
        seen_tile[i] = 0xFF;
        show_creature(i);
    }
    show_keeper();
}

// --- rooms ---

static void enter_room(void) {
    room_load();
    entry_x = player_x;
    entry_y = player_y;
    video_hide_sprites();
    video_centre(1, part_names[part - 1]);
    video_swap();
    show_all();
}

static void leave_room(uint8_t direction) {
    switch (direction) {
        case LEFT:
            room--;
            player_x = 151;
            break;
        case RIGHT:
            room++;
            player_x = 8;
            break;
        case UP:
            room -= ROOMS_IN_A_ROW;
            player_y = 137;
            break;
        default:
            room += ROOMS_IN_A_ROW;
            player_y = 22;
    }
    enter_room();
}

// --- rules ---

static void hurt(void) {
    lives--;
    draw_hearts();
    sound_hurt();
    hurt_frames = HURT_FRAMES;
    pause_frames = PAUSE_FRAMES;
    if (lives == 0) {
        result = RESULT_LOST;
        pause_frames = RESULT_FRAMES;
    }
}

static void finish(void) {
    result = RESULT_WON;
    pause_frames = RESULT_FRAMES;
    room_light_lamp();
    sound_finish();
}

static void open_door(uint8_t door) {
    if (!(keys_taken & (1 << door))) return;
    room_open_door(door);
    doors++;
    sound_door();
    draw_keys();
}

static void take_item(void) {
    uint8_t distance = item_x - player_x + REACH;
    if (distance > 2 * REACH) return;
    distance = item_y - player_y + REACH;
    if (distance > 2 * REACH) return;
    if (item > KEYS) {
        if (lives == MOST_LIVES) return;
        hearts_taken |= 1 << (uint8_t)(item - KEYS - 1);
        lives++;
        draw_hearts();
        sound_heart();
    } else {
        keys_taken |= 1 << (uint8_t)(item - 1);
        keys++;
        draw_keys();
        sound_key();
    }
    item = 0;
    show_item();
}

static void shine(void) {
    light = 0;
    flash_frames = FLASH_FRAMES;
    BGP = 0x90;
    creatures_dazzle();
    sound_lantern();
}

static void run_lantern(void) {
    if (light == FULL_LIGHT) {
        if (buttons & (BUTTON_A | BUTTON_B)) shine();
    } else {
        light++;
    }
    if (light >> LIGHT_IN_A_COLUMN_SHIFT != shown_columns) draw_gauge();
}

static uint8_t is_hit(void) {
    if (spikes_up == 2 && CELL_AT(player_x, player_y) == KIND_SPIKES) return 1;
    return creatures_touch_keeper();
}

void play_begin(uint8_t first_part) {
    uint8_t before = first_part - 1;
    keys = doors = before << 1;
    keys_taken = doors_open = (1 << keys) - 1;
    hearts_taken = 0;
    lives = MOST_LIVES;
    light = FULL_LIGHT;
    result = RESULT_NONE;
    hurt_frames = pause_frames = flash_frames = 0;
    room = first_rooms[before];
    player_x = first_x[before];
    player_y = first_y[before];
    facing = UP;
    player_walks = 0;
    video_centre(0, "");
    draw_hearts();
    draw_gauge();
    draw_keys();
    enter_room();
}

static uint8_t end_pause(void) {
    if (result != RESULT_NONE) return 1;
    player_x = entry_x;
    player_y = entry_y;
    return 0;
}

uint8_t play_update(void) {
    uint8_t left;
    frames++;
    if (flash_frames && --flash_frames == 0) BGP = 0xE4;
    if (pause_frames) {
        if (--pause_frames == 0 && end_pause()) return 1;
        hurt_frames -= hurt_frames != 0;
        show_keeper();
        return 0;
    }
    room_update_spikes();
    creatures_update();
    left = player_move();
    if (left) {
        leave_room(left - 1);
        return 0;
    }
    if (bumped == KIND_LAMP) {
        finish();
    } else if (bumped >= KIND_DOOR) {
        open_door(bumped & 7);
    }
    if (item) take_item();
    run_lantern();
    if (hurt_frames) {
        hurt_frames--;
    } else if (is_hit()) {
        hurt();
    }
    if (player_walks || hurt_frames || keeper_shown) show_keeper();
    keeper_shown = player_walks || hurt_frames;
    show_creature(0);
    show_creature(1);
    show_creature(2);
    return 0;
}
